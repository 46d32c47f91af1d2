// Package train tests that what training and its Python side say of the integer network is what the codec computes. The
// package itself is Python; README.md describes it.
package train

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nvcodec/nvcodec/convert"
	"github.com/nvcodec/nvcodec/inference"
	"github.com/nvcodec/nvcodec/inference/inferencetest"
	"github.com/nvcodec/nvcodec/models"
	"github.com/nvcodec/nvcodec/yuv"
)

// python finds an interpreter that has these modules, or skips the test. NVCODEC_REQUIRE=python makes that a failure.
func python(t *testing.T, modules string) string {
	t.Helper()
	scripts, err := filepath.Glob("*.py")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range scripts { // go test sees what this process opens: a cached result must not outlive a change in them
		if _, err := os.ReadFile(s); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"python3", "/usr/bin/python3"} {
		if exec.Command(name, "-c", "import "+modules).Run() == nil {
			return name
		}
	}
	if slices.Contains(strings.Split(os.Getenv("NVCODEC_REQUIRE"), ","), "python") {
		t.Fatalf("no python3 with %s", modules)
	}
	t.Skipf("no python3 with %s", modules)
	return ""
}

func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
	return string(out)
}

// A frame to code, as integer.py reads it; the planes and vectors go in files of their own.
type frame struct {
	Graph     string `json:"graph"`
	QP        int    `json:"qp"`
	Threshold int    `json:"threshold"`
	planes    *yuv.Planes
	vectors   []int16
}

func words(x []int16) []byte {
	var b []byte
	for _, v := range x {
		b = binary.LittleEndian.AppendUint16(b, uint16(v))
	}
	return b
}

func pixels(p *yuv.Planes) []byte { return slices.Concat(p.Y, p.U, p.V) }

// agree codes the frames with the generic kernels and with integer.py: every symbol, table and sample must be equal.
func agree(t *testing.T, m *inference.Model, file []byte, frames []frame) {
	t.Helper()
	interpreter := python(t, "numpy")
	dir := t.TempDir()
	size := inference.Size{W: frames[0].planes.W, H: frames[0].planes.H}
	spec := map[string]any{"width": size.W, "height": size.H, "planes": "planes", "vectors": "vectors", "frames": frames}
	backend, err := inference.CPU("generic")
	if err != nil {
		t.Fatal(err)
	}
	s, err := backend.Open(m, size, 2, true)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var planes, vectors, want []byte
	var marks []mark
	put := func(what string, b []byte) {
		marks = append(marks, mark{len(want), what})
		want = append(want, b...)
	}
	for k, f := range frames {
		planes = append(planes, pixels(f.planes)...)
		vectors = append(vectors, words(f.vectors)...)
		sections, err := s.Encode(&inference.Frame{Graph: f.Graph, QP: f.QP, Threshold: f.Threshold, Vectors: f.vectors}, f.planes)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range sections {
			put(fmt.Sprintf("frame %d, symbols of %s", k, x.Name), words(x.Symbols))
			put(fmt.Sprintf("frame %d, tables of %s", k, x.Name), x.Tables)
		}
		put(fmt.Sprintf("frame %d, picture", k), pixels(s.Picture()))
	}
	b, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{"model.nvm": file, "frames.json": b, "planes": planes, "vectors": vectors} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	run(t, interpreter, "integer.py", filepath.Join(dir, "model.nvm"), filepath.Join(dir, "frames.json"), filepath.Join(dir, "out"))
	got, err := os.ReadFile(filepath.Join(dir, "out"))
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(got, want) {
		return
	}
	i := 0
	for i < min(len(got), len(want)) && got[i] == want[i] {
		i++
	}
	at := marks[0]
	for _, x := range marks {
		if x.offset <= i {
			at = x
		}
	}
	t.Fatalf("%d bytes, want %d; the first difference is byte %d of %s", len(got), len(want), i-at.offset, at.what)
}

type mark struct {
	offset int
	what   string
}

