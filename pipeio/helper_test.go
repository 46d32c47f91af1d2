package pipeio

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nvcodec/nvcodec/yuv"
)

// testFormat is a format with everything set that containers keep.
func testFormat(w, h int) yuv.Format {
	return yuv.Format{
		W: w, H: h, TimeBase: yuv.Rational{Num: 1, Den: 25}, FrameRate: yuv.Rational{Num: 25, Den: 1}, SAR: yuv.Rational{Num: 1, Den: 1},
		Colour: yuv.Colour{Range: 1, Primaries: 1, Transfer: 1, Matrix: 1, ChromaLoc: 1},
	}
}

// testFrame is picture i of a moving gradient with a little noise; every picture differs.
func testFrame(w, h, i int) *yuv.Frame {
	f := &yuv.Frame{Planes: *yuv.New(w, h), PTS: int64(i), Duration: 1}
	r := rand.New(rand.NewPCG(uint64(w*h), uint64(i)))
	fill := func(p []byte, w, h, scale int) {
		for y := range h {
			for x := range w {
				p[y*w+x] = byte(16 + (x*scale+y*scale+5*i)%200 + r.IntN(4))
			}
		}
	}
	fill(f.Y, w, h, 1)
	fill(f.U, f.CW(), f.CH(), 2)
	fill(f.V, f.CW(), f.CH(), 3)
	return f
}

// randFrame is noise of the whole range.
func randFrame(w, h int, seed uint64) *yuv.Frame {
	f := &yuv.Frame{Planes: *yuv.New(w, h), Duration: 1}
	r := rand.New(rand.NewPCG(seed, 1))
	for _, p := range [][]byte{f.Y, f.U, f.V} {
		for i := range p {
			p[i] = byte(r.Uint32())
		}
	}
	return f
}

func hash(p *yuv.Planes) [32]byte { return sha256.Sum256(appendPlanes(nil, p)) }

// write makes a file of n test frames.
func write(t testing.TB, path string, f yuv.Format, n int, o CreateOptions) {
	t.Helper()
	s, err := Create(context.Background(), path, f, o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Abort()
	for i := range n {
		if err := s.Write(context.Background(), testFrame(f.W, f.H, i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// A shown picture is what a test compares.
type shown struct {
	pts  int64
	hash [32]byte
}

// readAll reads to the end.
func readAll(t testing.TB, src Source) []shown {
	t.Helper()
	var all []shown
	for {
		f, err := src.Next(context.Background())
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, shown{f.PTS, hash(&f.Planes)})
	}
}

func open1(t testing.TB, path string, o OpenOptions) Source {
	t.Helper()
	s, err := Open(context.Background(), path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// keys of the notes, for comparing.
func keys(notes []Note) string {
	s := ""
	for _, n := range notes {
		s += n.Key + " "
	}
	return s
}

func hasNote(notes []Note, key string) bool {
	for _, n := range notes {
		if n.Key == key {
			return true
		}
	}
	return false
}

// files lists a folder.
func files(t *testing.T, dir string) (names []string) {
	t.Helper()
	es, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range es {
		names = append(names, e.Name())
	}
	return names
}

// writeFile puts bytes into a temporary folder.
func writeFile(t testing.TB, name string, b []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, b, 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

func wantErr(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("got error %v, want %v", err, want)
	}
}

// prompt is how soon a cancelled call has to return: 0.1 s is usual, but tests share their machine.
const prompt = time.Second
