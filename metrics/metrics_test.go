package metrics

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/nvcodec/nvcodec/yuv"
)

func noisy(seed uint64, w, h, amount int) (a, b *yuv.Planes) {
	rng := rand.New(rand.NewPCG(seed, 1))
	a, b = yuv.New(w, h), yuv.New(w, h)
	for i, p := range [][]byte{a.Y, a.U, a.V} {
		q := [][]byte{b.Y, b.U, b.V}[i]
		for j := range p {
			p[j] = byte(rng.IntN(256))
			q[j] = byte(min(255, max(0, int(p[j])+rng.IntN(2*amount+1)-amount)))
		}
	}
	return a, b
}

func TestPSNR(t *testing.T) {
	for _, c := range []struct {
		sse  uint64
		n    int
		want float64
	}{
		{0, 10, MaxPSNR}, {0, 0, MaxPSNR}, {10, 10, 48.1308}, {255 * 255, 1, 0}, {1, 1 << 40, MaxPSNR},
	} {
		if got := PSNR(c.sse, c.n); math.Abs(got-c.want) > 1e-4 {
			t.Errorf("PSNR(%d, %d) = %v, want %v", c.sse, c.n, got, c.want)
		}
	}
}

func TestSSEOfTheWidestExtremes(t *testing.T) {
	const w, h = 16384, 3
	a, b := make([]byte, w*h), make([]byte, w*h)
	for i := range a {
		a[i] = 255
	}
	if got, want := SSE(a, w, b, w, w, h), uint64(w*h*255*255); got != want {
		t.Errorf("got %d, want %d", got, want)
	}
}

func TestCompareRefusesTwoSizes(t *testing.T) {
	if _, err := Compare(yuv.New(4, 4), yuv.New(4, 6)); err == nil {
		t.Error("no error")
	}
}

func TestEqualSeesOneSample(t *testing.T) {
	a := yuv.New(640, 480)
	if !Equal(a, a.Clone()) || Equal(a, yuv.New(640, 478)) {
		t.Error("a copy differs, or another size does not")
	}
	for _, plane := range []func(*yuv.Planes) []byte{
		func(p *yuv.Planes) []byte { return p.Y }, func(p *yuv.Planes) []byte { return p.U }, func(p *yuv.Planes) []byte { return p.V },
	} {
		b := a.Clone()
		plane(b)[100]++
		if Equal(a, b) {
			t.Error("one sample off by one goes unseen")
		}
	}
	b := a.Clone()
	b.Y[0]++
	if p, err := Compare(a, b); err != nil || p.Y != MaxPSNR {
		t.Errorf("PSNR %v, %v: the case that Equal is for", p.Y, err)
	}
}

// directSSIM follows the formula window by window in float, without the running rows.
func directSSIM(a, b []byte, w, h int) float64 {
	sum, n := 0.0, 0
	for y := 0; y+8 <= h/4*4; y += 4 {
		for x := 0; x+8 <= w/4*4; x += 4 {
			var ma, mb, va, vb, cov float64
			for i := range 64 {
				k := (y+i/8)*w + x + i%8
				ma += float64(a[k]) / 64
				mb += float64(b[k]) / 64
			}
			for i := range 64 {
				k := (y+i/8)*w + x + i%8
				va += (float64(a[k]) - ma) * (float64(a[k]) - ma) / 63
				vb += (float64(b[k]) - mb) * (float64(b[k]) - mb) / 63
				cov += (float64(a[k]) - ma) * (float64(b[k]) - mb) / 63
			}
			c1, c2 := 0.01*0.01*255*255/64, 0.03*0.03*255*255 // x264 divides c1 by 64 once more than the paper
			sum += (2*ma*mb + c1) * (2*cov + c2) / ((ma*ma + mb*mb + c1) * (va + vb + c2))
			n++
		}
	}
	return sum / float64(n)
}

func TestSSIMAgainstTheFormula(t *testing.T) {
	for _, size := range [][2]int{{8, 8}, {16, 24}, {37, 29}, {64, 64}} {
		a, b := noisy(7, size[0], size[1], 20)
		got, want := SSIM(a, b).Y, directSSIM(a.Y, b.Y, size[0], size[1])
		if math.Abs(got-want) > 1e-9 {
			t.Errorf("%v: got %v, want %v", size, got, want)
		}
		if same := SSIM(a, a); same != (Planes{1, 1, 1}) {
			t.Errorf("%v: a picture against itself gives %v", size, same)
		}
	}
}

func TestBDRate(t *testing.T) {
	anchor := []Point{{100, 30}, {200, 33}, {400, 36}, {800, 38.5}}
	scaled := func(f, db float64) []Point {
		out := make([]Point, len(anchor))
		for i, p := range anchor {
			out[i] = Point{p.Rate * f, p.PSNR + db}
		}
		return out
	}
	for _, fit := range []Fit{Cubic, PCHIP} {
		for _, f := range []float64{0.5, 0.8, 1, 1.25, 3} {
			got, err := BDRate(anchor, scaled(f, 0), fit)
			if want := 100 * (f - 1); err != nil || math.Abs(got-want) > 1e-6 {
				t.Errorf("fit %v, rate x%v: got %v, %v, want %v", fit, f, got, err, want)
			}
		}
		better, err := BDRate(anchor, scaled(1, 0.5), fit)
		if err != nil || better > -5 || better < -20 {
			t.Errorf("fit %v: half a dB gives %v, %v", fit, better, err)
		}
	}
	for name, c := range map[string][]Point{
		"three points": anchor[:3],
		"not rising":   {{100, 30}, {90, 31}, {200, 32}, {300, 33}},
		"apart":        scaled(1, 20),
		"zero rate":    {{0, 30}, {90, 31}, {200, 32}, {300, 33}},
	} {
		if _, err := BDRate(anchor, c, PCHIP); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
