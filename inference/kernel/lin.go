package kernel

import "fmt"

// Check panics unless the slices of l have the lengths that In and Out state. Every Set's Lin calls it first.
func (l *Lin) Check() {
	if l.In <= 0 || l.Out <= 0 || l.Shift > 62 {
		panic(fmt.Sprintf("kernel: lin %d to %d, shift %d", l.In, l.Out, l.Shift))
	}
	if (l.W == nil) == (l.W16 == nil) {
		panic("kernel: lin needs exactly one of W and W16")
	}
	want("lin w", len(l.W)+len(l.W16), l.Out*l.In)
	want("lin bias", len(l.Bias), l.Out)
	want("lin mul", len(l.Mul), l.Out)
}

// CheckCall panics unless the slices of one application fit l, and returns the number of positions.
func (l *Lin) CheckCall(dst, src, res []int16) (n int) {
	n = len(src) / l.In
	want("lin src", len(src), n*l.In)
	want("lin dst", len(dst), n*l.Out)
	if res != nil {
		want("lin res", len(res), n*l.Out)
	}
	return n
}

// linGeneric computes, for each position and output channel,
//
//	acc = bias + Σ_i w[o][i]*x[i]            int32 with W: the model's proof holds it below 2^31; int64 with W16
//	v   = sat16(rnd(acc*mul, shift))         int64: the proof holds |acc|*mul + rounding below 2^63
//	dst = v, or sat16(res + v)
func linGeneric(l *Lin) LinFunc {
	l.Check()
	if l.W16 != nil {
		return func(dst, src, res []int16) {
			for p := range l.CheckCall(dst, src, res) {
				x := src[p*l.In:][:l.In]
				for o := range l.Out {
					acc := int64(l.Bias[o])
					for i, w := range l.W16[o*l.In:][:l.In] {
						acc += int64(w) * int64(x[i])
					}
					l.finish(dst, res, p, o, acc)
				}
			}
		}
	}
	return func(dst, src, res []int16) {
		for p := range l.CheckCall(dst, src, res) {
			x := src[p*l.In:][:l.In]
			for o := range l.Out {
				acc := l.Bias[o]
				for i, w := range l.W[o*l.In:][:l.In] {
					acc += int32(w) * int32(x[i])
				}
				l.finish(dst, res, p, o, int64(acc))
			}
		}
	}
}

// finish requantises one sum and adds the residual; each step saturates on its own.
func (l *Lin) finish(dst, res []int16, p, o int, acc int64) {
	v := Sat16(Rnd(acc*int64(l.Mul[o]), l.Shift))
	if res != nil {
		v = Sat16(int64(res[p*l.Out+o]) + int64(v))
	}
	dst[p*l.Out+o] = v
}
