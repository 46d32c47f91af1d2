package metrics

import (
	"image"
	"image/color"

	"github.com/nvcodec/nvcodec/yuv"
)

// SideBySide draws two pictures of one height next to each other, for people to look at. It follows the tags for range
// and matrix (BT.601, BT.709, BT.2020; unspecified: by height, as players do) and repeats chroma samples.
func SideBySide(a, b *yuv.Planes, c yuv.Colour) *image.RGBA {
	img := image.NewRGBA(image.Rect(0, 0, a.W+b.W, max(a.H, b.H)))
	draw(img, 0, a, c)
	draw(img, a.W, b, c)
	return img
}

func draw(img *image.RGBA, x0 int, p *yuv.Planes, c yuv.Colour) {
	bt709 := c.Matrix == 1 || (c.Matrix == 0 || c.Matrix == 2) && p.H >= 720
	kr, kb := 0.299, 0.114 // BT.601
	switch {
	case c.Matrix == 9 || c.Matrix == 10:
		kr, kb = 0.2627, 0.0593 // BT.2020
	case bt709:
		kr, kb = 0.2126, 0.0722
	}
	lo, ySpan, cSpan := 16.0, 219.0, 224.0
	if c.Range == 2 {
		lo, ySpan, cSpan = 0, 255, 255
	}
	kg := 1 - kr - kb
	for y := range p.H {
		for x := range p.W {
			l := (float64(p.Y[y*p.StrideY+x]) - lo) / ySpan
			u := (float64(p.U[y/2*p.StrideC+x/2]) - 128) / cSpan
			v := (float64(p.V[y/2*p.StrideC+x/2]) - 128) / cSpan
			r, b := l+2*(1-kr)*v, l+2*(1-kb)*u
			g := (l - kr*r - kb*b) / kg
			img.SetRGBA(x0+x, y, color.RGBA{to8(r), to8(g), to8(b), 255})
		}
	}
}

func to8(x float64) uint8 { return uint8(min(max(x, 0), 1)*255 + 0.5) }
