//go:build !purego

package kernel

import "unsafe"

const (
	panelOutputs = 16 // outputs of one panel
	panelHead    = 48 // words before its weights: bias, mul, and mul's odd elements

	// blockBytes is about the input that all panels pass over before the next: it stays in the first-level cache.
	blockBytes = 16 << 10
)

// panelOrder says which output each place of a panel holds: VPACKSSDW joins registers of eight sums by halves of four,
// and this order makes the outcome the natural one.
var panelOrder = [panelOutputs]int{0, 1, 2, 3, 8, 9, 10, 11, 4, 5, 6, 7, 12, 13, 14, 15}

// linAVX2 repacks the weights into panels of sixteen outputs. int8 weights become int16, in pairs of inputs: VPMADDWD
// then adds two exact products a lane (at most 2*2^7*2^15), and sums wrap as those of linGeneric do.
func linAVX2(l *Lin) LinFunc {
	l.Check()
	if l.W16 != nil {
		return linGeneric(l)
	}
	p := newPanels(l)
	block := max(blockBytes/(2*l.In)/6, 1) * 6
	return func(dst, src, res []int16) {
		n := l.CheckCall(dst, src, res)
		for at := 0; at < n; at += block {
			end := min(at+block, n)
			var r []int16
			if res != nil {
				r = res[at*l.Out : end*l.Out]
			}
			p.apply(dst[at*l.Out:end*l.Out], src[at*l.In:end*l.In], r, end-at)
		}
	}
}

// panels are the weights of one Lin, repacked.
type panels struct {
	in, out int
	rq      requantiser
	words   []int32 // panels of size words
	size    int
}

func newPanels(l *Lin) *panels {
	pairs := (l.In + 1) / 2
	p := &panels{in: l.In, out: l.Out, size: panelHead + pairs*panelOutputs}
	count := (l.Out + panelOutputs - 1) / panelOutputs
	p.words = aligned(count * p.size)
	var up uint
	p.rq, up = newRequantiser(l.Mul, l.Shift)
	for i := range count {
		panel := p.words[i*p.size:][:p.size]
		for j, o := range panelOrder {
			o += i * panelOutputs
			if o >= l.Out {
				continue
			}
			panel[j] = l.Bias[o]
			panel[panelOutputs+j] = l.Mul[o] << up
			if j%2 == 1 {
				panel[2*panelOutputs+j-1] = l.Mul[o] << up
			}
			w := l.W[o*l.In:][:l.In]
			for k := range pairs {
				word := uint32(uint16(w[2*k]))
				if 2*k+1 < l.In {
					word |= uint32(uint16(w[2*k+1])) << 16
				}
				panel[panelHead+k*panelOutputs+j] = int32(word)
			}
		}
	}
	return p
}

// apply computes n positions. The last panel goes through a buffer where it has fewer than sixteen outputs.
func (p *panels) apply(dst, src, res []int16, n int) {
	for i := 0; i*panelOutputs < p.out; i++ {
		panel := &p.words[i*p.size]
		at := i * panelOutputs
		if at+panelOutputs <= p.out {
			var r *int16
			if res != nil {
				r = &res[at]
			}
			p.tiles(&dst[at], &src[0], r, panel, p.out, n)
			continue
		}
		const few = 12
		var out, in [few * panelOutputs]int16
		for q := 0; q < n; q += few {
			m := min(few, n-q)
			var r *int16
			if res != nil {
				r = &in[0]
				for j := range m {
					copy(in[j*panelOutputs:][:p.out-at], res[(q+j)*p.out+at:])
				}
			}
			p.tiles(&out[0], &src[q*p.in], r, panel, panelOutputs, m)
			for j := range m {
				copy(dst[(q+j)*p.out+at:][:p.out-at], out[j*panelOutputs:])
			}
		}
	}
}

// tiles applies one panel to n positions, in tiles of six and what is left.
func (p *panels) tiles(dst, src, res *int16, panel *int32, stride, n int) {
	pairs, odd := p.in/2, p.in%2
	rq := (*[14]int64)(&p.rq)
	step := func(positions int) {
		dst = (*int16)(unsafe.Add(unsafe.Pointer(dst), 2*positions*stride))
		src = (*int16)(unsafe.Add(unsafe.Pointer(src), 2*positions*p.in))
		if res != nil {
			res = (*int16)(unsafe.Add(unsafe.Pointer(res), 2*positions*stride))
		}
	}
	if n >= 6 {
		lin6AVX2(dst, src, res, panel, rq, 2*p.in, 2*stride, pairs, odd, n/6)
		if n%6 == 0 {
			return
		}
		step(n / 6 * 6)
		n %= 6
	}
	if n >= 4 {
		lin4AVX2(dst, src, res, panel, rq, 2*p.in, 2*stride, pairs, odd, 1)
		if n == 4 {
			return
		}
		step(4)
		n -= 4
	}
	if n >= 2 {
		lin2AVX2(dst, src, res, panel, rq, 2*p.in, 2*stride, pairs, odd, 1)
		if n == 2 {
			return
		}
		step(2)
	}
	lin1AVX2(dst, src, res, panel, rq, 2*p.in, 2*stride, pairs, odd, 1)
}

// aligned returns n zero words that begin at a cache line.
func aligned(n int) []int32 {
	const line = 16
	b := make([]int32, n+line)
	skip := -uintptr(unsafe.Pointer(&b[0])) / 4 % line
	return b[skip:][:n:n]
}
