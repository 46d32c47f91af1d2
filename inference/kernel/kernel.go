// Package kernel computes the operators of docs/MODEL.md over slices of integers. Generic is the definition; every
// other Set is an optimisation that equals it bit for bit on every input.
package kernel

// A Set is one complete way to compute the operators.
//
// Features are int16, NHWC without padding: a tensor of h x w positions and c channels is h*w*c values. Functions
// panic when a slice does not have the stated length, since only our own code can do that. Row ranges [y0,y1) and
// position ranges let a caller share one operator among threads; the result never depends on how it is shared.
type Set struct {
	Name string // "generic", "avx2"

	// Lin prepares a 1x1 convolution (weights may be repacked once) and returns the function that applies it.
	Lin func(l *Lin) LinFunc
	// DWAct prepares a 3x3 depthwise convolution of act(x).
	DWAct func(l *DWAct) DWActFunc

	// ActSum4 computes dst[p][j] = sat16(Σ_k act(src[p][k*c+j])), k = 0..3: src [n][4c], dst [n][c], F = f.
	ActSum4 func(dst, src []int16, c int, f uint)
	// Scale computes dst[p][j] = sat16(rnd(src[p][j]*m[j], shift)): m [c] int32, dst and src [n][c].
	Scale func(dst, src []int16, m []int32, shift uint)
	// Requant moves values from one F to another: sat16(rnd(x, shift)) for shift ≥ 0, sat16(x << -shift) else.
	Requant func(dst, src []int16, shift int)
	// Clamp limits every value to lo..hi.
	Clamp func(dst, src []int16, lo, hi int16)

	// Compensate writes rows [y0,y1) of the motion-compensated plane dst from ref (both w x h, tight rows).
	// vectors holds (vy, vx) in quarter luma samples for each block of block x block samples, wb blocks a row; the
	// last block of a row or column may stand out. luma selects the 8-tap quarter filters (block 16), else the 4-tap
	// eighth filters (block 8). Vectors may point anywhere; coordinates are clamped to the plane.
	Compensate func(dst, ref []byte, w, h, y0, y1 int, vectors []int16, wb int, luma bool)

	// Pack writes rows [y0,y1) of the packed picture [h/8][w/8][96] from tight planes y (w x h), u and v
	// (w/2 x h/2): channels are space-to-depth 8 of y, then 4 of u, then 4 of v; values through table [256].
	Pack func(dst []int16, y, u, v []byte, w, h, y0, y1 int, table []int16)
	// Unpack is the inverse for rows [y0,y1) of packed positions: x = pred == nil ? head : sat16(pred+head), then
	// clamp(rnd(255*x + 255*2^(F-1), F), 0, 255).
	Unpack func(y, u, v []byte, head, pred []int16, w, h, y0, y1 int, f uint)

	// SATD16 returns the sum of |H·D·H| over the 4x4 blocks of the differences D of two 16x16 blocks, H the 4x4 Hadamard
	// matrix of 1 and −1: at most 261,120. The motion search compares by it.
	SATD16 func(a []byte, strideA int, b []byte, strideB int) int32
}

// LinFunc applies a prepared Lin to n = len(src)/In positions. res is nil or a residual [n][Out] that is added:
// dst = sat16(res + sat16(requantised)); dst may be res itself. Several threads may call it at once, as a DWActFunc.
type LinFunc func(dst, src, res []int16)

// DWActFunc writes output rows [y0,y1) of an h x w x C tensor; src is the whole tensor, dst too.
type DWActFunc func(dst, src []int16, h, w, y0, y1 int)

// Lin is a 1x1 convolution: acc = bias + Σ w*x in int32 (int64 with W16), dst = sat16(rnd(acc*mul, shift)).
type Lin struct {
	In, Out int
	W       []int8  // [Out][In], or nil with W16
	W16     []int16 // [Out][In]
	Bias    []int32 // [Out], in units of the accumulator; int64 sums with W16
	Mul     []int32 // [Out], positive
	Shift   uint    // 0..62
}

// DWAct is a 3x3 depthwise correlation of act(x) with zero padding, tap dy*3+dx.
type DWAct struct {
	C     int
	F     uint    // fractional bits of the input, 1..14: the activation needs them
	W     []int8  // [9][C]
	Bias  []int32 // [C]
	Mul   []int32 // [C], positive
	Shift uint
}

// Rnd is the rounding shift: (a + (1 << (s-1))) >> s, arithmetic, so halves round up; Rnd(a, 0) = a.
func Rnd(a int64, s uint) int64 {
	if s == 0 {
		return a
	}
	return (a + 1<<(s-1)) >> s
}

// Sat16 limits a to int16.
func Sat16(a int64) int16 {
	return int16(min(max(a, -32768), 32767))
}

// Act is x * clip(x + 1/2, 0, 1) in fixed point: t = clamp(x + 2^(F-1), 0, 2^F), rnd(x*t, F). It fits int16.
func Act(x int16, f uint) int16 {
	t := min(max(int64(x)+1<<(f-1), 0), 1<<f)
	return int16(Rnd(int64(x)*t, f))
}
