package tables

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"testing"

	"github.com/nvcodec/nvcodec/rans"
)

func TestElementaryFunctions(t *testing.T) {
	for x := -690.0; x < 690; x += 0.37 {
		if e := expf(x)/math.Exp(x) - 1; math.Abs(e) > 4e-15*max(1, math.Abs(x)/20) {
			t.Fatalf("exp(%v): relative error %v", x, e)
		}
	}
	for x := 1e-6; x < 1e6; x *= 1.7 {
		if e := logf(x) - math.Log(x); math.Abs(e) > 1e-14 {
			t.Fatalf("ln(%v): error %v", x, e)
		}
	}
	for _, c := range []struct{ x, want float64 }{{-1.5, -2}, {-1, -1}, {0, 0}, {2.5, 2}, {-0.1, -1}} {
		if got := floor(c.x); got != c.want {
			t.Errorf("floor(%v) = %v", c.x, got)
		}
	}
	if round(-0.5) != 0 || round(0.5) != 1 || round(-1.5) != -1 {
		t.Error("halves do not round up")
	}
}

// mass is the same distribution by the standard library.
func mass(table, k int) float64 {
	k = max(k, -k)
	tail := func(v float64) float64 {
		if table < gaussTables {
			return math.Erfc(v/(0.11*math.Exp(float64(table)*math.Log(24/0.11)/63))/math.Sqrt2) / 2
		}
		return 1 / (1 + math.Exp(v/(0.02*math.Exp(float64(table-gaussTables)*math.Log(2500)/63))))
	}
	return tail(float64(k)-0.5) - tail(float64(k)+0.5)
}

func TestEveryTable(t *testing.T) {
	all := map[string]Table{}
	for _, x := range All() {
		all[x.Name] = x
	}
	split := all["entropy.split"].Data
	for i := range tableCount {
		log, k := int(all["entropy.size"].Data[2*i]), int(all["entropy.size"].Data[2*i+1])
		s := rans.Spec{Log: log, Symbols: 2*k + 2, First: int16(-k - 1)}
		for _, v := range split[:1<<log] {
			s.Split = append(s.Split, uint16(v))
		}
		split = split[1<<log:]
		f, err := s.Freqs()
		if err != nil {
			t.Fatalf("table %d: %v", i, err)
		}
		sum, loss, entropy := 0, 0.0, 0.0
		for n, v := range f {
			sum += v
			p := float64(v) / 65536
			entropy -= p * math.Log2(p)
			if n == 0 {
				continue
			}
			m := n - 1 - k
			if f[1+k+m] != f[1+k-m] {
				t.Fatalf("table %d: %d and %d differ", i, m, -m)
			}
			want := mass(i, m)
			loss += want * math.Log2(want/p)
			if m == 0 || k == maxK && (m == k || m == -k) {
				continue // takes what rounding leaves; takes the mass beyond
			}
			if e := want + 1e-5*math.Exp(-math.Abs(float64(m))/8) - p; math.Abs(e) > 1.0/65536 {
				t.Fatalf("table %d: value %d has frequency %d, %v of 65536 off", i, m, v, e*65536)
			}
		}
		if sum != 65536 {
			t.Fatalf("table %d: sum %d", i, sum)
		}
		if cost := float64(all["entropy.cost"].Data[i]) / 4096; math.Abs(cost-entropy) > 1.0/4096 {
			t.Errorf("table %d: cost %v, entropy %v", i, cost, entropy)
		}
		// What the values lose that have a symbol: the escape's share and rounding.
		if loss > 0.0025 {
			t.Errorf("table %d: %.4f bit a symbol above the distribution's entropy %.4f", i, loss, entropy)
		}
	}
	if len(split) != 0 {
		t.Errorf("%d splits left over", len(split))
	}
}

func TestScales(t *testing.T) {
	if s := Sigma(63); math.Abs(s-24) > 1e-12 {
		t.Errorf("σ 63 is %v", s)
	}
	if s := ZScale(63); math.Abs(s-50) > 1e-12 {
		t.Errorf("z scale 63 is %v", s)
	}
	for i := range 64 {
		s := ZScale(i)
		// A logistic half a step away, coded by this table's distribution.
		for _, half := range []float64{math.Exp(zStep / 2), math.Exp(-zStep / 2)} {
			loss := 0.0
			for k := -2000; k <= 2000; k++ {
				if p, q := logistic(k, s*half), logistic(k, s); p > 1e-15 && q > 0 {
					loss += p * math.Log2(p/q)
				}
			}
			if loss > 0.0041 {
				t.Errorf("z scale %d: half a step costs %.5f bit", i, loss)
			}
		}
	}
	ls := [3][]float64{{math.Log(0.02), math.Log(50), 0.1, -100, 100, 0}, {0, 0, 0, 0, 0, 1}, {0, 0, 0, 0, 0, 2}}
	z := ZScales(ls)
	if got := fmt.Sprint(z[0]); got != "[0 63 32 0 63 40]" {
		t.Errorf("z scales at QP 0: %s", got)
	}
}

func TestExpAndPixels(t *testing.T) {
	e, r := Exp()
	if len(e) != 3073 || len(r) != 3073 {
		t.Fatal("lengths")
	}
	for i := range e {
		q := float64(i-1536) / 512
		if math.Abs(float64(e[i])-math.Exp(q)*65536) > 0.5+1e-6 || math.Abs(float64(r[i])-math.Exp(-q)*65536) > 0.5+1e-6 {
			t.Fatalf("q %d: %d %d", i-1536, e[i], r[i])
		}
	}
	for f := 1; f <= 15; f++ {
		for v, got := range PixelsIn(f) {
			if want := math.Floor((float64(v)/255-0.5)*math.Ldexp(1, f) + 0.5); float64(got) != want {
				t.Fatalf("f %d sample %d: %d, want %v", f, v, got, want)
			}
		}
	}
}

// TestGolden shows a change of any table, and any machine that computes another.
func TestGolden(t *testing.T) {
	h := sha256.New()
	for _, x := range append(entropyTables(), vectorTables()...) {
		fmt.Fprintln(h, x.Name, x.Type, x.Shape, x.Data)
	}
	e, r := Exp()
	fmt.Fprintln(h, e, r)
	const want = "5e92dd5eb0c73b7aafcbe8097310bab7762ca437a79e61a5e14b471857fed6d1"
	if got := hex.EncodeToString(h.Sum(nil)); got != want {
		t.Errorf("tables hash to %s, want %s", got, want)
	}
}
