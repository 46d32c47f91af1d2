package convert

import (
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"

	"github.com/nvcodec/nvcodec/inference"
	"github.com/nvcodec/nvcodec/yuv"
)

// A Twin is the float network: float32 features, weights as trained or rounded to int8.
type Twin struct {
	Network *Network
	params  *Params
	layers  map[string]*gemm
}

// gemm is a layer laid out for blas32: Lin weights transposed to [In][Out].
type gemm struct {
	*Layer
	w blas32.General
}

// NewTwin prepares the float network. With rounded, weights are rounded to int8 as they were in training's last steps;
// biases and QP scales never are.
func NewTwin(p *Params, rounded bool) (*Twin, error) {
	net, err := NVC1(p.CI, p.CP, nil)
	if err != nil {
		return nil, err
	}
	t := &Twin{Network: net, params: p, layers: map[string]*gemm{}}
	for name, l := range p.Layers {
		if rounded {
			l = l.Rounded()
		}
		g := &gemm{Layer: l}
		if !l.Depthwise {
			g.w = blas32.General{Rows: l.In, Cols: l.Out, Stride: l.Out, Data: make([]float32, len(l.W))}
			for o := range l.Out {
				for i := range l.In {
					g.w.Data[i*l.Out+o] = l.W[o*l.In+i]
				}
			}
		}
		t.layers[name] = g
	}
	return t, nil
}

// Evaluate starts the evaluation of single values of a graph; its inputs stand in Values.
func (t *Twin) Evaluate(graph string, qp int) *evaluation[float32] {
	return newEvaluation[float32](t, t.Network.Graphs[graph], qp)
}

// Frame computes a whole frame and advances the state. seen, when not nil, is called for every value.
func (t *Twin) Frame(f *Frame, s *State[float32], seen func(*inference.Node, *Value[float32])) (Coded, error) {
	e, err := run[float32](t, t.Network.Graphs[f.Graph], f, s, seen)
	if err != nil {
		return Coded{}, err
	}
	return t.result(e, f, s.Picture)
}

func (t *Twin) pack(_ *inference.Node, pic *yuv.Planes) *Value[float32] {
	y := feature[float32](pic.H/8, pic.W/8, pictureC)
	for i := range y.H {
		for j := range y.W {
			d := y.Data[(i*y.W+j)*pictureC:]
			unpackIndex(pic, i, j, func(b []byte, offset, c int) { d[c] = float32(b[offset])/255 - 0.5 })
		}
	}
	return y
}

func (t *Twin) lin(n *inference.Node, x, res *Value[float32]) *Value[float32] {
	l := t.layers[layerOf(n)]
	y := feature[float32](x.H, x.W, l.Out)
	// gonum splits large products among the cores; the rows here are independent, so the split never shows.
	parallel(x.H*x.W, 32, func(lo, hi int) {
		for p := lo; p < hi; p++ {
			d := y.Data[p*l.Out : (p+1)*l.Out]
			copy(d, l.Bias)
			if res != nil {
				for o, v := range res.Data[p*l.Out : (p+1)*l.Out] {
					d[o] += v
				}
			}
		}
		blas32.Gemm(blas.NoTrans, blas.NoTrans, 1,
			blas32.General{Rows: hi - lo, Cols: l.In, Stride: l.In, Data: x.Data[lo*l.In : hi*l.In]}, l.w,
			1, blas32.General{Rows: hi - lo, Cols: l.Out, Stride: l.Out, Data: y.Data[lo*l.Out : hi*l.Out]})
	})
	return y
}

func act32(x float32) float32 { return x * min(max(x+0.5, 0), 1) }

func (t *Twin) dwact(n *inference.Node, x *Value[float32]) *Value[float32] {
	l := t.layers[layerOf(n)]
	a := each(x, act32)
	y := feature[float32](x.H, x.W, x.C)
	parallel(x.H, 1, func(lo, hi int) { depthwise(y, a, l.W, l.Bias, lo, hi) })
	return y
}

// depthwise writes rows lo..hi of the 3x3 depthwise correlation with zero padding; taps w [9][C].
func depthwise[T number](y, x *Value[T], w, bias []T, lo, hi int) {
	c := x.C
	for i := lo; i < hi; i++ {
		for j := range x.W {
			d := y.Data[(i*x.W+j)*c : (i*x.W+j+1)*c]
			copy(d, bias)
			for k := range 9 {
				a, b := i+k/3-1, j+k%3-1
				if a < 0 || b < 0 || a >= x.H || b >= x.W {
					continue
				}
				s := x.Data[(a*x.W+b)*c : (a*x.W+b+1)*c]
				for ch, v := range w[k*c : (k+1)*c] {
					d[ch] += v * s[ch]
				}
			}
		}
	}
}

