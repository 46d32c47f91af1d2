// Package metrics measures pictures and rate-distortion curves. Floats are at home here: nothing in this package
// takes part in coding.
package metrics

import (
	"fmt"
	"math"

	"github.com/nvcodec/nvcodec/yuv"
)

// MaxPSNR is reported for equal planes, where the true value is infinite, so that means stay finite.
const MaxPSNR = 100.0

// SSE returns the sum of squared differences of two planes of w x h samples.
func SSE(a []byte, strideA int, b []byte, strideB, w, h int) uint64 {
	var sum uint64
	for y := range h {
		ra, rb := a[y*strideA:y*strideA+w], b[y*strideB:y*strideB+w]
		var row uint32 // w ≤ 16384: 16384 * 255² < 2^32
		for x := range ra {
			d := int32(ra[x]) - int32(rb[x])
			row += uint32(d * d)
		}
		sum += uint64(row)
	}
	return sum
}

// PSNR returns 10*log10(255² n / sse) in dB, at most MaxPSNR.
func PSNR(sse uint64, n int) float64 {
	if sse == 0 || n == 0 {
		return MaxPSNR
	}
	return min(MaxPSNR, 10*math.Log10(255*255*float64(n)/float64(sse)))
}

// Planes holds one figure for each plane.
type Planes struct {
	Y float64 `json:"y"`
	U float64 `json:"u"`
	V float64 `json:"v"`
}

// Compare returns the PSNR of each plane of two pictures of one size.
func Compare(a, b *yuv.Planes) (Planes, error) {
	if a.W != b.W || a.H != b.H {
		return Planes{}, fmt.Errorf("metrics: pictures are %dx%d and %dx%d", a.W, a.H, b.W, b.H)
	}
	cw, ch := a.CW(), a.CH()
	return Planes{
		Y: PSNR(SSE(a.Y, a.StrideY, b.Y, b.StrideY, a.W, a.H), a.W*a.H),
		U: PSNR(SSE(a.U, a.StrideC, b.U, b.StrideC, cw, ch), cw*ch),
		V: PSNR(SSE(a.V, a.StrideC, b.V, b.StrideC, cw, ch), cw*ch),
	}, nil
}

// Equal reports whether two pictures of one size hold the same samples. PSNR cannot tell: it is capped, and one sample of a
// large picture off by one lies above the cap.
func Equal(a, b *yuv.Planes) bool {
	cw, ch := a.CW(), a.CH()
	return a.W == b.W && a.H == b.H &&
		SSE(a.Y, a.StrideY, b.Y, b.StrideY, a.W, a.H) == 0 &&
		SSE(a.U, a.StrideC, b.U, b.StrideC, cw, ch) == 0 &&
		SSE(a.V, a.StrideC, b.V, b.StrideC, cw, ch) == 0
}

// Mean accumulates the mean over frames of figures per plane.
type Mean struct {
	sum Planes
	n   int
}

// Add takes one frame's figures.
func (m *Mean) Add(p Planes) {
	m.sum.Y += p.Y
	m.sum.U += p.U
	m.sum.V += p.V
	m.n++
}

// Value returns the means so far, zeros before the first frame.
func (m *Mean) Value() Planes {
	if m.n == 0 {
		return Planes{}
	}
	n := float64(m.n)
	return Planes{m.sum.Y / n, m.sum.U / n, m.sum.V / n}
}
