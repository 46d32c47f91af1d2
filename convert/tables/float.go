package tables

// Elementary functions from additions, multiplications and divisions alone, each rounded to float64 by an explicit
// conversion. The standard library's use assembly and fused multiply-adds where the machine has them, which may
// differ in the last bit; these give every machine the same tables. They are good to about 1e-15, far below what a table entry needs.

const ln2 = 0.693147180559945309417232121458176568

// expf returns e^x for |x| ≤ 700.
func expf(x float64) float64 {
	n := int(floor(float64(x/ln2) + 0.5))
	// ln2 in two parts, the high one short enough for n*hi to be exact
	const hi = 0.693147180369123816490
	const lo = 1.90821492927058770002e-10
	r := float64(float64(x-float64(float64(n)*hi)) - float64(float64(n)*lo)) // |r| ≤ 0.35
	s := 1.0
	for k := 18; k >= 1; k-- {
		s = 1 + float64(float64(s*r)/float64(k))
	}
	for ; n > 0; n-- {
		s = float64(s * 2)
	}
	for ; n < 0; n++ {
		s = float64(s * 0.5)
	}
	return s
}

// logf returns ln x for x > 0.
func logf(x float64) float64 {
	n := 0
	for x > 1.5 {
		x, n = float64(x*0.5), n+1
	}
	for x < 0.75 {
		x, n = float64(x*2), n-1
	}
	t := float64(float64(x-1) / float64(x+1)) // |t| ≤ 1/5
	t2 := float64(t * t)
	s := 0.0
	for k := 27; k >= 1; k -= 2 {
		s = float64(s*t2) + float64(1/float64(k))
	}
	return float64(float64(2*t)*s) + float64(float64(n)*ln2)
}

func floor(x float64) float64 {
	i := float64(int64(x))
	if i > x {
		return i - 1
	}
	return i
}

// round is half up, as the codec's integers round.
func round(x float64) int { return int(floor(x + 0.5)) }
