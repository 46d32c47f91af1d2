//go:build cuda

package cuda

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/nvcodec/nvcodec/inference"
	"github.com/nvcodec/nvcodec/inference/kernel"
)

// Every kernel of every family is held against the generic ones: in emulation on any machine, and on each device.

// eachMachine runs a test for every family, emulated, and for every family that each device can run.
func eachMachine(t *testing.T, test func(t *testing.T, m *bench)) {
	for _, sm := range families {
		t.Run("impl=emulated/"+familyName(sm), func(t *testing.T) {
			d := newEmulatedDevice()
			m := &bench{machine: newEmulated(d, sm)}
			test(t, m)
			if err := m.finish(); err != nil {
				t.Error(err)
			}
			if n := len(d.memory); n > 0 {
				t.Errorf("%d blocks of device memory are left", n)
			}
		})
	}
	eachDevice(t, func(t *testing.T, b *backend) {
		opened, err := b.open()
		if err != nil {
			t.Fatal(err)
		}
		m := &bench{machine: opened}
		test(t, m)
		if err := m.finish(); err != nil {
			t.Error(err)
		}
	})
}

// A bench is a machine with page-locked memory for what goes up and down; taking it anew each time would be what the
// tests spend a device's time on.
type bench struct {
	machine
	staging []byte
}

func (b *bench) stage(n int) ([]byte, error) {
	if n > len(b.staging) {
		if err := b.drop(); err != nil {
			return nil, err
		}
		var err error
		if b.staging, err = b.host(int64(max(n, 1<<20))); err != nil {
			return nil, err
		}
	}
	return b.staging[:n], nil
}

func (b *bench) drop() error {
	if b.staging == nil {
		return nil
	}
	held := b.staging
	b.staging = nil
	return b.freeHost(held)
}

func (b *bench) finish() error {
	if err := b.drop(); err != nil {
		return err
	}
	return b.close()
}

// cases is how many random cases a machine is given: in emulation a block takes milliseconds, on a device nothing.
func cases(m *bench, emulatedCases, deviceCases int) uint64 {
	if _, ok := m.machine.(*emulated); ok || software {
		if testing.Short() {
			return uint64(max(1, emulatedCases/4))
		}
		return uint64(emulatedCases)
	}
	return uint64(deviceCases)
}

// A rig holds the device memory of one case.
type rig struct {
	t    testing.TB
	m    *bench
	held []pointer
}

const guard = 256 // bytes at both ends of what a kernel writes

func bytesOfSlice[T any](x []T) []byte {
	if len(x) == 0 {
		return nil
	}
	var zero T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x))), len(x)*int(unsafe.Sizeof(zero)))
}

func (r *rig) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// up copies bytes to new device memory through page-locked memory.
func (r *rig) up(b []byte) pointer {
	r.t.Helper()
	p, err := r.m.alloc(int64(max(1, len(b))))
	r.must(err)
	r.held = append(r.held, p)
	if len(b) > 0 {
		h, err := r.m.stage(len(b))
		r.must(err)
		copy(h, b)
		r.must(r.m.upload(p, h))
		r.must(r.m.sync())
	}
	return p
}

func upload[T any](r *rig, x []T) pointer {
	r.t.Helper()
	return r.up(bytesOfSlice(x))
}

func (r *rig) down(b []byte, p pointer) {
	r.t.Helper()
	h, err := r.m.stage(len(b))
	r.must(err)
	r.must(r.m.download(h, p))
	r.must(r.m.sync())
	copy(b, h)
}

// run launches a call that writes len(want) values at dst, which starts as before (or as poison), and compares.
func run[T comparable](r *rig, what string, want, before []T, c func(dst pointer) call) {
	r.t.Helper()
	runAll(r, what, want, before, func(dst pointer) []call { return []call{c(dst)} })
}

