//go:build !purego

package kernel

import (
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
)

// avx2Set returns the set under test, or skips on a machine without it.
func avx2Set(tb testing.TB) Set {
	s, ok := avx2(Generic())
	if !ok {
		if strings.Contains(os.Getenv("NVCODEC_REQUIRE"), "avx2") {
			tb.Fatal("no AVX2, and NVCODEC_REQUIRE wants it")
		}
		tb.Skip("no AVX2")
	}
	return s
}

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

// extremes are the ends and the neighbourhood of zero; a third of all random values are such.
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

func randLin(r *rand.Rand) *Lin {
	l := &Lin{In: 1 + r.IntN(40), Out: 1 + r.IntN(50), Shift: uint(r.IntN(63))}
	if r.IntN(3) == 0 {
		l.In, l.Out = 16*(1+r.IntN(12)), 16*(1+r.IntN(6))
	}
	top := 1 + r.IntN(31)
	l.W = fill(make([]int8, l.In*l.Out), func() int8 { return random8(r) })
	if r.IntN(2) == 0 { // sums that leave int16 only sometimes
		l.Shift = min(62, uint(r.IntN(24)+top))
	}
	for range l.Out {
		l.Mul = append(l.Mul, randomMul(r, top))
		var sum int64
		for _, w := range l.W[len(l.Bias)*l.In:][:l.In] {
			sum += max(int64(w), -int64(w))
		}
		l.Bias = append(l.Bias, bound(random32(r), sum))
	}
	return l
}

func TestLinAVX2(t *testing.T) {
	set := avx2Set(t)
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 1))
		l := randLin(r)
		n := r.IntN(40)
		src := fill16(r, n*l.In)
		if n > 0 && r.IntN(2) == 0 { // a position that drives its first output to the bound
			for i := range l.In {
				src[i] = 32767
				if l.W[i] > 0 == (seed%4 < 2) {
					src[i] = -32768
				}
			}
		}
		wantAll, want := fenced(n*l.Out, int16(0x5a5a))
		gotAll, got := fenced(n*l.Out, int16(0x5a5a))
		var resWant, resGot []int16
		switch r.IntN(3) {
		case 0:
			resWant = fill16(r, n*l.Out)
			resGot = append(resGot, resWant...)
		case 1: // in place
			copy(got, fill(want, func() int16 { return random16(r) }))
			resWant, resGot = want, got
		}
		linGeneric(l)(want, src, resWant)
		set.Lin(l)(got, src, resGot)
		compare(t, gotAll, wantAll, "seed=%d lin %d to %d, n=%d, shift %d", seed, l.In, l.Out, n, l.Shift)
	}
}

// TestRequantiseAVX2 walks every shift with sums and multipliers at their extremes and at ties.
func TestRequantiseAVX2(t *testing.T) {
	set := avx2Set(t)
	sums := []int32{math.MinInt32, -math.MaxInt32, -1 << 30, -65536, -3, -2, -1, 0, 1, 2, 3, 32767, 65536, 1 << 30, math.MaxInt32 - 1, math.MaxInt32}
	muls := []int32{1, 2, 3, 1<<16 - 1, 1 << 16, 1<<30 - 1, 1 << 30, math.MaxInt32}
	for shift := range uint(63) {
		for _, mul := range muls {
			l := &Lin{In: 1, Out: len(sums), W: make([]int8, len(sums)), Bias: sums, Mul: make([]int32, len(sums)), Shift: shift}
			for i := range l.Mul {
				l.Mul[i] = mul
			}
			got, want := make([]int16, 7*l.Out), make([]int16, 7*l.Out)
			src := make([]int16, 7)
			set.Lin(l)(got, src, nil)
			linGeneric(l)(want, src, nil)
			for i := range want {
				if got[i] != want[i] {
					t.Fatalf("sum %d, mul %d, shift %d: got %d, want %d", sums[i%l.Out], mul, shift, got[i], want[i])
				}
			}
		}
	}
}

