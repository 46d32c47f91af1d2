package pipeio

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nvcodec/nvcodec/yuv"
)

func TestY4MHeader(t *testing.T) {
	r := func(n, d int64) yuv.Rational { return yuv.Rational{Num: n, Den: d} }
	unknown := r(0, 1)
	plain := layout{w: 6, h: 4, depth: 8, hs: 1, vs: 1}
	for _, c := range []struct {
		line string
		lay  layout
		rate yuv.Rational
		sar  yuv.Rational
		loc  uint8
		rng  uint8
	}{
		{"YUV4MPEG2 W6 H4 F25:1", plain, r(25, 1), unknown, 2, 0},
		{"YUV4MPEG2 W6 H4 F30000:1001 Ip A16:11 C420mpeg2 XYSCSS=420MPEG2 XCOLORRANGE=LIMITED", plain, r(30000, 1001), r(16, 11), 1, 1},
		{"YUV4MPEG2 H4 W6 C420paldv F0:0 A0:0 I? XCOLORRANGE=FULL", plain, unknown, unknown, 3, 2},
		{"YUV4MPEG2 W6 H4 F25:1  C420jpeg ", plain, r(25, 1), unknown, 2, 0},
		{"YUV4MPEG2 W6 H4 C422", layout{w: 6, h: 4, depth: 8, hs: 1}, unknown, unknown, 1, 0},
		{"YUV4MPEG2 W6 H4 C444p10", layout{w: 6, h: 4, depth: 10}, unknown, unknown, 0, 0},
		{"YUV4MPEG2 W6 H4 C420p16", layout{w: 6, h: 4, depth: 16, hs: 1, vs: 1}, unknown, unknown, 1, 0},
		{"YUV4MPEG2 W6 H4 C411", layout{w: 6, h: 4, depth: 8, hs: 2}, unknown, unknown, 1, 0},
		{"YUV4MPEG2 W6 H4 C444alpha", layout{w: 6, h: 4, depth: 8, alpha: true}, unknown, unknown, 0, 0},
		{"YUV4MPEG2 W6 H4 Cmono", layout{w: 6, h: 4, depth: 8, mono: true}, unknown, unknown, 0, 0},
		{"YUV4MPEG2 W6 H4 Cmono12", layout{w: 6, h: 4, depth: 12, mono: true}, unknown, unknown, 0, 0},
	} {
		h, err := parseY4MHeader([]byte(c.line))
		if err != nil {
			t.Errorf("%s: %v", c.line, err)
			continue
		}
		f := h.format
		if h.layout != c.lay || f.FrameRate != c.rate || f.SAR != c.sar || f.Colour.ChromaLoc != c.loc || f.Colour.Range != c.rng {
			t.Errorf("%s: got %+v", c.line, h)
		}
	}
}

func TestY4MHeaderErrors(t *testing.T) {
	for line, want := range map[string]string{
		"YUV4MPEG W6 H4":                      "YUV4MPEG2",
		"":                                    "YUV4MPEG2",
		"YUV4MPEG2 H4":                        "field W",
		"YUV4MPEG2 W6":                        "field H",
		"YUV4MPEG2 W6 Hx":                     "field H",
		"YUV4MPEG2 W0 H4":                     "W and H",
		"YUV4MPEG2 W-6 H4":                    "W and H",
		"YUV4MPEG2 W16385 H4":                 "W and H",
		"YUV4MPEG2 W16384 H16384":             "W and H",
		"YUV4MPEG2 W999999999999999999999 H4": "field W",
		"YUV4MPEG2 W6 W6 H4":                  "stands twice",
		"YUV4MPEG2 W6 H4 F25":                 "field F",
		"YUV4MPEG2 W6 H4 F-25:1":              "field F",
		"YUV4MPEG2 W6 H4 A1:x":                "field A",
		"YUV4MPEG2 W6 H4 Iq":                  "field I",
		"YUV4MPEG2 W6 H4 C420p8":              "field C",
		"YUV4MPEG2 W6 H4 C420p17":             "field C",
		"YUV4MPEG2 W6 H4 C440":                "field C",
		"YUV4MPEG2 W6 H4 Cmonox":              "field C",
		"YUV4MPEG2 W6 H4 C":                   "field C",
		"YUV4MPEG2 W6 H4 Q1":                  "unknown",
	} {
		if _, err := parseY4MHeader([]byte(line)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got error %v, want one about %q", line, err, want)
		}
	}
}

