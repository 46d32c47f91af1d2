package motion

import (
	"slices"
	"testing"

	"github.com/nvcodec/nvcodec/yuv"
)

func TestSceneCut(t *testing.T) {
	const w, h = 320, 192
	picture := func(b []byte) *yuv.Planes { return &yuv.Planes{W: w, H: h, Y: b, StrideY: w} }
	wide := texture(w+200, h+200, 50)
	window := func(y, x int) *yuv.Planes {
		p := make([]byte, w*h)
		for r := range h {
			copy(p[r*w:][:w], wide[(y+r)*(w+200)+x:])
		}
		return picture(p)
	}
	mapped := func(p *yuv.Planes, f func(v int) int) *yuv.Planes {
		b := slices.Clone(p.Y)
		for i, v := range b {
			b[i] = byte(min(max(f(int(v)), 0), 255))
		}
		return picture(b)
	}
	a, other := window(50, 60), picture(texture(w, h, 51))
	flat := mapped(a, func(int) int { return 90 })
	type pair struct{ cur, ref *yuv.Planes }
	for name, c := range map[string]struct {
		pair
		want bool
	}{
		"cut":                     {pair{other, a}, true},
		"cut back":                {pair{a, other}, true},
		"cut from flat":           {pair{a, flat}, true},
		"same":                    {pair{a, a}, false},
		"flat":                    {pair{flat, flat}, false},
		"flat in another light":   {pair{mapped(flat, func(v int) int { return v + 60 }), flat}, false},
		"pan":                     {pair{window(53, 40), a}, false},
		"fast pan":                {pair{window(50, 104), a}, false},
		"pan of odd steps":        {pair{window(61, 43), a}, false},
		"fade":                    {pair{mapped(a, func(v int) int { return v * 8 / 10 }), mapped(a, func(v int) int { return v * 9 / 10 })}, false},
		"fade to black":           {pair{mapped(a, func(v int) int { return v * 2 / 10 }), mapped(a, func(v int) int { return v * 3 / 10 })}, false},
		"flash":                   {pair{mapped(a, func(v int) int { return v*5/4 + 40 }), a}, false},
		"after the flash":         {pair{a, mapped(a, func(v int) int { return v*5/4 + 40 })}, false},
		"dissolve, a tenth of it": {pair{blend(a, other, 5, 10), blend(a, other, 4, 10)}, false},
		"pan and noise":           {pair{moving(w, h, 1), moving(w, h, 0)}, false},
	} {
		if got := SceneCut(c.cur, c.ref); got != c.want {
			inter, intra := CutCosts(c.cur, c.ref)
			t.Errorf("%s: %v (%d against %d)", name, got, inter, intra)
		}
	}
	// the smallest picture
	small, next := picture(texture(64, 64, 1)), picture(texture(64, 64, 2))
	small.W, small.H, small.StrideY, next.W, next.H, next.StrideY = 64, 64, 64, 64, 64, 64
	if SceneCut(small, small) || !SceneCut(small, next) {
		t.Error("64x64: wrong")
	}
}

func blend(a, b *yuv.Planes, n, of int) *yuv.Planes {
	p := &yuv.Planes{W: a.W, H: a.H, Y: slices.Clone(a.Y), StrideY: a.StrideY}
	for i, v := range b.Y {
		p.Y[i] = byte((int(p.Y[i])*(of-n) + int(v)*n) / of)
	}
	return p
}
