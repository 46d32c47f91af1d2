//go:build cuda

package cuda

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/nvcodec/nvcodec/inference/kernel"
)

// eachGroupMachine runs a test where the products of warpgroups are.
func eachGroupMachine(t *testing.T, test func(t *testing.T, m *bench)) {
	eachMachine(t, func(t *testing.T, m *bench) {
		if m.family() == 90 {
			test(t, m)
		}
	})
}

// randLin16 returns a layer of int16 weights within the bounds that a model is proved by.
func randLin16(r *rand.Rand, in, out int) *kernel.Lin {
	l := &kernel.Lin{In: in, Out: out, Shift: uint(r.IntN(63)), W16: fill(in*out, func() int16 { return random16(r) })}
	for o := range out {
		var sum int64
		for _, w := range l.W16[o*in:][:in] {
			sum += max(int64(w), -int64(w))
		}
		l.Bias = append(l.Bias, random32(r))
		sum = sum*32768 + max(int64(l.Bias[o]), -int64(l.Bias[o]))
		// |acc|·mul + 2^61 < 2^63
		top := min(30, 62-bits.Len64(uint64(sum)))
		l.Mul = append(l.Mul, randomMul(r, max(1, top)))
	}
	if r.IntN(4) > 0 {
		l.Shift = uint(20 + r.IntN(30))
	}
	return l
}

// foldable returns a table like an activation's: max(x, 0) less an even part that ends.
func foldable(r *rand.Rand) []int16 {
	even := fill(1+r.IntN(8000), func() int16 { return int16(r.IntN(256)) })
	if r.IntN(4) == 0 {
		even = even[:1]
	}
	table := make([]int16, 1<<16)
	for i := range table {
		x := i - 1<<15
		table[i] = int16(max(x, 0)) - even[min(max(x, -x), len(even)-1)]
	}
	return table
}

func TestFoldTable(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	for range 20 {
		table := foldable(r)
		folded := foldTable(table)
		if folded == nil {
			t.Fatal("not folded")
		}
		for i, want := range table {
			x := i - 1<<15
			if got := max(x, 0) - int(folded[min(max(x, -x), len(folded)-1)]); got != int(want) {
				t.Fatalf("of %d entries: %d gives %d, want %d", len(folded), x, got, want)
			}
		}
		at := r.IntN(1 << 16)
		if table[at]++; at != 1<<15 && foldTable(table) != nil {
			t.Fatalf("folded though entry %d stands alone", at)
		}
	}
	if foldTable(make([]int16, 1<<16)) != nil || foldTable(fill16(r, 1<<16)) != nil {
		t.Error("folded what is no activation")
	}
}

// An expected outcome, by the definitions.
func groupWant(l *kernel.Lin, o outcome, src, res []int16, table []int16, f uint) []int16 {
	sums := make([]int16, len(src)/l.In*l.Out)
	kernel.Generic().Lin(l)(sums, src, res)
	want := make([]int16, len(sums)/o.parts())
	switch o {
	case plain:
		return sums
	case gated:
		kernel.Generic().ActSum4(want, sums, l.Out/4, f)
	case looked:
		kernel.Lookup(want, sums, table)
	case lookedSum:
		kernel.Lookup(sums, sums, table)
		kernel.Sum2(want, sums, l.Out/2)
	}
	return want
}

// groupSizes are channel counts that meet every edge of the kernels' blocks and stages.
var groupSizes = [][2]int{{8, 8}, {32, 64}, {48, 96}, {64, 32}, {96, 192}, {120, 136}, {128, 128}, {160, 320}, {192, 256}, {256, 256}, {320, 40}, {384, 192}, {256, 64}, {512, 192}, {640, 96}, {1024, 128}}