func randDWAct(r *rand.Rand) *DWAct {
	d := &DWAct{C: 1 + r.IntN(70), F: uint(1 + r.IntN(14)), Shift: uint(r.IntN(63))}
	if r.IntN(3) == 0 {
		d.C = 16 * (1 + r.IntN(6))
	}
	top := 1 + r.IntN(31)
	if r.IntN(2) == 0 {
		d.Shift = min(62, uint(r.IntN(24)+top))
	}
	d.W = fill(make([]int8, 9*d.C), func() int8 { return random8(r) })
	for c := range d.C {
		var sum int64
		for t := range 9 {
			w := int64(d.W[t*d.C+c])
			sum += max(w, -w)
		}
		d.Bias = append(d.Bias, bound(random32(r), sum))
		d.Mul = append(d.Mul, randomMul(r, top))
	}
	return d
}

func TestDWActAVX2(t *testing.T) {
	set := avx2Set(t)
	for seed := range uint64(1500) {
		r := rand.New(rand.NewPCG(seed, 2))
		d := randDWAct(r)
		apply := set.DWAct(d)
		for range 3 { // several sizes through the same scratch
			h, w := r.IntN(6), r.IntN(8)
			src := fill16(r, h*w*d.C)
			wantAll, want := fenced(h*w*d.C, int16(0x5a5a))
			gotAll, got := fenced(h*w*d.C, int16(0x5a5a))
			y0 := r.IntN(h + 1)
			y1 := y0 + r.IntN(h-y0+1)
			dwActGeneric(d)(want, src, h, w, y0, y1)
			apply(got, src, h, w, y0, y1)
			compare(t, gotAll, wantAll, "seed=%d dwact %dx%dx%d rows %d to %d, F %d, shift %d", seed, h, w, d.C, y0, y1, d.F, d.Shift)
		}
	}
}

// TestDWActAVX2Concurrent shares one prepared function among goroutines.
func TestDWActAVX2Concurrent(t *testing.T) {
	set := avx2Set(t)
	r := rand.New(rand.NewPCG(1, 3))
	d := randDWAct(r)
	d.C, d.W, d.Bias, d.Mul = 48, fill(make([]int8, 9*48), func() int8 { return random8(r) }), make([]int32, 48), fill(make([]int32, 48), func() int32 { return randomMul(r, 31) })
	d.Shift = 38
	const h, w = 64, 21
	src := fill16(r, h*w*d.C)
	got, want := make([]int16, len(src)), make([]int16, len(src))
	dwActGeneric(d)(want, src, h, w, 0, h)
	apply := set.DWAct(d)
	var wg sync.WaitGroup
	for y := 0; y < h; y += 4 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			apply(got, src, h, w, y, y+4)
		}()
	}
	wg.Wait()
	compare(t, got, want, "concurrent")
}

// TestActAVX2 compares every input at every F.
func TestActAVX2(t *testing.T) {
	set := avx2Set(t)
	src := make([]int16, 4<<16) // the value and three zeros, whose act is 0
	for i := range 1 << 16 {
		src[i/16*64+i%16] = int16(i)
	}
	dst := make([]int16, 1<<16)
	for f := uint(1); f <= 14; f++ {
		set.ActSum4(dst, src, 16, f)
		for i, got := range dst {
			if want := Act(int16(i), f); got != want {
				t.Fatalf("act(%d) at F %d: got %d, want %d", int16(i), f, got, want)
			}
		}
	}
}

