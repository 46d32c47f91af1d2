package inference

import (
	"fmt"
	"maps"
	"math/bits"
	"slices"

	"github.com/nvcodec/nvcodec/inference/kernel"
)

// A Proof holds for every layer why its arithmetic is exact in any order of summation. Ranges are guaranteed by the
// operators for every input, never measured.
type Proof struct {
	Layers []LayerProof
	// Ranges holds the guaranteed range of every feature by graph and value.
	Ranges map[string]map[string]Range
}

// A LayerProof is the proof of one lin or dwact.
type LayerProof struct {
	Graph, Node, Op string
	Weights         string // "I8", "I16"
	In              Range  // of the values that are multiplied: dwact's are after the activation
	Bound           int64  // the largest Σ|w|·max|x| + |bias| of the output channels
	Limit           int64  // what Bound stays below: 2^31, or 2^62 for int16 weights
	Channel         int    // the channel with that bound
	ProductBits     int    // bits of the largest |acc|·mul + rounding; below 64
}

// A Range is a closed interval of int16 values.
type Range struct{ Lo, Hi int32 }

var fullRange = Range{-32768, 32767}

func (r Range) join(o Range) Range { return Range{min(r.Lo, o.Lo), max(r.Hi, o.Hi)} }
func (r Range) abs() int64         { return int64(max(-r.Lo, r.Hi)) }
func saturated(lo, hi int64) Range { return Range{int32(kernel.Sat16(lo)), int32(kernel.Sat16(hi))} }
func (r Range) clip(lo, hi int) Range {
	return Range{min(max(r.Lo, int32(lo)), int32(hi)), min(max(r.Hi, int32(lo)), int32(hi))}
}

// act returns the exact range of the activation over r. act falls to its least value at -2^(F-2) and rises after it.
func (r Range) act(f uint) Range {
	a, b := int32(kernel.Act(int16(r.Lo), f)), int32(kernel.Act(int16(r.Hi), f))
	out := Range{min(a, b), max(a, b)}
	if f >= 2 {
		if bottom := int32(-1) << (f - 2); r.Lo <= bottom && bottom <= r.Hi {
			out.Lo = min(out.Lo, int32(kernel.Act(int16(bottom), f)))
		}
	}
	if half := int32(-1) << (f - 1); r.Lo <= half { // act is 0 there, and may be below on the way to r.Hi
		out.Hi = max(out.Hi, 0)
	}
	return out
}

// Prove validates the model and derives, in execution order, the guaranteed range of every channel of every feature.
// It returns an error for the first output channel whose sum or product could leave its integer type.
func (m *Model) Prove() (*Proof, error) {
	if err := m.validate(); err != nil {
		return nil, err
	}
	p := &Proof{Ranges: map[string]map[string]Range{}}
	for _, name := range slices.Sorted(maps.Keys(m.Graphs)) {
		g := m.Graphs[name]
		pr := &prover{m: m, proof: p, graph: name, nodes: map[string]*Node{}, ranges: map[string][]Range{}, tables: map[string][][]Range{}}
		p.Ranges[name] = map[string]Range{}
		for i := range g.Nodes {
			n := &g.Nodes[i]
			pr.nodes[n.Out] = n
			if n.Kind != Feature {
				continue
			}
			r, err := pr.node(n)
			if err != nil {
				return nil, &ModelError{name + "/" + n.Out, err}
			}
			pr.ranges[n.Out] = r
			p.Ranges[name][n.Out] = joined(r)
		}
	}
	return p, nil
}

type prover struct {
	m      *Model
	proof  *Proof
	graph  string
	nodes  map[string]*Node
	ranges map[string][]Range   // by channel
	tables map[string][][]Range // of lookup, see spans
}

func joined(r []Range) Range {
	all := r[0]
	for _, x := range r[1:] {
		all = all.join(x)
	}
	return all
}