// random frames of every graph: noise and extremes, vectors of any length.
func random(w, h int, seed uint64) []frame {
	r := rand.New(rand.NewPCG(seed, 5))
	var frames []frame
	for k, graph := range []string{"intra", "reset", "inter", "inter", "reset", "intra", "reset"} {
		f := frame{Graph: graph, QP: []int{63, 0, 40, 21}[k%4], Threshold: []int{0, 2, 64}[k%3], planes: yuv.New(w, h)}
		for _, plane := range [][]byte{f.planes.Y, f.planes.U, f.planes.V} {
			for i := range plane {
				if plane[i] = byte(r.IntN(256)); r.IntN(3) == 0 {
					plane[i] = byte(r.IntN(2) * 255)
				}
			}
		}
		if graph != "intra" {
			f.vectors = make([]int16, w/16*(h/16)*2)
			for i := range f.vectors {
				if f.vectors[i] = int16(r.IntN(161) - 80); r.IntN(6) == 0 {
					f.vectors[i] = int16(r.IntN(2)*4094 - 2047)
				}
			}
		}
		frames = append(frames, f)
	}
	return frames
}

func marshal(t *testing.T, m *inference.Model) []byte {
	t.Helper()
	b, err := inference.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestIntegerRandom(t *testing.T) {
	for seed := range uint64(2) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			m := inferencetest.TinyModel(seed)
			agree(t, m, marshal(t, m), random(128, 64, seed))
		})
	}
}

// Every second 1x1 convolution gets int16 weights: the same ones, finer by a random fraction.
func TestIntegerWide(t *testing.T) {
	m := inferencetest.TinyModel(7)
	r := rand.New(rand.NewPCG(7, 6))
	count := 0
	for _, name := range []string{"intra", "inter"} {
		for _, n := range m.Graphs[name].Nodes {
			w := m.Tensors[n.Tensors["w"]]
			if n.Op != "lin" || w.Type != "I8" {
				continue
			}
			if count++; count%2 == 0 {
				continue
			}
			finer := func(x *inference.Tensor, typ string, value func(v int64) int64) {
				data := x.Int64s()
				for i, v := range data {
					data[i] = value(v)
				}
				wide, err := inference.NewTensor(x.Name, typ, x.Shape, data)
				if err != nil {
					t.Fatal(err)
				}
				m.Tensors[x.Name] = wide
			}
			finer(w, "I16", func(v int64) int64 { return v*128 + r.Int64N(128) })
			finer(m.Tensors[n.Tensors["mul"]], "I32", func(v int64) int64 { return max(1, v/128) })
		}
	}
	if count < 20 {
		t.Fatalf("%d layers", count)
	}
	agree(t, m, marshal(t, m), random(64, 64, 8))
}

// A shipped model on real pictures: a corner of a calibration clip, an intra, a reset and an inter frame.
func TestIntegerShipped(t *testing.T) {
	m, err := models.ByName("nvc1-lite")
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile("../models/nvc1-lite.nvm")
	if err != nil {
		t.Fatal(err)
	}
	clips, err := convert.ShippedClips()
	if err != nil {
		t.Fatal(err)
	}
	var frames []frame
	for k, graph := range []string{"intra", "reset", "inter"} {
		f := frame{Graph: graph, QP: 42, Threshold: 2, planes: corner(clips[0].Frames[k], 128, 64)}
		if k > 0 {
			f.vectors = slices.Repeat([]int16{-3, 6}, 32)
		}
		frames = append(frames, f)
	}
	agree(t, m, file, frames)
}

// corner cuts the upper left w x h samples.
func corner(p *yuv.Planes, w, h int) *yuv.Planes {
	c := yuv.New(w, h)
	for y := range h {
		copy(c.Y[y*w:][:w], p.Y[y*p.StrideY:])
	}
	for y := range h / 2 {
		copy(c.U[y*w/2:][:w/2], p.U[y*p.StrideC:])
		copy(c.V[y*w/2:][:w/2], p.V[y*p.StrideC:])
	}
	return c
}