func TestPointwiseAVX2(t *testing.T) {
	set := avx2Set(t)
	for seed := range uint64(4000) {
		r := rand.New(rand.NewPCG(seed, 4))
		c, n := 1+r.IntN(70), r.IntN(20)
		if r.IntN(3) > 0 {
			c = 8 * (1 + r.IntN(12))
		}
		check := func(src []int16, length int, apply func(s Set, dst, src []int16), format string, args ...any) {
			t.Helper()
			wantAll, want := fenced(length, int16(0x5a5a))
			gotAll, got := fenced(length, int16(0x5a5a))
			if length == len(src) && r.IntN(2) == 0 { // in place
				copy(got, src)
				copy(want, src)
				apply(Generic(), want, want)
				apply(set, got, got)
			} else {
				apply(Generic(), want, src)
				apply(set, got, src)
			}
			compare(t, gotAll, wantAll, "seed=%d "+format, append([]any{seed}, args...)...)
		}
		f := uint(1 + r.IntN(14))
		check(fill16(r, 4*n*c), n*c, func(s Set, dst, src []int16) { s.ActSum4(dst, src, c, f) }, "actsum4 %dx%d, F %d", n, c, f)
		top, sh := 1+r.IntN(31), uint(r.IntN(63))
		m := fill(make([]int32, c), func() int32 { return randomMul(r, top) * int32(1-2*r.IntN(2)) })
		if r.IntN(4) == 0 {
			fill(m, func() int32 { return random32(r) })
		}
		check(fill16(r, n*c), n*c, func(s Set, dst, src []int16) { s.Scale(dst, src, m, sh) }, "scale %dx%d, shift %d", n, c, sh)
		k := r.IntN(31) - 15
		check(fill16(r, n*c), n*c, func(s Set, dst, src []int16) { s.Requant(dst, src, k) }, "requant %d by %d", n*c, k)
		lo, hi := random16(r), random16(r)
		lo, hi = min(lo, hi), max(lo, hi)
		check(fill16(r, n*c), n*c, func(s Set, dst, src []int16) { s.Clamp(dst, src, lo, hi) }, "clamp %d to %d..%d", n*c, lo, hi)
	}
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

func TestCompensateAVX2(t *testing.T) {
	set := avx2Set(t)
	for seed := range uint64(600) {
		r := rand.New(rand.NewPCG(seed, 5))
		luma := r.IntN(2) == 0
		block := 8
		if luma {
			block = 16
		}
		w, h := 1+r.IntN(70), 1+r.IntN(50)
		if r.IntN(2) == 0 {
			w, h = (w+15)&^15, (h+15)&^15
		}
		wb, hb := (w+block-1)/block+r.IntN(2), (h+block-1)/block
		reach := [...]int{4, 40, 300, 2047, 32768}[r.IntN(5)]
		vectors := fill(make([]int16, 2*wb*hb), func() int16 { return int16(r.IntN(2*reach) - reach) })
		if r.IntN(4) == 0 { // whole samples
			fill(vectors, func() int16 { return int16(8 * (r.IntN(9) - 4)) })
		}
		y0 := r.IntN(h + 1)
		y1 := y0 + r.IntN(h-y0+1)
		ref := fillBytes(r, w*h)
		wantAll, want := fenced(w*h, byte(0x5a))
		gotAll, got := fenced(w*h, byte(0x5a))
		compensateGeneric(want, ref, w, h, y0, y1, vectors, wb, luma)
		set.Compensate(got, ref, w, h, y0, y1, vectors, wb, luma)
		compare(t, gotAll, wantAll, "seed=%d %dx%d rows %d to %d luma=%v", seed, w, h, y0, y1, luma)
	}
}

// TestCompensateAVX2Bounds gives each pair of phases the samples that drive both passes to their ends.
func TestCompensateAVX2Bounds(t *testing.T) {
	set := avx2Set(t)
	for _, luma := range []bool{false, true} {
		block, phases, taps := 8, 8, 4
		if luma {
			block, phases, taps = 16, 4, 8
		}
		tap := func(phase, i int) int32 {
			if luma {
				return LumaTaps[phase][i]
			}
			return ChromaTaps[phase][i]
		}
		const w, h = 64, 64
		for phase := range phases * phases * 2 {
			py, px, sign := phase/2%phases, phase/2/phases, int32(1-2*(phase%2))
			ref := make([]byte, w*h)
			for i := range ref { // every taps samples the pattern of signs returns
				if sign*tap(py, i/w%taps)*tap(px, i%w%taps) > 0 {
					ref[i] = 255
				}
			}
			vectors := make([]int16, 2*(w/block)*(h/block))
			for i := range vectors {
				vectors[i] = int16([2]int{py, px}[i%2])
			}
			got, want := make([]byte, w*h), make([]byte, w*h)
			compensateGeneric(want, ref, w, h, 0, h, vectors, w/block, luma)
			set.Compensate(got, ref, w, h, 0, h, vectors, w/block, luma)
			compare(t, got, want, "phases %d, %d, luma=%v", py, px, luma)
		}
	}
}

func TestPackAVX2(t *testing.T) {
	set := avx2Set(t)
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 6))
		w, h := 8*(1+r.IntN(6)), 8*(1+r.IntN(4))
		y0 := r.IntN(h/8 + 1)
		y1 := y0 + r.IntN(h/8-y0+1)
		n := w / 8 * (h / 8) * Packed
		y, u, v, table := fillBytes(r, w*h), fillBytes(r, w*h/4), fillBytes(r, w*h/4), fill16(r, 256)
		wantAll, want := fenced(n, int16(0x5a5a))
		gotAll, got := fenced(n, int16(0x5a5a))
		packGeneric(want, y, u, v, w, h, y0, y1, table)
		set.Pack(got, y, u, v, w, h, y0, y1, table)
		compare(t, gotAll, wantAll, "seed=%d pack %dx%d rows %d to %d", seed, w, h, y0, y1)

		f := uint(1 + r.IntN(15))
		head, pred := fill16(r, n), fill16(r, n)
		if r.IntN(2) == 0 {
			pred = nil
		}
		var wants, gots [3][2][]byte
		for i := range 3 {
			size := w * h
			if i > 0 {
				size /= 4
			}
			wants[i][0], wants[i][1] = fenced(size, byte(0x5a))
			gots[i][0], gots[i][1] = fenced(size, byte(0x5a))
		}
		unpackGeneric(wants[0][1], wants[1][1], wants[2][1], head, pred, w, h, y0, y1, f)
		set.Unpack(gots[0][1], gots[1][1], gots[2][1], head, pred, w, h, y0, y1, f)
		for i := range 3 {
			compare(t, gots[i][0], wants[i][0], "seed=%d unpack plane %d of %dx%d rows %d to %d, F %d", seed, i, w, h, y0, y1, f)
		}
	}
}