func TestGroup(t *testing.T) {
	eachGroupMachine(t, func(t *testing.T, m *bench) {
		ran := map[string]bool{}
		for seed := range cases(m, 180, 360) {
			r := rand.New(rand.NewPCG(seed, 21))
			size := groupSizes[seed%uint64(len(groupSizes))]
			o, wide, f := outcome(seed/uint64(len(groupSizes))%4), seed%11 == 3, uint(1+r.IntN(14))
			if wide && o == gated {
				o = plain
			}
			var l *kernel.Lin
			if wide {
				l = randLin16(r, size[0], o.parts()*size[1])
			} else {
				l = randLin(r, size[0], o.parts()*size[1])
				top := 1 + r.IntN(31)
				for i := range l.Mul {
					l.Mul[i] = randomMul(r, top)
				}
				l.Shift = uint(1 + top + r.IntN(18))
			}
			var table []int16
			var folded []byte
			if o == looked || o == lookedSum {
				table = foldable(r)
				folded = foldTable(table)
			}
			g := newGroupLayer(l, 1, o, folded)
			if g == nil {
				t.Fatalf("seed=%d: no kernel for %d to %d", seed, l.In, l.Out)
			}
			job := groupRun{n: int64(1 + r.IntN(400)), f: int(f), r: 1}
			joined := g.joins(32) && l.In > 32 && seed/uint64(4*len(groupSizes))%2 == 0
			if joined {
				job.h, job.w, job.r = 1+r.IntN(9), 1+r.IntN(9), 1+r.IntN(2)
				job.n, job.split = int64(job.h*job.w*job.r*job.r), 32*(1+r.IntN(l.In/32-1))
			}
			n := int(job.n)
			src := fill16(r, n*l.In)
			if l.W != nil && r.IntN(2) == 0 { // a position that drives the first output to the bound
				for i := range l.In {
					src[i] = 32767
					if l.W[i] > 0 == (seed%4 < 2) {
						src[i] = -32768
					}
				}
			}
			var res []int16
			if o == plain && !joined && r.IntN(3) > 0 {
				res = fill16(r, n*l.Out)
			}
			want := groupWant(l, o, src, res, table, f)
			b := &rig{t: t, m: m}
			job.packed = upload(b, g.pack(l))
			if folded != nil {
				job.table = upload(b, tableBytes(folded))
			}
			if joined {
				first, second := splitTensor(src, l.In, job)
				job.src, job.second = upload(b, first), upload(b, second)
			} else {
				job.src = upload(b, src)
			}
			if res != nil && r.IntN(2) == 0 {
				outer := fill16(r, len(want))
				kernel.Add(want, want, outer)
				job.outer = upload(b, outer)
			}
			if o == plain && !joined && r.IntN(2) == 0 {
				by, qp := fill(64*l.Out, func() int32 { return random32(r) }), r.IntN(64)
				job.scale = 10 + r.IntN(30)
				kernel.Generic().Scale(want, want, by[qp*l.Out:][:l.Out], uint(job.scale))
				job.table, job.frame = upload(b, by), upload(b, []int32{int32(qp), 0})
			}
			inPlace := res != nil && r.IntN(2) == 0
			processors := 1 + r.IntN(5)
			what := fmt.Sprintf("seed=%d outcome %d wide %v %d to %d, shift %d, in place %v, %d processors, %+v", seed, o, wide, l.In, l.Out, l.Shift, inPlace, processors, job)
			run(b, what, want, res, func(dst pointer) call {
				job.dst, job.res = dst, dst
				switch {
				case res == nil:
					job.res = 0
				case !inPlace:
					job.res = upload(b, res)
				}
				c := callGroup(g, job, processors)
				ran[c.kernel] = true
				return c
			})
			b.free()
		}
		for name, kernels := range groupKernels {
			if testing.Short() {
				break
			}
			for _, k := range kernels {
				if name := k.name(name); !strings.Contains(name, "conv3") && !ran[name] {
					t.Errorf("%s has not run", name)
				}
			}
		}
	})
}

// splitTensor returns the two tensors that a run joins to src.
func splitTensor(src []int16, in int, run groupRun) (first, second []int16) {
	first, second = make([]int16, int(run.n)*run.split), make([]int16, int(run.n)*(in-run.split))
	wide := run.w * run.r
	for p := range int(run.n) {
		y, x := p/wide, p%wide
		from := ((y/run.r*run.w+x/run.r)*run.r+y%run.r)*run.r + x%run.r
		copy(first[from*run.split:], src[p*in:][:run.split])
		copy(second[p*(in-run.split):][:in-run.split], src[p*in+run.split:])
	}
	return first, second
}

