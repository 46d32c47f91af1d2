//go:build !purego

package kernel

import "sync"

const (
	dwChannels  = 16                         // channels of one group
	dwWords     = panelHead + 2*3*dwChannels // words of its panel: head, then weights of two rows of pairs
	dwPairWords = 2 * dwChannels             // int16 of one position of a row of pairs
)

// dwActAVX2 works on rows of pairs: pairs(y) holds, for each activated value of row y, the one above it beside it.
// Then VPMADDWD of pairs(y) with the weights of the taps above and here, and of pairs(y+1) with nought and the weight
// of the tap below, sums the nine taps in six products a value, and each row is activated once.
func dwActAVX2(d *DWAct) DWActFunc {
	d.Check()
	if d.C < dwChannels {
		return dwActGeneric(d)
	}
	k := &dwKernel{DWAct: *d}
	var up uint
	k.rq, up = newRequantiser(d.Mul, d.Shift)
	groups := (d.C + dwChannels - 1) / dwChannels
	k.panels = aligned(groups * dwWords)
	for g := range groups {
		first := min(g*dwChannels, d.C-dwChannels) // the last group may repeat channels of the one before
		k.first = append(k.first, first)
		panel := k.panels[g*dwWords:][:dwWords]
		for j, c := range panelOrder {
			c += first
			panel[j] = d.Bias[c]
			panel[dwChannels+j] = d.Mul[c] << up
			if j%2 == 1 {
				panel[2*dwChannels+j-1] = d.Mul[c] << up
			}
			for dx := range 3 {
				tap := func(dy int) uint32 { return uint32(uint16(d.W[(dy*3+dx)*d.C+c])) }
				panel[panelHead+dx*dwChannels+j] = int32(tap(0) | tap(1)<<16)
				panel[panelHead+(3+dx)*dwChannels+j] = int32(tap(2) << 16)
			}
		}
	}
	return k.rows
}

type dwKernel struct {
	DWAct
	rq      requantiser
	first   []int // first channel of each group
	panels  []int32
	scratch sync.Pool // *dwScratch, one for each call in progress
}

// dwScratch holds what one call needs between rows, group by group.
type dwScratch struct {
	pairs [2][]int16 // pairs(y) in pairs[y&1]: [group][1+w+1][32], the columns at both ends zero
	above []int16    // the row activated last: [group][w][16]
	zero  [dwChannels]int16
}

func (k *dwKernel) rows(dst, src []int16, h, w, y0, y1 int) {
	k.CheckCall(dst, src, h, w, y0, y1)
	if y0 == y1 || w == 0 {
		return
	}
	s := k.take(w)
	defer k.scratch.Put(s)
	for y := y0 - 1; y <= y0; y++ {
		k.activate(s, src, h, w, y)
	}
	for y := y0; y < y1; y++ {
		k.activate(s, src, h, w, y+1)
		upper, lower := s.pairs[y&1], s.pairs[(y+1)&1]
		row := dwRowAVX2
		if k.rq[13] != 0 {
			row = dwRowWideAVX2
		}
		for g, first := range k.first {
			at := g * (w + 2) * dwPairWords
			row(&dst[y*w*k.C+first], &upper[at], &lower[at], &k.panels[g*dwWords], (*[14]int64)(&k.rq), 2*k.C, w)
		}
	}
}

// activate moves on to row y, which may be one outside the tensor.
func (k *dwKernel) activate(s *dwScratch, src []int16, h, w, y int) {
	pairs := s.pairs[y&1]
	for g, first := range k.first {
		x, stride := &s.zero[0], 0
		if y >= 0 && y < h {
			x, stride = &src[y*w*k.C+first], 2*k.C
		}
		actRowAVX2(&pairs[(g*(w+2)+1)*dwPairWords], &s.above[g*w*dwChannels], x, stride, w, k.F)
	}
}

// take returns scratch for rows of w positions.
func (k *dwKernel) take(w int) *dwScratch {
	s, _ := k.scratch.Get().(*dwScratch)
	groups := len(k.first)
	if s == nil || cap(s.above) < groups*w*dwChannels {
		s = &dwScratch{above: make([]int16, groups*w*dwChannels)}
		for i := range s.pairs {
			s.pairs[i] = make([]int16, groups*(w+2)*dwPairWords)
		}
	}
	s.above = s.above[:groups*w*dwChannels]
	for i := range s.pairs {
		s.pairs[i] = s.pairs[i][:groups*(w+2)*dwPairWords]
		for g := range groups {
			row := s.pairs[i][g*(w+2)*dwPairWords:][:(w+2)*dwPairWords]
			clear(row[:dwPairWords])
			clear(row[(w+1)*dwPairWords:])
		}
	}
	return s
}