// node returns the range of each channel of a feature.
func (p *prover) node(n *Node) ([]Range, error) {
	var in []Range
	if len(n.In) > 0 {
		in = p.ranges[n.In[0]]
	}
	each := func(f func(c int) Range) []Range {
		out := make([]Range, n.C)
		for c := range out {
			out[c] = f(c)
		}
		return out
	}
	switch n.Op {
	case "lin":
		return p.lin(n, in)
	case "dwact":
		return p.dwact(n, in)
	case "conv3":
		return p.conv3(n, in)
	case "dw":
		return p.depthwise(n, in)
	case "lookup":
		return p.lookup(n, in), nil
	case "sum2":
		return each(func(c int) Range {
			return saturated(int64(in[c].Lo)+int64(in[n.C+c].Lo), int64(in[c].Hi)+int64(in[n.C+c].Hi))
		}), nil
	case "add":
		b := p.ranges[n.In[1]]
		return each(func(c int) Range {
			return saturated(int64(in[c].Lo)+int64(b[c].Lo), int64(in[c].Hi)+int64(b[c].Hi))
		}), nil
	case "pack":
		t := p.m.Tensors[n.Tensors["table"]].I16
		all := Range{int32(slices.Min(t)), int32(slices.Max(t))}
		return each(func(int) Range { return all }), nil
	case "move", "memory_out", "feature_out":
		return in, nil
	case "actsum4":
		return each(func(c int) Range {
			var lo, hi int64
			for k := range 4 {
				a := in[k*n.C+c].act(uint(n.F))
				lo, hi = lo+int64(a.Lo), hi+int64(a.Hi)
			}
			return saturated(lo, hi)
		}), nil
	case "scale":
		return p.scale(n, in), nil
	case "requant":
		shift := p.nodes[n.In[0]].F - n.F
		return each(func(c int) Range {
			if shift < 0 {
				return saturated(int64(in[c].Lo)<<-shift, int64(in[c].Hi)<<-shift)
			}
			return saturated(kernel.Rnd(int64(in[c].Lo), uint(shift)), kernel.Rnd(int64(in[c].Hi), uint(shift)))
		}), nil
	case "clamp":
		return each(func(c int) Range { return in[c].clip(n.Ints["lo"], n.Ints["hi"]) }), nil
	case "concat":
		var out []Range
		for _, name := range n.In {
			out = append(out, p.ranges[name]...)
		}
		return out, nil
	case "s2d":
		return each(func(c int) Range { return in[c%len(in)] }), nil
	case "d2s":
		return each(func(c int) Range {
			all := in[c]
			for k := c + n.C; k < len(in); k += n.C {
				all = all.join(in[k])
			}
			return all
		}), nil
	case "code_z":
		return each(func(int) Range { return Range{-127, 127} }), nil
	}
	return each(func(int) Range { return fullRange }), nil // state, latent, unstep: what int16 holds
}

func (p *prover) scale(n *Node, in []Range) []Range {
	table, shift := p.m.Tensors[n.Tensors["table"]].I32, uint(n.Ints["shift"])
	out := make([]Range, n.C)
	for c := range out {
		for qp := range 64 {
			k := int64(table[qp*n.C+c]) // below 2^31, so the product below 2^46
			a, b := kernel.Rnd(int64(in[c].Lo)*k, shift), kernel.Rnd(int64(in[c].Hi)*k, shift)
			r := saturated(min(a, b), max(a, b))
			if qp == 0 {
				out[c] = r
			}
			out[c] = out[c].join(r)
		}
	}
	return out
}

func (p *prover) lin(n *Node, in []Range) ([]Range, error) {
	w := p.m.Tensors[n.Tensors["w"]]
	layer := newLayer(p, n, w.Type)
	if err := layer.products(w, in); err != nil {
		return nil, err
	}
	if len(n.In) == 2 {
		for c, r := range p.ranges[n.In[1]] {
			layer.out[c] = saturated(int64(layer.out[c].Lo)+int64(r.Lo), int64(layer.out[c].Hi)+int64(r.Hi))
		}
	}
	p.proof.Layers = append(p.proof.Layers, layer.proof)
	return layer.out, nil
}