func TestSAD16AVX2(t *testing.T) {
	set := avx2Set(t)
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 7))
		sa, sb := r.IntN(50), r.IntN(50)
		a, b := fillBytes(r, 15*sa+16), fillBytes(r, 15*sb+16)
		if seed == 0 { // the largest sum
			fill(a, func() byte { return 0 })
			fill(b, func() byte { return 255 })
		}
		if got, want := set.SAD16(a, sa, b, sb), sad16Generic(a, sa, b, sb); got != want {
			t.Fatalf("seed=%d: got %d, want %d", seed, got, want)
		}
	}
}

// TestAllocsAVX2: a frame in steady state leaves nothing to the garbage collector.
func TestAllocsAVX2(t *testing.T) {
	set := avx2Set(t)
	r := rand.New(rand.NewPCG(1, 8))
	lin := set.Lin(&Lin{In: 33, Out: 20, W: make([]int8, 33*20), Bias: make([]int32, 20), Mul: make([]int32, 20), Shift: 5})
	dw := set.DWAct(&DWAct{C: 20, F: 11, W: make([]int8, 9*20), Bias: make([]int32, 20), Mul: make([]int32, 20), Shift: 5})
	const w, h = 40, 24
	src, dst, wide := fill16(r, w*h*20), make([]int16, w*h*20), fill16(r, w*h*33)
	planes, vectors, factors := fillBytes(r, w*h), fill16(r, 2*3*2), make([]int32, 16)
	got := testing.AllocsPerRun(20, func() {
		lin(dst, wide, src)
		set.Scale(dst, src, factors, 3)
		set.Compensate(planes, planes, w, h, 0, h, vectors, 3, true)
	})
	if got != 0 {
		t.Errorf("%v allocations", got)
	}
	// The race detector makes a sync.Pool forget now and then; scratch that is never kept costs four.
	if got := testing.AllocsPerRun(20, func() { dw(dst, src, h, w, 0, h) }); got > 2 {
		t.Errorf("dwact: %v allocations", got)
	}
}
