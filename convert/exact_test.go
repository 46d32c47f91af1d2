package convert

import (
	"fmt"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"

	"github.com/nvcodec/nvcodec/inference"
	"github.com/nvcodec/nvcodec/inference/kernel"
	"github.com/nvcodec/nvcodec/yuv"
)

// Exact computes an integer model node by node in float64, where its sums are exact, from the formulas of
// docs/MODEL.md and with none of the engine's code but rounding. It is slow and shows every value: conversion counts
// saturation with it, and tests hold the engine against it.
type Exact struct {
	Model  *inference.Model
	layers map[string]*exactLayer
	Counts map[string]Saturation // by value
}

// Saturation counts how often a value met the rails of int16, of how many elements.
type Saturation struct{ Met, Of int64 }

type exactLayer struct {
	w         blas64.General // Lin: [In][Out]; depthwise: Data [9][C]
	bias, mul []int32
}

// NewExact prepares a model.
func NewExact(m *inference.Model) *Exact {
	return &Exact{Model: m, layers: map[string]*exactLayer{}, Counts: map[string]Saturation{}}
}

func (e *Exact) layer(n *inference.Node) *exactLayer {
	name := layerOf(n)
	if l, ok := e.layers[name]; ok {
		return l
	}
	t := e.Model.Tensors
	w := t[n.Tensors["w"]]
	l := &exactLayer{bias: t[n.Tensors["bias"]].I32, mul: t[n.Tensors["mul"]].I32}
	values := w.Int64s()
	l.w = blas64.General{Rows: w.Shape[1], Cols: w.Shape[0], Stride: w.Shape[0], Data: make([]float64, len(values))}
	for i, v := range values {
		if n.Op == "dwact" {
			l.w.Data[i] = float64(v)
		} else {
			l.w.Data[i%w.Shape[1]*w.Shape[0]+i/w.Shape[1]] = float64(v)
		}
	}
	e.layers[name] = l
	return l
}

// Frame computes a whole frame and advances the state.
func (e *Exact) Frame(f *Frame, s *State[float64]) (*evaluation[float64], error) {
	g := e.Model.Graphs[f.Graph]
	if g == nil {
		return nil, fmt.Errorf("convert: the model has no graph %s", f.Graph)
	}
	return run[float64](e, g, f, s, func(n *inference.Node, v *Value[float64]) {
		c := e.Counts[n.Out]
		for _, x := range v.Data {
			if x == -32768 || x == 32767 {
				c.Met++
			}
		}
		c.Of += int64(len(v.Data))
		e.Counts[n.Out] = c
	})
}

func sat(a int64) float64 { return float64(kernel.Sat16(a)) }

func (e *Exact) pack(n *inference.Node, pic *yuv.Planes) *Value[float64] {
	table := e.Model.Tensors[n.Tensors["table"]].I16
	y := feature[float64](pic.H/8, pic.W/8, pictureC)
	for i := range y.H {
		for j := range y.W {
			d := y.Data[(i*y.W+j)*pictureC:]
			unpackIndex(pic, i, j, func(b []byte, offset, c int) { d[c] = float64(table[b[offset]]) })
		}
	}
	return y
}

// requantise writes sat16(rnd(acc*mul, shift)), plus the residual where there is one, over acc.
func requantise(acc []float64, mul []int32, shift uint, res []float64) {
	for i, a := range acc {
		v := sat(kernel.Rnd(int64(a)*int64(mul[i%len(mul)]), shift))
		if res != nil {
			v = sat(int64(v) + int64(res[i]))
		}
		acc[i] = v
	}
}

func (e *Exact) lin(n *inference.Node, x, res *Value[float64]) *Value[float64] {
	l := e.layer(n)
	in, out := l.w.Rows, l.w.Cols
	y := feature[float64](x.H, x.W, out)
	parallel(x.H*x.W, 32, func(lo, hi int) {
		d := y.Data[lo*out : hi*out]
		for i := range d {
			d[i] = float64(l.bias[i%out])
		}
		blas64.Gemm(blas.NoTrans, blas.NoTrans, 1,
			blas64.General{Rows: hi - lo, Cols: in, Stride: in, Data: x.Data[lo*in : hi*in]}, l.w,
			1, blas64.General{Rows: hi - lo, Cols: out, Stride: out, Data: d})
		var r []float64
		if res != nil {
			r = res.Data[lo*out : hi*out]
		}
		requantise(d, l.mul, uint(n.Ints["shift"]), r)
	})
	return y
}

func (e *Exact) input(n *inference.Node) uint {
	for _, g := range e.Model.Graphs {
		for _, m := range g.Nodes {
			if m.Out == n.In[0] {
				return uint(m.F)
			}
		}
	}
	panic("convert: no input " + n.In[0])
}

