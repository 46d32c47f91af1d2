package convert

import (
	"fmt"

	"github.com/nvcodec/nvcodec/inference"
	"github.com/nvcodec/nvcodec/inference/kernel"
	"github.com/nvcodec/nvcodec/yuv"
)

// An arithmetic computes the operators in which the float and the integer network differ.
type arithmetic[T number] interface {
	pack(n *inference.Node, pic *yuv.Planes) *Value[T]
	lin(n *inference.Node, x, res *Value[T]) *Value[T]
	dwact(n *inference.Node, x *Value[T]) *Value[T]
	actsum4(n *inference.Node, x *Value[T]) *Value[T]
	scale(n *inference.Node, x *Value[T], qp int) *Value[T]
	requant(n *inference.Node, x *Value[T], from int) *Value[T]
	clamp(n *inference.Node, x *Value[T]) *Value[T]
	codeZ(n *inference.Node, x *Value[T], f int) *Value[T]
	index(n *inference.Node, v *Value[T], f int) *Value[T]
	codeY(n *inference.Node, y, q, mean, index *Value[T], fy, fm int) *Value[T]
	latent(n *inference.Node, k, mean, base *Value[T]) *Value[T]
	unstep(n *inference.Node, yhat, q *Value[T], fm int) *Value[T]
	picture(n *inference.Node, head, pred *Value[T]) *Value[T]
	state(n *inference.Node, x *Value[T]) *Value[T] // the trained limit of memory and feature
}

// An evaluation computes values of one graph for one frame. Values can be given; what is not asked for is not
// computed, so that a stage runs alone when its inputs are given.
type evaluation[T number] struct {
	arith  arithmetic[T]
	nodes  map[string]*inference.Node
	limit  map[string]bool // values that become state
	QP     int
	Values map[string]*Value[T]
	seen   func(n *inference.Node, v *Value[T]) // called for each value computed
}

func newEvaluation[T number](a arithmetic[T], g *inference.Graph, qp int) *evaluation[T] {
	e := &evaluation[T]{arith: a, nodes: map[string]*inference.Node{}, limit: map[string]bool{}, QP: qp, Values: map[string]*Value[T]{}}
	for i := range g.Nodes {
		n := &g.Nodes[i]
		e.nodes[n.Out] = n
		if n.Op == "memory_out" || n.Op == "feature_out" {
			e.limit[n.In[0]] = true
		}
	}
	return e
}

// Value returns the value called name, computed when it is not there yet.
func (e *evaluation[T]) Value(name string) (*Value[T], error) {
	if v, ok := e.Values[name]; ok {
		return v, nil
	}
	n, ok := e.nodes[name]
	if !ok {
		return nil, fmt.Errorf("convert: the graph has no value %s", name)
	}
	in := make([]*Value[T], len(n.In))
	for i, name := range n.In {
		var err error
		if in[i], err = e.Value(name); err != nil {
			return nil, err
		}
	}
	v, err := e.compute(n, in)
	if err != nil {
		return nil, err
	}
	if e.limit[name] {
		v = e.arith.state(n, v)
	}
	if e.seen != nil {
		e.seen(n, v)
	}
	e.Values[name] = v
	return v, nil
}

