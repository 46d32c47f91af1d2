package kernel

import "fmt"

// Check panics unless the slices of d have the lengths that C states. Every Set's DWAct calls it first.
func (d *DWAct) Check() {
	if d.C <= 0 || d.F < 1 || d.F > 14 || d.Shift > 62 {
		panic(fmt.Sprintf("kernel: dwact of %d channels, F %d, shift %d", d.C, d.F, d.Shift))
	}
	want("dwact w", len(d.W), 9*d.C)
	want("dwact bias", len(d.Bias), d.C)
	want("dwact mul", len(d.Mul), d.C)
}

// CheckCall panics unless the slices and the rows of one application fit d.
func (d *DWAct) CheckCall(dst, src []int16, h, w, y0, y1 int) {
	want("dwact src", len(src), h*w*d.C)
	want("dwact dst", len(dst), h*w*d.C)
	wantRows(y0, y1, h)
}

// dwActGeneric computes, for each position and channel,
//
//	acc = bias + Σ_{dy,dx} w[dy*3+dx][c]*act(x[y+dy-1][x+dx-1][c])     int32; outside the tensor act is 0
//	dst = sat16(rnd(acc*mul, shift))                                   int64
func dwActGeneric(d *DWAct) DWActFunc {
	d.Check()
	return func(dst, src []int16, h, w, y0, y1 int) {
		d.CheckCall(dst, src, h, w, y0, y1)
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
						acc += int32(d.W[t*d.C+c]) * int32(Act(src[(sy*w+sx)*d.C+c], d.F))
					}
					out[c] = Sat16(Rnd(int64(acc)*int64(d.Mul[c]), d.Shift))
				}
			}
		}
	}
}
