package convert

import (
	"fmt"
	"math"
	"sort"
	"strconv"
	"strings"

	"github.com/nvcodec/nvcodec/inference"
)

// A Layer is one float 1x1 or depthwise convolution. Lin: W [Out][In]. Depthwise: W [9][C], In 9, Out C.
type Layer struct {
	Depthwise bool
	In, Out   int
	W, Bias   []float32
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
	r.W = make([]float32, len(l.W))
	for o := range l.Out {
		s := l.Scale(o)
		l.row(o, func(i int) { r.W[i] = float32(level(l.W[i], s)) * s })
	}
	return &r
}

// Params is a float checkpoint of nvc1 sorted by what its parts are for.
type Params struct {
	CI, CP int
	Layers map[string]*Layer       // by layer name, the parts of fusion.2 apart: "i.fusion.2.q"
	QP     map[string][3][]float64 // by name: log scale a + b t + c t², per channel: "i.qe"
	ZPrior map[string][3][]float64 // by prefix "i." or "p.": log of z's logistic scale, likewise
	Meta   map[string]string
	Exact  map[string]*Tensor // integer tensors that the checkpoint states and the conversion keeps
}

// fusionParts are the equal parts of a fusion stage's last layer, in order.
var fusionParts = []string{"q", "v", "mean"}

// NewParams checks that the checkpoint is an nvc1 with every tensor of the right shape and none besides.
func NewParams(c *Checkpoint) (*Params, error) {
	if n := c.Meta["network"]; n != "nvc1" {
		return nil, fmt.Errorf("convert: metadata network is %q, want \"nvc1\"", n)
	}
	p := &Params{Layers: map[string]*Layer{}, QP: map[string][3][]float64{}, ZPrior: map[string][3][]float64{}, Meta: c.Meta, Exact: map[string]*Tensor{}}
	for key, v := range map[string]*int{"ci": &p.CI, "cp": &p.CP} {
		n, err := strconv.Atoi(c.Meta[key])
		if err != nil {
			return nil, fmt.Errorf("convert: metadata %s is %q, want a number", key, c.Meta[key])
		}
		*v = n
	}
	net, err := NVC1(p.CI, p.CP, nil)
	if err != nil {
		return nil, err
	}
	r := &reader{c: c, used: map[string]bool{}}
	for _, g := range []string{"intra", "inter", "reset"} {
		p.collect(r, net.Graphs[g])
	}
	if r.err != nil {
		return nil, r.err
	}
	for _, name := range c.Names() {
		if c.Tensors[name].Int != nil {
			p.Exact[name] = c.Tensors[name]
		} else if !r.used[name] {
			return nil, fmt.Errorf("convert: tensor %s is not part of nvc1", name)
		}
	}
	return p, nil
}

// A reader takes tensors by name and keeps the first error.
type reader struct {
	c    *Checkpoint
	used map[string]bool
	err  error
}

func (r *reader) get(name string, shape ...int) []float32 {
	n := 1
	for _, d := range shape {
		n *= d
	}
	t := r.c.Tensors[name]
	switch {
	case r.err != nil:
	case t == nil:
		r.err = fmt.Errorf("convert: tensor %s is missing", name)
	case t.Float == nil:
		r.err = fmt.Errorf("convert: tensor %s is %s, want floats", name, t.Type)
	case fmt.Sprint(t.Shape) != fmt.Sprint(shape):
		r.err = fmt.Errorf("convert: tensor %s has shape %v, want %v", name, t.Shape, shape)
	}
	if r.err != nil {
		return make([]float32, n)
	}
	r.used[name] = true
	return t.Float
}

func (p *Params) collect(r *reader, g *inference.Graph) {
	channels := map[string]int{}
	for _, n := range g.Nodes {
		channels[n.Out] = n.C
		switch n.Op {
		case "lin":
			name := layerOf(&n)
			in := channels[n.In[0]]
			base, part, parts := name, 0, 1
			for k, s := range fusionParts {
				if strings.HasSuffix(name, ".fusion.2."+s) {
					base, part, parts = strings.TrimSuffix(name, "."+s), k, len(fusionParts)
				}
			}
			w, bias := r.get(base+".weight", n.C*parts, in), r.get(base+".bias", n.C*parts)
			p.Layers[name] = &Layer{In: in, Out: n.C, W: w[part*n.C*in : (part+1)*n.C*in], Bias: bias[part*n.C : (part+1)*n.C]}
		case "dwact":
			name := layerOf(&n)
			p.Layers[name] = &Layer{Depthwise: true, In: 9, Out: n.C, W: r.get(name+".weight", 9, n.C), Bias: r.get(name+".bias", n.C)}
		case "scale":
			name := tableOf(&n)
			p.QP[name] = [3][]float64{doubles(r.get(name+".a", n.C)), doubles(r.get(name+".b", n.C)), doubles(r.get(name+".c", n.C))}
		case "code_z":
			pre := prefix(g.Name)
			ls := doubles(r.get(pre+"zprior.ls", 3, n.C))
			p.ZPrior[pre] = [3][]float64{ls[:n.C], ls[n.C : 2*n.C], ls[2*n.C:]}
		}
	}
}

// LayerNames lists the layers in order.
func (p *Params) LayerNames() []string {
	names := make([]string, 0, len(p.Layers))
	for n := range p.Layers {
		names = append(names, n)
	}
	sort.Strings(names)
	return names
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
