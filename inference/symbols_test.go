package inference

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

func bigRnd(a *big.Int, s uint) *big.Int {
	if s == 0 {
		return a
	}
	half := new(big.Int).Lsh(big.NewInt(1), s-1)
	return half.Rsh(half.Add(half, a), s)
}

func bigClamp(a *big.Int, lo, hi int64) int64 {
	return min(max(bigInt64(a), lo), hi)
}

// bigInt64 saturates, so that a clamp after it sees the right side.
func bigInt64(a *big.Int) int64 {
	if a.IsInt64() {
		return a.Int64()
	}
	return math.MaxInt64 * int64(a.Sign())
}

func edge(r *rand.Rand, lo, hi int64) int64 {
	if r.IntN(3) == 0 {
		e := [...]int64{lo, lo + 1, -1, 0, 1, hi - 1, hi}[r.IntN(7)]
		return min(max(e, lo), hi)
	}
	return min(max((lo+r.Int64N(hi-lo+1))>>r.IntN(16), lo), hi)
}

// TestSymbolsAgainstBig holds latent coding against its formulas in integers without a width, with any table.
func TestSymbolsAgainstBig(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	table := make([]int32, ExpEntries)
	for range 200000 {
		y, q, mean := int16(edge(r, -32768, 32767)), int16(edge(r, -32768, 32767)), int16(edge(r, -32768, 32767))
		fm, shift := uint(r.IntN(16)), uint(r.IntN(63))
		place := min(max(int64(q), -1536), 1536) + 1536
		table[place] = int32(edge(r, math.MinInt32, math.MaxInt32))
		scaled := func(x int16) *big.Int {
			return bigRnd(new(big.Int).Mul(big.NewInt(int64(x)), big.NewInt(int64(table[place]))), shift)
		}

		limit := int64(32767) >> fm
		want := bigClamp(bigRnd(new(big.Int).Sub(scaled(y), big.NewInt(int64(mean))), fm), -limit, limit)
		if got := symbol(y, q, mean, table, shift, fm); int64(got) != want {
			t.Fatalf("symbol(y=%d q=%d mean=%d R=%d shift=%d Fm=%d) = %d, want %d", y, q, mean, table[place], shift, fm, got, want)
		}
		k := int16(edge(r, -limit, limit))
		want = min(max(int64(k)*(1<<fm)+int64(mean), -32768), 32767)
		if got := latent(k, mean, fm); int64(got) != want {
			t.Fatalf("latent(%d, %d, %d) = %d, want %d", k, mean, fm, got, want)
		}
		want = bigClamp(scaled(y), -32768, 32767)
		if got := unstep(y, q, table, shift); int64(got) != want {
			t.Fatalf("unstep(%d, %d) = %d, want %d", y, q, got, want)
		}
		want = bigClamp(bigRnd(big.NewInt(int64(y)), fm), -127, 127)
		if got := symbolZ(y, fm); int64(got) != want {
			t.Fatalf("symbolZ(%d, %d) = %d, want %d", y, fm, got, want)
		}
		want = min(max(bigRnd(big.NewInt(8*int64(y)), fm).Int64()+16, 0), 63)
		if got := scaleIndex(y, fm); int64(got) != want {
			t.Fatalf("scaleIndex(%d, %d) = %d, want %d", y, fm, got, want)
		}
	}
}

// TestLatentNear: with the tables of exp, what comes back lies within half a step of y, plus what rounding to the
// three fixed points costs.
func TestLatentNear(t *testing.T) {
	e, rexp := make([]int32, ExpEntries), make([]int32, ExpEntries)
	for i := range e {
		x := math.Exp(float64(i-ExpLimit) / (1 << ExpF))
		e[i], rexp[i] = int32(math.Round(x*65536)), int32(math.Round(65536/x))
	}
	const fy, fm, fo = 10, 8, 11
	r := rand.New(rand.NewPCG(1, 2))
	for range 100000 {
		y, mean := int16(r.IntN(1<<14)-1<<13), int16(r.IntN(1<<12)-1<<11)
		q := int16(r.IntN(2*700+1) - 700) // steps of 1/4 to 4, so that nothing saturates
		step := math.Exp(float64(q) / (1 << ExpF))
		k := symbol(y, q, mean, rexp, 16+fy-fm, fm)
		back := float64(unstep(latent(k, mean, fm), q, e, 16+fm-fo)) / (1 << fo)
		real := float64(y) / (1 << fy)
		if d, most := math.Abs(back-real), 0.5*step+step*2/(1<<fm)+2.0/(1<<fo); d > most && math.Abs(back) < 15.9 {
			t.Fatalf("y=%g q=%d mean=%d: k=%d gives %g, off by %g of %g", real, q, mean, k, back, d, most)
		}
	}
}

// TestCodedHalf: the two steps cover every channel of every position once, in a checkerboard.
func TestCodedHalf(t *testing.T) {
	for row := range 3 {
		for col := range 3 {
			a, b := codedHalf(row, col, 0, 10)
			c, d := codedHalf(row, col, 1, 10)
			if b-a != 5 || d-c != 5 || a+c != 5 || (a == 0) != ((row+col)%2 == 0) {
				t.Errorf("(%d,%d): step 0 codes %d to %d, step 1 %d to %d", row, col, a, b, c, d)
			}
		}
	}
}
