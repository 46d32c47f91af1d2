//go:build !noffmpeg

package av

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/nvcodec/nvcodec/yuv"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if l := Live(); code == 0 && len(l) != 0 {
		println("open objects after all tests")
		code = 1
	}
	os.Exit(code)
}

// Matrices as cameras write them, and those that mirror.
func TestOrientation(t *testing.T) {
	one := int32(1 << 16)
	for name, c := range map[string]struct {
		a, b, c, d   int32
		clockwise    int
		flip, skewed bool
	}{
		"identity":          {one, 0, 0, one, 0, false, false},
		"right":             {0, one, -one, 0, 90, false, false},
		"upside down":       {-one, 0, 0, -one, 180, false, false},
		"left":              {0, -one, one, 0, 270, false, false},
		"mirror":            {-one, 0, 0, one, 0, true, false},
		"mirror vertically": {one, 0, 0, -one, 180, true, false},
		"transpose":         {0, one, one, 0, 270, true, false},
		"transverse":        {0, -one, -one, 0, 90, true, false},
		"larger":            {0, 2 * one, -2 * one, 0, 90, false, false},
		"ten degrees":       {64540, 11380, -11380, 64540, 0, false, true},
		"eighty degrees":    {11380, 64540, -64540, 11380, 90, false, true},
		"half a degree":     {65534, 572, -572, 65534, 0, false, false},
		"nothing":           {0, 0, 0, 0, 0, false, false},
	} {
		clockwise, flip, skewed := orientation([9]int32{0: c.a, 1: c.b, 3: c.c, 4: c.d, 8: 1 << 30})
		if clockwise != c.clockwise || flip != c.flip || skewed != c.skewed {
			t.Errorf("%s: %d %v %v", name, clockwise, flip, skewed)
		}
		// following the reading by hand: mirror, then turn, takes (1,0) and (0,1) where the matrix does
		if c.skewed || c.a == 0 && c.b == 0 {
			continue
		}
		sign := func(v int32) int { return map[bool]int{true: 1}[v > 0] - map[bool]int{true: 1}[v < 0] }
		for _, p := range [][4]int{{1, 0, sign(c.a), sign(c.b)}, {0, 1, sign(c.c), sign(c.d)}} {
			x, y := p[0], p[1]
			if flip {
				x = -x
			}
			for range clockwise / 90 {
				x, y = -y, x
			}
			if name != "half a degree" && (x != p[2] || y != p[3]) {
				t.Errorf("%s: (%d,%d) goes to (%d,%d), want (%d,%d)", name, p[0], p[1], x, y, p[2], p[3])
			}
		}
	}
	for _, want := range []int{0, 90, 180, 270} {
		var m [9]int32
		for i, b := 0, rotationMatrix(want); i < 9; i++ {
			m[i] = int32(binary.NativeEndian.Uint32(b[4*i:]))
		}
		if got, flip, skewed := orientation(m); got != want || flip || skewed {
			t.Errorf("rotationMatrix(%d) reads as %d", want, got)
		}
	}
}

