package pipeio

import (
	"fmt"

	"github.com/nvcodec/nvcodec/yuv"
)

// A layout is how a raw picture lies in a file: planes Y, U, V and alpha, rows without padding.
type layout struct {
	w, h   int
	depth  int  // bits of a sample, 8..16; above 8 a sample is two bytes, the lower first
	hs, vs uint // chroma is ⌈w/2^hs⌉ x ⌈h/2^vs⌉
	mono   bool // no chroma planes
	alpha  bool // a fourth plane of w x h
}

func (l layout) sampleBytes() int {
	if l.depth > 8 {
		return 2
	}
	return 1
}

func (l layout) chroma() (w, h int) {
	if l.mono {
		return 0, 0
	}
	return (l.w + 1<<l.hs - 1) >> l.hs, (l.h + 1<<l.vs - 1) >> l.vs
}

// size is the number of bytes of a picture.
func (l layout) size() int {
	cw, ch := l.chroma()
	n := l.w*l.h + 2*cw*ch
	if l.alpha {
		n += l.w * l.h
	}
	return n * l.sampleBytes()
}

// plain tells that the picture is one of ours byte for byte.
func (l layout) plain() bool { return l.depth == 8 && l.hs == 1 && l.vs == 1 && !l.mono && !l.alpha }

// notes says what becomes of pictures of this layout.
func (l layout) notes() (n []Note) {
	if l.depth > 8 {
		n = append(n, Note{"bit_depth", fmt.Sprintf("%d-bit samples rounded to 8 bits", l.depth), true})
	}
	switch {
	case l.mono:
		n = append(n, Note{"gray", "gray: stored with neutral chroma planes", false})
	case l.hs != 1 || l.vs != 1:
		n = append(n, Note{"chroma", fmt.Sprintf("chroma %s averaged to 4:2:0", map[[2]uint]string{{0, 0}: "4:4:4", {1, 0}: "4:2:2", {2, 0}: "4:1:1"}[[2]uint{l.hs, l.vs}]), true})
	}
	if l.alpha {
		n = append(n, Note{"alpha", "alpha plane left out", true})
	}
	return n
}

// location is where the chroma samples of the converted picture lie, if converting moves them: the mean of two columns
// lies between them (2), the mean of two rows does not move a column (1).
func (l layout) location(was uint8) uint8 {
	switch {
	case l.mono:
		return 0
	case l.hs == 0:
		return 2
	case l.vs == 0:
		return 1
	}
	return was
}

// convert makes an 8-bit 4:2:0 picture. A chroma sample is the mean of the four samples that its 2x2 luma samples use, a
// last odd row or column counting twice; means and depths are rounded once, halves up, and saturate at 255.
func (l layout) convert(dst *yuv.Planes, src []byte) {
	n := l.w * l.h * l.sampleBytes()
	for y := range l.h {
		row := dst.Y[y*dst.StrideY:][:l.w]
		if l.depth == 8 {
			copy(row, src[y*l.w:])
			continue
		}
		shift := uint(l.depth - 8)
		for x := range row {
			i := 2 * (y*l.w + x)
			row[x] = clamp8((uint32(src[i]) | uint32(src[i+1])<<8 + 1<<(shift-1)) >> shift)
		}
	}
	cw, ch := l.chroma()
	for _, plane := range [][]byte{dst.U, dst.V} {
		if l.mono {
			for i := range plane {
				plane[i] = 128
			}
			continue
		}
		from := src[n : n+cw*ch*l.sampleBytes()]
		n += cw * ch * l.sampleBytes()
		for y := range dst.CH() {
			r0 := min(2*y>>l.vs, ch-1) * cw
			r1 := min((2*y+1)>>l.vs, ch-1) * cw
			row := plane[y*dst.StrideC:][:dst.CW()]
			for x := range row {
				c0, c1 := min(2*x>>l.hs, cw-1), min((2*x+1)>>l.hs, cw-1)
				var sum uint32
				if l.depth == 8 {
					sum = uint32(from[r0+c0]) + uint32(from[r0+c1]) + uint32(from[r1+c0]) + uint32(from[r1+c1])
				} else {
					sum = le16(from, r0+c0) + le16(from, r0+c1) + le16(from, r1+c0) + le16(from, r1+c1)
				}
				shift := uint(l.depth - 6)
				row[x] = clamp8((sum + 1<<(shift-1)) >> shift)
			}
		}
	}
}

func le16(b []byte, i int) uint32 { return uint32(b[2*i]) | uint32(b[2*i+1])<<8 }

func clamp8(v uint32) byte { return byte(min(v, 255)) }
