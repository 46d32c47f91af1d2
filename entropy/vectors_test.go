package entropy

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"
)

// wildField has vectors of all sizes, equal neighbours and extremes.
func wildField(r *rand.Rand, hb, wb int) []int16 {
	f := make([]int16, 2*hb*wb)
	for i := range f {
		switch r.IntN(6) {
		case 0:
			f[i] = []int16{MaxVector, -MaxVector}[r.IntN(2)]
		case 1:
			f[i] = int16(r.IntN(2*MaxVector+1) - MaxVector)
		case 2, 3:
			if i >= 2 {
				f[i] = f[i-2]
			}
		}
	}
	return f
}

// smoothField is like a real one: patches that move alike, noise, the field before with small changes.
func smoothField(r *rand.Rand, hb, wb int, before []int16) []int16 {
	f := make([]int16, 2*hb*wb)
	if before != nil {
		copy(f, before)
	}
	for range 1 + hb*wb/30 {
		y, x, h, w := r.IntN(hb), r.IntN(wb), 1+r.IntN(hb), 1+r.IntN(wb)
		v := [2]int16{int16(r.NormFloat64() * 12), int16(r.NormFloat64() * 20)}
		for i := y; i < min(hb, y+h); i++ {
			for j := x; j < min(wb, x+w); j++ {
				for a := range v {
					f[2*(i*wb+j)+a] = v[a]
					if r.IntN(6) == 0 {
						f[2*(i*wb+j)+a] += int16(r.NormFloat64() * 3)
					}
				}
			}
		}
	}
	return f
}

func vectorBits(t *testing.T, f, before []int16, hb, wb int) float64 {
	t.Helper()
	p := &Payload{Vectors: f, VectorsBefore: before, HB: hb, WB: wb}
	v, _, _ := IdealBits(testTables, p)
	b, err := NewEncoder(testTables).Append(nil, p, 1)
	if err != nil {
		t.Fatal(err)
	}
	if got := float64(8 * len(b)); got > v*1.003+32 {
		t.Errorf("%.0f bits coded, ideal %.1f", got, v)
	}
	q, err := decode(NewDecoder(testTables), b, p, 1)
	if err != nil || !slices.Equal(q.Vectors, f) {
		t.Fatalf("field of %d x %d does not come back: %v", hb, wb, err)
	}
	return v
}

func constant(hb, wb int, y, x int16) []int16 {
	f := make([]int16, 2*hb*wb)
	for i := range hb * wb {
		f[2*i], f[2*i+1] = y, x
	}
	return f
}

func TestSimpleFields(t *testing.T) {
	if v := vectorBits(t, constant(12, 12, 0, 0), nil, 12, 12); v > 8 {
		t.Errorf("zero field: %.1f bits, want at most 8", v)
	} else {
		t.Logf("zero field: %.2f bits", v)
	}
	worst, worstLarge := 0.0, 0.0
	for _, y := range []int16{-2047, -130, -1, 0, 1, 7, 511, 2047} {
		for _, x := range []int16{-2047, -300, 0, 1, 64, 2047} {
			if y == 0 && x == 0 {
				continue
			}
			worst = max(worst, vectorBits(t, constant(12, 12, y, x), nil, 12, 12)/144)
			worstLarge = max(worstLarge, vectorBits(t, constant(68, 120, y, x), nil, 68, 120)/(68*120))
			// A pan that goes on.
			if v := vectorBits(t, constant(12, 12, y, x), constant(12, 12, y, x), 12, 12); v > 28.8 {
				t.Errorf("pan (%d, %d) again: %.1f bits", y, x, v)
			}
		}
	}
	t.Logf("pans: %.4f bits a block at 192x192, %.5f at 1920x1088", worst, worstLarge)
	if worst > 0.2 || worstLarge > 0.01 {
		t.Errorf("pans: %.4f and %.5f bits a block, want at most 0.2 and 0.01", worst, worstLarge)
	}
}

// trainingCoder counts as train/vectors.py does: adaptive counts in floating point.
type trainingCoder struct {
	merge [3][]float64
	size  [2][]float64
}

func countOf(c []float64, k int) float64 {
	sum := 0.0
	for _, v := range c {
		sum += v
	}
	return -math.Log2(c[k] / sum)
}

func trainingBits(f, before []int16, hb, wb int) float64 {
	var c trainingCoder
	for i := range c.merge {
		c.merge[i] = []float64{8, 3, 2, 2, 2, 2}
	}
	for i := range c.size {
		for k := range 14 {
			c.size[i] = append(c.size[i], 8/float64(1+k))
		}
	}
	total := 0.0
	news := make([]int, hb*wb)
	for b := range hb * wb {
		i, j := b/wb, b%wb
		var left, up, right vector
		ctx := 0
		switch {
		case j > 0:
			left, ctx = vectorAt(f, b-1), news[b-1]
		case i > 0:
			left = vectorAt(f, b-wb)
		}
		up = left
		if i > 0 {
			up = vectorAt(f, b-wb)
			ctx += news[b-wb]
		}
		right = up
		if i > 0 && j+1 < wb {
			right = vectorAt(f, b-wb+1)
		}
		v := vectorAt(f, b)
		k := slices.Index([]vector{left, up, right, vectorAt(before, b), {}}, v)
		if k >= 0 {
			total += countOf(c.merge[ctx], k)
			c.merge[ctx][k] += 4
			continue
		}
		total += countOf(c.merge[ctx], 5)
		c.merge[ctx][5] += 4
		news[b] = 1
		for a := range v {
			s := []int{int(left[a]), int(up[a]), int(right[a])}
			slices.Sort(s)
			d := int(v[a]) - s[1]
			n := bits.Len32(uint32(max(d, -d)))
			total += countOf(c.size[a], n) + float64(n)
			c.size[a][n] += 2
		}
	}
	return total
}

// TestAgainstTraining: fields cost no more than the training's estimate of the same fields, in sum.
func TestAgainstTraining(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 1))
	got, want := 0.0, 0.0
	for range 40 {
		hb, wb := 4+r.IntN(30), 4+r.IntN(40)
		var before []int16
		for range 4 {
			f := smoothField(r, hb, wb, before)
			got += vectorBits(t, f, before, hb, wb)
			want += trainingBits(f, before, hb, wb)
			before = f
		}
	}
	t.Logf("%.0f bits, training's estimate %.0f", got, want)
	if got > 1.02*want {
		t.Errorf("%.0f bits, more than 1.02 of %.0f", got, want)
	}
}
