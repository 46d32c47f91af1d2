package convert

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/nvcodec/nvcodec/inference"
)

// A Layer is one float 1x1 or depthwise convolution. Lin: W [Out][In]. Depthwise: W [9][C], In 9, Out C.
type Layer struct {
	Depthwise bool
	In, Out   int
	W, Bias   []float32
	enlarged  int // channels that the last quantise gave a scale above max|w|/127

	kept            *quantised // integers that the checkpoint states
	keptIn, keptOut int        // fractional bits that they are for
}

// row calls f with the index of every weight of output channel o.
func (l *Layer) row(o int, f func(i int)) {
	for k := range l.In {
		if l.Depthwise {
			f(k*l.Out + o)
		} else {
			f(o*l.In + k)
		}
	}
}

// Scale is the quantisation step of output channel o, max(max|w|, 1e-6)/127, in float32 as training computed it.
func (l *Layer) Scale(o int) float32 {
	m := float32(1e-6)
	l.row(o, func(i int) { m = max(m, l.W[i], -l.W[i]) })
	return m / 127
}

// level is the int8 weight of w at step s, half to even. The quotient is a float32, as in training: half-precision
// weights meet ties often, and another width of the quotient would break them another way.
func level(w, s float32) float64 { return math.RoundToEven(float64(w / s)) }

// Rounded returns the layer with int8-rounded weights, as floats.
func (l *Layer) Rounded() *Layer {
	r := *l
	if l.kept != nil {
		return &r
	}
	r.W = make([]float32, len(l.W))
	for o := range l.Out {
		s := l.Scale(o)
		l.row(o, func(i int) { r.W[i] = float32(level(l.W[i], s)) * s })
	}
	return &r
}

// Params is a checkpoint of nvc1 sorted by what its parts are for.
type Params struct {
	CI, CP    int
	Layers    map[string]*Layer       // by layer name, the parts of fusion.2 apart: "i.fusion.2.q"
	QP        map[string][3][]float64 // by name: log scale a + b t + c t², per channel: "i.qe"
	ZPrior    map[string][3][]float64 // by prefix "i." or "p.": log of z's logistic scale, likewise
	Fractions Fractions               // what the checkpoint states of them
	Meta      map[string]string
}

// fusionParts are the equal parts of a fusion stage's last layer, in order.
var fusionParts = []string{"q", "v", "mean"}

// NewParams checks that the checkpoint is an nvc1 with every tensor of the right shape and none besides.
//
// A layer L is L.weight and L.bias in floats. A network that was trained through its integers may state them instead:
// L.w (I8), L.bias and L.mul (I32), metadata "shifts" (a JSON object, layer to shift) and metadata "fractions" (group
// of values to fractional bits; also without integers). What is stated is kept, and proved like the rest.
func NewParams(c *Checkpoint) (*Params, error) {
	if n := c.Meta["network"]; n != "nvc1" {
		return nil, fmt.Errorf("convert: metadata network is %q, want \"nvc1\"", n)
	}
	if a, ok := c.Meta["align"]; ok && a != "1" {
		return nil, fmt.Errorf("convert: metadata align is %q, want 1: trained to move memory and feature by 1/%s of a position, but the operator move knows whole ones", a, a)
	}
	p := &Params{Layers: map[string]*Layer{}, QP: map[string][3][]float64{}, ZPrior: map[string][3][]float64{}, Fractions: Fractions{}, Meta: c.Meta}
	for key, v := range map[string]*int{"ci": &p.CI, "cp": &p.CP} {
		n, err := strconv.Atoi(c.Meta[key])
		if err != nil {
			return nil, fmt.Errorf("convert: metadata %s is %q, want a number", key, c.Meta[key])
		}
		*v = n
	}
	shifts := map[string]int{}
	for key, v := range map[string]*map[string]int{"fractions": (*map[string]int)(&p.Fractions), "shifts": &shifts} {
		if text, ok := c.Meta[key]; ok {
			if err := json.Unmarshal([]byte(text), v); err != nil {
				return nil, fmt.Errorf("convert: metadata %s: %w", key, err)
			}
		}
	}
	net, err := NVC1(p.CI, p.CP, p.Fractions)
	if err != nil {
		return nil, err
	}
	groups := net.Groups()
	for g, f := range p.Fractions {
		if !slices.Contains(groups, g) || f < minF || f > maxF {
			return nil, fmt.Errorf("convert: metadata fractions: %q has %d bits, want a group of nvc1 and %d..%d", g, f, minF, maxF)
		}
	}
	r := &reader{c: c, net: net, stated: p.Fractions, shifts: shifts, used: map[string]bool{}}
	for _, g := range []string{"intra", "inter", "reset"} {
		p.collect(r, net.Graphs[g])
	}
	if r.err != nil {
		return nil, fmt.Errorf("convert: %w", r.err)
	}
	for _, name := range c.Names() {
		if !r.used[name] {
			return nil, fmt.Errorf("convert: tensor %s is not part of nvc1", name)
		}
	}
	return p, nil
}

// A reader takes tensors by name and keeps the first error.
type reader struct {
	c      *Checkpoint
	net    *Network
	stated Fractions
	shifts map[string]int
	used   map[string]bool
	err    error
}