func TestGroupConv3(t *testing.T) {
	eachGroupMachine(t, func(t *testing.T, m *bench) {
		for seed := range cases(m, 10, 40) {
			r := rand.New(rand.NewPCG(seed, 22))
			in, out, stride := 128*(1+r.IntN(2)), 8*(1+r.IntN(20)), 1+r.IntN(2)
			h, w := stride*(1+r.IntN(9)), stride*(1+r.IntN(9))
			var l *kernel.Lin
			if seed%2 == 0 {
				l = randLin(r, 9*in, out)
				l.Shift = 30
				for i := range l.Mul {
					l.Mul[i] = randomMul(r, 14)
				}
			} else {
				l = randLin16(r, 9*in, out)
			}
			c := kernel.Conv3{In: in, Out: out, R: stride, W: l.W, W16: l.W16, Bias: l.Bias, Mul: l.Mul, Shift: l.Shift}
			src := fill16(r, h*w*in)
			want := make([]int16, h/stride*(w/stride)*out)
			c.Apply(want, src, h, w, 0, h/stride)
			g := newGroupLayer(l, 9, plain, nil)
			if g == nil {
				t.Fatalf("seed=%d: no kernel for %d to %d", seed, in, out)
			}
			b := &rig{t: t, m: m}
			s, p := upload(b, src), upload(b, g.pack(l))
			run(b, fmt.Sprintf("seed=%d conv3 %d to %d at %dx%d, stride %d", seed, in, out, w, h, stride), want, nil, func(dst pointer) call {
				return callGroup(g, groupRun{dst: dst, src: s, packed: p, n: int64(len(want) / out), h: h, w: w, r: stride}, 1+r.IntN(5))
			})
			b.free()
		}
	})
}

// TestGroupRefuses: what the kernels cannot compute has no layer of theirs.
func TestGroupRefuses(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	layer := func(in, out int, edit func(l *kernel.Lin)) *kernel.Lin {
		l := randLin(r, in, out)
		l.Shift = 32
		edit(l)
		return l
	}
	none := func(*kernel.Lin) {}
	if newGroupLayer(layer(64, 64, none), 1, plain, nil) == nil {
		t.Error("64 to 64 has no kernel")
	}
	for name, l := range map[string]*kernel.Lin{
		"12 inputs":     layer(12, 64, none),
		"12 outputs":    layer(64, 12, none),
		"too much":      layer(4096, 64, none),
		"mul too large": layer(64, 64, func(l *kernel.Lin) { l.Shift, l.Mul[63] = 31, 1<<30 }),
		"shift 0":       layer(64, 64, func(l *kernel.Lin) { l.Shift = 0 }),
	} {
		if newGroupLayer(l, 1, plain, nil) != nil {
			t.Errorf("%s: there is a kernel", name)
		}
	}
	if newGroupLayer(layer(9*64, 64, none), 9, plain, nil) != nil {
		t.Error("conv3 of 64 channels: there is a kernel")
	}
}

// Every share covers all channels and fits, whatever the sizes.
func TestGroupShare(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	for range 2000 {
		g := &groupLayer{blocks: 1 + r.IntN(20), bytes: 16 * (1 + r.IntN(groupMemory/16-1)), outcome: outcome(r.IntN(4)), looks: newLooks(1 + r.IntN(8192)), kernel: groupKernel{64, 8 * r.IntN(2)}}
		if g.bytes+g.memory() > groupMemory {
			continue
		}
		n, processors := int64(1+r.IntN(40000)), 1+r.IntN(200)
		groups, each, share := g.share(n, processors)
		if groups < 1 || each < 1 || groups*share < g.blocks || (groups-1)*share >= g.blocks || share*g.bytes+(share-1)*8+g.memory() > groupMemory || share != (g.blocks+groups-1)/groups {
			t.Fatalf("%+v, %d positions on %d: %d groups of %d, %d blocks each", g, n, processors, groups, each, share)
		}
	}
}
