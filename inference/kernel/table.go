package kernel

// Lookup computes dst[i] = table[src[i] + 32768].
func Lookup(dst, src, table []int16) {
	want("lookup table", len(table), 1<<16)
	want("lookup dst", len(dst), len(src))
	for i, x := range src {
		dst[i] = table[int(x)+1<<15]
	}
}

// Sum2 computes dst[p][j] = sat16(src[p][j] + src[p][c+j]): src [n][2c], dst [n][c].
func Sum2(dst, src []int16, c int) {
	want("sum2 src", len(src), 2*len(dst))
	for p := range len(dst) / c {
		x := src[p*2*c:][:2*c]
		for j := range c {
			dst[p*c+j] = Sat16(int64(x[j]) + int64(x[c+j]))
		}
	}
}

// Add computes dst[i] = sat16(a[i] + b[i]); dst may be either.
func Add(dst, a, b []int16) {
	want("add a", len(a), len(dst))
	want("add b", len(b), len(dst))
	for i := range dst {
		dst[i] = Sat16(int64(a[i]) + int64(b[i]))
	}
}
