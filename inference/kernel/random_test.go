package kernel

import (
	"math"
	"math/rand/v2"
	"testing"
)

const guard = 32

// fenced returns a slice of n values and the memory around it, all one pattern.
func fenced[T any](n int, pattern T) (all, s []T) {
	all = make([]T, n+2*guard)
	for i := range all {
		all[i] = pattern
	}
	return all, all[guard:][:n:n]
}

// compare fails at the first difference; at counts from the start of the slice between the guards.
func compare[T comparable](t *testing.T, got, want []T, format string, args ...any) {
	t.Helper()
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("at %d of %d got %v, want %v", i-guard, len(want)-2*guard, got[i], want[i])
			t.Fatalf(format, args...)
		}
	}
}

// random16 is any int16; a third of all random values are ends, their neighbours and those of zero.
func random16(r *rand.Rand) int16 {
	if r.IntN(3) == 0 {
		return [...]int16{-32768, -32767, -1, 0, 1, 32766, 32767}[r.IntN(7)]
	}
	return int16(r.Uint32()) >> r.IntN(15)
}

func random8(r *rand.Rand) int8 {
	if r.IntN(3) == 0 {
		return [...]int8{-128, -127, -1, 0, 1, 126, 127}[r.IntN(7)]
	}
	return int8(r.Uint32())
}

// random32 is any int32.
func random32(r *rand.Rand) int32 {
	if r.IntN(3) == 0 {
		return [...]int32{math.MinInt32, -math.MaxInt32, -1, 0, 1, math.MaxInt32 - 1, math.MaxInt32}[r.IntN(7)]
	}
	return int32(r.Uint32()) >> r.IntN(31)
}

// randomMul is a multiplier, positive, of which half are as large as can be below the top bits.
func randomMul(r *rand.Rand, top int) int32 {
	switch r.IntN(3) {
	case 0:
		return int32(1)<<top - 1
	case 1:
		return 1
	}
	return max(1, int32(r.Uint32()&(1<<top-1)))
}

func fill[T any](s []T, f func() T) []T {
	for i := range s {
		s[i] = f()
	}
	return s
}

func fill16(r *rand.Rand, n int) []int16 {
	return fill(make([]int16, n), func() int16 { return random16(r) })
}

// bound trims bias so that |bias| + Σ|w|*32768 < 2^31, as a model's loader proves, leaving it at the bound often.
func bound(bias int32, sum int64) int32 {
	room := math.MaxInt32 - sum*32768
	return int32(min(max(int64(bias), -room), room))
}

// fillBytes gives noise, or nothing but the rails: filters reach their bounds there.
func fillBytes(r *rand.Rand, n int) []byte {
	rails := r.IntN(2) == 0
	return fill(make([]byte, n), func() byte {
		if rails {
			return byte(-r.IntN(2))
		}
		return byte(r.Uint32())
	})
}
