//go:build cuda

package cuda

import (
	"slices"
	"strings"

	"github.com/nvcodec/nvcodec/inference"
	"github.com/nvcodec/nvcodec/inference/kernel"
)

// A grouping is the nodes that one kernel of kernels/group.cuh computes: a lin or conv3, and what is behind it, where nothing
// else reads what they read: a lookup and a sum, a second residual, a scale.
type grouping struct {
	nodes []*inference.Node // the last one's value is left
	layer *groupLayer
	table string // the tensor's name, or ""
	key   string // of the packed layer in weights.at
}

func (g *grouping) last() *inference.Node { return g.nodes[len(g.nodes)-1] }

// looks names the table as the kernels read it.
func (g *grouping) looks() string { return "looks|" + g.table }

// groupings returns what these kernels compute of a graph but for the nodes that others do.
func groupings(g *inference.Graph, tensors map[string]*inference.Tensor, taken func(n *inference.Node) bool) []*grouping {
	readers := map[string][]*inference.Node{}
	for i := range g.Nodes {
		for _, name := range g.Nodes[i].In {
			readers[name] = append(readers[name], &g.Nodes[i])
		}
	}
	folded := map[string][]byte{}
	var all []*grouping
	for i := range g.Nodes {
		n := &g.Nodes[i]
		if n.Op != "lin" && n.Op != "conv3" || taken(n) {
			continue
		}
		nodes := []*inference.Node{n}
		for {
			last := nodes[len(nodes)-1]
			r := readers[last.Out]
			if len(r) != 1 || taken(r[0]) || !follows(last, r[0]) {
				break
			}
			nodes = append(nodes, r[0])
		}
		for ; len(nodes) > 0; nodes = nodes[:len(nodes)-1] {
			if x := newGrouping(nodes, tensors, folded); x != nil {
				all = append(all, x)
				break
			}
			if nodes[len(nodes)-1].Op == "actsum4" {
				break // lin_actsum4 computes both
			}
		}
	}
	return all
}

// follows reports whether the kernel that computes n can compute its only reader too.
func follows(n, reader *inference.Node) bool {
	switch n.Op + " " + reader.Op {
	case "lin lookup", "lin actsum4":
		return len(n.In) == 1
	case "lookup sum2", "lin scale":
		return true
	case "lin add":
		return len(n.In) == 2 && reader.In[0] == n.Out
	}
	return false
}

// grouped reports whether one of these kernels computes a node.
func grouped(all []*grouping, n *inference.Node) bool {
	return slices.ContainsFunc(all, func(g *grouping) bool { return slices.Contains(g.nodes, n) })
}

// newGrouping returns nil if no kernel computes these nodes together.
func newGrouping(nodes []*inference.Node, tensors map[string]*inference.Tensor, folded map[string][]byte) *grouping {
	g := &grouping{nodes: slices.Clone(nodes)}
	o := plain
	switch g.last().Op {
	case "actsum4":
		o = gated
	case "lookup":
		o = looked
	case "sum2":
		o = lookedSum
	}
	if o == looked || o == lookedSum {
		g.table = nodes[1].Tensors["table"]
		if _, ok := folded[g.table]; !ok {
			folded[g.table] = foldTable(tensors[g.table].I16)
		}
		if folded[g.table] == nil {
			return nil
		}
	}
	l, taps := layerOf(nodes[0], tensors)
	if g.layer = newGroupLayer(l, taps, o, folded[g.table]); g.layer == nil {
		return nil
	}
	t := nodes[0].Tensors
	g.key = strings.Join([]string{"group", g.layer.kernel.name(g.layer.name), t["w"], t["bias"], t["mul"]}, "|")
	return g
}

// layerOf returns a lin, or a conv3 as the lin over its nine taps' channels.
func layerOf(n *inference.Node, tensors map[string]*inference.Tensor) (l *kernel.Lin, taps int) {
	w := tensors[n.Tensors["w"]]
	taps = 1
	if n.Op == "conv3" {
		taps = 9
	}
	return &kernel.Lin{
		In: taps * w.Shape[len(w.Shape)-1], Out: n.C, W: w.I8, W16: w.I16,
		Bias: tensors[n.Tensors["bias"]].I32, Mul: tensors[n.Tensors["mul"]].I32, Shift: uint(n.Ints["shift"]),
	}, taps
}

