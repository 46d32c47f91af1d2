//go:build cuda

package cuda

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/nvcodec/nvcodec/inference/kernel"
)

// chainLinOf is randLin with numbers that a chain can take.
func chainLinOf(r *rand.Rand, in, out int) *kernel.Lin {
	l := randLin(r, in, out)
	l.Shift = uint(3 + r.IntN(60))
	if r.IntN(4) > 0 {
		l.Shift = uint(chainShift + r.IntN(15))
	}
	if l.Shift < chainShift {
		for i := range l.Mul {
			l.Mul[i] = max(1, l.Mul[i]>>(chainShift-l.Shift))
		}
	}
	return l
}

func chainConvOf(r *rand.Rand, c int) *kernel.DWAct {
	d := &kernel.DWAct{C: c, F: uint(1 + r.IntN(14)), Shift: uint(chainShift + r.IntN(15)), W: fill(9*c, func() int8 { return random8(r) })}
	for ch := range c {
		var sum int64
		for k := range 9 {
			sum += max(int64(d.W[k*c+ch]), -int64(d.W[k*c+ch]))
		}
		d.Bias = append(d.Bias, bound(random32(r), sum))
		d.Mul = append(d.Mul, randomMul(r, 31))
	}
	return d
}

// A chainCase is a chain with its operands and what the generic kernels make of them.
type chainCase struct {
	chain      chain
	run        chainRun
	src, res   []int16
	table      []int32
	qp         int32
	x          []int16
	outs       [][]int16
	storeX     bool
	what       string
	skippedOut int // tail that is not stored, or -1
}

func randChain(r *rand.Rand, c int) *chainCase {
	g := kernel.Generic()
	k := &chainCase{chain: chain{c: c, head: chainHead(r.IntN(4))}, skippedOut: -1}
	k.run = chainRun{c: c, head: k.chain.head, h: 1 + r.IntN(9), w: 2 * (1 + r.IntN(24))}
	n := k.run.h * k.run.w
	if k.chain.head != chainDepthwise {
		n = 1 + r.IntN(300)
		k.run.h, k.run.w = 1, n
	}
	k.run.n = n
	x := make([]int16, n*c)
	switch k.chain.head {
	case chainLin:
		in := 8 * (1 + r.IntN(60))
		k.chain.lin, k.run.in, k.src = chainLinOf(r, in, c), in, fill16(r, n*in)
		g.Lin(k.chain.lin)(x, k.src, nil)
	case chainCopy:
		k.src = fill16(r, n*c)
		copy(x, k.src)
	case chainDepthwise:
		d := chainConvOf(r, c/2)
		k.chain.conv, k.chain.lin, k.res = d, chainLinOf(r, c/2, c), fill16(r, n*c)
		before, inside := fill16(r, n*c/2), make([]int16, n*c/2)
		g.DWAct(d)(inside, before, k.run.h, k.run.w, 0, k.run.h)
		g.Lin(k.chain.lin)(x, inside, k.res)
		k.src = make([]int16, len(before))
		for i, v := range before {
			k.src[i] = act16(v, d.F)
		}
		k.run.conv = int(d.Shift)
	case chainResidual:
		k.chain.lin, k.src, k.res = chainLinOf(r, c/2, c), fill16(r, n*c/2), fill16(r, n*c)
		g.Lin(k.chain.lin)(x, k.src, k.res)
	}
	if k.chain.lin != nil {
		k.run.lin = int(k.chain.lin.Shift)
	}
	if r.IntN(4) > 0 {
		k.chain.up, k.chain.down = chainLinOf(r, c, 2*c), chainLinOf(r, c/2, c)
		f := uint(1 + r.IntN(14))
		k.run.f, k.run.up, k.run.down = int(f), int(k.chain.up.Shift), int(k.chain.down.Shift)
		wide, sum := make([]int16, n*2*c), make([]int16, n*c/2)
		g.Lin(k.chain.up)(wide, x, nil)
		g.ActSum4(sum, wide, c/2, f)
		y := make([]int16, n*c)
		g.Lin(k.chain.down)(y, sum, x)
		x = y
	}
	if r.IntN(3) == 0 {
		k.table, k.qp, k.run.tableShift = fill(64*c, func() int32 { return max(0, random32(r)) }), int32(r.IntN(64)), r.IntN(47)
		y := make([]int16, n*c)
		g.Scale(y, x, k.table[int(k.qp)*c:][:c], uint(k.run.tableShift))
		x = y
	}
	k.x, k.storeX = x, r.IntN(4) > 0
	for i := range r.IntN(chainTails + 1) {
		l := chainLinOf(r, c, 8*(1+r.IntN(30)))
		out := make([]int16, n*l.Out)
		g.Lin(l)(out, x, nil)
		t := chainTail{n: l.Out, shift: int(l.Shift)}
		if r.IntN(2) == 0 {
			t.f = 1 + r.IntN(14)
			for i, v := range out {
				out[i] = act16(v, uint(t.f))
			}
		}
		k.chain.tails, k.run.tails[i], k.outs = append(k.chain.tails, l), t, append(k.outs, out)
	}
	if len(k.outs) > 1 && r.IntN(4) == 0 {
		k.skippedOut = r.IntN(len(k.outs))
	}
	k.what = fmt.Sprintf("C=%d head=%d n=%d (%dx%d) in=%d f=%d table=%v tails=%d", c, k.run.head, n, k.run.w, k.run.h, k.run.in, k.run.f, k.table != nil, len(k.outs))
	return k
}

