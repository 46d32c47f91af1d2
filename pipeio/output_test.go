package pipeio

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nvcodec/nvcodec/yuv"
)

func TestOutput(t *testing.T) {
	ctx := context.Background()
	f := testFormat(4, 4)
	names := []string{"a.y4m", "a.yuv"}
	if HasFFmpeg {
		names = append(names, "a.mkv", "a.mp4")
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, name)

			// nothing has the name before Close, everything after
			s, err := Create(ctx, path, f, CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Write(ctx, testFrame(4, 4, 0)); err != nil {
				t.Fatal(err)
			}
			if got := files(t, dir); len(got) != 1 || got[0] == name || !strings.HasPrefix(got[0], ".") {
				t.Fatalf("files before Close: %v", got)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if got := files(t, dir); len(got) != 1 || got[0] != name {
				t.Fatalf("files after Close: %v", got)
			}
			s.Abort()
			if err := s.Close(); err != nil || len(files(t, dir)) != 1 {
				t.Fatalf("second Close: %v", err)
			}

			// an existing file stays until the new one is whole
			_, err = Create(ctx, path, f, CreateOptions{})
			wantErr(t, err, ErrExists)
			before, _ := os.ReadFile(path)
			s, err = Create(ctx, path, f, CreateOptions{Overwrite: true})
			if err != nil {
				t.Fatal(err)
			}
			s.Write(ctx, testFrame(4, 4, 1))
			if err := s.Abort(); err != nil {
				t.Fatal(err)
			}
			if after, _ := os.ReadFile(path); string(after) != string(before) || len(files(t, dir)) != 1 {
				t.Fatal("Abort changed the folder")
			}
			write(t, path, f, 2, CreateOptions{Overwrite: true})
			if after, _ := os.ReadFile(path); string(after) == string(before) {
				t.Fatal("not overwritten")
			}

			// a wrong picture spoils the file
			os.Remove(path)
			s, err = Create(ctx, path, f, CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			s.Write(ctx, testFrame(4, 4, 0))
			if err := s.Write(ctx, testFrame(6, 4, 1)); err == nil || !strings.HasPrefix(err.Error(), path+": ") {
				t.Fatalf("wrong size: %v", err)
			}
			if err := s.Close(); err == nil || len(files(t, dir)) != 0 {
				t.Fatalf("Close after an error: %v, files %v", err, files(t, dir))
			}

			// another process was faster
			s, _ = Create(ctx, path, f, CreateOptions{})
			s.Write(ctx, testFrame(4, 4, 0))
			os.WriteFile(path, []byte("theirs"), 0o666)
			wantErr(t, s.Close(), ErrExists)
			if b, _ := os.ReadFile(path); string(b) != "theirs" || len(files(t, dir)) != 1 {
				t.Fatal("the other file was touched")
			}
			os.Remove(path)

			// cancelled
			stop, cancel := context.WithCancel(ctx)
			s, _ = Create(stop, path, f, CreateOptions{})
			s.Write(stop, testFrame(4, 4, 0))
			cancel()
			wantErr(t, s.Write(stop, testFrame(4, 4, 1)), context.Canceled)
			wantErr(t, s.Close(), context.Canceled)
			if len(files(t, dir)) != 0 {
				t.Fatalf("cancelled: %v", files(t, dir))
			}

			// links, long names, folders
			os.MkdirAll(filepath.Join(dir, "sub"), 0o777)
			os.Symlink(filepath.Join("sub", name), filepath.Join(dir, "sub", "..", "link"+filepath.Ext(name)))
			os.WriteFile(filepath.Join(dir, "sub", name), nil, 0o666)
			write(t, filepath.Join(dir, "link"+filepath.Ext(name)), f, 1, CreateOptions{Overwrite: true})
			if st, err := os.Stat(filepath.Join(dir, "sub", name)); err != nil || st.Size() == 0 {
				t.Fatal("the link's target was not written")
			}
			write(t, filepath.Join(dir, strings.Repeat("é", 120)+filepath.Ext(name)), f, 1, CreateOptions{})
			os.Mkdir(filepath.Join(dir, "folder"+filepath.Ext(name)), 0o777)
			if _, err := Create(ctx, filepath.Join(dir, "folder"+filepath.Ext(name)), f, CreateOptions{Overwrite: true}); err == nil {
				t.Fatal("a folder was taken")
			}
			write(t, filepath.Join(dir, "new", "folder", name), f, 1, CreateOptions{})
			if _, err := Create(ctx, filepath.Join(probeFile(t), name), f, CreateOptions{}); err == nil {
				t.Fatal("a file was taken for a folder")
			}

			// permissions are those of any new file
			write(t, path, f, 1, CreateOptions{})
			probe := filepath.Join(dir, "probe")
			os.WriteFile(probe, nil, 0o666)
			a, _ := os.Stat(path)
			b, _ := os.Stat(probe)
			if a.Mode() != b.Mode() {
				t.Fatalf("mode %v, want %v", a.Mode(), b.Mode())
			}

			// input = output, by any name
			for _, in := range []string{path, filepath.Join(dir, ".", "sub", "..", name), filepath.Join(dir, "link2"+filepath.Ext(name))} {
				os.Symlink(path, filepath.Join(dir, "link2"+filepath.Ext(name)))
				_, err := Create(ctx, path, f, CreateOptions{Overwrite: true, Inputs: []string{"other", in}})
				wantErr(t, err, ErrSameFile)
			}
		})
	}
}