// group has the groupings' values computed at once; those in between are nowhere.
func (p *plan) group(all []*grouping) {
	at := map[*inference.Node]*grouping{}
	for _, g := range all {
		at[g.last()] = g
	}
	for _, v := range p.values {
		g := at[v.node]
		if g == nil {
			continue
		}
		v.group = g
		for range g.nodes[1:] {
			x := v.inner()
			for _, from := range x.in {
				from.readers[slices.Index(from.readers, x)] = v
			}
			x.place, x.readers = nowhere, nil
		}
	}
}

// read has a lone lin read the parts of a concatenation where nothing else needs it whole.
func (p *plan) read() {
	for _, v := range p.values {
		if v.group == nil || len(v.group.nodes) != 1 || len(v.in) != 1 {
			continue
		}
		x := v.in[0]
		s := x.sources
		if len(s) != 2 || x.place != inArena || x.node.Op != "concat" || !only(x, v) || !v.group.layer.joins(s[0].count) || !s[0].as(pieceHere, pieceFlat) || !s[1].as(pieceHere) {
			continue
		}
		x.place, x.readers = nowhere, nil
		for _, part := range s {
			part.from.readers[slices.Index(part.from.readers, x)] = v
		}
	}
}

// as reports whether a source is its values as they are, in one of these places.
func (s *source) as(kinds ...pieceKind) bool {
	return slices.Contains(kinds, s.kind) && s.scale == nil && s.clamp == nil && s.requant == 0
}

// lin returns the value of a grouping's first node.
func (v *value) lin() *value {
	x := v
	for range v.group.nodes[1:] {
		x = x.in[0]
	}
	return x
}

// inner returns the first value of a grouping that has a place, from the one it leaves.
func (v *value) inner() *value {
	x := v.in[0]
	for x.place == nowhere {
		x = x.in[0]
	}
	return x
}

// compileGroup returns the launch that computes what a grouping leaves.
func (s *session) compileGroup(v *value, parity int) call {
	g, lin := v.group, v.lin()
	at := func(v *value) pointer { return s.address(v, parity) }
	src := lin.in[0]
	run := groupRun{dst: at(v), packed: s.weights.pointer(g.key), n: v.positions(), f: g.nodes[0].F, h: src.h, w: src.w, r: 1}
	switch n := g.last(); {
	case g.table != "":
		run.table = s.weights.pointer(g.looks())
	case n.Op == "add":
		run.outer = at(v.in[1])
	case n.Op == "scale":
		run.table, run.frame, run.scale = s.weights.pointer(n.Tensors["table"]), s.frameParameters(), n.Ints["shift"]
	}
	if len(lin.in) == 2 {
		run.res = at(lin.in[1])
	}
	if src.place == nowhere {
		first, second := src.sources[0], src.sources[1]
		run.src, run.second, run.split = at(first.from), at(second.from), first.count
		if first.kind == pieceFlat {
			run.h, run.w, run.r = first.from.h, first.from.w, first.r
		}
	} else {
		run.src = at(src)
	}
	if g.layer.taps == 9 {
		run.r = g.nodes[0].Ints["r"]
	}
	return callGroup(g.layer, run, s.m.processors())
}

// collectGroups adds the groupings' weights and tables.
func (w *weights) collectGroups(all []*grouping, blobs map[string][]byte) {
	for _, g := range all {
		if blobs[g.key] == nil {
			l, _ := layerOf(g.nodes[0], w.model.Tensors)
			blobs[g.key] = g.layer.pack(l)
		}
		if g.table != "" && blobs[g.looks()] == nil {
			blobs[g.looks()] = tableBytes(foldTable(w.model.Tensors[g.table].I16))
		}
	}
}
