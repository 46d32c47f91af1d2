package motion

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/nvcodec/nvcodec/convert/tables"
	"github.com/nvcodec/nvcodec/inference/kernel"
	"github.com/nvcodec/nvcodec/yuv"
)

func tensors() map[string]tables.Table {
	m := map[string]tables.Table{}
	for _, t := range tables.All() {
		m[t.Name] = t
	}
	return m
}

func get(m map[string]tables.Table) func(name string) ([]int, []int32, bool) {
	return func(name string) ([]int, []int32, bool) {
		t, ok := m[name]
		d := make([]int32, len(t.Data))
		for i, v := range t.Data {
			d[i] = int32(v)
		}
		return t.Shape, d, ok
	}
}

var testTables = func() *Tables {
	t, err := NewTables(get(tensors()))
	if err != nil {
		panic(err)
	}
	return t
}()

// texture is a picture with detail at many scales: sums of random boxes over noise.
func texture(w, h int, seed uint64) []byte {
	rng := rand.New(rand.NewPCG(seed, 7))
	p := make([]int, w*h)
	for i := range p {
		p[i] = 128 + rng.IntN(9) - 4
	}
	for range w * h / 200 {
		x, y, n, m, v := rng.IntN(w), rng.IntN(h), 2+rng.IntN(20), 2+rng.IntN(20), rng.IntN(61)-30
		for r := y; r < min(y+m, h); r++ {
			for c := x; c < min(x+n, w); c++ {
				p[r*w+c] += v
			}
		}
	}
	out := make([]byte, w*h)
	for i, v := range p {
		out[i] = byte(min(max(v, 0), 255))
	}
	return out
}

// moving is frame n of a textured picture that pans, with a patch of its own motion and noise.
func moving(w, h, n int) *yuv.Planes {
	const edge = 64
	back, patch := texture(w+2*edge, h+2*edge, 1), texture(w, h, 2)
	rng := rand.New(rand.NewPCG(uint64(n), 3))
	p := yuv.New(w, h)
	for y := range h {
		for x := range w {
			v := int(back[(y+edge+5*n)*(w+2*edge)+x+edge-9*n])
			if dy, dx := y-h/3, x-w/2+23*n; dy >= 0 && dy < h/4 && dx >= 0 && dx < w/4 {
				v = int(patch[dy*w+dx])
			}
			p.Y[y*w+x] = byte(min(max(v+rng.IntN(5)-2, 0), 255))
		}
	}
	return p
}

func search(t testing.TB, w, h, threads, reach int, cur, ref *yuv.Planes, before []int16, qp int) []int16 {
	t.Helper()
	set, err := kernel.ByName("")
	if err != nil {
		t.Fatal(err)
	}
	return NewSearcher(testTables, set, w, h, threads, reach).Search(cur, ref, before, qp)
}

// the definition's own slow way to move a picture
func moved(src *yuv.Planes, vy, vx int) *yuv.Planes {
	p := yuv.New(src.W, src.H)
	for y := range p.H {
		for x := range p.W {
			p.Y[y*p.W+x] = plainLuma(src.Y, src.W, src.H, y, x, vy, vx)
		}
	}
	return p
}

func TestStaticPicture(t *testing.T) {
	for _, size := range [][2]int{{64, 64}, {128, 64}, {64, 192}, {320, 192}} {
		w, h := size[0], size[1]
		p := &yuv.Planes{W: w, H: h, Y: texture(w, h, 5), StrideY: w}
		for _, qp := range []int{0, 42, 63} {
			if f := search(t, w, h, 2, 128, p, p, nil, qp); slices.ContainsFunc(f, func(v int16) bool { return v != 0 }) {
				t.Errorf("%dx%d QP %d: a static picture moves: %v", w, h, qp, f)
			}
		}
	}
}

func TestPanIsFound(t *testing.T) {
	const w, h = 256, 192
	ref := &yuv.Planes{W: w, H: h, Y: texture(w, h, 9), StrideY: w}
	for _, v := range [][2]int{{4, 0}, {0, -4}, {20, -36}, {-64, 64}, {1, 0}, {0, 2}, {-3, 5}, {7, -6}, {33, 50}, {-130, 90}, {200, -240}} {
		cur := moved(ref, v[0], v[1])
		for _, qp := range []int{0, 42, 63} {
			f := search(t, w, h, 1, 128, cur, ref, nil, qp)
			// where the picture's edge is repeated other vectors do as well
			for i := range h / 16 {
				for j := range w / 16 {
					y, x := 16*i+v[0]>>2, 16*j+v[1]>>2
					if y < 4 || x < 4 || y > h-24 || x > w-24 {
						continue
					}
					if k := 2 * (i*w/16 + j); int(f[k]) != v[0] || int(f[k+1]) != v[1] {
						t.Errorf("pan %v at QP %d: block (%d,%d) has (%d,%d)", v, qp, i, j, f[k], f[k+1])
					}
				}
			}
		}
	}
}

