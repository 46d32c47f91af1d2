package convert

import (
	"fmt"
	"math"
	"slices"

	"github.com/nvcodec/nvcodec/inference"
)

// A quantised layer: acc = bias + Σ w·x in int32, out = rnd(acc·mul, shift).
type quantised struct {
	w         []int8
	bias, mul []int32
	shift     int
	enlarged  int // channels whose scale is larger than max|w|/127
}

// quantise turns a layer into integers for inputs with fin and outputs with fout fractional bits. A channel's scale
// is that of training unless its bias, in units of the accumulator, would leave int32 together with the largest sum:
// then the scale doubles until it fits. That happens to channels whose weights are next to nothing, which lose
// nothing that shows.
func (l *Layer) quantise(fin, fout int) (*quantised, error) {
	q := &quantised{w: make([]int8, len(l.W)), bias: make([]int32, l.Out), mul: make([]int32, l.Out)}
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
				q.enlarged++
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
			ratio[qp*c+ch] = math.Ldexp(math.Exp(atQP(abc, qp, ch)), fout-fin)
		}
	}
	return fixedPoint(ratio)
}

// tensors collects the tensors of a model.
type tensors map[string]*inference.Tensor

func (t tensors) put(name, typ string, shape []int, data any) error {
	x := &inference.Tensor{Name: name, Type: typ, Shape: shape}
	switch d := data.(type) {
	case []int8:
		x.I8 = d
	case []int16:
		x.I16 = d
	case []int32:
		x.I32 = d
	case []uint8:
		x.U8 = d
	}
	if old, ok := t[name]; ok && !slices.Equal(old.Int64s(), x.Int64s()) {
		return fmt.Errorf("convert: tensor %s would differ between graphs", name)
	}
	t[name] = x
	return nil
}

// weights quantises every layer of the network's graphs, sets the nodes' shifts and returns the tensors. It reports
// the layers whose channels needed a larger scale.
func (p *Params) weights(net *Network) (tensors, map[string]int, error) {
	out := tensors{}
	enlarged := map[string]int{}
	for _, name := range []string{"intra", "inter", "reset"} {
		f := map[string]int{}
		nodes := net.Graphs[name].Nodes
		for i := range nodes {
			n := &nodes[i]
			f[n.Out] = n.F
			if err := p.node(out, n, f, enlarged); err != nil {
				return nil, nil, fmt.Errorf("convert: %s/%s: %w", name, n.Out, err)
			}
		}
	}
	return out, enlarged, nil
}

func (p *Params) node(out tensors, n *inference.Node, f map[string]int, enlarged map[string]int) error {
	switch n.Op {
	case "lin", "dwact":
		name := layerOf(n)
		l := p.Layers[name]
		q, err := l.quantise(f[n.In[0]], n.F)
		if err != nil {
			return err
		}
		if q.enlarged > 0 {
			enlarged[name] = q.enlarged
		}
		n.Ints["shift"] = q.shift
		shape := []int{l.Out, l.In}
		if l.Depthwise {
			shape = []int{9, l.Out}
		}
		if err := out.put(n.Tensors["w"], "I8", shape, q.w); err != nil {
			return err
		}
		if err := out.put(n.Tensors["bias"], "I32", []int{l.Out}, q.bias); err != nil {
			return err
		}
		return out.put(n.Tensors["mul"], "I32", []int{l.Out}, q.mul)
	case "scale":
		table, shift, err := scaleTable(p.QP[tableOf(n)], f[n.In[0]], n.F)
		if err != nil {
			return err
		}
		n.Ints["shift"] = shift
		return out.put(n.Tensors["table"], "I32", []int{64, n.C}, table)
	}
	return nil
}