// runAll does so with several calls, one after the other.
func runAll[T comparable](r *rig, what string, want, before []T, calls func(dst pointer) []call) {
	r.t.Helper()
	n := len(bytesOfSlice(want))
	all := make([]byte, guard+n+guard)
	for i := range all {
		all[i] = 0x6b
	}
	copy(all[guard:], bytesOfSlice(before))
	p := r.up(all)
	var k call
	for _, k = range calls(p + guard) {
		if k.grid > 0 {
			l, err := r.m.prepare(k)
			r.must(err)
			r.must(l.run())
		}
	}
	got := make([]byte, len(all))
	r.down(got, p)
	for i := range got {
		if (i < guard || i >= guard+n) && got[i] != 0x6b {
			r.t.Fatalf("%s: %s wrote outside its output, byte %d of %d", what, k.kernel, i-guard, n)
		}
	}
	values := unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(got[guard:]))), len(want))
	for i := range want {
		if values[i] != want[i] {
			r.t.Fatalf("%s: %s: at %d of %d got %v, want %v", what, k.kernel, i, len(want), values[i], want[i])
		}
	}
}

func (r *rig) free() {
	for _, p := range r.held {
		r.must(r.m.free(p))
	}
	r.held = nil
}

// Random operands: a third are ends, their neighbours and those of zero.

func random16(r *rand.Rand) int16 {
	if r.IntN(3) == 0 {
		return [...]int16{-32768, -32767, -257, -256, -255, -1, 0, 1, 255, 256, 257, 32766, 32767}[r.IntN(13)]
	}
	return int16(r.Uint32()) >> r.IntN(15)
}

func random8(r *rand.Rand) int8 {
	if r.IntN(3) == 0 {
		return [...]int8{-128, -127, -1, 0, 1, 126, 127}[r.IntN(7)]
	}
	return int8(r.Uint32())
}

func random32(r *rand.Rand) int32 {
	if r.IntN(3) == 0 {
		return [...]int32{math.MinInt32, -math.MaxInt32, -1, 0, 1, math.MaxInt32 - 1, math.MaxInt32}[r.IntN(7)]
	}
	return int32(r.Uint32()) >> r.IntN(31)
}

func randomMul(r *rand.Rand, top int) int32 {
	switch r.IntN(3) {
	case 0:
		return int32(1)<<top - 1
	case 1:
		return int32(1) << r.IntN(top) // ties
	}
	return max(1, int32(r.Uint32()&(1<<top-1)))
}

func fill[T any](n int, f func() T) []T {
	s := make([]T, n)
	for i := range s {
		s[i] = f()
	}
	return s
}

func fill16(r *rand.Rand, n int) []int16 { return fill(n, func() int16 { return random16(r) }) }

// bound trims bias so that |bias| + Σ|w|*32768 < 2^31, as a model's loader proves, leaving it at the bound often.
func bound(bias int32, sum int64) int32 {
	room := math.MaxInt32 - sum*32768
	return int32(min(max(int64(bias), -room), room))
}

// randLin returns a layer whose weights leave the bound room: at most 2^31/32768 = 65535 in a channel together.
func randLin(r *rand.Rand, in, out int) *kernel.Lin {
	l := &kernel.Lin{In: in, Out: out, Shift: uint(r.IntN(63)), W: fill(in*out, func() int8 { return random8(r) })}
	top := 1 + r.IntN(31)
	if r.IntN(4) > 0 {
		l.Shift = min(62, uint(max(0, top-2+r.IntN(16))))
	}
	for o := range out {
		w := l.W[o*in:][:in]
		var sum int64
		for i := range w {
			if sum+int64(max(int(w[i]), -int(w[i]))) > 65535 {
				w[i] = 0
			}
			sum += int64(max(int(w[i]), -int(w[i])))
		}
		l.Mul = append(l.Mul, randomMul(r, top))
		l.Bias = append(l.Bias, bound(random32(r), sum))
	}
	return l
}