// What the sink writes, the source reads: sizes down to 1x1, every chroma place and range that y4m knows, padded rows.
func TestY4MRoundTrip(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 7))
		f := testFormat(1+r.IntN(40), 1+r.IntN(40))
		f.Colour.ChromaLoc = []uint8{1, 2, 3}[r.IntN(3)]
		f.Colour.Range = uint8(r.IntN(3))
		f.FrameRate = yuv.Rational{Num: 1 + r.Int64N(240), Den: 1 + r.Int64N(9)}
		f.TimeBase = yuv.Rational{Num: f.FrameRate.Den, Den: f.FrameRate.Num}
		path := filepath.Join(t.TempDir(), "a.y4m")
		s, err := Create(context.Background(), path, f, CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var want []shown
		for i := range 3 {
			p := randFrame(f.W, f.H, seed+uint64(i))
			want = append(want, shown{int64(i), hash(&p.Planes)})
			p.PTS = int64(i)
			if i == 1 {
				p.Planes = widened(&p.Planes)
			}
			if err := s.Write(context.Background(), p); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		src := open1(t, path, OpenOptions{Strict: true})
		if got := readAll(t, src); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("seed=%d %dx%d: pictures differ", seed, f.W, f.H)
		}
		g := src.Format()
		f.Colour.Primaries, f.Colour.Transfer, f.Colour.Matrix = 2, 2, 2 // y4m does not keep them
		if g != f || src.Frames() != 3 || len(s.Conversions())+len(src.Conversions()) != 0 {
			t.Fatalf("seed=%d: got %+v with %d frames, want %+v", seed, g, src.Frames(), f)
		}
	}
}

// widened is the same picture with longer rows.
func widened(p *yuv.Planes) yuv.Planes {
	q := yuv.Planes{W: p.W, H: p.H, StrideY: p.W + 5, StrideC: p.CW() + 3}
	grow := func(b []byte, w, h, s int) []byte {
		o := bytes.Repeat([]byte{0xAA}, s*h)
		for y := range h {
			copy(o[y*s:], b[y*w:][:w])
		}
		return o
	}
	q.Y = grow(p.Y, p.W, p.H, q.StrideY)
	q.U, q.V = grow(p.U, p.CW(), p.CH(), q.StrideC), grow(p.V, p.CW(), p.CH(), q.StrideC)
	return q
}

// Conversion against the definition in real numbers: a luma sample is scaled by 2^(8-depth), a chroma sample is the
// mean over the area of its 2x2 luma samples.
func TestConvert(t *testing.T) {
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 3))
		l := layout{w: 1 + r.IntN(12), h: 1 + r.IntN(12), depth: []int{8, 9, 10, 12, 16}[r.IntN(5)]}
		switch r.IntN(5) {
		case 0:
			l.hs, l.vs = 1, 1
		case 1:
			l.hs = 1
		case 2:
			l.hs = 2
		case 3:
			l.mono = true
		}
		l.alpha = r.IntN(4) == 0
		src := make([]byte, l.size())
		for i := range src {
			src[i] = byte(r.Uint32())
			if r.IntN(3) == 0 {
				src[i] = []byte{0, 255}[r.IntN(2)]
			}
			if l.depth > 8 && i%2 == 1 {
				src[i] &= byte(1<<(l.depth-8) - 1)
			}
		}
		got := yuv.New(l.w, l.h)
		l.convert(got, src)
		sample := func(i int) float64 {
			if l.depth == 8 {
				return float64(src[i])
			}
			return float64(le16(src, i)) / float64(int(1)<<(l.depth-8))
		}
		round := func(v float64) byte { return byte(min(255, int(v+0.5))) }
		for y := range l.h {
			for x := range l.w {
				if want := round(sample(y*l.w + x)); got.Y[y*l.w+x] != want {
					t.Fatalf("seed=%d %+v: Y(%d,%d) is %d, want %d", seed, l, x, y, got.Y[y*l.w+x], want)
				}
			}
		}
		cw, ch := l.chroma()
		for i, plane := range [][]byte{got.U, got.V} {
			for y := range got.CH() {
				for x := range got.CW() {
					want := byte(128)
					if !l.mono {
						sum := 0.0
						for _, yy := range []int{2 * y, 2*y + 1} {
							for _, xx := range []int{2 * x, 2*x + 1} {
								sum += sample(l.w*l.h + i*cw*ch + min(yy>>l.vs, ch-1)*cw + min(xx>>l.hs, cw-1))
							}
						}
						want = round(sum / 4)
					}
					if plane[y*got.StrideC+x] != want {
						t.Fatalf("seed=%d %+v: chroma %d (%d,%d) is %d, want %d", seed, l, i, x, y, plane[y*got.StrideC+x], want)
					}
				}
			}
		}
	}
}