func act16(v int16, f uint) int16 {
	half := int32(1) << (f - 1)
	return int16((int32(v)*min(max(int32(v)+half, 0), 2*half) + half) >> f)
}

func TestChain(t *testing.T) {
	eachMachine(t, func(t *testing.T, m *bench) {
		if m.family() < 80 {
			t.Skip("no chains")
		}
		for seed := range cases(m, 48, 600) {
			r := rand.New(rand.NewPCG(seed, 20))
			c := chainWidths[int(seed)%len(chainWidths)]
			k := randChain(r, c)
			weights, ok := k.chain.pack()
			if !ok {
				t.Fatalf("seed=%d %s: cannot be packed", seed, k.what)
			}
			g := &rig{t: t, m: m}
			_, bytes := chainStage(c)
			k.run.weights, k.run.stages = upload(g, weights), len(weights)/bytes
			k.run.src = upload(g, k.src)
			if k.table != nil {
				k.run.table, k.run.frame = upload(g, k.table), upload(g, []int32{k.qp})
			}
			// Shared memory for all stages, or for as few as there may be.
			shared, processors := []int{99 << 10, 163 << 10, 227 << 10}[r.IntN(3)], 1+r.IntN(4)
			inPlace := k.res != nil && k.storeX && r.IntN(2) == 0
			if k.res != nil && !inPlace {
				k.run.res = upload(g, k.res)
			}
			// Each output in turn is the one that is compared.
			for out := range len(k.outs) + 1 {
				what := fmt.Sprintf("seed=%d %s shared=%d in place %v, output %d", seed, k.what, shared, inPlace, out)
				one := k.run
				for i := range k.outs {
					one.tails[i].dst = upload(g, make([]int16, len(k.outs[i])))
					if i == k.skippedOut {
						one.tails[i].dst = 0
					}
				}
				want, before := k.x, k.res
				if out > 0 {
					want, before = k.outs[out-1], nil
				}
				if out == 0 && !k.storeX || out-1 == k.skippedOut && out > 0 {
					continue
				}
				run(g, what, want, before, func(dst pointer) call {
					switch {
					case out > 0:
						one.tails[out-1].dst = dst
						if k.storeX {
							one.dst = upload(g, k.x)
						}
						if inPlace {
							one.res = upload(g, k.res)
						}
					case inPlace:
						one.dst, one.res = dst, dst
					default:
						one.dst = dst
					}
					return callChain(&one, processors, shared)
				})
			}
			g.free()
		}
	})
}

// TestChainSpeed prints, with NVCODEC_PROFILE set, how long a block and the next one's first lin take at 240x136
// positions: by warps of a block and shared memory. Its numbers are random: what they are does not show.
func TestChainSpeed(t *testing.T) {
	if os.Getenv("NVCODEC_PROFILE") == "" {
		t.Skip("NVCODEC_PROFILE is not set")
	}
	eachDevice(t, func(t *testing.T, b *backend) {
		if b.sm < 80 {
			t.Skip("no chains")
		}
		opened, err := b.open()
		if err != nil {
			t.Fatal(err)
		}
		m := &bench{machine: opened}
		g := &rig{t: t, m: m}
		r := rand.New(rand.NewPCG(1, 30))
		h, w := 136, 240
		if software {
			h, w = 2, 8
		}
		for _, c := range []int{192, 128} {
			k := chain{c: c, head: chainDepthwise, conv: chainConvOf(r, c/2), lin: chainLinOf(r, c/2, c), up: chainLinOf(r, c, 2*c), down: chainLinOf(r, c/2, c), tails: []*kernel.Lin{chainLinOf(r, c, c/2)}}
			weights, ok := k.pack()
			if !ok {
				t.Fatal("cannot be packed")
			}
			_, stage := chainStage(c)
			a, x, next := upload(g, fill16(r, h*w*c/2)), upload(g, fill16(r, h*w*c)), upload(g, make([]int16, h*w*c/2))
			for _, share := range []int{1, 2, 4} {
				for _, shared := range []int{m.shared(), 99 << 10} {
					run := &chainRun{c: c, head: chainDepthwise, h: h, w: w, n: h * w, src: a, dst: x, res: x, weights: upload(g, weights), stages: len(weights) / stage,
						conv: int(k.conv.Shift), lin: 40, f: 11, up: 40, down: 40}
					run.tails[0] = chainTail{dst: next, n: c / 2, shift: 40, f: 11}
					one := callChain(run, share*m.processors(), shared)
					step, err := m.prepare(one)
					g.must(err)
					d := timed(t, m, step)
					t.Logf("chain %d, %2d warps, %d blocks, %3d KiB: %.1f us, %.0f Tproducts/s", c, one.threads/32, one.grid, one.shared>>10, micros(d), float64(7*h*w*c*c)/d.Seconds()/1e12)
				}
			}
		}
		g.free()
		if err := m.finish(); err != nil {
			t.Error(err)
		}
	})
}
