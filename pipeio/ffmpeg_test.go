//go:build !noffmpeg

package pipeio

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nvcodec/nvcodec/internal/av"
	"github.com/nvcodec/nvcodec/yuv"
)

// TestMain: when all is done, no C memory of ours is left.
func TestMain(m *testing.M) {
	code := m.Run()
	if l := av.Live(); code == 0 && len(l) != 0 {
		fmt.Println("open FFmpeg objects after all tests:", l)
		code = 1
	}
	os.Exit(code)
}

// made describes a file that a test makes: FFV1 keeps any pixel format exactly.
type made struct {
	container, encoder string
	pixels             av.PixelFormat
	format             yuv.Format
	n                  int
	fill               func(f *av.Frame, i int) // of an allocated frame; nil: the test frames
	pts                func(i int) int64
	options            map[string]string
	interlaced         bool
}

func (m made) write(t testing.TB, path string) string {
	t.Helper()
	if m.container == "" {
		m.container = "matroska"
	}
	if m.encoder == "" {
		m.encoder = "ffv1"
	}
	w, err := av.OpenWriter(av.WriterOptions{URL: "file:" + path, Container: m.container, Encoder: m.encoder, Pixels: m.pixels, Format: m.format, Options: m.options})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for i := range m.n {
		f := av.NewFrame()
		err := f.Alloc(m.format.W, m.format.H, m.pixels)
		if err == nil {
			if m.fill != nil {
				m.fill(f, i)
			} else {
				p := testFrame(m.format.W, m.format.H, i)
				f.FillPlane(p.Y, p.StrideY, 0, p.W, p.H)
				f.FillPlane(p.U, p.StrideC, 1, p.CW(), p.CH())
				f.FillPlane(p.V, p.StrideC, 2, p.CW(), p.CH())
			}
			pts := int64(i)
			if m.pts != nil {
				pts = m.pts(i)
			}
			w.Tag(f, pts, 1)
			f.SetInterlaced(m.interlaced, true)
			err = w.Write(context.Background(), f)
		}
		f.Free()
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Finish(context.Background()); err != nil {
		t.Fatal(err)
	}
	return path
}

func format(t testing.TB, name string) av.PixelFormat {
	t.Helper()
	p, ok := av.FindPixelFormat(name)
	if !ok {
		t.Skip("no pixel format " + name)
	}
	return p
}

// Lossless files give back every sample, time and tag.
func TestLossless(t *testing.T) {
	for _, size := range [][2]int{{64, 48}, {33, 17}, {16, 1}, {1, 1}} {
		f := testFormat(size[0], size[1])
		if f.W > 1 { // Matroska keeps the aspect as a size in samples
			f.SAR = yuv.Rational{Num: 4, Den: 3}
		}
		path := filepath.Join(t.TempDir(), "a.mkv")
		write(t, path, f, 7, CreateOptions{Encoder: "ffv1"})
		src := open1(t, path, OpenOptions{Strict: true})
		got := readAll(t, src)
		if len(got) != 7 {
			t.Fatalf("%v: %d pictures", size, len(got))
		}
		for i, p := range got {
			if want := (shown{int64(40 * i), hash(&testFrame(f.W, f.H, i).Planes)}); p != want {
				t.Fatalf("%v: picture %d is another one or at %d", size, i, p.pts)
			}
		}
		g := src.Format()
		f.TimeBase = yuv.Rational{Num: 1, Den: 1000} // Matroska's
		if g != f {
			t.Errorf("%v: got %+v, want %+v", size, g, f)
		}
	}
}

// Every container keeps number, times, duration and tags; mp4 and mov keep the rotation as a tag, mkv gets turned
// pictures.
func TestContainers(t *testing.T) {
	for _, ext := range []string{".mp4", ".mov", ".mkv"} {
		for _, rotation := range []int{0, 90, 180, 270} {
			f := testFormat(64, 48)
			f.TimeBase = yuv.Rational{Num: 1, Den: 15360}
			f.SAR = yuv.Rational{Num: 16, Den: 11}
			f.Rotation = rotation
			f.Colour = yuv.Colour{Range: 1, Primaries: 9, Transfer: 14, Matrix: 9, ChromaLoc: 1}
			if rotation == 180 {
				f.Colour.Range = 2
			}
			path := filepath.Join(t.TempDir(), "a"+ext)
			s, err := Create(context.Background(), path, f, CreateOptions{EncoderOptions: map[string]string{"preset": "ultrafast"}})
			if err != nil {
				t.Fatal(err)
			}
			vfr := []int64{0, 512, 1024, 3072, 3584, 20000}
			for i, pts := range vfr {
				p := testFrame(64, 48, i)
				p.PTS, p.Duration = pts, 0
				if err := s.Write(context.Background(), p); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			src := open1(t, path, OpenOptions{Strict: true})
			g, want := src.Format(), f
			if ext == ".mkv" {
				if rotation != 0 {
					want = uprightFormat(f)
					want.Colour.ChromaLoc = g.Colour.ChromaLoc // unspecified for H.264 means left
				}
				if hasNote(s.Conversions(), "rotation") != (rotation != 0) {
					t.Errorf("%s %d: notes %v", ext, rotation, s.Conversions())
				}
			}
			want.TimeBase, want.FrameRate = g.TimeBase, g.FrameRate
			if g != want {
				t.Errorf("%s %d: got %+v, want %+v", ext, rotation, g, want)
			}
			got := readAll(t, src)
			if len(got) != len(vfr) {
				t.Fatalf("%s %d: %d pictures, want %d", ext, rotation, len(got), len(vfr))
			}
			for i, p := range got {
				at := duration(p.pts, g.TimeBase)
				if d := at - duration(vfr[i], f.TimeBase); d > time.Millisecond || d < -time.Millisecond {
					t.Errorf("%s: picture %d at %v, want %v", ext, i, at, duration(vfr[i], f.TimeBase))
				}
			}
		}
	}
}

// The picture that a container with a rotation tag shows is the one that is turned where there is none.
func TestTurnedPictures(t *testing.T) {
	f := testFormat(20, 12)
	f.Rotation = 90
	path := filepath.Join(t.TempDir(), "a.mkv")
	write(t, path, f, 3, CreateOptions{Encoder: "ffv1"})
	src := open1(t, path, OpenOptions{})
	for i, p := range readAll(t, src) {
		var q yuv.Planes
		rotate(&q, &testFrame(20, 12, i).Planes, 90)
		if p.hash != hash(&q) {
			t.Errorf("picture %d is not turned", i)
		}
	}
	if g := src.Format(); g.W != 12 || g.H != 20 || g.Rotation != 0 {
		t.Errorf("%+v", g)
	}
}

func TestEncoders(t *testing.T) {
	ctx := context.Background()
	path := filepath.Join(t.TempDir(), "a.mkv")
	for _, c := range []struct {
		encoder string
		options map[string]string
		w, h    int
		err     string
		note    string
	}{
		{"", nil, 33, 17, "", "padded"},
		{"libx264", map[string]string{"qp": "0", "preset": "ultrafast"}, 32, 16, "", ""},
		{"mpeg4", map[string]string{"b": "500k"}, 32, 16, "", ""},
		{"mjpeg", nil, 32, 16, "", ""},
		{"nosuch", nil, 32, 16, "no encoder", ""},
		{"libx264", map[string]string{"nosuch": "1"}, 32, 16, `option "nosuch"`, ""},
		{"libx264", map[string]string{"preset": "nosuch"}, 32, 16, "nosuch", ""},
		{"pcm_s16le", nil, 32, 16, "pcm_s16le", ""},
		{"png", nil, 32, 16, "4:2:0", ""},
	} {
		f := testFormat(c.w, c.h)
		if c.encoder == "mjpeg" {
			f.Colour.Range = 2
		}
		s, err := Create(ctx, path, f, CreateOptions{Encoder: c.encoder, EncoderOptions: c.options, Overwrite: true})
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) || !strings.HasPrefix(err.Error(), path) {
				t.Errorf("%s %v: got error %v, want one about %q", c.encoder, c.options, err, c.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.encoder, err)
			continue
		}
		for i := range 5 {
			if err := s.Write(ctx, testFrame(c.w, c.h, i)); err != nil {
				t.Fatalf("%s: %v", c.encoder, err)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatalf("%s: %v", c.encoder, err)
		}
		if got := keys(s.Conversions()); strings.TrimSpace(got) != c.note {
			t.Errorf("%s: notes %q", c.encoder, got)
		}
		src := open1(t, path, OpenOptions{})
		if n := len(readAll(t, src)); n != 5 || src.Format().Colour.Range != f.Colour.Range || src.Format().W < c.w {
			t.Errorf("%s: %d pictures, %+v", c.encoder, n, src.Format())
		}
	}
	if _, err := Create(ctx, filepath.Join(t.TempDir(), "a.xyz"), testFormat(4, 4), CreateOptions{}); err == nil || !strings.Contains(err.Error(), ".mkv") {
		t.Errorf("unknown type: %v", err)
	}
	s, err := Create(ctx, path, testFormat(4, 4), CreateOptions{Overwrite: true})
	if err != nil {
		t.Fatal(err)
	}
	wantErr(t, s.Close(), errNoPictures)
	s, _ = Create(ctx, path, testFormat(4, 4), CreateOptions{Overwrite: true})
	s.Write(ctx, testFrame(4, 4, 3))
	if err := s.Write(ctx, testFrame(4, 4, 3)); err == nil {
		t.Error("two pictures at one time")
	}
	s.Abort()
}

// Pixel formats: what becomes of the samples, which tags result, which notes are given.
func TestPixelFormats(t *testing.T) {
	const w, h = 32, 16
	level := func(x, y, i int) int { return 40 + (5*x+3*y+7*i)%150 } // of 255
	for _, c := range []struct {
		name  string
		rng   uint8 // tagged
		notes string
		want  yuv.Colour
		luma  func(v int) float64 // of the level
		tol   float64
	}{
		{"yuv420p", 2, "", yuv.Colour{Range: 2, Primaries: 1, Transfer: 1, Matrix: 1, ChromaLoc: 1}, func(v int) float64 { return float64(v) }, 0},
		{"yuv420p", 1, "", yuv.Colour{Range: 1, Primaries: 1, Transfer: 1, Matrix: 1, ChromaLoc: 1}, func(v int) float64 { return float64(v) }, 0},
		{"yuv444p", 2, "chroma ", yuv.Colour{Range: 2, Primaries: 1, Transfer: 1, Matrix: 1, ChromaLoc: 1}, func(v int) float64 { return float64(v) }, 0},
		{"yuv422p", 1, "chroma ", yuv.Colour{Range: 1, Primaries: 1, Transfer: 1, Matrix: 1, ChromaLoc: 1}, func(v int) float64 { return float64(v) }, 0},
		{"yuv420p10le", 1, "bit_depth ", yuv.Colour{Range: 1, Primaries: 1, Transfer: 1, Matrix: 1, ChromaLoc: 1}, func(v int) float64 { return float64(v) }, 1},
		{"yuv444p12le", 2, "bit_depth chroma ", yuv.Colour{Range: 2, Primaries: 1, Transfer: 1, Matrix: 1, ChromaLoc: 1}, func(v int) float64 { return float64(v) }, 1},
		{"gray", 1, "gray ", yuv.Colour{Range: 1, Primaries: 1, Transfer: 1, Matrix: 1}, func(v int) float64 { return float64(v) }, 0},
		{"gray", 0, "gray ", yuv.Colour{Range: 2, Primaries: 1, Transfer: 1, Matrix: 1}, func(v int) float64 { return float64(v) }, 0},
		{"gray10le", 0, "bit_depth gray ", yuv.Colour{Range: 2, Primaries: 1, Transfer: 1, Matrix: 1}, func(v int) float64 { return float64(v) }, 1},
		{"yuva420p", 1, "alpha ", yuv.Colour{Range: 1, Primaries: 1, Transfer: 1, Matrix: 1, ChromaLoc: 1}, func(v int) float64 { return float64(v) }, 0},
		{"gbrp", 0, "rgb ", yuv.Colour{Range: 1, Primaries: 1, Transfer: 1, Matrix: 1, ChromaLoc: 1}, func(v int) float64 { return 16 + float64(v)*219/255 }, 1.01},
		{"bgr0", 0, "rgb ", yuv.Colour{Range: 1, Primaries: 1, Transfer: 1, Matrix: 1, ChromaLoc: 1}, func(v int) float64 { return 16 + float64(v)*219/255 }, 1.01},
		{"bgra", 0, "rgb alpha ", yuv.Colour{Range: 1, Primaries: 1, Transfer: 1, Matrix: 1, ChromaLoc: 1}, func(v int) float64 { return 16 + float64(v)*219/255 }, 1.01},
		{"gbrp10le", 0, "bit_depth rgb ", yuv.Colour{Range: 1, Primaries: 1, Transfer: 1, Matrix: 1, ChromaLoc: 1}, func(v int) float64 { return 16 + float64(v)*219/255 }, 1.5},
	} {
		t.Run(fmt.Sprintf("%s range %d", c.name, c.rng), func(t *testing.T) {
			p := format(t, c.name)
			info, _ := p.Info()
			f := testFormat(w, h)
			f.Colour.Range, f.Colour.ChromaLoc = c.rng, 1
			if info.RGB {
				f.Colour.Matrix = 0
			}
			bytes, scale := 1, 1
			if info.Depth > 8 {
				bytes, scale = 2, 1<<(info.Depth-8)
			}
			encoder := "ffv1"
			if c.name == "gbrp" {
				encoder = "utvideo"
			}
			path := made{pixels: p, encoder: encoder, format: f, n: 3, fill: func(fr *av.Frame, i int) {
				if c.name == "bgra" || c.name == "bgr0" {
					b := make([]byte, 4*w*h)
					for y := range h {
						for x := range w {
							for k := range 3 {
								b[4*(y*w+x)+k] = byte(level(x, y, i))
							}
							b[4*(y*w+x)+3] = 255
						}
					}
					fr.FillPlane(b, 4*w, 0, 4*w, h)
					return
				}
				for plane := range 4 {
					v, stride := fr.Plane(plane)
					if v == nil {
						continue
					}
					rows := (len(v) + stride - 1) / stride
					cols := len(v) - stride*(rows-1)
					b := make([]byte, cols*rows)
					for y := range rows {
						for x := range cols / bytes {
							l := level(x, y, i)
							if plane > 0 && !info.RGB {
								l = 128
							}
							l *= scale
							b[y*cols+x*bytes] = byte(l)
							if bytes == 2 {
								b[y*cols+2*x+1] = byte(l >> 8)
							}
						}
					}
					fr.FillPlane(b, cols, plane, cols, rows)
				}
			}}.write(t, filepath.Join(t.TempDir(), "a.mkv"))
			src := open1(t, path, OpenOptions{})
			if got := src.Format().Colour; got != c.want {
				t.Errorf("colour %+v, want %+v", got, c.want)
			}
			for i := range 3 {
				fr, err := src.Next(context.Background())
				if err != nil {
					t.Fatal(err)
				}
				for y := range h {
					for x := range w {
						if got, want := float64(fr.Y[y*fr.StrideY+x]), c.luma(level(x, y, i)); math.Abs(got-want) > c.tol {
							t.Fatalf("luma (%d,%d) of picture %d is %v, want %v", x, y, i, got, want)
						}
					}
				}
				for at, v := range append(append([]byte(nil), fr.U...), fr.V...) {
					if v < 127 || v > 129 {
						t.Fatalf("chroma %d is %d, want 128", at, v)
					}
				}
			}
			if got := keys(src.Conversions()); got != c.notes {
				t.Errorf("notes %q, want %q", got, c.notes)
			}
			strict, err := Open(context.Background(), path, OpenOptions{Strict: true})
			if err == nil {
				strict.Close()
			}
			var loss *LossError
			if wantLoss := c.notes != "" && c.notes != "gray "; errors.As(err, &loss) != wantLoss {
				t.Errorf("strict: %v", err)
			}
		})
	}
}

// RGB becomes BT.709 in limited range, also for colours; and comes back as RGB.
func TestRGB(t *testing.T) {
	const w, h = 16, 16
	colours := [][3]float64{{255, 0, 0}, {0, 255, 0}, {0, 0, 255}, {255, 255, 0}, {12, 200, 90}}
	path := made{pixels: format(t, "bgr0"), format: testFormat(w, h), n: len(colours), fill: func(f *av.Frame, i int) {
		b := make([]byte, 4*w*h)
		for j := 0; j < len(b); j += 4 {
			b[j], b[j+1], b[j+2] = byte(colours[i][2]), byte(colours[i][1]), byte(colours[i][0])
		}
		f.FillPlane(b, 4*w, 0, 4*w, h)
	}}.write(t, filepath.Join(t.TempDir(), "a.mkv"))
	src := open1(t, path, OpenOptions{})
	for _, c := range colours {
		f, err := src.Next(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		y := (0.2126*c[0] + 0.7152*c[1] + 0.0722*c[2]) / 255
		want := [3]float64{16 + 219*y, 128 + 224*(c[2]/255-y)/1.8556, 128 + 224*(c[0]/255-y)/1.5748}
		got := [3]float64{float64(f.Y[5*w+5]), float64(f.U[3*f.StrideC+3]), float64(f.V[3*f.StrideC+3])}
		for k := range 3 {
			if math.Abs(got[k]-want[k]) > 1.01 {
				t.Errorf("colour %v: got %v, want %.1f", c, got, want)
				break
			}
		}
	}
	// a 4:2:0 file as RGB
	yuvPath := filepath.Join(t.TempDir(), "b.mkv")
	s, err := Create(context.Background(), yuvPath, testFormat(w, h), CreateOptions{Encoder: "ffv1"})
	if err != nil {
		t.Fatal(err)
	}
	src = open1(t, path, OpenOptions{})
	for i := range colours {
		f, err := src.Next(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		g := yuv.Frame{Planes: f.Planes, PTS: int64(i)}
		if err := s.Write(context.Background(), &g); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{path, yuvPath} {
		d, err := OpenDemuxer(context.Background(), p, DemuxOptions{})
		if err != nil {
			t.Fatal(err)
		}
		dec, err := NewPacketDecoder(d, d, DecodeOptions{Threads: 1})
		if err != nil {
			t.Fatal(err)
		}
		conv := NewRGBConverter(dec, dec, ConvertOptions{})
		for i, c := range colours {
			f, err := conv.Next(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			at := 3 * (5*w + 5)
			for k := range 3 {
				if math.Abs(float64(f.Pix[at+k])-c[k]) > 3 {
					t.Errorf("%s: colour %d is %v, want %v", filepath.Base(p), i, f.Pix[at:at+3], c)
					break
				}
			}
			conv.Release(f)
		}
		if _, err := conv.Next(context.Background()); err != io.EOF {
			t.Errorf("at the end: %v", err)
		}
		if f := conv.Format(); f.W != w || f.H != h {
			t.Errorf("%+v", f)
		}
		conv.Close()
	}
}

// Interlaced pictures are deinterlaced, one for one, with their times; progressive ones are not touched.
func TestInterlaced(t *testing.T) {
	f := testFormat(64, 48)
	for _, n := range []int{1, 2, 9} {
		m := made{format: f, n: n, interlaced: true, options: map[string]string{"level": "3"}}
		path := m.write(t, filepath.Join(t.TempDir(), "a.mkv"))
		src := open1(t, path, OpenOptions{})
		got := readAll(t, src)
		if len(got) != n || !hasNote(src.Conversions(), "interlaced") {
			t.Fatalf("%d pictures of %d, notes %v", len(got), n, src.Conversions())
		}
		for i, p := range got {
			if p.pts != int64(40*i) {
				t.Errorf("picture %d at %d", i, p.pts)
			}
			if n > 1 && p.hash == hash(&testFrame(64, 48, i).Planes) { // bwdif leaves a single picture alone
				t.Errorf("picture %d of %d was not deinterlaced", i, n)
			}
		}
	}
	// in y4m too
	b := []byte("YUV4MPEG2 W64 H48 F25:1 It\n")
	for i := range 4 {
		b = appendPlanes(append(b, "FRAME\n"...), &testFrame(64, 48, i).Planes)
	}
	src := open1(t, writeFile(t, "a.y4m", b), OpenOptions{})
	if got := readAll(t, src); len(got) != 4 || got[1].hash == hash(&testFrame(64, 48, 1).Planes) || !hasNote(src.Conversions(), "interlaced") {
		t.Errorf("y4m: %d pictures, notes %v", len(got), src.Conversions())
	}
}

// A recording whose size and times change in the middle: scaled to the first size, times go on.
func TestSizeChange(t *testing.T) {
	dir := t.TempDir()
	var joined []byte
	for i, size := range [][2]int{{64, 48}, {96, 64}, {64, 48}} {
		p := made{container: "mpegts", encoder: "libx264", format: testFormat(size[0], size[1]), n: 8, options: map[string]string{"preset": "ultrafast", "g": "4"}}.write(t, filepath.Join(dir, fmt.Sprint(i)))
		b, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		joined = append(joined, b...)
	}
	path := writeFile(t, "joined.ts", joined)
	src := open1(t, path, OpenOptions{})
	last, n := int64(-1), 0
	for {
		f, err := src.Next(context.Background())
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if f.W != 64 || f.H != 48 || f.PTS <= last || f.PTS > last+20000 {
			t.Fatalf("picture %d: %dx%d at %d after %d", n, f.W, f.H, f.PTS, last)
		}
		last = f.PTS
		n++
	}
	if n != 24 || !hasNote(src.Conversions(), "size") || !hasNote(src.Conversions(), "times") {
		t.Errorf("%d pictures, notes %v", n, src.Conversions())
	}
	strict := open1(t, path, OpenOptions{Strict: true})
	var err error
	for err == nil {
		_, err = strict.Next(context.Background())
	}
	var loss *LossError
	if !errors.As(err, &loss) {
		t.Errorf("strict: %v", err)
	}
}

// Files without times: the rate makes them.
func TestNoTimes(t *testing.T) {
	path := made{container: "h264", encoder: "libx264", format: testFormat(64, 48), n: 12, options: map[string]string{"preset": "medium"}}.write(t, filepath.Join(t.TempDir(), "a.h264"))
	src := open1(t, path, OpenOptions{})
	f := src.Format()
	got := readAll(t, src)
	if len(got) != 12 || src.Frames() != -1 || !hasNote(src.Conversions(), "times") {
		t.Fatalf("%d pictures, %d, %v", len(got), src.Frames(), src.Conversions())
	}
	for i, p := range got {
		if d := duration(p.pts, f.TimeBase); d != time.Duration(i)*40*time.Millisecond {
			t.Errorf("picture %d at %v", i, d)
		}
	}
}

func TestTimeline(t *testing.T) {
	const no = av.NoPTS
	tb := yuv.Rational{Num: 1, Den: 1000}
	rate := yuv.Rational{Num: 25, Den: 1}
	for name, c := range map[string]struct {
		start int64
		jumps bool
		in    []int64
		want  []int64
	}{
		"plain":               {0, false, []int64{0, 40, 80}, []int64{0, 40, 80}},
		"starts late":         {1000, false, []int64{1040, 1080}, []int64{40, 80}},
		"unknown start":       {no, false, []int64{5000, 5040}, []int64{0, 40}},
		"negative":            {no, false, []int64{-80, -40, 0}, []int64{0, 40, 80}},
		"none":                {no, false, []int64{no, no, no}, []int64{0, 40, 80}},
		"first missing":       {no, false, []int64{no, 1040, 1080}, []int64{0, 40, 80}},
		"one missing":         {0, false, []int64{0, no, 80}, []int64{0, 40, 80}},
		"twice":               {0, false, []int64{0, 40, 40, 80}, []int64{0, 40, 41, 80}},
		"small step back":     {0, false, []int64{0, 40, 30, 35, 80}, []int64{0, 40, 41, 42, 80}},
		"jump back":           {0, false, []int64{0, 9000, 0, 40}, []int64{0, 9000, 9040, 9080}},
		"long pause":          {0, false, []int64{0, 40, 60000}, []int64{0, 40, 60000}},
		"jump forward":        {0, true, []int64{0, 40, 60000, 60040}, []int64{0, 40, 80, 120}},
		"pause in a TS":       {0, true, []int64{0, 40, 5000}, []int64{0, 40, 5000}},
		"jump, then missing":  {0, false, []int64{0, 9000, 0, no, 80}, []int64{0, 9000, 9040, 9080, 9120}},
		"before stated start": {1000, false, []int64{960, 1000}, []int64{-40, 0}},
	} {
		tl := newTimeline(tb, rate, c.start, c.jumps)
		for i, pts := range c.in {
			if got, _ := tl.next(pts, 0); got != c.want[i] {
				t.Errorf("%s: picture %d at %d, want %d", name, i, got, c.want[i])
			}
		}
	}
	// any times at all rise, and nothing overflows near them
	tl := newTimeline(yuv.Rational{Num: 1, Den: 1<<31 - 1}, yuv.Rational{}, 0, true)
	last := int64(math.MinInt64)
	for i, pts := range []int64{0, 1 << 60, -1 << 60, 5, no, no, 4, 1 << 61, 0} {
		got, _ := tl.next(pts, 0)
		if got <= last {
			t.Fatalf("picture %d at %d after %d", i, got, last)
		}
		last = got
	}
}

// Files that should have been longer.
func TestTruncated(t *testing.T) {
	dir := t.TempDir()
	o := CreateOptions{EncoderOptions: map[string]string{"preset": "ultrafast", "qp": "20", "movflags": "+faststart"}}
	long := testFormat(160, 120)
	for _, ext := range []string{".mp4", ".mkv"} {
		if ext == ".mkv" {
			o.EncoderOptions = map[string]string{"preset": "ultrafast", "qp": "20"}
		}
		path := filepath.Join(dir, "a"+ext)
		write(t, path, long, 100, o)
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		src := open1(t, path, OpenOptions{Strict: true})
		if n := len(readAll(t, src)); n != 100 || len(src.Conversions()) != 0 {
			t.Fatalf("%s whole: %d pictures, notes %v", ext, n, src.Conversions())
		}
		for _, part := range []float64{0.3, 0.6, 0.95} {
			cut := writeFile(t, "cut"+ext, whole[:int(part*float64(len(whole)))])
			src := open1(t, cut, OpenOptions{})
			n := len(readAll(t, src))
			if n == 0 || n >= 100 || !hasNote(src.Conversions(), "truncated") {
				t.Errorf("%s cut at %v: %d pictures, notes %v", ext, part, n, src.Conversions())
			}
			strict, err := Open(context.Background(), cut, OpenOptions{Strict: true})
			for err == nil {
				_, err = strict.Next(context.Background())
			}
			var loss *LossError
			if !errors.As(err, &loss) {
				t.Errorf("%s cut at %v, strict: %v", ext, part, err)
			}
			if strict != nil {
				strict.Close()
			}
		}
		// flipped bits in the middle
		bad := append([]byte(nil), whole...)
		for i := len(bad) / 3; i < len(bad)/2; i += 97 {
			bad[i] ^= 0x55
		}
		src = open1(t, writeFile(t, "bad"+ext, bad), OpenOptions{})
		readAll(t, src)
		if len(src.Conversions()) == 0 {
			t.Errorf("%s damaged: no notes", ext)
		}
	}
}

// What is no video says so, by name and cause; nothing panics, nothing leaks.
func TestNotVideo(t *testing.T) {
	dir := t.TempDir()
	text := writeFile(t, "notes.txt", []byte(strings.Repeat("Some words in a row, and more of them.\n", 200)))
	write(t, filepath.Join(dir, "x.yuv"), testFormat(16, 16), 1, CreateOptions{})
	os.Rename(filepath.Join(dir, "x.yuv"), filepath.Join(dir, "x.mp4"))
	random := make([]byte, 5000)
	for i := range random {
		random[i] = byte(i * i >> 3 * 7)
	}
	playlist := writeFile(t, "list.m3u8", []byte("#EXTM3U\n#EXT-X-TARGETDURATION:10\n#EXTINF:10,\nfile:/etc/passwd\n#EXT-X-ENDLIST\n"))
	concat := writeFile(t, "list.ffconcat", []byte("ffconcat version 1.0\nfile /etc/passwd\n"))
	png := []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x02\x00\x00\x00\x90wS\xde\x00\x00\x00\x0cIDAT\x08\xd7c\xf8\xcf\xc0\x00\x00\x03\x01\x01\x00\x18\xdd\x8d\xb0\x00\x00\x00\x00IEND\xaeB`\x82")
	for path, want := range map[string]string{
		filepath.Join(dir, "missing.mp4"):        "no such file",
		dir:                                      "is a folder",
		writeFile(t, "empty.mp4", nil):           "empty",
		writeFile(t, "random.mp4", random):       "cannot be read as video",
		filepath.Join(dir, "x.mp4"):              "cannot be read as video",
		text:                                     "",
		playlist:                                 "",
		concat:                                   "",
		writeFile(t, "p.png", png):               "still picture",
		filepath.Join("testdata/audio_only.m4a"): "sound but no video",
		"http://example.invalid/a.mp4":           "no such file",
		"concat:" + filepath.Join(dir, "a.mp4|b"): "no such file",
	} {
		src, err := Open(context.Background(), path, OpenOptions{})
		if err == nil {
			src.Close()
			t.Errorf("%s opened", path)
			continue
		}
		if !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), path+": ") {
			t.Errorf("%s: got error %v, want one about %q", path, err, want)
		}
		if strings.Contains(err.Error(), "root:") {
			t.Errorf("%s read another file: %v", path, err)
		}
	}
}

func TestLeftOut(t *testing.T) {
	for name, want := range map[string]string{
		"alpha_vp9.webm": "alpha ",
		"two_videos.mkv": "video ",
		"attachment.mkv": "attachment ",
	} {
		src := open1(t, filepath.Join("testdata", name), OpenOptions{})
		if n := len(readAll(t, src)); n < 5 || keys(src.Conversions()) != want {
			t.Errorf("%s: %d pictures, notes %v", name, n, src.Conversions())
		}
		_, err := Open(context.Background(), filepath.Join("testdata", name), OpenOptions{Strict: true})
		var loss *LossError
		if !errors.As(err, &loss) {
			t.Errorf("%s strict: %v", name, err)
		}
	}
	if src := open1(t, "testdata/two_videos.mkv", OpenOptions{}); src.Format().H != 106 {
		t.Errorf("the smaller video was taken")
	}
}

// The same file in names that mislead.
func TestNames(t *testing.T) {
	dir := t.TempDir()
	wd, _ := os.Getwd()
	defer os.Chdir(wd)
	if err := os.Chdir(dir); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"-dash.mp4", "a b é 日本 (1).mp4", "http:a.mp4", "100%d.mp4", "a:b.mkv", "pipe:0.mp4", "new\nline.mp4"} {
		write(t, name, testFormat(16, 16), 2, CreateOptions{})
		src, err := Open(context.Background(), name, OpenOptions{})
		if err != nil {
			t.Errorf("%q: %v", name, err)
			continue
		}
		if n := len(readAll(t, src)); n != 2 {
			t.Errorf("%q: %d pictures", name, n)
		}
		src.Close()
	}
}

// Seek gives the picture that a full reading gives first at or after the time, in every container.
func TestSeek(t *testing.T) {
	dir := t.TempDir()
	f := testFormat(64, 48)
	slow := map[string]string{"preset": "medium", "g": "12"} // B-frames, several key frames
	paths := []string{filepath.Join(dir, "a.mp4"), filepath.Join(dir, "a.mkv"), filepath.Join(dir, "a.y4m")}
	for _, p := range paths {
		o := CreateOptions{EncoderOptions: slow}
		if hasExt(p, ".y4m") {
			o = CreateOptions{}
		}
		write(t, p, f, 60, o)
	}
	for _, container := range []string{"mpegts", "h264", "avi"} {
		paths = append(paths, made{container: container, encoder: "libx264", format: f, n: 60, options: slow}.write(t, filepath.Join(dir, "b."+container)))
	}
	for _, path := range paths {
		src := open1(t, path, OpenOptions{})
		tb := src.Format().TimeBase
		all := readAll(t, src)
		for _, at := range []time.Duration{time.Millisecond, 40 * time.Millisecond, 500 * time.Millisecond, 1111 * time.Millisecond, 2300 * time.Millisecond} {
			want := 0
			for duration(all[want].pts, tb) < at-500*time.Nanosecond {
				want++
			}
			s := open1(t, path, OpenOptions{Seek: at})
			got := readAll(t, s)
			if len(got) != len(all)-want {
				t.Errorf("%s at %v: %d pictures, want %d", path, at, len(got), len(all)-want)
				continue
			}
			for i, p := range got {
				if p != (shown{all[want+i].pts - all[want].pts, all[want+i].hash}) {
					t.Errorf("%s at %v: picture %d is another", path, at, i)
					break
				}
			}
			if n := s.Frames(); n >= 0 && (n < int64(len(got))-1 || n > int64(len(got))+1) {
				t.Errorf("%s at %v: %d frames announced, %d came", path, at, n, len(got))
			}
		}
		if _, err := Open(context.Background(), path, OpenOptions{Seek: time.Hour}); err == nil || !strings.Contains(err.Error(), "past the end") {
			t.Errorf("%s: seek by an hour: %v", path, err)
		}
	}
}

func TestResolution(t *testing.T) {
	for _, c := range [][5]int{{64, 48, 24, 32, 24}, {48, 64, 24, 24, 32}, {100, 75, 25, 34, 26}, {33, 17, 17, 34, 18}, {64, 48, 96, 128, 96}, {64, 48, 48, 64, 48}, {1, 1, 1, 2, 2}, {16, 1, 1, 32, 2}} {
		if w, h := scaledSize(c[0], c[1], c[2]); w != c[3] || h != c[4] {
			t.Errorf("%dx%d to %d: %dx%d, want %dx%d", c[0], c[1], c[2], w, h, c[3], c[4])
		}
	}
	dir := t.TempDir()
	for _, name := range []string{"a.y4m", "a.mkv"} {
		path := filepath.Join(dir, name)
		o := CreateOptions{}
		if name == "a.mkv" {
			o.Encoder = "ffv1"
		}
		write(t, path, testFormat(64, 48), 5, o)
		src := open1(t, path, OpenOptions{Resolution: 24, Strict: true})
		f, err := src.Next(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if g := src.Format(); g.W != 32 || g.H != 24 || f.W != 32 || f.H != 24 || !hasNote(src.Conversions(), "scaled") {
			t.Errorf("%s: %+v, notes %v", name, g, src.Conversions())
		}
		if n := len(readAll(t, src)); n != 4 {
			t.Errorf("%s: %d pictures", name, n+1)
		}
		if _, err := Open(context.Background(), path, OpenOptions{Resolution: -2}); err == nil {
			t.Error("negative resolution")
		}
	}
	a, b := readAll(t, open1(t, filepath.Join(dir, "a.y4m"), OpenOptions{Resolution: 24})), readAll(t, open1(t, filepath.Join(dir, "a.mkv"), OpenOptions{Resolution: 24}))
	for i := range a {
		if a[i].hash != b[i].hash {
			t.Errorf("picture %d scales differently from y4m and mkv", i)
		}
	}
}

// Four places for the thread boundary: equal pictures, times, notes and ends.
func TestPlacements(t *testing.T) {
	dir := t.TempDir()
	good := filepath.Join(dir, "a.mp4")
	write(t, good, testFormat(96, 64), 40, CreateOptions{})
	b, _ := os.ReadFile(good)
	moov := strings.Index(string(b), "moov")
	if moov < 0 {
		t.Fatal("no moov")
	}
	interlaced := made{format: testFormat(96, 64), n: 20, interlaced: true, options: map[string]string{"level": "3"}, pixels: format(t, "yuv422p10le"), fill: func(f *av.Frame, i int) {
		for p := range 3 {
			v, stride := f.Plane(p)
			rows := (len(v) + stride - 1) / stride
			cols := len(v) - stride*(rows-1)
			src := make([]byte, cols*rows)
			for j := range src {
				src[j] = byte(j*(i+3)) & byte(255-252*(j&1))
			}
			f.FillPlane(src, cols, p, cols, rows)
		}
	}}.write(t, filepath.Join(dir, "i.mkv"))
	for _, path := range []string{good, interlaced} {
		var want []shown
		var notes string
		for placement := range 16 {
			o := OpenOptions{Threads: 1 + placement%3}
			if placement&1 != 0 {
				o.PrefetchPackets = 1 + placement
			}
			if placement&2 != 0 {
				o.PrefetchPictures = 2
			}
			src := open1(t, path, o)
			if placement&4 != 0 {
				src = Prefetch(src, 3)
			}
			if placement&8 != 0 {
				src = Prefetch(src, 1)
			}
			got := readAll(t, src)
			if placement == 0 {
				want, notes = got, fmt.Sprint(src.Conversions())
				continue
			}
			if fmt.Sprint(got) != fmt.Sprint(want) || fmt.Sprint(src.Conversions()) != notes {
				t.Errorf("%s: placement %04b differs", path, placement)
			}
		}
	}
}

// Closing and cancelling at any point, with every placement, frees everything.
func TestNothingLeft(t *testing.T) {
	before := fmt.Sprint(av.Live())
	path := filepath.Join(t.TempDir(), "a.mp4")
	write(t, path, testFormat(96, 64), 30, CreateOptions{})
	for placement := range 8 {
		for _, n := range []int{0, 1, 9, 30, 31} {
			for _, cancelled := range []bool{false, true} {
				src, err := Open(context.Background(), path, OpenOptions{PrefetchPackets: 3 * (placement & 1), PrefetchPictures: placement & 2})
				if err != nil {
					t.Fatal(err)
				}
				if placement&4 != 0 {
					src = Prefetch(src, 2)
				}
				ctx, cancel := context.WithCancel(context.Background())
				for range n {
					src.Next(ctx)
				}
				if cancelled {
					cancel()
					if _, err := src.Next(ctx); err == nil {
						t.Fatal("Next after cancel")
					}
				}
				if err := src.Close(); err != nil {
					t.Fatal(err)
				}
				cancel()
				if got := fmt.Sprint(av.Live()); got != before {
					t.Fatalf("placement %d, %d pictures: %v open, %v before", placement, n, got, before)
				}
			}
		}
	}
}

// A FIFO that nobody writes to ends with the context: while opening, reading the header, and reading pictures.
func TestBlockedFIFO(t *testing.T) {
	dir := t.TempDir()
	full := filepath.Join(dir, "a.mkv")
	write(t, full, testFormat(96, 64), 100, CreateOptions{Encoder: "ffv1"})
	b, _ := os.ReadFile(full)
	for _, part := range []int{-1, 0, 100, len(b) / 2, len(b)} {
		path := filepath.Join(dir, fmt.Sprintf("fifo%d.mkv", part))
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Skip(err)
		}
		done := make(chan *os.File, 1)
		if part >= 0 {
			go func() {
				w, err := os.OpenFile(path, os.O_WRONLY, 0)
				if err == nil {
					w.Write(b[:part])
				}
				if part == len(b) {
					w.Close()
				}
				done <- w
			}()
		}
		ctx, cancel := context.WithCancel(context.Background())
		var cancelledAt time.Time
		limit := 300 * time.Millisecond
		if part == len(b) {
			limit = time.Minute // this one ends by itself
		}
		timer := time.AfterFunc(limit, func() { cancelledAt = time.Now(); cancel() })
		src, err := Open(ctx, path, OpenOptions{})
		n := 0
		for err == nil {
			if _, err = src.Next(ctx); err == nil {
				n++
			}
		}
		if src != nil {
			src.Close()
		}
		if part == len(b) {
			timer.Stop()
			if err != io.EOF || n != 100 {
				t.Errorf("whole file through a FIFO: %d pictures, %v", n, err)
			}
		} else if !errors.Is(err, context.Canceled) || time.Since(cancelledAt) > prompt {
			t.Errorf("part %d: %v, %v after the cancel", part, err, time.Since(cancelledAt))
		}
		cancel()
		if part >= 0 {
			(<-done).Close()
		} else if w, err := os.OpenFile(path, os.O_WRONLY|syscall.O_NONBLOCK, 0); err == nil {
			w.Close() // lets the open that still waits end
		}
	}
}