func y4mBytes(header string, frames ...string) []byte {
	b := []byte(header + "\n")
	for _, f := range frames {
		b = append(b, f...)
	}
	return b
}

func TestY4MDamage(t *testing.T) {
	pic := "FRAME\n" + strings.Repeat("x", 6)
	head := "YUV4MPEG2 W2 H2 F25:1"
	for name, c := range map[string]struct {
		data   []byte
		frames int
		note   string
		err    string
	}{
		"none":          {y4mBytes(head), 0, "", ""},
		"whole":         {y4mBytes(head, pic, pic), 2, "", ""},
		"parameters":    {y4mBytes(head, "FRAME Ip XA=1\nxxxxxx", pic), 2, "", ""},
		"cut picture":   {y4mBytes(head, pic, pic[:9]), 1, "truncated", ""},
		"cut line":      {y4mBytes(head, pic, "FRA"), 1, "truncated", ""},
		"only a line":   {y4mBytes(head, pic, "FRAME\n"), 1, "truncated", ""},
		"not a line":    {y4mBytes(head, pic, "GRAME\nxxxxxx"), 1, "", "FRAME line"},
		"longer word":   {y4mBytes(head, pic, "FRAMES\nxxxxxx"), 1, "", "FRAME line"},
		"endless line":  {y4mBytes(head, pic, "FRAME "+strings.Repeat("y", 9999)), 1, "", "FRAME line"},
		"header only":   {[]byte("YUV4MPEG2 W2 H2"), 0, "", "header: unexpected EOF"},
		"endless head":  {[]byte("YUV4MPEG2 " + strings.Repeat("X", 9999)), 0, "", "longer than"},
		"another file":  {bytes.Repeat([]byte{0, 1, 2, 'a'}, 999), 0, "", "not a y4m"},
		"empty":         {nil, 0, "", "header"},
		"picture first": {[]byte("FRAME\nxxxxxx"), 0, "", "not a y4m"},
	} {
		src, err := newY4MSource(context.Background(), "file", bytes.NewReader(c.data), OpenOptions{})
		n := 0
		for err == nil {
			if _, err = src.Next(context.Background()); err == nil {
				n++
			}
		}
		if err == io.EOF {
			err = nil
		}
		if n != c.frames || c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err) || !strings.HasPrefix(err.Error(), "file: ")) {
			t.Errorf("%s: %d pictures and error %v, want %d and %q", name, n, err, c.frames, c.err)
		}
		if c.note != "" && !hasNote(src.Conversions(), c.note) {
			t.Errorf("%s: no note %q", name, c.note)
		}
		if c.note != "" {
			src, err := newY4MSource(context.Background(), "file", bytes.NewReader(c.data), OpenOptions{Strict: true})
			for err == nil {
				_, err = src.Next(context.Background())
			}
			if _, ok := err.(*LossError); !ok {
				t.Errorf("%s: strict gives %v", name, err)
			}
		}
	}
	// the size of the file tells at once
	if _, err := Open(context.Background(), writeFile(t, "a.y4m", y4mBytes("YUV4MPEG2 W16384 H8192 F25:1", pic)), OpenOptions{}); err == nil || !strings.Contains(err.Error(), "16384x8192") {
		t.Errorf("short file of large pictures: %v", err)
	}
}

