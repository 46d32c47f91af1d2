package metrics

import (
	"image/color"
	"testing"

	"github.com/nvcodec/nvcodec/yuv"
)

func flat(w, h int, y, u, v byte) *yuv.Planes {
	p := yuv.New(w, h)
	for i, b := range map[*[]byte]byte{&p.Y: y, &p.U: u, &p.V: v} {
		for j := range *i {
			(*i)[j] = b
		}
	}
	return p
}

func TestSideBySideColours(t *testing.T) {
	for name, c := range map[string]struct {
		y, u, v byte
		tags    yuv.Colour
		want    color.RGBA
	}{
		"black":          {16, 128, 128, yuv.Colour{}, color.RGBA{0, 0, 0, 255}},
		"white":          {235, 128, 128, yuv.Colour{Range: 1}, color.RGBA{255, 255, 255, 255}},
		"full white":     {255, 128, 128, yuv.Colour{Range: 2}, color.RGBA{255, 255, 255, 255}},
		"bt.601 red":     {81, 90, 240, yuv.Colour{Matrix: 6}, color.RGBA{254, 0, 0, 255}},
		"bt.709 red":     {63, 102, 240, yuv.Colour{Matrix: 1}, color.RGBA{255, 1, 0, 255}},
		"beyond, limits": {255, 255, 255, yuv.Colour{}, color.RGBA{255, 125, 255, 255}},
	} {
		img := SideBySide(flat(3, 5, c.y, c.u, c.v), flat(4, 2, 16, 128, 128), c.tags)
		if b := img.Bounds(); b.Dx() != 7 || b.Dy() != 5 {
			t.Fatalf("%s: %v", name, b)
		}
		got := img.RGBAAt(2, 4)
		for _, d := range []int{int(got.R) - int(c.want.R), int(got.G) - int(c.want.G), int(got.B) - int(c.want.B)} {
			if d < -1 || d > 1 {
				t.Errorf("%s: got %v, want %v", name, got, c.want)
			}
		}
	}
}
