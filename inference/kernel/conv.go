package kernel

import "fmt"

// These operators serve imported networks. They have no variants: every Set computes them by these loops.

// Conv3 is a 3x3 convolution of stride R, 1 or 2, zero outside: tap dy*3+dx of output (y, x) reads (y*R+dy-1, x*R+dx-1).
// Sums are int32 with W and int64 with W16, as a Lin's.
type Conv3 struct {
	In, Out, R int
	W          []int8  // [Out][9][In], or nil with W16
	W16        []int16 // [Out][9][In]
	Bias       []int32 // [Out]
	Mul        []int32 // [Out], positive
	Shift      uint    // 0..62
}

// Check panics unless the slices of c have the lengths that In and Out state.
func (c *Conv3) Check() {
	if c.In <= 0 || c.Out <= 0 || c.R < 1 || c.R > 2 || c.Shift > 62 {
		panic(fmt.Sprintf("kernel: conv3 %d to %d, stride %d, shift %d", c.In, c.Out, c.R, c.Shift))
	}
	if (c.W == nil) == (c.W16 == nil) {
		panic("kernel: conv3 needs exactly one of W and W16")
	}
	want("conv3 w", len(c.W)+len(c.W16), c.Out*9*c.In)
	want("conv3 bias", len(c.Bias), c.Out)
	want("conv3 mul", len(c.Mul), c.Out)
}

// Apply computes output rows [y0,y1) from a tensor of h x w positions; dst holds h/R x w/R. The bounds that a model is
// proved by make int64 sums equal to int32 ones.
func (c *Conv3) Apply(dst, src []int16, h, w, y0, y1 int) {
	want("conv3 src", len(src), h*w*c.In)
	want("conv3 dst", len(dst), h/c.R*(w/c.R)*c.Out)
	wantRows(y0, y1, h/c.R)
	for y := y0; y < y1; y++ {
		for x := range w / c.R {
			out := dst[(y*(w/c.R)+x)*c.Out:][:c.Out]
			for o := range out {
				acc := int64(c.Bias[o])
				for t := range 9 {
					sy, sx := y*c.R+t/3-1, x*c.R+t%3-1
					if sy < 0 || sy >= h || sx < 0 || sx >= w {
						continue
					}
					acc += c.dot(src[(sy*w+sx)*c.In:][:c.In], (o*9+t)*c.In)
				}
				out[o] = Sat16(Rnd(acc*int64(c.Mul[o]), c.Shift))
			}
		}
	}
}

func (c *Conv3) dot(x []int16, at int) (sum int64) {
	if c.W16 != nil {
		for i, w := range c.W16[at:][:c.In] {
			sum += int64(w) * int64(x[i])
		}
		return sum
	}
	var s int32
	for i, w := range c.W[at:][:c.In] {
		s += int32(w) * int32(x[i])
	}
	return int64(s)
}

// DW is a 3x3 depthwise correlation with zero padding, tap dy*3+dx: a DWAct without the activation.
type DW struct {
	C     int
	W     []int8  // [9][C]
	Bias  []int32 // [C]
	Mul   []int32 // [C], positive
	Shift uint
}

// Check panics unless the slices of d have the lengths that C states.
func (d *DW) Check() {
	if d.C <= 0 || d.Shift > 62 {
		panic(fmt.Sprintf("kernel: dw of %d channels, shift %d", d.C, d.Shift))
	}
	want("dw w", len(d.W), 9*d.C)
	want("dw bias", len(d.Bias), d.C)
	want("dw mul", len(d.Mul), d.C)
}

// Apply writes output rows [y0,y1) of an h x w x C tensor.
func (d *DW) Apply(dst, src []int16, h, w, y0, y1 int) {
	want("dw src", len(src), h*w*d.C)
	want("dw dst", len(dst), h*w*d.C)
	wantRows(y0, y1, h)
	for y := y0; y < y1; y++ {
		for x := range w {
			out := dst[(y*w+x)*d.C:][:d.C]
			for c := range out {
				acc := d.Bias[c]
				for t := range 9 {
					sy, sx := y+t/3-1, x+t%3-1
					if sy < 0 || sy >= h || sx < 0 || sx >= w {
						continue
					}
					acc += int32(d.W[t*d.C+c]) * int32(src[(sy*w+sx)*d.C+c])
				}
				out[c] = Sat16(Rnd(int64(acc)*int64(d.Mul[c]), d.Shift))
			}
		}
	}
}
