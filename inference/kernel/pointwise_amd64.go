//go:build !purego

package kernel

// The functions below check as the generic functions do, give AVX2 the whole vectors and leave the
// rest, and shapes too small for a vector, to the generic functions.
func actSum4Vector(dst, src []int16, c int, f uint) {
	if c < 16 || f < 1 || f > 14 || len(dst) == 0 {
		actSum4Generic(dst, src, c, f)
		return
	}
	n := len(dst) / c
	want("actsum4 dst", len(dst), n*c)
	want("actsum4 src", len(src), n*4*c)
	actSum4AVX2(&dst[0], &src[0], c, n, f)
}

func scaleVector(dst, src []int16, m []int32, shift uint) {
	c := len(m)
	if c == 0 || c%8 != 0 || shift > 62 || len(src) == 0 {
		scaleGeneric(dst, src, m, shift)
		return
	}
	n := len(src) / c
	want("scale src", len(src), n*c)
	want("scale dst", len(dst), n*c)
	rq, up := newRequantiser(m, shift)
	scaleAVX2(&dst[0], &src[0], &m[0], (*[14]int64)(&rq), c, n, up)
}

func requantVector(dst, src []int16, shift int) {
	n := len(src) &^ 15
	if n > 0 && len(dst) == len(src) && shift >= -15 && shift <= 15 {
		switch {
		case shift > 0:
			requantDownAVX2(&dst[0], &src[0], n, 1<<(15-shift))
		case shift < 0:
			requantUpAVX2(&dst[0], &src[0], n, 16+shift)
		default:
			copy(dst[:n], src)
		}
		dst, src = dst[n:], src[n:]
	}
	requantGeneric(dst, src, shift)
}

func clampVector(dst, src []int16, lo, hi int16) {
	n := len(src) &^ 15
	if n > 0 && len(dst) == len(src) && lo <= hi {
		clampAVX2(&dst[0], &src[0], n, lo, hi)
		dst, src = dst[n:], src[n:]
	}
	clampGeneric(dst, src, lo, hi)
}