// linSizes are channel counts that meet every edge of the kernels' tiles, and the networks' own.
var linSizes = [][2]int{{1, 1}, {7, 5}, {8, 8}, {12, 24}, {31, 33}, {32, 64}, {40, 65}, {64, 32}, {96, 192}, {144, 288}, {192, 384}, {264, 72}, {300, 20}, {480, 192}, {520, 8}}

func TestLin(t *testing.T) {
	eachMachine(t, func(t *testing.T, m *bench) {
		for seed := range cases(m, 60, 1000) {
			r := rand.New(rand.NewPCG(seed, 1))
			size := linSizes[int(seed)%len(linSizes)]
			l := randLin(r, size[0], size[1])
			n := 1 + r.IntN(300)
			src := fill16(r, n*l.In)
			if r.IntN(2) == 0 { // a position that drives the first output to the bound
				for i := range l.In {
					src[i] = 32767
					if l.W[i] > 0 == (seed%4 < 2) {
						src[i] = -32768
					}
				}
			}
			var res []int16
			if r.IntN(3) > 0 {
				res = fill16(r, n*l.Out)
			}
			want := make([]int16, n*l.Out)
			kernel.Generic().Lin(l)(want, src, res)
			g := &rig{t: t, m: m}
			p := packLin(l, m.family(), false)
			s, w, bias, mul := upload(g, src), upload(g, p.w), upload(g, p.bias), upload(g, p.mul)
			processors := 1 + r.IntN(4)
			inPlace := res != nil && r.IntN(2) == 0
			run(g, fmt.Sprintf("seed=%d lin %d to %d, n=%d, shift %d, in place %v", seed, l.In, l.Out, n, l.Shift, inPlace), want, res, func(dst pointer) call {
				from := dst
				switch {
				case res == nil:
					from = 0
				case !inPlace:
					from = upload(g, res)
				}
				return callLin(dst, s, from, w, bias, mul, int64(n), l.In, l.Out, int(l.Shift), processors)
			})
			g.free()
		}
	})
}

func TestLinActSum4(t *testing.T) {
	eachMachine(t, func(t *testing.T, m *bench) {
		for seed := range cases(m, 45, 1000) {
			r := rand.New(rand.NewPCG(seed, 2))
			size := linSizes[int(seed)%len(linSizes)]
			c, f := size[1], uint(1+r.IntN(14))
			if c > 100 {
				c = 96
			}
			l := randLin(r, size[0], 4*c)
			n := 1 + r.IntN(200)
			src := fill16(r, n*l.In)
			wide, want := make([]int16, n*4*c), make([]int16, n*c)
			kernel.Generic().Lin(l)(wide, src, nil)
			kernel.Generic().ActSum4(want, wide, c, f)
			g := &rig{t: t, m: m}
			p := packLin(l, m.family(), true)
			s, w, bias, mul := upload(g, src), upload(g, p.w), upload(g, p.bias), upload(g, p.mul)
			run(g, fmt.Sprintf("seed=%d lin %d to 4*%d, n=%d, shift %d, F %d", seed, l.In, c, n, l.Shift, f), want, nil, func(dst pointer) call {
				return callLinActSum4(dst, s, w, bias, mul, int64(n), l.In, c, int(l.Shift), int(f), 1+r.IntN(4))
			})
			g.free()
		}
	})
}

// TestRequantise walks every shift with sums and multipliers at their extremes and at ties.
func TestRequantise(t *testing.T) {
	sums := []int32{math.MinInt32, -math.MaxInt32, -1 << 30, -65536, -3, -2, -1, 0, 1, 2, 3, 32767, 65536, 1 << 30, math.MaxInt32 - 1, math.MaxInt32}
	eachMachine(t, func(t *testing.T, m *bench) {
		for shift := range uint(63) {
			l := &kernel.Lin{In: 1, Shift: shift}
			for _, mul := range []int32{1, 2, 3, 1<<16 - 1, 1 << 16, 1<<30 - 1, 1 << 30, math.MaxInt32} {
				for _, sum := range sums {
					l.W, l.Bias, l.Mul = append(l.W, 0), append(l.Bias, sum), append(l.Mul, mul)
				}
			}
			l.Out = len(l.W)
			src, want := make([]int16, 1), make([]int16, l.Out)
			kernel.Generic().Lin(l)(want, src, nil)
			g := &rig{t: t, m: m}
			p := packLin(l, m.family(), false)
			s, w, bias, mul := upload(g, src), upload(g, p.w), upload(g, p.bias), upload(g, p.mul)
			run(g, fmt.Sprintf("shift %d", shift), want, nil, func(dst pointer) call {
				return callLin(dst, s, 0, w, bias, mul, 1, 1, l.Out, int(shift), 1)
			})
			g.free()
		}
	})
}

