package convert

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/nvcodec/nvcodec/convert/tables"
	"github.com/nvcodec/nvcodec/inference"
)

// A quantised layer: acc = bias + Σ w·x in int32, out = rnd(acc·mul, shift).
type quantised struct {
	w         []int8
	bias, mul []int32
	shift     int
}

// quantise turns a layer into integers for inputs with fin and outputs with fout fractional bits. A channel's scale
// is that of training unless its bias, in units of the accumulator, would leave int32 together with the largest sum:
// then the scale doubles until it fits. That happens to channels whose weights are next to nothing, which lose
// nothing that shows.
func (l *Layer) quantise(fin, fout int) (*quantised, error) {
	if l.kept != nil {
		if fin != l.keptIn || fout != l.keptOut {
			return nil, fmt.Errorf("its integers are for fractions %d and %d, the graph has %d and %d", l.keptIn, l.keptOut, fin, fout)
		}
		return l.kept, nil
	}
	q := &quantised{w: make([]int8, len(l.W)), bias: make([]int32, l.Out), mul: make([]int32, l.Out)}
	l.enlarged = 0
	ratio := make([]float64, l.Out) // of an accumulator's unit to the output's
	for o := range l.Out {
		s := l.Scale(o)
		for try := 0; ; try++ {
			if try == 64 {
				return nil, fmt.Errorf("channel %d: no scale holds weights and bias %g in int32", o, l.Bias[o])
			}
			var sum float64
			l.row(o, func(i int) {
				v := level(l.W[i], s)
				q.w[i] = int8(v)
				sum += math.Abs(v)
			})
			bias := math.RoundToEven(math.Ldexp(float64(l.Bias[o]), fin) / float64(s))
			if sum*32768+math.Abs(bias) < 1<<31 {
				q.bias[o] = int32(bias)
				break
			}
			s *= 2
			if try == 0 {
				l.enlarged++
			}
		}
		ratio[o] = math.Ldexp(float64(s), fout-fin)
	}
	var err error
	q.mul, q.shift, err = fixedPoint(ratio)
	return q, err
}

// fixedPoint writes positive factors as mul/2^shift with the largest shift up to 62 that keeps every mul below 2^31.
func fixedPoint(ratio []float64) (mul []int32, shift int, err error) {
	top := slices.Max(ratio)
	_, e := math.Frexp(top) // top in [2^(e-1), 2^e)
	shift = min(31-e, 62)
	if math.RoundToEven(math.Ldexp(top, shift)) >= 1<<31 {
		shift--
	}
	if shift < 0 {
		return nil, 0, fmt.Errorf("factor %g is 2^31 or more", top)
	}
	mul = make([]int32, len(ratio))
	for i, r := range ratio {
		mul[i] = int32(max(math.RoundToEven(math.Ldexp(r, shift)), 1))
	}
	return mul, shift, nil
}

// scaleTable tabulates a QP scale between fin and fout fractional bits: [64][C] factors and their shift.
func scaleTable(abc [3][]float64, fin, fout int) (table []int32, shift int, err error) {
	c := len(abc[0])
	ratio := make([]float64, 64*c)
	for qp := range 64 {
		for ch := range c {
			ratio[qp*c+ch] = math.Ldexp(tables.Exponential(atQP(abc, qp, ch)), fout-fin)
		}
	}
	return fixedPoint(ratio)
}

// Build makes the integer model of the given name and fractional bits: weights, QP scales and every table. Meta
// becomes the model's metadata.
func (p *Params) Build(name string, f Fractions, meta map[string]string) (*inference.Model, error) {
	net, err := NVC1(p.CI, p.CP, f)
	if err != nil {
		return nil, err
	}
	b := &modelBuilder{p: p, tensors: map[string]*inference.Tensor{}}
	for _, graph := range []string{"intra", "inter", "reset"} {
		b.f = map[string]int{}
		nodes := net.Graphs[graph].Nodes
		for i := range nodes {
			b.f[nodes[i].Out] = nodes[i].F
			if err := b.node(&nodes[i], prefix(graph)); err != nil {
				return nil, fmt.Errorf("convert: %s/%s: %w", graph, nodes[i].Out, err)
			}
		}
	}
	if err := b.formulas(); err != nil {
		return nil, fmt.Errorf("convert: %w", err)
	}
	return &inference.Model{Version: inference.Version, Profile: inference.Profile, Name: name, Meta: meta, Tensors: b.tensors, Graphs: net.Graphs}, nil
}

type modelBuilder struct {
	p       *Params
	f       map[string]int // fractional bits by value
	tensors map[string]*inference.Tensor
}

// put adds a tensor. inter and reset share layers, so it may be there already, and then must be the same.
func (b *modelBuilder) put(name, typ string, shape []int, data []int64) error {
	t, err := inference.NewTensor(name, typ, shape, data)
	if err != nil {
		return err
	}
	if old := b.tensors[name]; old != nil && !slices.Equal(old.Int64s(), data) {
		return fmt.Errorf("tensor %s would differ between graphs", name)
	}
	b.tensors[name] = t
	return nil
}

func widen[T int8 | int16 | int32 | uint8](x []T) []int64 {
	y := make([]int64, len(x))
	for i, v := range x {
		y[i] = int64(v)
	}
	return y
}

// node quantises what a node needs and sets its shift.
func (b *modelBuilder) node(n *inference.Node, pre string) error {
	switch n.Op {
	case "lin", "dwact":
		l := b.p.Layers[layerOf(n)]
		q, err := l.quantise(b.f[n.In[0]], n.F)
		if err != nil {
			return err
		}
		n.Ints["shift"] = q.shift
		shape := []int{l.Out, l.In}
		if l.Depthwise {
			shape = []int{9, l.Out}
		}
		return errors.Join(
			b.put(n.Tensors["w"], "I8", shape, widen(q.w)),
			b.put(n.Tensors["bias"], "I32", []int{l.Out}, widen(q.bias)),
			b.put(n.Tensors["mul"], "I32", []int{l.Out}, widen(q.mul)))
	case "scale":
		table, shift, err := scaleTable(b.p.QP[tableOf(n)], b.f[n.In[0]], n.F)
		if err != nil {
			return err
		}
		n.Ints["shift"] = shift
		return b.put(n.Tensors["table"], "I32", []int{64, n.C}, widen(table))
	case "code_z":
		var all []int64
		for _, row := range tables.ZScales(b.p.ZPrior[pre]) {
			all = append(all, widen(row)...)
		}
		return b.put(n.Tensors["table"], "U8", []int{64, n.C}, all)
	case "pack":
		return b.put(n.Tensors["table"], "I16", []int{256}, widen(tables.PixelsIn(n.F)))
	}
	return nil
}

// formulas adds the tables that depend on nothing trained.
func (b *modelBuilder) formulas() error {
	e, r := tables.Exp()
	shift := make([]int64, len(Shift))
	for i, v := range Shift {
		shift[i] = int64(v)
	}
	err := errors.Join(
		b.put("exp.e", "I32", []int{len(e)}, widen(e)),
		b.put("exp.r", "I32", []int{len(r)}, widen(r)),
		b.put("qp.shift", "U8", []int{len(shift)}, shift))
	for _, t := range tables.All() {
		err = errors.Join(err, b.put(t.Name, t.Type, t.Shape, t.Data))
	}
	return err
}
