package motion

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/nvcodec/nvcodec/entropy"
)

// TestRatesAreThoseOfTheCoder compares static costs with the vector coder's. Its probabilities adapt, but with the
// largest weight at the start so slowly that over nine blocks a wrong context would show.
func TestRatesAreThoseOfTheCoder(t *testing.T) {
	m := tensors()
	var coder *entropy.Tables
	rates := new(Rates)
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 11))
		prob, weight := m["entropy.vector.prob"].Data, m["entropy.vector.weight"].Data
		for c := range prob {
			if seed%40 > 0 {
				break // one set of tables serves many fields
			}
			prob[c], weight[c] = int64(1000+rng.IntN(63000)), 60
			p := float64(prob[c]) / 65536
			rates[c] = [2]int32{int32(math.Round(-16 * math.Log2(1-p))), int32(math.Round(-16 * math.Log2(p)))}
		}
		if seed%40 == 0 {
			var err error
			if coder, err = entropy.NewTables(get(m)); err != nil {
				t.Fatal(err)
			}
		}
		hb, wb := 1+rng.IntN(3), 1+rng.IntN(3)
		draw := func() vector { // often equal, sometimes far
			if rng.IntN(4) > 0 {
				return vector{int16(rng.IntN(2)), int16(rng.IntN(2))}
			}
			s := rng.IntN(11)
			return vector{int16((rng.IntN(4095) - 2047) >> s), int16((rng.IntN(4095) - 2047) >> s)}
		}
		c := new(choice)
		c.init(hb, wb)
		field, before := make([]int16, 2*hb*wb), make([]int16, 2*hb*wb)
		var sum int32
		same := true
		for k := range c.v {
			c.v[k], c.kept[k] = draw(), draw()
			field[2*k], field[2*k+1] = c.v[k].y, c.v[k].x
			before[2*k], before[2*k+1] = c.kept[k].y, c.kept[k].x
			a := c.around(k/wb, k%wb)
			c.how[k] = a.coded(c.v[k])
			sum += rates.bits(&a, c.v[k])
			same = same && c.v[k] == c.v[0]
		}
		if same { // coded as a uniform field, which the search does not count on
			continue
		}
		want, _, _ := entropy.IdealBits(coder, &entropy.Payload{Vectors: field, VectorsBefore: before, HB: hb, WB: wb})
		want += math.Log2(1 - float64(prob[0])/65536) // the decision that it is not uniform
		if got := float64(sum) / 16; math.Abs(got-want) > 0.5+0.06*want {
			t.Fatalf("seed %d: %dx%d field %v before %v: %.2f bits, the coder needs %.2f", seed, hb, wb, field, before, got, want)
		}
	}
}