// get returns a tensor of the wanted shape; ints tells which of the two kinds it must be.
func (r *reader) get(name string, ints bool, shape ...int) *Tensor {
	t := r.c.Tensors[name]
	switch {
	case r.err != nil:
	case t == nil:
		r.err = fmt.Errorf("tensor %s is missing", name)
	case (t.Int != nil) != ints:
		r.err = fmt.Errorf("tensor %s is %s, which does not fit its part", name, t.Type)
	case !slices.Equal(t.Shape, shape):
		r.err = fmt.Errorf("tensor %s has shape %v, want %v", name, t.Shape, shape)
	}
	if r.err != nil {
		n := 1
		for _, d := range shape {
			n *= d
		}
		return &Tensor{Float: make([]float32, n), Int: make([]int32, n)}
	}
	r.used[name] = true
	return t
}

func (p *Params) collect(r *reader, g *inference.Graph) {
	nodes := map[string]*inference.Node{}
	for i := range g.Nodes {
		n := &g.Nodes[i]
		nodes[n.Out] = n
		switch n.Op {
		case "lin", "dwact":
			name := layerOf(n)
			switch {
			case p.Layers[name] != nil: // inter and reset share most layers
			case r.c.Tensors[name+".w"] != nil:
				p.Layers[name] = r.integers(n, nodes[n.In[0]])
			case n.Op == "dwact":
				p.Layers[name] = &Layer{Depthwise: true, In: 9, Out: n.C, W: r.get(name+".weight", false, 9, n.C).Float, Bias: r.get(name+".bias", false, n.C).Float}
			default:
				p.Layers[name] = r.linear(name, nodes[n.In[0]].C, n.C)
			}
		case "scale":
			name := tableOf(n)
			var abc [3][]float64
			for i, part := range []string{".a", ".b", ".c"} {
				abc[i] = doubles(r.get(name+part, false, n.C).Float)
			}
			p.QP[name] = abc
		case "code_z":
			pre := prefix(g.Name)
			ls := doubles(r.get(pre+"zprior.ls", false, 3, n.C).Float)
			p.ZPrior[pre] = [3][]float64{ls[:n.C], ls[n.C : 2*n.C], ls[2*n.C:]}
		}
	}
}

// linear reads a 1x1 convolution, or one of the parts of fusion.2.
func (r *reader) linear(name string, in, out int) *Layer {
	part, parts := 0, 1
	for k, s := range fusionParts {
		if base, ok := strings.CutSuffix(name, ".fusion.2."+s); ok {
			name, part, parts = base+".fusion.2", k, len(fusionParts)
		}
	}
	w, bias := r.get(name+".weight", false, out*parts, in).Float, r.get(name+".bias", false, out*parts).Float
	return &Layer{In: in, Out: out, W: w[part*out*in : (part+1)*out*in], Bias: bias[part*out : (part+1)*out]}
}

// integers reads a layer that the checkpoint states in integers, with the floats that they stand for:
// w·s and bias·s·2^-Fin, where s = mul·2^(Fin-Fout-shift).
func (r *reader) integers(n, in *inference.Node) *Layer {
	name := layerOf(n)
	l := &Layer{Depthwise: n.Op == "dwact", In: in.C, Out: n.C, keptIn: in.F, keptOut: n.F}
	shape := []int{l.Out, l.In}
	if l.Depthwise {
		l.In, shape = 9, []int{9, l.Out}
	}
	w, bias, mul := r.get(name+".w", true, shape...).Int, r.get(name+".bias", true, l.Out).Int, r.get(name+".mul", true, l.Out).Int
	shift, ok := r.shifts[name]
	for _, v := range []string{in.Out, n.Out} {
		g := r.net.Group[v]
		if _, stated := r.stated[g]; !stated && !fixedGroup(g) && r.err == nil {
			r.err = fmt.Errorf("layer %s states integers, so metadata fractions must state %s", name, g)
		}
	}
	if (!ok || shift < 0 || shift > 62) && r.err == nil {
		r.err = fmt.Errorf("layer %s states integers, so metadata shifts must state its shift, 0..62", name)
	}
	l.kept = &quantised{w: make([]int8, len(w)), bias: bias, mul: mul, shift: shift}
	l.W, l.Bias = make([]float32, len(w)), make([]float32, l.Out)
	for o := range l.Out {
		s := math.Ldexp(float64(mul[o]), in.F-n.F-shift)
		l.Bias[o] = float32(math.Ldexp(float64(bias[o])*s, -in.F))
		l.row(o, func(i int) {
			l.kept.w[i] = int8(w[i])
			if int32(l.kept.w[i]) != w[i] && r.err == nil {
				r.err = fmt.Errorf("tensor %s.w holds %d, which is no int8", name, w[i])
			}
			l.W[i] = float32(float64(w[i]) * s)
		})
	}
	return l
}

// layerOf names the layer of a lin or dwact node, tableOf the QP scale of a scale node.
func layerOf(n *inference.Node) string { return strings.TrimSuffix(n.Tensors["w"], ".w") }
func tableOf(n *inference.Node) string { return strings.TrimSuffix(n.Tensors["table"], ".table") }

func doubles(x []float32) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = float64(v)
	}
	return y
}

// atQP evaluates a + b t + c t² for one channel, t = (qp − 31.5)/31.5. The conversions keep compilers from fusing
// multiply and add, so that every platform converts to the same bytes.
func atQP(abc [3][]float64, qp, c int) float64 {
	t := (float64(qp) - 31.5) / 31.5
	bt := float64(abc[1][c] * t)
	ct := float64(abc[2][c] * float64(t*t))
	return float64(abc[0][c]+bt) + ct
}
