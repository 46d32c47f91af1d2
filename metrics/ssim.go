package metrics

import "github.com/nvcodec/nvcodec/yuv"

// SSIM returns the structural similarity of each plane as x264 and FFmpeg's ssim filter define it: the mean over
// 8x8 windows, four samples apart, of the usual formula without Gaussian weights. Planes narrower or lower than
// 8 samples have no window and report 1 when equal, 0 when not.
func SSIM(a, b *yuv.Planes) Planes {
	cw, ch := a.CW(), a.CH()
	return Planes{
		Y: ssimPlane(a.Y, a.StrideY, b.Y, b.StrideY, a.W, a.H),
		U: ssimPlane(a.U, a.StrideC, b.U, b.StrideC, cw, ch),
		V: ssimPlane(a.V, a.StrideC, b.V, b.StrideC, cw, ch),
	}
}

// sums of a 4x4 block: Σa, Σb, Σ(a²+b²), Σab
type sums [4]int32

func ssimPlane(a []byte, sa int, b []byte, sb, w, h int) float64 {
	bw, bh := w/4, h/4
	if bw < 2 || bh < 2 {
		if SSE(a, sa, b, sb, w, h) == 0 {
			return 1
		}
		return 0
	}
	row := func(y int, dst []sums) {
		for x := range dst {
			var s sums
			for dy := range 4 {
				ra := a[(y*4+dy)*sa+x*4:][:4]
				rb := b[(y*4+dy)*sb+x*4:][:4]
				for i := range ra {
					p, q := int32(ra[i]), int32(rb[i])
					s[0] += p
					s[1] += q
					s[2] += p*p + q*q
					s[3] += p * q
				}
			}
			dst[x] = s
		}
	}
	up, down := make([]sums, bw), make([]sums, bw)
	row(0, up)
	total := 0.0
	for y := 1; y < bh; y++ {
		row(y, down)
		for x := range bw - 1 {
			var s sums
			for i := range s {
				s[i] = up[x][i] + up[x+1][i] + down[x][i] + down[x+1][i]
			}
			total += window(s)
		}
		up, down = down, up
	}
	return total / float64((bw-1)*(bh-1))
}

// window is the formula over 64 samples, with the integer constants of x264.
func window(s sums) float64 {
	const c1, c2 = 0.01 * 0.01 * 255 * 255 * 64, 0.03 * 0.03 * 255 * 255 * 64 * 63
	s1, s2, ss, s12 := float64(s[0]), float64(s[1]), float64(s[2]), float64(s[3])
	vars := ss*64 - s1*s1 - s2*s2
	covar := s12*64 - s1*s2
	return (2*s1*s2 + c1) * (2*covar + c2) / ((s1*s1 + s2*s2 + c1) * (vars + c2))
}