// Each file has its own messages, also with many at once; none crosses over and none holds an address.
func TestMessages(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "broken.mp4")
	// a moov box cut short, whose error message names it
	if err := os.WriteFile(path, []byte("\x00\x00\x00\x10ftypisom\x00\x00\x02\x00\x00\x00\x00\x08free"), 0o666); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for range 10 {
				_, err := OpenInput(context.Background(), "file:"+path)
				if err == nil || !strings.Contains(err.Error(), "moov") || strings.Contains(err.Error(), "0x") || !IsDamage(err) {
					t.Errorf("got %v", err)
				}
			}
		}()
	}
	wg.Wait()
	if _, err := OpenInput(context.Background(), "file:"+filepath.Join(dir, "none")); err == nil || IsDamage(err) {
		t.Errorf("missing file: %v", err)
	}
	for _, url := range []string{"http://localhost/a.mp4", "tcp://localhost:1", "concat:a|b", "subfile,,start,0,end,0,,:a"} {
		if _, err := OpenInput(context.Background(), url); err == nil {
			t.Errorf("%s opened", url)
		}
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := OpenInput(ctx, "file:/dev/null"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestFrameCopies(t *testing.T) {
	f := NewFrame()
	defer f.Free()
	if err := f.Alloc(5, 3, YUV420P); err != nil {
		t.Fatal(err)
	}
	src := []byte("abcdefghijklmno")
	f.FillPlane(src, 5, 0, 5, 3)
	dst := make([]byte, 3*7)
	f.CopyPlane(dst, 7, 0, 5, 3)
	for y := range 3 {
		if string(dst[7*y:][:5]) != string(src[5*y:][:5]) {
			t.Fatalf("row %d is %q", y, dst[7*y:][:5])
		}
	}
	view, stride := f.Plane(0)
	if len(view) != 2*stride+5 || string(view[stride:][:5]) != "fghij" {
		t.Errorf("view of %d bytes, stride %d", len(view), stride)
	}
	if u, _ := f.Plane(1); len(u) == 0 {
		t.Error("no chroma")
	}
	for _, i := range []int{-1, 3, 99} {
		if v, _ := f.Plane(i); v != nil {
			t.Errorf("plane %d exists", i)
		}
	}
	for name, bad := range map[string]func(){
		"rows":   func() { f.CopyPlane(make([]byte, 99), 5, 0, 5, 4) },
		"width":  func() { f.CopyPlane(make([]byte, 99), 9, 0, 6, 3) },
		"short":  func() { f.CopyPlane(make([]byte, 14), 5, 0, 5, 3) },
		"chroma": func() { f.FillPlane(make([]byte, 99), 5, 1, 5, 3) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			bad()
		}()
	}
	c := yuv.Colour{Range: 2, Primaries: 9, Transfer: 16, Matrix: 9, ChromaLoc: 3}
	f.Tag(7, 3, c, yuv.Rational{Num: 4, Den: 3})
	f.SetInterlaced(true, false)
	if p := f.Props(); p.Colour != c || p.Duration != 3 || p.PTS != 7 || !p.Interlaced || p.TopFirst || f.SAR() != (yuv.Rational{Num: 4, Den: 3}) {
		t.Errorf("%+v", p)
	}
}

func TestPixelInfo(t *testing.T) {
	for name, want := range map[string]PixelInfo{
		"yuv420p":     {Name: "yuv420p", Depth: 8, Log2W: 1, Log2H: 1},
		"yuv422p10le": {Name: "yuv422p10le", Depth: 10, Log2W: 1},
		"gray":        {Name: "gray", Depth: 8, Gray: true},
		"ya8":         {Name: "ya8", Depth: 8, Gray: true, Alpha: true},
		"gbrp":        {Name: "gbrp", Depth: 8, RGB: true},
		"bgra":        {Name: "bgra", Depth: 8, RGB: true, Alpha: true},
	} {
		p, ok := FindPixelFormat(name)
		if got, ok2 := p.Info(); !ok || !ok2 || got != want {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if _, ok := PixelFormat(-1).Info(); ok {
		t.Error("-1 is a format")
	}
	if _, ok := FindPixelFormat("nosuch"); ok {
		t.Error("nosuch is a format")
	}
}

func TestGraphErrors(t *testing.T) {
	f := NewFrame()
	defer f.Free()
	if err := f.Alloc(16, 16, YUV420P); err != nil {
		t.Fatal(err)
	}
	tb := yuv.Rational{Num: 1, Den: 25}
	// a long description once ended programs in libav's log callback
	for _, desc := range []string{"nosuch", strings.Repeat("x", 5000), "scale=w=0x"} {
		if _, err := NewGraph(desc, f, tb, tb, 1); err == nil {
			t.Errorf("%.20s: no error", desc)
		}
	}
	g, err := NewGraph("hflip", f, tb, yuv.Rational{Num: 0, Den: 1}, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	if err := g.Receive(f); err != ErrAgain {
		t.Errorf("empty graph: %v", err)
	}
	if err := g.Send(nil); err != nil {
		t.Error(err)
	}
	if err := g.Receive(f); err != io.EOF {
		t.Errorf("ended graph: %v", err)
	}
}

func TestReadable(t *testing.T) {
	for ext, want := range map[string]bool{".mp4": true, ".ts": true, "": false, ".": false, " ": false, ".mp": false, ".txt": false} {
		if got := Readable(ext); got != want {
			t.Errorf("%q: %v", ext, got)
		}
	}
}
