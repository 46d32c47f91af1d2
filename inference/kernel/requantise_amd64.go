//go:build !purego

package kernel

import "math"

// A requantiser holds the constants of sat16(rnd(acc*mul, shift)) as the assembly reads them:
// rounding term, lowest and highest product (four copies each), shift count, and whether the shift is below 32.
type requantiser [14]int64

// newRequantiser prepares shift for the multipliers mul, and returns by how many bits to raise them.
//
// For a shift of at least 32 the answer lies in the upper half of the 64-bit product, which is cheap to take. A smaller
// shift is raised to 32 together with mul where mul has room: rnd(a<<k, s+k) = rnd(a, s), as the rounding term moves
// along. Nothing overflows: |acc| <= 2^31 and |mul| < 2^31 make |acc*mul| < 2^62, and the rounding term is at most 2^61.
// Else each product is limited to what becomes int16 before the shift, since AVX2 has no arithmetic shift of 64 bits.
func newRequantiser(mul []int32, shift uint) (q requantiser, up uint) {
	if shift < 32 {
		up = 32 - shift
		for _, m := range mul {
			if v := int64(m) << up; v > math.MaxInt32 || v < -math.MaxInt32 {
				up = 0
				break
			}
		}
	}
	shift += up
	var round int64
	if shift > 0 {
		round = 1 << (shift - 1)
	}
	lo, hi := int64(0), int64(0)
	count := int64(shift) - 32
	if shift < 32 {
		lo, hi, count = -32768<<shift, 32768<<shift-1, int64(shift)
		q[13] = 1
	}
	for i := range 4 {
		q[i], q[4+i], q[8+i] = round, lo, hi
	}
	q[12] = count
	return q, up
}