func TestLin16(t *testing.T) {
	eachMachine(t, func(t *testing.T, m *bench) {
		for seed := range cases(m, 100, 1000) {
			r := rand.New(rand.NewPCG(seed, 3))
			l := &kernel.Lin{In: 1 + r.IntN(70), Out: 1 + r.IntN(70), Shift: uint(r.IntN(63))}
			l.W16 = fill16(r, l.In*l.Out)
			for range l.Out { // |acc|*mul < 2^46 * 2^16
				l.Mul = append(l.Mul, randomMul(r, 16))
				l.Bias = append(l.Bias, random32(r))
			}
			n := 1 + r.IntN(20)
			src, res := fill16(r, n*l.In), fill16(r, n*l.Out)
			if r.IntN(2) == 0 {
				res = nil
			}
			want := make([]int16, n*l.Out)
			kernel.Generic().Lin(l)(want, src, res)
			g := &rig{t: t, m: m}
			s, w, bias, mul := upload(g, src), upload(g, l.W16), upload(g, l.Bias), upload(g, l.Mul)
			run(g, fmt.Sprintf("seed=%d lin16 %d to %d, n=%d", seed, l.In, l.Out, n), want, res, func(dst pointer) call {
				from := dst
				if res == nil {
					from = 0
				}
				return callLin16(dst, s, from, w, bias, mul, int64(n), l.In, l.Out, int(l.Shift))
			})
			g.free()
		}
	})
}

func TestDWAct(t *testing.T) {
	eachMachine(t, func(t *testing.T, m *bench) {
		for seed := range cases(m, 150, 1000) {
			r := rand.New(rand.NewPCG(seed, 4))
			d := &kernel.DWAct{C: []int{1, 5, 8, 12, 32, 96, 144}[r.IntN(7)], F: uint(1 + r.IntN(14)), Shift: uint(r.IntN(63))}
			top := 1 + r.IntN(31)
			if r.IntN(4) > 0 {
				d.Shift = min(62, uint(max(0, top-2+r.IntN(16))))
			}
			d.W = fill(9*d.C, func() int8 { return random8(r) })
			for c := range d.C {
				var sum int64
				for k := range 9 {
					w := int64(d.W[k*d.C+c])
					sum += max(w, -w)
				}
				d.Bias = append(d.Bias, bound(random32(r), sum))
				d.Mul = append(d.Mul, randomMul(r, top))
			}
			h, w := 1+r.IntN(20), 1+r.IntN(40)
			src, want := fill16(r, h*w*d.C), make([]int16, h*w*d.C)
			kernel.Generic().DWAct(d)(want, src, h, w, 0, h)
			g := &rig{t: t, m: m}
			s, weights, bias, mul := upload(g, src), upload(g, d.W), upload(g, d.Bias), upload(g, d.Mul)
			run(g, fmt.Sprintf("seed=%d %dx%d C=%d F=%d", seed, w, h, d.C, d.F), want, nil, func(dst pointer) call {
				return callDWAct(dst, s, weights, bias, mul, h, w, d.C, int(d.F), int(d.Shift), []int{0, 1 << 20}[seed%2])
			})
			g.free()
		}
	})
}

