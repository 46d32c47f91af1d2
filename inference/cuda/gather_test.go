//go:build cuda

package cuda

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/nvcodec/nvcodec/inference"
	"github.com/nvcodec/nvcodec/inference/inferencetest"
	"github.com/nvcodec/nvcodec/inference/kernel"
)

// A randomPiece is a piece and what it makes of h x w positions.
type randomPiece struct {
	piece
	want []int16 // [h*w][count]
}

// newPiece makes a piece of random kind and steps, and its values by the formulas of docs/MODEL.md.
func newPiece(g *rig, r *rand.Rand, h, w, unit, qp int, vectors []int16) randomPiece {
	ref := kernel.Generic()
	p := randomPiece{piece: whole(0, unit*(1+r.IntN(4)))}
	p.kind, p.r = pieceKind(r.IntN(5)), 2
	if p.kind == pieceFlat && (h%2 != 0 || w%2 != 0) || p.kind == pieceMoved && vectors == nil {
		p.kind = pieceHere
	}
	at := func(y, x, j int) int { return (y*w+x)*p.count + j }
	switch p.kind {
	case pieceDeep:
		p.count = 4 * p.c
	case pieceFlat:
		p.count = p.c
		p.c *= 4
	case piecePacked:
		p.count, p.c = kernel.Packed, kernel.Packed
	}
	p.want = make([]int16, h*w*p.count)
	channel := make([]int, h*w*p.count) // of the source
	take := func(src []int16, i, from, j int) { p.want[i], channel[i] = src[from*p.c+j], j }
	var src []int16
	if p.kind != piecePacked {
		src = fill16(r, h*w*p.count)
		p.src = upload(g, src)
	}
	for y := range h {
		for x := range w {
			for j := range p.count {
				i := at(y, x, j)
				switch p.kind {
				case pieceHere:
					take(src, i, y*w+x, j)
				case pieceMoved:
					v := vectors[2*(y/2*(w/2)+x/2):]
					sy, sx := min(max(y+(int(v[0])+16)>>5, 0), h-1), min(max(x+(int(v[1])+16)>>5, 0), w-1)
					take(src, i, sy*w+sx, j)
				case pieceDeep:
					d := j / p.c
					take(src, i, (y*2+d/2)*w*2+x*2+d%2, j%p.c)
				case pieceFlat:
					take(src, i, y/2*(w/2)+x/2, (y%2*2+x%2)*p.count+j)
				}
			}
		}
	}
	if p.kind == piecePacked {
		picture, table := fill(h*w*kernel.Packed, func() byte { return byte(r.Uint32()) }), fill16(r, 256)
		in := planes(picture, inference.Size{W: 8 * w, H: 8 * h})
		ref.Pack(p.want, in.Y, in.U, in.V, 8*w, 8*h, 0, h, table)
		p.src, p.table = upload(g, picture), upload(g, table)
	} else if r.IntN(2) == 0 {
		table := fill(64*p.c, func() int32 { return random32(r) })
		p.scale, p.table = r.IntN(63), upload(g, table)
		for i, x := range p.want {
			p.want[i] = kernel.Sat16(kernel.Rnd(int64(x)*int64(table[qp*p.c+channel[i]]), uint(p.scale)))
		}
	}
	if r.IntN(2) == 0 {
		p.lo = int(random16(r))
		p.hi = p.lo + r.IntN(32768-p.lo)
		ref.Clamp(p.want, slices.Clone(p.want), int16(p.lo), int16(p.hi))
	}
	if r.IntN(2) == 0 {
		p.requant = r.IntN(31) - 15
		ref.Requant(p.want, slices.Clone(p.want), p.requant)
	}
	return p
}

func TestGather(t *testing.T) {
	eachMachine(t, func(t *testing.T, m *bench) {
		for seed := range cases(m, 150, 1000) {
			r := rand.New(rand.NewPCG(seed, 6))
			h, w, unit, qp := 1+r.IntN(12), 1+r.IntN(12), []int{1, 3, 8, 24}[r.IntN(4)], r.IntN(64)
			var vectors []int16
			if h%2 == 0 && w%2 == 0 {
				vectors = fill(h/2*(w/2)*2, func() int16 { return int16(r.IntN(4095)-2047) >> r.IntN(8) })
			}
			g := &rig{t: t, m: m}
			var all []piece
			var made []randomPiece
			total := 0
			for range 1 + r.IntN(6) {
				p := newPiece(g, r, h, w, unit, qp, vectors)
				made = append(made, p)
				all = append(all, p.piece)
				total += p.count
			}
			want := make([]int16, 0, h*w*total)
			for pos := range h * w {
				for _, p := range made {
					want = append(want, p.want[pos*p.count:][:p.count]...)
				}
			}
			v, frame := upload(g, vectors), upload(g, []int32{int32(qp), 0})
			runAll(g, fmt.Sprintf("seed=%d %dx%d, %d pieces of %d channels, the first %+v", seed, w, h, len(all), total, all[0]), want, nil, func(dst pointer) []call {
				return callsGather(dst, v, frame, h, w, all...)
			})
			g.free()
		}
	})
}

// TestReadThrough: of nvc1's shape, what only moves and rescales values is computed where a convolution or an output of
// the graph reads it, and nowhere else.
func TestReadThrough(t *testing.T) {
	m := inferencetest.New(2, inferencetest.Config{C: 32, YIntra: 16, YInter: 8, Z: 16})
	g := m.Graphs["inter"]
	p, err := newPlan(g, inference.Size{W: 128, H: 64}, true, fuse(g, m.Tensors, 80))
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range p.values {
		if !gathers(v.node) || v.node.Op == "clamp" { // clamps: TestLatentLaunches
			continue
		}
		through := !slices.ContainsFunc(nodesReading(g, v.node.Out), func(n *inference.Node) bool {
			return !gathers(n) && (n.Op != "picture" || v.node.Op != "pack")
		})
		if through != (v.place == nowhere) {
			t.Errorf("%s = %s: read through %v, want %v", v.node.Out, v.node.Op, v.place == nowhere, through)
		}
		for _, s := range v.sources {
			if v.place != nowhere && s.from.place == nowhere {
				t.Errorf("%s reads %s, which is not computed", v.node.Out, s.from.node.Out)
			}
		}
	}
}

func nodesReading(g *inference.Graph, name string) (all []*inference.Node) {
	for i := range g.Nodes {
		if slices.Contains(g.Nodes[i].In, name) {
			all = append(all, &g.Nodes[i])
		}
	}
	return all
}

// TestDivisor: quotients as kernels/gather.cuh computes them, at and around multiples of every divisor that a tensor has.
func TestDivisor(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 13))
	for d := 1; d <= 1<<16; d++ {
		by := divisor(d)
		m, s := uint64(uint32(by)), by>>32
		for range 20 {
			n := r.Uint64N(1 << 31)
			for _, n := range []uint64{n, n / uint64(d) * uint64(d), n/uint64(d)*uint64(d) + uint64(d) - 1, 1<<31 - 1} {
				if n < 1<<31 && n*m>>(31+s) != n/uint64(d) {
					t.Fatalf("%d / %d gives %d", n, d, n*m>>(31+s))
				}
			}
		}
	}
}