func TestY4MNotes(t *testing.T) {
	for header, want := range map[string]string{
		"YUV4MPEG2 W2 H2 F25:1 C420jpeg":   "",
		"YUV4MPEG2 W2 H2 F25:1 Cmono":      "gray ",
		"YUV4MPEG2 W2 H2 F25:1 C422p10":    "bit_depth chroma ",
		"YUV4MPEG2 W2 H2 F25:1 C444alpha":  "chroma alpha ",
		"YUV4MPEG2 W2 H2 C420jpeg":         "frame_rate ",
		"YUV4MPEG2 W2 H2 F25:1 C420p12":    "bit_depth ",
		"YUV4MPEG2 W2 H2 F25:1 C411 A10:9": "chroma ",
	} {
		s, err := newY4MSource(context.Background(), "x", bytes.NewReader(y4mBytes(header)), OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got := keys(s.Conversions()); got != want {
			t.Errorf("%s: notes %q, want %q", header, got, want)
		}
	}
}

func TestRaw(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.yuv")
	f := testFormat(5, 3)
	write(t, path, f, 4, CreateOptions{})
	o := OpenOptions{InputRes: "5x3", InputFPS: yuv.Rational{Num: 25, Den: 2}}
	src := open1(t, path, o)
	got := readAll(t, src)
	if len(got) != 4 || src.Frames() != 4 || got[3] != (shown{3, hash(&testFrame(5, 3, 3).Planes)}) || src.Format().TimeBase != (yuv.Rational{Num: 2, Den: 25}) {
		t.Fatalf("got %d pictures, %d frames, %+v", len(got), src.Frames(), src.Format())
	}
	for _, c := range []struct {
		o    OpenOptions
		want string
	}{
		{OpenOptions{}, "input-res"},
		{OpenOptions{InputRes: "5x3"}, "input-fps"},
		{OpenOptions{InputRes: "5", InputFPS: o.InputFPS}, "input-res"},
		{OpenOptions{InputRes: "5x3x1", InputFPS: o.InputFPS}, "input-res"},
		{OpenOptions{InputRes: "0x3", InputFPS: o.InputFPS}, "input-res"},
		{OpenOptions{InputRes: "5x3", InputFPS: yuv.Rational{Num: -1, Den: 1}}, "rate"},
		{OpenOptions{InputRes: "640x480", InputFPS: o.InputFPS}, "640x480"},
		{OpenOptions{InputRes: "5x3", InputFPS: o.InputFPS, Seek: -1}, "seek"},
		{OpenOptions{InputRes: "5x3", InputFPS: o.InputFPS, Seek: time.Hour}, "past the end"},
	} {
		if _, err := Open(context.Background(), path, c.o); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%+v: got error %v, want one about %q", c.o, err, c.want)
		}
	}
	o.Seek = 90 * time.Millisecond // between pictures 1 (80 ms) and 2 (160 ms)
	rest := readAll(t, open1(t, path, o))
	if len(rest) != 2 || rest[0] != (shown{0, got[2].hash}) {
		t.Errorf("seek: %d pictures", len(rest))
	}
}

func TestFramesBefore(t *testing.T) {
	ntsc := yuv.Rational{Num: 30000, Den: 1001}
	for _, c := range []struct {
		t    time.Duration
		rate yuv.Rational
		want int64
	}{
		{0, ntsc, 0}, {1, ntsc, 1}, {33366666, ntsc, 1}, {33366667, ntsc, 2}, {time.Second, yuv.Rational{Num: 25, Den: 1}, 25},
		{1 << 62, yuv.Rational{Num: 1 << 31, Den: 1}, 1<<63 - 1},
	} {
		if got := framesBefore(c.t, c.rate); got != c.want {
			t.Errorf("%v at %v: %d, want %d", c.t, c.rate, got, c.want)
		}
	}
}

// Any bytes give pictures or an error, in bounded memory.
func FuzzY4M(f *testing.F) {
	f.Add(y4mBytes("YUV4MPEG2 W3 H3 F25:1 C420p10", "FRAME\n"+strings.Repeat("ab", 17)))
	f.Add(y4mBytes("YUV4MPEG2 W16384 H8192 F1:0 Cmono16", "FRAME X\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := newY4MSource(context.Background(), "f", bytes.NewReader(b), OpenOptions{})
		if err != nil {
			return
		}
		if s.lay.size() > 1<<20 {
			return // reading one would only allocate
		}
		for n := 0; ; n++ {
			p, err := s.Next(context.Background())
			if err != nil {
				break
			}
			if n*s.lay.size() > len(b) {
				t.Fatal("more pictures than bytes")
			}
			if err := checkFrame(s.Format(), p); err != nil {
				t.Fatal(err)
			}
		}
	})
}