func (e *Exact) dwact(n *inference.Node, x *Value[float64]) *Value[float64] {
	l, f := e.layer(n), e.input(n)
	a := each(x, func(v float64) float64 { return float64(kernel.Act(int16(v), f)) })
	y := feature[float64](x.H, x.W, x.C)
	bias := make([]float64, x.C)
	for i, b := range l.bias {
		bias[i] = float64(b)
	}
	parallel(x.H, 1, func(lo, hi int) {
		depthwise(y, a, l.w.Data, bias, lo, hi)
		requantise(y.Data[lo*x.W*x.C:hi*x.W*x.C], l.mul, uint(n.Ints["shift"]), nil)
	})
	return y
}

func (e *Exact) actsum4(n *inference.Node, x *Value[float64]) *Value[float64] {
	c := x.C / 4
	y := feature[float64](x.H, x.W, c)
	for i := range y.Data {
		var sum int64
		for k := range 4 {
			sum += int64(kernel.Act(int16(x.Data[i/c*x.C+k*c+i%c]), uint(n.F)))
		}
		y.Data[i] = sat(sum)
	}
	return y
}

func (e *Exact) scale(n *inference.Node, x *Value[float64], qp int) *Value[float64] {
	m := e.Model.Tensors[n.Tensors["table"]].I32[qp*x.C : (qp+1)*x.C]
	y := feature[float64](x.H, x.W, x.C)
	for i, v := range x.Data {
		y.Data[i] = sat(kernel.Rnd(int64(v)*int64(m[i%x.C]), uint(n.Ints["shift"])))
	}
	return y
}

func (e *Exact) requant(n *inference.Node, x *Value[float64], from int) *Value[float64] {
	return each(x, func(v float64) float64 {
		if from >= n.F {
			return sat(kernel.Rnd(int64(v), uint(from-n.F)))
		}
		return sat(int64(v) << (n.F - from))
	})
}

func (e *Exact) clamp(n *inference.Node, x *Value[float64]) *Value[float64] {
	lo, hi := float64(n.Ints["lo"]), float64(n.Ints["hi"])
	return each(x, func(v float64) float64 { return min(max(v, lo), hi) })
}

func (e *Exact) codeZ(_ *inference.Node, x *Value[float64], f int) *Value[float64] {
	return each(x, func(v float64) float64 { return float64(min(max(kernel.Rnd(int64(v), uint(f)), -127), 127)) })
}

func (e *Exact) index(_ *inference.Node, v *Value[float64], f int) *Value[float64] {
	y := &Value[float64]{H: v.H, W: v.W, C: v.C, Index: make([]uint8, len(v.Data))}
	for i, x := range v.Data {
		y.Index[i] = uint8(min(max(kernel.Rnd(8*int64(x), uint(f))+16, 0), 63))
	}
	return y
}

func (e *Exact) codeY(n *inference.Node, y, q, mean, _ *Value[float64], fy, fm int) *Value[float64] {
	r := e.Model.Tensors[n.Tensors["rexp"]].I32
	k := &Value[float64]{H: y.H, W: y.W, C: n.C, Symbols: make([]int16, y.H*y.W*n.C)}
	limit := int64(32767 >> fm)
	eachCoded(n, y.H, y.W, n.C*2, func(s, i int) {
		ys := kernel.Rnd(int64(y.Data[i])*int64(r[int(q.Data[i])-stepLo]), uint(16+fy-fm))
		k.Symbols[s] = int16(min(max(kernel.Rnd(ys-int64(mean.Data[i]), uint(fm)), -limit), limit))
	})
	return k
}

func (e *Exact) latent(n *inference.Node, k, mean, base *Value[float64]) *Value[float64] {
	y := feature[float64](mean.H, mean.W, mean.C)
	if base != nil {
		copy(y.Data, base.Data)
	}
	eachCoded(n, y.H, y.W, y.C, func(s, i int) { y.Data[i] = sat(int64(k.Symbols[s])<<n.F + int64(mean.Data[i])) })
	return y
}

func (e *Exact) unstep(n *inference.Node, yhat, q *Value[float64], fm int) *Value[float64] {
	exp := e.Model.Tensors[n.Tensors["exp"]].I32
	y := feature[float64](yhat.H, yhat.W, yhat.C)
	for i, v := range yhat.Data {
		y.Data[i] = sat(kernel.Rnd(int64(v)*int64(exp[int(q.Data[i])-stepLo]), uint(16+fm-n.F)))
	}
	return y
}

func (e *Exact) picture(n *inference.Node, head, pred *Value[float64]) *Value[float64] {
	f := e.input(n)
	y := feature[float64](head.H, head.W, pictureC)
	y.Picture = yuv.New(head.W*8, head.H*8)
	for i := range y.H {
		for j := range y.W {
			at := (i*y.W + j) * pictureC
			unpackIndex(y.Picture, i, j, func(b []byte, offset, c int) {
				v := int64(head.Data[at+c])
				if pred != nil {
					v = int64(kernel.Sat16(v + int64(pred.Data[at+c])))
				}
				y.Data[at+c] = float64(v)
				b[offset] = byte(min(max(kernel.Rnd(255*v+255<<(f-1), f), 0), 255))
			})
		}
	}
	return y
}

// state leaves x alone: the limit of memory and feature is the saturation of the operator before.
func (e *Exact) state(_ *inference.Node, x *Value[float64]) *Value[float64] { return x }