func (p *prover) dwact(n *Node, in []Range) ([]Range, error) {
	f := uint(p.nodes[n.In[0]].F)
	acts := make([]Range, len(in))
	for c, r := range in {
		acts[c] = r.act(f)
	}
	return p.depthwise(n, acts)
}

// depthwise proves a 3x3 depthwise layer over values of these ranges, and 0 outside.
func (p *prover) depthwise(n *Node, in []Range) ([]Range, error) {
	w := p.m.Tensors[n.Tensors["w"]]
	layer := newLayer(p, n, w.Type)
	padded := make([]Range, len(in))
	for c, r := range in {
		padded[c] = r.join(Range{})
	}
	layer.in(padded)
	for c := range n.C {
		s := sum{}
		for t := range 9 {
			s.add(int64(w.I8[t*n.C+c]), padded[c])
		}
		if err := layer.channel(c, s); err != nil {
			return nil, err
		}
	}
	p.proof.Layers = append(p.proof.Layers, layer.proof)
	return layer.out, nil
}

// A sum holds the exact range of Σ w·x and the bound Σ|w|·max|x| of every partial sum in every order.
type sum struct{ lo, hi, bound int64 }

func (s *sum) add(w int64, r Range) {
	a, b := w*int64(r.Lo), w*int64(r.Hi)
	s.lo += min(a, b)
	s.hi += max(a, b)
	s.bound += max(w, -w) * r.abs()
}

type layer struct {
	proof LayerProof
	bias  []int32
	mul   []int32
	shift uint
	out   []Range
}

func newLayer(p *prover, n *Node, weights string) *layer {
	return &layer{
		proof: LayerProof{Graph: p.graph, Node: n.Out, Op: n.Op, Weights: weights, Limit: 1 << 31},
		bias:  p.m.Tensors[n.Tensors["bias"]].I32,
		mul:   p.m.Tensors[n.Tensors["mul"]].I32,
		shift: uint(n.Ints["shift"]),
		out:   make([]Range, n.C),
	}
}

// products proves every output channel of weights [out][len(in)] over inputs of these ranges.
func (l *layer) products(w *Tensor, in []Range) error {
	l.in(in)
	if w.Type == "I16" {
		l.proof.Limit = 1 << 62
		if len(in) > 32768 {
			return fmt.Errorf("%d products a sum with int16 weights, at most 32768", len(in))
		}
	}
	for o := range l.out {
		s := sum{}
		for i, r := range in {
			if w.Type == "I8" {
				s.add(int64(w.I8[o*len(in)+i]), r)
			} else {
				s.add(int64(w.I16[o*len(in)+i]), r)
			}
		}
		if err := l.channel(o, s); err != nil {
			return err
		}
	}
	return nil
}

func (l *layer) in(r []Range) { l.proof.In = joined(r) }

// channel proves one output channel and sets its range.
func (l *layer) channel(c int, s sum) error {
	bias, mul := int64(l.bias[c]), int64(l.mul[c])
	bound := s.bound + max(bias, -bias)
	if bound >= l.proof.Limit {
		return fmt.Errorf("channel %d: Σ|w|·max|x| + |bias| = %d can reach %d", c, bound, l.proof.Limit)
	}
	hi, lo := bits.Mul64(uint64(bound), uint64(mul))
	var rounding uint64
	if l.shift > 0 {
		rounding = 1 << (l.shift - 1)
	}
	lo, carry := bits.Add64(lo, rounding, 0)
	if hi += carry; hi != 0 || lo >= 1<<63 {
		return fmt.Errorf("channel %d: |acc|·mul + rounding = %d·%d + %d can reach 2^63", c, bound, mul, rounding)
	}
	if bound > l.proof.Bound || c == 0 {
		l.proof.Bound, l.proof.Channel = bound, c
	}
	l.proof.ProductBits = max(l.proof.ProductBits, bits.Len64(lo))
	l.out[c] = saturated(kernel.Rnd((s.lo+bias)*mul, l.shift), kernel.Rnd((s.hi+bias)*mul, l.shift))
	return nil
}