// TestAct runs every int16 through the activation at every F: the depthwise kernel with a weight of 1 in its middle.
func TestAct(t *testing.T) {
	all := make([]int16, 1<<16)
	for i := range all {
		all[i] = int16(i)
	}
	eachMachine(t, func(t *testing.T, m *bench) {
		for f := 1; f <= 14; f++ {
			want := make([]int16, len(all))
			for i, x := range all {
				want[i] = kernel.Act(x, uint(f))
			}
			g := &rig{t: t, m: m}
			w := make([]int8, 9*8)
			for c := range 8 {
				w[4*8+c] = 1
			}
			one := []int32{1, 1, 1, 1, 1, 1, 1, 1}
			s, weights, bias, mul := upload(g, all), upload(g, w), upload(g, make([]int32, 8)), upload(g, one)
			run(g, fmt.Sprintf("F=%d", f), want, nil, func(dst pointer) call {
				return callDWAct(dst, s, weights, bias, mul, 1, len(all)/8, 8, f, 0, 1)
			})
			g.free()
		}
	})
}

func TestActSum4(t *testing.T) {
	eachMachine(t, func(t *testing.T, m *bench) {
		for seed := range cases(m, 100, 1000) {
			r := rand.New(rand.NewPCG(seed, 5))
			n, c, f := 1+r.IntN(200), []int{1, 3, 8, 12, 24, 96}[r.IntN(6)], 1+r.IntN(14)
			g := &rig{t: t, m: m}
			src, want := fill16(r, n*4*c), make([]int16, n*c)
			kernel.Generic().ActSum4(want, src, c, uint(f))
			run(g, fmt.Sprintf("seed=%d n=%d c=%d", seed, n, c), want, nil, func(dst pointer) call { return callActSum4(dst, upload(g, src), int64(n), c, f) })
			g.free()
		}
	})
}

func TestPictures(t *testing.T) {
	ref := kernel.Generic()
	eachMachine(t, func(t *testing.T, m *bench) {
		for seed := range cases(m, 25, 300) {
			r := rand.New(rand.NewPCG(seed, 7))
			h, w := 16*(1+r.IntN(4)), 16*(1+r.IntN(9))
			size := inference.Size{W: w, H: h}
			rails := r.IntN(2) == 0
			picture := func() []byte {
				return fill(w*h*3/2, func() byte {
					if rails {
						return byte(-r.IntN(2))
					}
					return byte(r.Uint32())
				})
			}
			g := &rig{t: t, m: m}
			what := fmt.Sprintf("seed=%d %dx%d", seed, w, h)
			src := picture()
			s, in := upload(g, src), planes(src, size)

			vectors := fill(h/16*(w/16)*2, func() int16 { return int16(r.IntN(4095)-2047) >> r.IntN(10) })
			want := make([]byte, len(src))
			out := planes(want, size)
			ref.Compensate(out.Y, in.Y, w, h, 0, h, vectors, w/16, true)
			ref.Compensate(out.U, in.U, w/2, h/2, 0, h/2, vectors, w/16, false)
			ref.Compensate(out.V, in.V, w/2, h/2, 0, h/2, vectors, w/16, false)
			run(g, what, want, nil, func(dst pointer) call { return callCompensate(dst, s, upload(g, vectors), w, h) })

			table := fill16(r, 256)
			n := w / 8 * (h / 8) * kernel.Packed
			head, pred, f := fill16(r, n), fill16(r, n), 1+r.IntN(15)
			d, p, from, pixels := upload(g, head), pointer(0), pointer(0), pointer(0)
			switch r.IntN(3) {
			case 0:
				pred = nil
			case 1:
				p = upload(g, pred)
			case 2: // a picture through a table
				from, pixels = s, upload(g, table)
				ref.Pack(pred, in.Y, in.U, in.V, w, h, 0, h/8, table)
			}
			ref.Unpack(out.Y, out.U, out.V, head, pred, w, h, 0, h/8, uint(f))
			run(g, what, want, nil, func(dst pointer) call { return callUnpack(dst, d, p, from, pixels, w, h, f) })
			g.free()
		}
	})
}