func TestThreadsAndKernelsChangeNothing(t *testing.T) {
	for _, size := range [][2]int{{64, 64}, {64, 256}, {384, 64}, {448, 256}} {
		w, h := size[0], size[1]
		var frames []*yuv.Planes
		for n := range 4 {
			frames = append(frames, moving(w, h, n))
		}
		run := func(set kernel.Set, threads int) (all []int16) {
			s := NewSearcher(testTables, set, w, h, threads, 128)
			var before []int16
			for n := 1; n < len(frames); n++ {
				before = s.Search(frames[n], frames[n-1], before, 21*n)
				all = append(all, before...)
			}
			return all
		}
		want := run(kernel.Generic(), 1)
		counts := []int{1, 2, 3, 8, 40}
		if testing.Short() {
			counts = []int{1, 3} // under the race detector
		}
		for _, set := range kernel.Available() {
			for _, threads := range counts {
				if got := run(set, threads); !slices.Equal(got, want) {
					t.Errorf("%dx%d: %d threads of %s find another field", w, h, threads, set.Name)
				}
			}
		}
		// nor does a searcher's past
		s := NewSearcher(testTables, kernel.Generic(), w, h, 2, 128)
		s.Search(frames[3], frames[0], nil, 5)
		if got := s.Search(frames[1], frames[0], nil, 21); !slices.Equal(got, want[:len(got)]) {
			t.Errorf("%dx%d: a used searcher finds another field", w, h)
		}
	}
}

func TestReach(t *testing.T) {
	const w, h = 256, 128
	rng := rand.New(rand.NewPCG(4, 4))
	for _, reach := range []int{0, 1, 3, 7, 8, 30, 128, 511, 5000} {
		limit := int16(min(4*reach, 2044))
		cur := &yuv.Planes{W: w, H: h, Y: texture(w, h, 20), StrideY: w}
		ref := &yuv.Planes{W: w, H: h, Y: texture(w, h, 21), StrideY: w}
		before := make([]int16, w*h/128)
		for i := range before {
			before[i] = int16(rng.IntN(4095) - 2047) // farther than allowed, too
		}
		for _, v := range search(t, w, h, 2, reach, cur, ref, before, 63) {
			if v < -limit || v > limit {
				t.Errorf("reach %d: component %d", reach, v)
			}
		}
	}
}

// What no candidate list guesses must still be found: a large motion of a small part.
func TestSmallObject(t *testing.T) {
	const w, h = 320, 192
	back := texture(w, h, 30)
	object := texture(w, h, 31)
	put := func(y, x int) *yuv.Planes {
		p := &yuv.Planes{W: w, H: h, Y: slices.Clone(back), StrideY: w}
		for r := range 48 {
			copy(p.Y[(y+r)*w+x:][:48], object[r*w:][:48])
		}
		return p
	}
	f := search(t, w, h, 1, 128, put(64, 96), put(80, 176), nil, 42)
	for i := 4; i < 7; i++ {
		for j := 6; j < 9; j++ {
			if k := 2 * (i*w/16 + j); f[k] != 64 || f[k+1] != 320 {
				t.Errorf("block (%d,%d) has (%d,%d), want (64,320)", i, j, f[k], f[k+1])
			}
		}
	}
	if f[0] != 0 || f[1] != 0 {
		t.Errorf("the background moves by (%d,%d)", f[0], f[1])
	}
}

func TestNewTablesRefuses(t *testing.T) {
	for name, edit := range map[string]func(m map[string]tables.Table){
		"missing":   func(m map[string]tables.Table) { delete(m, "motion.bits16") },
		"negative":  func(m map[string]tables.Table) { m["motion.lambda16"].Data[7] = -1 },
		"too large": func(m map[string]tables.Table) { m["motion.search16"].Data[63] = maxLambda + 1 },
		"bits":      func(m map[string]tables.Table) { m["motion.bits16"].Data[99] = maxBits16 + 1 },
		"shape": func(m map[string]tables.Table) {
			x := m["motion.lambda16"]
			x.Shape = []int{8, 8}
			m["motion.lambda16"] = x
		},
	} {
		m := tensors()
		edit(m)
		if _, err := NewTables(get(m)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
