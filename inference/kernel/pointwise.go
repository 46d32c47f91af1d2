package kernel

import "fmt"

func actSum4Generic(dst, src []int16, c int, f uint) {
	if c <= 0 || f < 1 || f > 14 {
		panic(fmt.Sprintf("kernel: actsum4 of %d channels, F %d", c, f))
	}
	n := len(dst) / c
	want("actsum4 dst", len(dst), n*c)
	want("actsum4 src", len(src), n*4*c)
	for p := range n {
		x := src[p*4*c:][:4*c]
		for j := range c {
			sum := int64(Act(x[j], f)) + int64(Act(x[c+j], f)) + int64(Act(x[2*c+j], f)) + int64(Act(x[3*c+j], f))
			dst[p*c+j] = Sat16(sum)
		}
	}
}

func scaleGeneric(dst, src []int16, m []int32, shift uint) {
	c := len(m)
	if c == 0 || shift > 62 {
		panic(fmt.Sprintf("kernel: scale of %d channels, shift %d", c, shift))
	}
	n := len(src) / c
	want("scale src", len(src), n*c)
	want("scale dst", len(dst), n*c)
	for p := range n {
		for j, k := range m {
			dst[p*c+j] = Sat16(Rnd(int64(src[p*c+j])*int64(k), shift))
		}
	}
}

func requantGeneric(dst, src []int16, shift int) {
	if shift < -15 || shift > 15 {
		panic(fmt.Sprintf("kernel: requant by %d", shift))
	}
	want("requant dst", len(dst), len(src))
	for i, x := range src {
		if shift >= 0 {
			dst[i] = Sat16(Rnd(int64(x), uint(shift)))
		} else {
			dst[i] = Sat16(int64(x) << -shift)
		}
	}
}

func clampGeneric(dst, src []int16, lo, hi int16) {
	if lo > hi {
		panic(fmt.Sprintf("kernel: clamp to %d..%d", lo, hi))
	}
	want("clamp dst", len(dst), len(src))
	for i, x := range src {
		dst[i] = min(max(x, lo), hi)
	}
}