func (e *evaluation[T]) compute(n *inference.Node, in []*Value[T]) (*Value[T], error) {
	at := func(i int) *Value[T] {
		if i < len(in) {
			return in[i]
		}
		return nil
	}
	f := func(i int) int { return e.nodes[n.In[i]].F }
	switch n.Op {
	case "source", "reference", "vectors", "memory_in", "feature_in":
		return nil, fmt.Errorf("convert: input %s is not given", n.Out)
	case "compensate":
		return &Value[T]{Picture: compensate(in[0].Picture, in[1].Field)}, nil
	case "pack":
		return e.arith.pack(n, in[0].Picture), nil
	case "move":
		return move(in[0], in[1]), nil
	case "lin":
		return e.arith.lin(n, in[0], at(1)), nil
	case "dwact":
		return e.arith.dwact(n, in[0]), nil
	case "actsum4":
		return e.arith.actsum4(n, in[0]), nil
	case "scale":
		return e.arith.scale(n, in[0], e.QP), nil
	case "requant":
		return e.arith.requant(n, in[0], f(0)), nil
	case "clamp":
		return e.arith.clamp(n, in[0]), nil
	case "concat":
		return concatenate(in), nil
	case "s2d":
		return spaceToDepth(in[0], n.Ints["r"]), nil
	case "d2s":
		return depthToSpace(in[0], n.Ints["r"]), nil
	case "code_z":
		return e.arith.codeZ(n, in[0], f(0)), nil
	case "index":
		return e.arith.index(n, in[0], f(0)), nil
	case "code_y":
		return e.arith.codeY(n, in[0], in[1], in[2], in[3], f(0), f(2)), nil
	case "latent":
		return e.arith.latent(n, in[0], in[1], at(2)), nil
	case "unstep":
		return e.arith.unstep(n, in[0], in[1], f(0)), nil
	case "picture":
		return e.arith.picture(n, in[0], at(1)), nil
	case "memory_out", "feature_out":
		return in[0], nil
	}
	return nil, fmt.Errorf("convert: %s: no operator %q", n.Out, n.Op)
}

// compensate predicts a picture of padded size from ref by the generic kernel: both networks share its integers.
func compensate(ref *yuv.Planes, vectors []int16) *yuv.Planes {
	k := kernel.Generic()
	p := yuv.New(ref.W, ref.H)
	wb := ref.W / 16
	parallel(ref.H/16, 1, func(lo, hi int) {
		k.Compensate(p.Y, ref.Y, ref.W, ref.H, lo*16, hi*16, vectors, wb, true)
		k.Compensate(p.U, ref.U, ref.W/2, ref.H/2, lo*8, hi*8, vectors, wb, false)
		k.Compensate(p.V, ref.V, ref.W/2, ref.H/2, lo*8, hi*8, vectors, wb, false)
	})
	return p
}

// A State is what one frame leaves for the next.
type State[T number] struct {
	Picture         *yuv.Planes
	Memory, Feature *Value[T]
}

// A Frame is one frame to evaluate: the source at padded size and, unless the graph is intra, its motion vectors.
type Frame struct {
	Graph   string // "intra", "inter", "reset"
	QP      int    // already shifted
	Source  *yuv.Planes
	Vectors []int16
}

// prefix of a graph's value names.
func prefix(graph string) string {
	if graph == "intra" {
		return "i."
	}
	return "p."
}

// run evaluates a whole frame and advances s.
func run[T number](a arithmetic[T], g *inference.Graph, f *Frame, s *State[T], seen func(*inference.Node, *Value[T])) (*evaluation[T], error) {
	e := newEvaluation(a, g, f.QP)
	e.seen = seen
	for _, n := range g.Nodes {
		switch n.Op {
		case "source":
			e.Values[n.Out] = &Value[T]{Picture: f.Source}
		case "reference":
			e.Values[n.Out] = &Value[T]{Picture: s.Picture}
		case "vectors":
			e.Values[n.Out] = &Value[T]{H: f.Source.H / 16, W: f.Source.W / 16, Field: f.Vectors}
		case "memory_in":
			e.Values[n.Out] = s.Memory
		case "feature_in":
			e.Values[n.Out] = s.Feature
		}
	}
	var next State[T]
	for _, n := range g.Nodes {
		if n.Op != "picture" && n.Op != "memory_out" && n.Op != "feature_out" {
			continue
		}
		v, err := e.Value(n.Out)
		if err != nil {
			return nil, err
		}
		switch n.Op {
		case "picture":
			next.Picture = v.Picture
		case "memory_out":
			next.Memory = v
		case "feature_out":
			next.Feature = v
		}
	}
	*s = next
	return e, nil
}