func (t *Twin) actsum4(_ *inference.Node, x *Value[float32]) *Value[float32] {
	c := x.C / 4
	y := feature[float32](x.H, x.W, c)
	parallel(x.H*x.W, 16, func(lo, hi int) {
		for p := lo; p < hi; p++ {
			s, d := x.Data[p*x.C:(p+1)*x.C], y.Data[p*c:(p+1)*c]
			for j := range d {
				d[j] = act32(s[j]) + act32(s[c+j]) + act32(s[2*c+j]) + act32(s[3*c+j])
			}
		}
	})
	return y
}

// QPScale returns the per-channel factors of a QP scale, "i.qe" for example.
func (t *Twin) QPScale(name string, qp int) []float32 {
	abc := t.params.QP[name]
	m := make([]float32, len(abc[0]))
	for c := range m {
		m[c] = float32(math.Exp(atQP(abc, qp, c)))
	}
	return m
}

func (t *Twin) scale(n *inference.Node, x *Value[float32], qp int) *Value[float32] {
	m := t.QPScale(tableOf(n), qp)
	y := feature[float32](x.H, x.W, x.C)
	for i, v := range x.Data {
		y.Data[i] = v * m[i%x.C]
	}
	return y
}

func (t *Twin) requant(_ *inference.Node, x *Value[float32], _ int) *Value[float32] { return x }

func (t *Twin) clamp(n *inference.Node, x *Value[float32]) *Value[float32] {
	lo, hi := float32(n.Ints["lo"])/float32(int(1)<<n.F), float32(n.Ints["hi"])/float32(int(1)<<n.F)
	return each(x, func(v float32) float32 { return min(max(v, lo), hi) })
}

func (t *Twin) codeZ(_ *inference.Node, x *Value[float32], _ int) *Value[float32] {
	return each(x, func(v float32) float32 { return float32(math.RoundToEven(float64(v))) })
}

func (t *Twin) index(_ *inference.Node, v *Value[float32], _ int) *Value[float32] {
	y := &Value[float32]{H: v.H, W: v.W, C: v.C, Index: make([]uint8, len(v.Data))}
	for i, x := range v.Data {
		y.Index[i] = uint8(min(max(math.RoundToEven(8*float64(x)+16), 0), 63))
	}
	return y
}

func (t *Twin) codeY(n *inference.Node, y, q, mean, _ *Value[float32], _, _ int) *Value[float32] {
	k := &Value[float32]{H: y.H, W: y.W, C: n.C, Symbols: make([]int16, y.H*y.W*n.C)}
	eachCoded(n, y.H, y.W, n.C*2, func(s, i int) {
		r := float64(y.Data[i])/math.Exp(float64(q.Data[i])) - float64(mean.Data[i])
		k.Symbols[s] = int16(min(max(math.RoundToEven(r), -32767), 32767))
	})
	return k
}

// eachCoded calls f(symbol, element) for the elements of a [h][w][c] latent that the node's step codes, in order.
func eachCoded(n *inference.Node, h, w, c int, f func(s, i int)) {
	step := n.Ints["step"]
	for p := range h * w {
		off := 0
		if (p/w+p%w+step)%2 != 0 {
			off = c / 2
		}
		for j := range c / 2 {
			f(p*c/2+j, p*c+off+j)
		}
	}
}

func (t *Twin) latent(n *inference.Node, k, mean, base *Value[float32]) *Value[float32] {
	y := feature[float32](mean.H, mean.W, mean.C)
	if base != nil {
		copy(y.Data, base.Data)
	}
	eachCoded(n, y.H, y.W, y.C, func(s, i int) { y.Data[i] = float32(k.Symbols[s]) + mean.Data[i] })
	return y
}

func (t *Twin) unstep(_ *inference.Node, yhat, q *Value[float32], _ int) *Value[float32] {
	y := feature[float32](yhat.H, yhat.W, yhat.C)
	for i, v := range yhat.Data {
		y.Data[i] = v * float32(math.Exp(float64(q.Data[i])))
	}
	return y
}

func (t *Twin) picture(_ *inference.Node, head, pred *Value[float32]) *Value[float32] {
	y := feature[float32](head.H, head.W, pictureC)
	y.Picture = yuv.New(head.W*8, head.H*8)
	for i := range y.H {
		for j := range y.W {
			at := (i*y.W + j) * pictureC
			unpackIndex(y.Picture, i, j, func(b []byte, offset, c int) {
				v := head.Data[at+c]
				if pred != nil {
					v += pred.Data[at+c]
				}
				y.Data[at+c] = v
				b[offset] = byte(min(max(math.RoundToEven((float64(v)+0.5)*255), 0), 255))
			})
		}
	}
	return y
}

// state applies the limit of memory and feature.
func (t *Twin) state(_ *inference.Node, x *Value[float32]) *Value[float32] {
	return each(x, func(v float32) float32 { return min(max(v, -16), 16) })
}
