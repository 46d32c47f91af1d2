package inference

import (
	"math/rand/v2"
	"strconv"
)

// planModels returns graphs for the planner alone: a real one's shapes come through package inferencetest in the
// tests of sessions; these are random chains, with more sharing and crossing than a network has. They have no tensors.
func planModels() []*Model {
	var all []*Model
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 2))
		g := &Graph{Name: "random"}
		add := func(op string, c, stride int, in ...string) {
			n := Node{Out: "n" + strconv.Itoa(len(g.Nodes)), Op: op, Kind: operators[op].out, C: c, F: 10, Stride: stride, In: in, Ints: map[string]int{"r": 2}}
			g.Nodes = append(g.Nodes, n)
		}
		add("source", 0, 0)
		add("reference", 0, 0)
		add("vectors", 0, 0)
		add("pack", 96, 8, "n1")
		add("memory_in", 96, 8)
		features := []int{3, 4}
		for range 5 + r.IntN(60) {
			x := g.Nodes[features[len(features)-1-r.IntN(min(4, len(features)))]]
			features = append(features, len(g.Nodes))
			switch r.IntN(8) {
			case 0:
				add("dwact", x.C, x.Stride, x.Out)
			case 1:
				if x.Stride < 32 && x.C < 400 {
					add("s2d", 4*x.C, 2*x.Stride, x.Out)
				} else {
					add("d2s", x.C/4, x.Stride/2, x.Out)
				}
			case 2:
				if x.Stride == 8 {
					add("move", x.C, 8, x.Out, "n2")
				} else {
					add("clamp", x.C, x.Stride, x.Out)
				}
			case 3, 4: // a residual: another value of that shape, or x itself
				res := x
				for _, i := range features[:len(features)-1] {
					if n := g.Nodes[i]; n.C == x.C && n.Stride == x.Stride && r.IntN(2) == 0 {
						res = n
					}
				}
				add("lin", x.C, x.Stride, x.Out, res.Out)
			default:
				add("lin", []int{32, 96, 192}[r.IntN(3)], x.Stride, x.Out)
			}
		}
		last := g.Nodes[features[len(features)-1]]
		for last.Stride != 8 {
			if last.Stride > 8 {
				add("d2s", last.C/4, last.Stride/2, last.Out)
			} else {
				add("s2d", last.C*4, last.Stride*2, last.Out)
			}
			last = g.Nodes[len(g.Nodes)-1]
		}
		add("lin", 96, 8, last.Out)
		last = g.Nodes[len(g.Nodes)-1]
		add("memory_out", 96, 8, last.Out)
		add("picture", 0, 0, last.Out)
		all = append(all, &Model{Graphs: map[string]*Graph{g.Name: g}})
	}
	return all
}
