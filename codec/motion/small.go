package motion

// small is a picture of averages with a margin of repeated samples, so that it can be read at any displacement of a
// full search.
type small struct {
	w, h, pad, stride int
	p                 []byte
}

func newSmall(w, h, pad int) *small {
	stride := w + 2*pad
	return &small{w: w, h: h, pad: pad, stride: stride, p: make([]byte, stride*(h+2*pad))}
}

// row returns row y of the picture from its first sample on; y may lie in the margin.
func (s *small) row(y int) []byte { return s.p[(y+s.pad)*s.stride+s.pad:] }

// shrink fills s with averages of n x n samples of src, half up.
func (s *small) shrink(src []byte, stride, n int) {
	for y := range s.h {
		d := s.row(y)[:s.w]
		for x := range d {
			sum := n * n / 2
			for r := range n {
				for _, v := range src[(y*n+r)*stride+x*n:][:n] {
					sum += int(v)
				}
			}
			d[x] = byte(sum / (n * n))
		}
	}
	s.extend()
}

// extend repeats the edges into the margin.
func (s *small) extend() {
	for y := range s.h {
		row := s.p[(y+s.pad)*s.stride:][:s.stride]
		fill(row[:s.pad], row[s.pad])
		fill(row[s.pad+s.w:], row[s.pad+s.w-1])
	}
	for y := range s.pad {
		copy(s.p[y*s.stride:][:s.stride], s.p[s.pad*s.stride:])
		copy(s.p[(s.pad+s.h+y)*s.stride:][:s.stride], s.p[(s.pad+s.h-1)*s.stride:])
	}
}

func fill(b []byte, v byte) {
	for i := range b {
		b[i] = v
	}
}