func probeFile(t *testing.T) string { return writeFile(t, "plain", nil) }

func TestFullDevice(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("no /dev/full")
	}
	for _, ext := range []string{".y4m", ".yuv", ".mkv"} {
		if ext == ".mkv" && !HasFFmpeg {
			continue
		}
		path := filepath.Join(t.TempDir(), "full"+ext)
		if err := os.Symlink("/dev/full", path); err != nil {
			t.Skip(err)
		}
		s, err := Create(context.Background(), path, testFormat(64, 64), CreateOptions{})
		if err == nil {
			for i := 0; i < 50 && err == nil; i++ {
				err = s.Write(context.Background(), testFrame(64, 64, i))
			}
			if e := s.Close(); err == nil {
				err = e
			}
		}
		if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(strings.ToLower(err.Error()), "no space") {
			t.Errorf("%s: %v", ext, err)
		}
	}
}

func TestCreateErrors(t *testing.T) {
	dir := t.TempDir()
	for want, change := range map[string]func(*yuv.Format, *CreateOptions){
		"size 0x4":    func(f *yuv.Format, _ *CreateOptions) { f.W = 0 },
		"time base":   func(f *yuv.Format, _ *CreateOptions) { f.TimeBase.Den = 0 },
		"frame rate":  func(f *yuv.Format, _ *CreateOptions) { f.FrameRate.Num = -1 },
		"rotation 45": func(f *yuv.Format, _ *CreateOptions) { f.Rotation = 45 },
		"encoder":     func(_ *yuv.Format, o *CreateOptions) { o.Encoder = "ffv1" },
	} {
		f, o := testFormat(4, 4), CreateOptions{}
		change(&f, &o)
		if _, err := Create(context.Background(), filepath.Join(dir, "a.y4m"), f, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want one about %q", err, want)
		}
	}
	if got := files(t, dir); len(got) != 0 {
		t.Errorf("left behind: %v", got)
	}
	if !HasFFmpeg {
		_, err := Create(context.Background(), filepath.Join(dir, "a.mp4"), testFormat(4, 4), CreateOptions{})
		wantErr(t, err, ErrNoFFmpeg)
		_, err = Open(context.Background(), "a.mp4", OpenOptions{})
		wantErr(t, err, ErrNoFFmpeg)
	}
}

