package kernel

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
)

// eachSet runs a test once for every set of this machine; what it compares with is always generic's.
func eachSet(t *testing.T, test func(t *testing.T, set Set)) {
	for _, set := range Available() {
		t.Run("impl="+set.Name, func(t *testing.T) { test(t, set) })
	}
}

// TestRequired: a machine that ought to have a set names it in NVCODEC_REQUIRE.
func TestRequired(t *testing.T) {
	for _, name := range strings.Split(os.Getenv("NVCODEC_REQUIRE"), ",") {
		if name == "avx2" && indexOf(Available(), name) < 0 {
			t.Errorf("no set %q here", name)
		}
	}
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
	if r.IntN(8) == 0 { // |acc|*mul < 2^46 * 2^16
		l.W16, l.W = fill16(r, len(l.W)), nil
		for o := range l.Mul {
			l.Mul[o] = l.Mul[o]&0xffff + 1
		}
	}
	return l
}

func TestLin(t *testing.T) {
	eachSet(t, func(t *testing.T, set Set) {
		for seed := range uint64(3000) {
			r := rand.New(rand.NewPCG(seed, 1))
			l := randLin(r)
			n := r.IntN(40)
			src := fill16(r, n*l.In)
			if n > 0 && r.IntN(2) == 0 { // a position that drives its first output to the bound
				for i := range l.In {
					src[i] = 32767
					if l.W != nil && l.W[i] > 0 == (seed%4 < 2) {
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
	})
}

// TestRequantise walks every shift with sums and multipliers at their extremes and at ties.
func TestRequantise(t *testing.T) {
	eachSet(t, func(t *testing.T, set Set) {
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
	})
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

func TestDWAct(t *testing.T) {
	eachSet(t, func(t *testing.T, set Set) {
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
	})
}

// TestDWActConcurrent shares one prepared function among goroutines.
func TestDWActConcurrent(t *testing.T) {
	eachSet(t, func(t *testing.T, set Set) {
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
	})
}

// TestAct compares every input at every F.
func TestAct(t *testing.T) {
	eachSet(t, func(t *testing.T, set Set) {
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
	})
}

func TestPointwise(t *testing.T) {
	eachSet(t, func(t *testing.T, set Set) {
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
	})
}

func TestCompensate(t *testing.T) {
	eachSet(t, func(t *testing.T, set Set) {
		for seed := range uint64(600) {
			r := rand.New(rand.NewPCG(seed, 5))
			luma := r.IntN(2) == 0
			block := 8
			if luma {
				block = 16
			}
			w, h := block*(1+r.IntN(5)), block*(1+r.IntN(4))
			wb, hb := w/block, h/block
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
	})
}

// TestCompensateBounds gives each pair of phases the samples that drive both passes to their ends.
func TestCompensateBounds(t *testing.T) {
	eachSet(t, func(t *testing.T, set Set) {
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
				for i := range ref { // the pattern of signs returns every taps samples
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
	})
}

func TestPack(t *testing.T) {
	eachSet(t, func(t *testing.T, set Set) {
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
	})
}

func TestSATD16(t *testing.T) {
	eachSet(t, func(t *testing.T, set Set) {
		for seed := range uint64(300) {
			r := rand.New(rand.NewPCG(seed, 7))
			sa, sb := r.IntN(50), r.IntN(50)
			a, b := fillBytes(r, 15*sa+16), fillBytes(r, 15*sb+16)
			switch seed {
			case 0: // one coefficient a block has all
				fill(a, func() byte { return 0 })
				fill(b, func() byte { return 255 })
			case 1: // all have the same, which makes the largest sum
				sa, a = 16, make([]byte, 256)
				sb, b = 16, make([]byte, 256)
				for k := range a {
					bent := byte(bits.OnesCount(uint(k/16&k&3)) & 1)
					a[k], b[k] = 255*bent, 255-255*bent
				}
			}
			want := plainSATD(a, sa, b, sb)
			if got := set.SATD16(a, sa, b, sb); got != want {
				t.Fatalf("seed=%d: got %d, want %d", seed, got, want)
			}
			if largest := int32(261120); want > largest || seed == 1 && want != largest {
				t.Fatalf("seed=%d: %d, the largest is %d", seed, want, largest)
			}
		}
	})
}

// plainSATD is the definition as two products of matrices.
func plainSATD(a []byte, strideA int, b []byte, strideB int) int32 {
	sign := func(i, j int) int32 { return 1 - 2*int32(bits.OnesCount(uint(i&j))&1) }
	var sum int32
	for block := range 16 {
		y, x := block/4*4, block%4*4
		for u := range 4 {
			for v := range 4 {
				var c int32
				for i := range 4 {
					for j := range 4 {
						c += sign(u, i) * sign(v, j) * (int32(a[(y+i)*strideA+x+j]) - int32(b[(y+i)*strideB+x+j]))
					}
				}
				sum += max(c, -c)
			}
		}
	}
	return sum
}

// TestAllocs: a frame in steady state leaves nothing to the garbage collector.
func TestAllocs(t *testing.T) {
	eachSet(t, func(t *testing.T, set Set) {
		r := rand.New(rand.NewPCG(1, 8))
		lin := set.Lin(&Lin{In: 33, Out: 20, W: make([]int8, 33*20), Bias: make([]int32, 20), Mul: make([]int32, 20), Shift: 5})
		dw := set.DWAct(&DWAct{C: 20, F: 11, W: make([]int8, 9*20), Bias: make([]int32, 20), Mul: make([]int32, 20), Shift: 5})
		const w, h = 48, 32
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
	})
}

// TestLengths: every set refuses slices that do not fit, before it touches memory.
func TestLengths(t *testing.T) {
	eachSet(t, func(t *testing.T, set Set) {
		lin := set.Lin(&Lin{In: 32, Out: 16, W: make([]int8, 32*16), Bias: make([]int32, 16), Mul: make([]int32, 16)})
		dw := set.DWAct(&DWAct{C: 16, F: 1, W: make([]int8, 9*16), Bias: make([]int32, 16), Mul: make([]int32, 16)})
		s := func(n int) []int16 { return make([]int16, n) }
		b := func(n int) []byte { return make([]byte, n) }
		m := make([]int32, 16)
		for name, call := range map[string]func(){
			"lin bias": func() {
				set.Lin(&Lin{In: 1, Out: 2, W: make([]int8, 2), Bias: make([]int32, 1), Mul: make([]int32, 2)})
			},
			"lin shift":        func() { set.Lin(&Lin{In: 1, Out: 1, W: make([]int8, 1), Bias: m[:1], Mul: m[:1], Shift: 63}) },
			"lin src":          func() { lin(s(16), s(33), nil) },
			"lin dst":          func() { lin(s(31), s(64), nil) },
			"lin res":          func() { lin(s(32), s(64), s(16)) },
			"dwact w":          func() { set.DWAct(&DWAct{C: 16, F: 1, W: make([]int8, 8*16), Bias: m, Mul: m}) },
			"dwact f":          func() { set.DWAct(&DWAct{C: 16, W: make([]int8, 9*16), Bias: m, Mul: m}) },
			"dwact src":        func() { dw(s(64), s(48), 2, 2, 0, 2) },
			"dwact rows":       func() { dw(s(64), s(64), 2, 2, 1, 3) },
			"actsum4 src":      func() { set.ActSum4(s(32), s(127), 16, 1) },
			"actsum4 dst":      func() { set.ActSum4(s(33), s(128), 16, 1) },
			"actsum4 f":        func() { set.ActSum4(s(32), s(128), 16, 15) },
			"scale dst":        func() { set.Scale(s(31), s(32), m, 0) },
			"scale src":        func() { set.Scale(s(33), s(33), m, 0) },
			"scale shift":      func() { set.Scale(s(32), s(32), m, 63) },
			"requant dst":      func() { set.Requant(s(31), s(32), 0) },
			"requant shift":    func() { set.Requant(s(32), s(32), 16) },
			"clamp dst":        func() { set.Clamp(s(31), s(32), 0, 1) },
			"clamp limits":     func() { set.Clamp(s(32), s(32), 1, 0) },
			"compensate dst":   func() { set.Compensate(b(255), b(256), 16, 16, 0, 16, s(2), 1, true) },
			"compensate field": func() { set.Compensate(b(512), b(512), 32, 16, 0, 16, s(2), 1, true) },
			"pack y":           func() { set.Pack(s(96), b(63), b(16), b(16), 8, 8, 0, 1, s(256)) },
			"pack table":       func() { set.Pack(s(96), b(64), b(16), b(16), 8, 8, 0, 1, s(255)) },
			"unpack pred":      func() { set.Unpack(b(64), b(16), b(16), s(96), s(95), 8, 8, 0, 1, 1) },
			"unpack f":         func() { set.Unpack(b(64), b(16), b(16), s(96), nil, 8, 8, 0, 1, 16) },
			"satd16 a":         func() { set.SATD16(b(255), 16, b(256), 16) },
			"satd16 stride":    func() { set.SATD16(b(256), -1, b(256), 16) },
		} {
			func() {
				defer func() {
					if recover() == nil {
						t.Errorf("%s: no panic", name)
					}
				}()
				call()
			}()
		}
	})
}
