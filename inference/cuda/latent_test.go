//go:build cuda

package cuda

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/nvcodec/nvcodec/inference"
	"github.com/nvcodec/nvcodec/inference/inferencetest"
	"github.com/nvcodec/nvcodec/inference/kernel"
)

func randomClamp(r *rand.Rand) (lo, hi int) {
	if r.IntN(3) == 0 {
		return -32768, 32767
	}
	lo = int(random16(r))
	return lo, lo + r.IntN(32768-lo)
}

func clampAll(x []int16, lo, hi int) []int16 {
	out := make([]int16, len(x))
	kernel.Generic().Clamp(out, x, int16(lo), int16(hi))
	return out
}

// TestLatents: symbols, tables and what becomes of them, against the formulas of docs/MODEL.md in 64 bits.
func TestLatents(t *testing.T) {
	rnd, sat := kernel.Rnd, kernel.Sat16
	eachMachine(t, func(t *testing.T, m *bench) {
		for seed := range cases(m, 150, 1000) {
			r := rand.New(rand.NewPCG(seed, 8))
			h, w, c := 1+r.IntN(8), 1+r.IntN(8), 2*(1+r.IntN(20))
			if r.IntN(2) == 0 {
				c = 16 * (1 + r.IntN(6))
			}
			n, half := h*w, c/2
			g := &rig{t: t, m: m}
			what := fmt.Sprintf("seed=%d %dx%dx%d", seed, w, h, c)
			qp, threshold := r.IntN(64), r.IntN(65)
			frame := upload(g, []int32{int32(qp), int32(threshold)})
			scratch := func(bytes int) pointer { return g.up(make([]byte, bytes)) }

			zTable, f := fill(64*c, func() uint8 { return uint8(r.IntN(64)) }), r.IntN(16)
			v := fill16(r, n*c)
			pv, pTable := upload(g, v), upload(g, zTable)
			z, zTables := make([]int16, n*c), make([]uint8, n*c)
			for i, x := range v {
				z[i] = int16(min(max(rnd(int64(x), uint(f)), -127), 127))
				zTables[i] = 64 + zTable[qp*c+i%c]
			}
			from := []pointer{0, pv}[r.IntN(2)] // decoders have no z
			run(g, what, zTables, nil, func(dst pointer) call { return callCodeZ(scratch(2*n*c), dst, from, pTable, frame, int64(n), c, f) })
			run(g, what, z, nil, func(dst pointer) call { return callCodeZ(dst, scratch(n*c), pv, pTable, frame, int64(n), c, f) })

			vlo, vhi := randomClamp(r)
			index := make([]uint8, n*c)
			for i, x := range clampAll(v, vlo, vhi) {
				index[i] = uint8(min(max(rnd(8*int64(x), uint(f))+16, 0), 63))
			}
			coded := func(step, pos, i int) int { // the channel of symbol i
				if (pos/w+pos%w+step)%2 == 0 {
					return i
				}
				return half + i
			}
			var tables [2][]uint8
			for step := range tables {
				tables[step] = make([]uint8, n*half)
				for i := range tables[step] {
					tables[step][i] = index[i/half*c+coded(step, i/half, i%half)]
				}
			}
			cv := clamped{pv, vlo, vhi}
			other := []pointer{0, scratch(n * half)}[r.IntN(2)]
			run(g, what, tables[0], nil, func(dst pointer) call { return callYTables([2]pointer{dst, other}, cv, int64(n), w, c, f) })
			run(g, what, tables[1], nil, func(dst pointer) call { return callYTables([2]pointer{other, dst}, cv, int64(n), w, c, f) })

			step := r.IntN(2)
			y, mean, q := fill16(r, n*c), fill16(r, n*c), fill16(r, n*c)
			qlo, qhi := randomClamp(r)
			cq := clamped{upload(g, q), qlo, qhi}
			q = clampAll(q, qlo, qhi)
			exp, rexp := fill(inference.ExpEntries, func() int32 { return random32(r) }), fill(inference.ExpEntries, func() int32 { return random32(r) })
			place := func(q int16) int {
				return min(max(int(q), -inference.ExpLimit), inference.ExpLimit) + inference.ExpLimit
			}
			fm, fy := r.IntN(16), r.IntN(16)
			l := latentStep{
				mean: upload(g, mean), q: cq, exp: upload(g, exp), step: step, fm: fm, outShift: r.IntN(47),
				y: upload(g, y), v: cv, rexp: upload(g, rexp), shift: 16 + fy - fm, fIndex: f,
			}
			k := make([]int16, n*half)
			limit := int64(32767) >> fm
			for i := range k {
				at := i/half*c + coded(step, i/half, i%half)
				ys := rnd(int64(y[at])*int64(rexp[place(q[at])]), uint(l.shift))
				if int(tables[step][i]) >= threshold {
					k[i] = int16(min(max(rnd(ys-int64(mean[at]), uint(fm)), -limit), limit))
				}
			}
			hat, out := make([]int16, n*c), make([]int16, n*c)
			if r.IntN(2) == 0 {
				base := fill16(r, n*c)
				l.base = upload(g, base)
				copy(hat, base)
			}
			for i := range k {
				at := i/half*c + coded(step, i/half, i%half)
				hat[at] = sat(int64(k[i])<<fm + int64(mean[at]))
			}
			for i := range out {
				out[i] = sat(rnd(int64(hat[i])*int64(exp[place(q[i])]), uint(l.outShift)))
			}
			launch := func(l latentStep) call { return callLatent(&l, frame, int64(n), w, c) }

			// The encoder writes four tensors; each in turn is the one that is compared.
			all := l
			all.k, all.tables, all.yhat, all.out = scratch(2*n*half), scratch(n*half), scratch(2*n*c), scratch(2*n*c)
			if r.IntN(2) == 0 {
				all.yhat, all.out = 0, 0
			}
			run(g, what, k, nil, func(dst pointer) call { l := all; l.k = dst; return launch(l) })
			run(g, what, tables[step], nil, func(dst pointer) call { l := all; l.tables = dst; return launch(l) })
			run(g, what, hat, nil, func(dst pointer) call { l := all; l.yhat = dst; return launch(l) })
			run(g, what, out, nil, func(dst pointer) call { l := all; l.out = dst; return launch(l) })
			// The decoder reads the symbols.
			read := latentStep{k: upload(g, k), mean: l.mean, base: l.base, step: step, fm: fm}
			run(g, what, hat, nil, func(dst pointer) call { l := read; l.yhat = dst; return launch(l) })
			read.q, read.exp, read.outShift = l.q, l.exp, l.outShift
			run(g, what, out, nil, func(dst pointer) call { l := read; l.out = dst; return launch(l) })
			run(g, what, out, nil, func(dst pointer) call { return callUnstep(dst, upload(g, hat), cq, l.exp, int64(n*c), l.outShift) })
			g.free()
		}
	})
}

// TestLatentLaunches: of nvc1's shape, an encoder codes and reconstructs y in two launches, and q, v and the scale index
// are nowhere in memory.
func TestLatentLaunches(t *testing.T) {
	m := inferencetest.New(2, inferencetest.Config{C: 32, YIntra: 16, YInter: 8, Z: 16})
	for name, g := range m.Graphs {
		for _, encode := range []bool{true, false} {
			p, err := newPlan(g, inference.Size{W: 128, H: 64}, encode, fuse(g, m.Tensors, 80))
			if err != nil {
				t.Fatal(err)
			}
			launches := 0
			for _, v := range p.values {
				switch v.node.Op {
				case "code_y", "latent", "unstep":
					if v.place != nowhere && v.by == nil {
						launches++
					}
				case "clamp", "index":
					if v.place != nowhere {
						t.Errorf("%s: %s is computed", name, v.node.Out)
					}
				}
			}
			want := 2 // latent with code_y, unstep with latent and code_y
			if !encode {
				want = 4 // code_y twice, latent, unstep with latent
			}
			if launches != want {
				t.Errorf("%s, encode %v: %d launches, want %d", name, encode, launches, want)
			}
		}
	}
}