// A reader that does not read, a writer that does not write: both end with their context.
func TestBlockedPipes(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	within := func(what string, f func(ctx context.Context) error) {
		t.Helper()
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		defer cancel()
		start := time.Now()
		if err := f(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", what, err)
		}
		if d := time.Since(start); d > prompt {
			t.Errorf("%s took %v after a limit of 50ms", what, d)
		}
	}
	within("header", func(ctx context.Context) error {
		_, err := newY4MSource(ctx, "pipe", onlyReader{r}, OpenOptions{})
		return err
	})
	r2, w2, _ := os.Pipe()
	defer r2.Close()
	defer w2.Close()
	w2.Write(y4mBytes("YUV4MPEG2 W64 H64 F25:1", "FRAME\nxx"))
	src, err := newY4MSource(context.Background(), "pipe", r2, OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	within("picture", func(ctx context.Context) error { _, err := src.Next(ctx); return err })
	if _, err := src.Next(context.Background()); err == nil {
		t.Error("a source that was interrupted goes on")
	}
	sink, err := newPlanarSink(&output{name: "pipe", w: w}, testFormat(640, 480), true, CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	within("write", func(ctx context.Context) error { return sink.Write(ctx, testFrame(640, 480, 0)) })
	sink.Abort()
}

type onlyReader struct{ r *os.File }

func (o onlyReader) Read(b []byte) (int, error) { return o.r.Read(b) }

func TestRotate(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 5))
		src := randFrame(1+r.IntN(9), 1+r.IntN(9), seed).Planes
		if seed%2 == 0 {
			src = widened(&src)
		}
		for _, degrees := range []int{90, 180, 270} {
			var dst yuv.Planes
			rotate(&dst, &src, degrees)
			check := func(name string, d []byte, ds int, s []byte, ss, w, h int) {
				for y := range h {
					for x := range w {
						dx, dy := map[int][2]int{90: {h - 1 - y, x}, 180: {w - 1 - x, h - 1 - y}, 270: {y, w - 1 - x}}[degrees][0], map[int][2]int{90: {h - 1 - y, x}, 180: {w - 1 - x, h - 1 - y}, 270: {y, w - 1 - x}}[degrees][1]
						if d[dy*ds+dx] != s[y*ss+x] {
							t.Fatalf("seed=%d %s %d degrees: sample (%d,%d) is not at (%d,%d)", seed, name, degrees, x, y, dx, dy)
						}
					}
				}
			}
			check("Y", dst.Y, dst.StrideY, src.Y, src.StrideY, src.W, src.H)
			check("U", dst.U, dst.StrideC, src.U, src.StrideC, src.CW(), src.CH())
			check("V", dst.V, dst.StrideC, src.V, src.StrideC, src.CW(), src.CH())
		}
	}
}

func TestPlanarRotationAndTiming(t *testing.T) {
	f := testFormat(6, 4)
	f.Rotation, f.SAR = 90, yuv.Rational{Num: 4, Den: 3}
	f.TimeBase = yuv.Rational{Num: 1, Den: 1000}
	dir := t.TempDir()
	for _, upright := range []bool{false, true} {
		path := filepath.Join(dir, "a.y4m")
		s, err := Create(context.Background(), path, f, CreateOptions{Upright: upright, Overwrite: true})
		if err != nil {
			t.Fatal(err)
		}
		for i, pts := range []int64{0, 40, 80, 200} {
			p := testFrame(6, 4, i)
			p.PTS = pts
			if err := s.Write(context.Background(), p); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if got := keys(s.Conversions()); got != "rotation timing " {
			t.Errorf("upright=%v: notes %q", upright, got)
		}
		src := open1(t, path, OpenOptions{})
		want := f
		if upright {
			want = uprightFormat(f)
		}
		if g := src.Format(); g.W != want.W || g.H != want.H || g.SAR != want.SAR {
			t.Errorf("upright=%v: %dx%d, SAR %v", upright, g.W, g.H, g.SAR)
		}
		p := testFrame(6, 4, 0).Planes
		if upright {
			var q yuv.Planes
			rotate(&q, &p, 90)
			p = q
		}
		if got := readAll(t, src); len(got) != 4 || got[0].hash != hash(&p) {
			t.Errorf("upright=%v: wrong pictures", upright)
		}
	}
}

func TestReadable(t *testing.T) {
	for name, want := range map[string]bool{"a.y4m": true, "A.YUV": true, "a.mp4": HasFFmpeg, "a.MKV": HasFFmpeg, "a.txt": false, "a": false, "a.nvc": false, "a.m": false} {
		if got := Readable(name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
