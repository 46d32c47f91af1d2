package convert

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/nvcodec/nvcodec/yuv"
)

// A fixture holds inputs and stage outputs of the float network as its trainer computed them, frame by frame.
type fixture struct {
	*Checkpoint
	path   string
	frames []int
}

func (f *fixture) has(k int, name string) bool {
	return f.Tensors[fmt.Sprintf("f%d.%s", k, name)] != nil
}

func (f *fixture) get(t *testing.T, k int, name string) *Tensor {
	t.Helper()
	v := f.Tensors[fmt.Sprintf("f%d.%s", k, name)]
	if v == nil {
		t.Fatalf("%s: frame %d has no %s", f.path, k, name)
	}
	return v
}

func (f *fixture) graph(k int) string {
	switch {
	case f.has(k, "i.e1"):
		return "intra"
	case f.has(k, "p.fa_i"), slices.Contains(strings.Fields(f.Meta["resets"]), strconv.Itoa(k)):
		return "reset"
	}
	return "inter"
}

func (f *fixture) qp(t *testing.T, k int) int { return int(f.get(t, k, "qp").Int[0]) }

// source returns the padded picture to code.
func (f *fixture) source(t *testing.T, k int) *yuv.Planes {
	y, uv := f.get(t, k, "input_y"), f.get(t, k, "input_uv")
	p := yuv.New(y.Shape[2], y.Shape[1])
	for i, v := range y.Int {
		p.Y[i] = byte(v)
	}
	for i := range p.U {
		p.U[i], p.V[i] = byte(uv.Int[2*i]), byte(uv.Int[2*i+1])
	}
	return pad(p)
}

func (f *fixture) picture(t *testing.T, k int) *yuv.Planes {
	y, uv := f.get(t, k, "picture_y"), f.get(t, k, "picture_uv")
	p := yuv.New(y.Shape[2], y.Shape[1])
	for i, v := range y.Int {
		p.Y[i] = byte(v)
	}
	for i := range p.U {
		p.U[i], p.V[i] = byte(uv.Int[i]), byte(uv.Int[len(p.U)+i])
	}
	return p
}

func (f *fixture) vectors(t *testing.T, k int) []int16 {
	mv := f.get(t, k, "mv")
	v := make([]int16, len(mv.Int))
	for i, x := range mv.Int {
		v[i] = int16(x)
	}
	return v
}

func (f *fixture) feature(t *testing.T, k int, name string) *Value[float32] {
	v := f.get(t, k, name)
	if len(v.Shape) != 4 || v.Float == nil {
		t.Fatalf("%s: f%d.%s has shape %v of %s", f.path, k, name, v.Shape, v.Type)
	}
	return &Value[float32]{H: v.Shape[1], W: v.Shape[2], C: v.Shape[3], Data: v.Float}
}

// fixtureDir holds trimmed fixtures in testdata; NVCODEC_FIXTURES names a folder with full ones.
func fixtureDir() string {
	if dir := os.Getenv("NVCODEC_FIXTURES"); dir != "" {
		return dir
	}
	return "testdata/fixtures"
}

// loadFixtures reads every fixture. Each belongs to the checkpoint that its name begins with, in the folder above
// or in models/src.
func loadFixtures(t *testing.T) []*fixture {
	dir := fixtureDir()
	paths, err := filepath.Glob(filepath.Join(dir, "*.safetensors"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no fixtures in %s (%v)", dir, err)
	}
	var all []*fixture
	for _, p := range paths {
		c, err := ReadCheckpoint(p)
		if err != nil {
			t.Fatal(err)
		}
		f := &fixture{Checkpoint: c, path: filepath.Base(p)}
		for k := range 1000 {
			if f.has(k, "qp") {
				f.frames = append(f.frames, k)
			}
		}
		all = append(all, f)
	}
	return all
}

// twin returns the float network that made f: the hard fixtures have rounded weights.
func (f *fixture) twin(t *testing.T) *Twin {
	name := strings.Join(strings.SplitN(f.path, "-", 3)[:2], "-") + ".safetensors"
	c, err := ReadCheckpoint(filepath.Join(fixtureDir(), "..", name))
	if errors.Is(err, fs.ErrNotExist) {
		c, err = ReadCheckpoint(filepath.Join("../models/src", name))
	}
	if err != nil {
		t.Fatal(err)
	}
	p, err := NewParams(c)
	if err != nil {
		t.Fatal(err)
	}
	twin, err := NewTwin(p, strings.Contains(f.path, "hard"))
	if err != nil {
		t.Fatal(err)
	}
	return twin
}

// given fills the evaluation with all that the fixture holds of frame k, except the value called without.
func (f *fixture) given(t *testing.T, e *evaluation[float32], k int, without string) {
	graph := f.graph(k)
	pre := prefix(graph)
	e.Values[pre+"source"] = &Value[float32]{Picture: f.source(t, k)}
	if graph != "intra" {
		e.Values[pre+"reference"] = &Value[float32]{Picture: f.picture(t, k-1)}
		h, w := f.get(t, k, "mv").Shape[1], f.get(t, k, "mv").Shape[2]
		e.Values[pre+"vectors"] = &Value[float32]{H: h, W: w, Field: f.vectors(t, k)}
	}
	if graph == "inter" {
		e.Values[pre+"memory.in"] = f.feature(t, k-1, "memory")
		e.Values[pre+"feature.in"] = f.feature(t, k-1, "feature")
	}
	put := func(name string, v *Value[float32]) {
		if name != without {
			e.Values[pre+name] = v
		}
	}
	for _, name := range stages[graph] {
		switch name {
		case "fusion":
			v := f.feature(t, k, pre+"fusion")
			for i, part := range fusionParts {
				if without != "fusion" {
					put("fusion."+part, channels(v, i*v.C/3, (i+1)*v.C/3))
				}
			}
		case "symbols", "scale_index", "output":
		case "down":
			put(name, f.feature(t, k, "y"))
		case "yhat", "memory", "feature", "pred":
			put(name, f.feature(t, k, name))
		default:
			put(name, f.feature(t, k, pre+name))
		}
	}
}

// stages lists the fixture's stages by graph, in the order of the network.
var stages = map[string][]string{
	"intra": {"e1", "e2", "down", "henc", "hdec", "fusion", "scale_index", "spatial", "symbols", "yhat", "up", "d1", "head", "output"},
	"inter": {"pred", "memory", "ext", "e1", "down", "henc", "hdec", "tprior", "fusion", "scale_index", "spatial", "symbols", "yhat", "up", "d1", "feature", "recon", "head", "output"},
	"reset": {"pred", "memory", "ext", "e1", "down", "henc", "hdec", "tprior", "fusion", "scale_index", "spatial", "symbols", "yhat", "up", "d1", "feature", "recon", "head", "output"},
}

func channels(v *Value[float32], lo, hi int) *Value[float32] {
	y := feature[float32](v.H, v.W, hi-lo)
	for p := range v.H * v.W {
		copy(y.Data[p*y.C:(p+1)*y.C], v.Data[p*v.C+lo:p*v.C+hi])
	}
	return y
}

// near reports the largest difference as a part of the largest value.
func near(t *testing.T, what string, got, want []float32) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d values, want %d", what, len(got), len(want))
	}
	top, worst := 0.0, 0.0
	for i := range want {
		top = max(top, math.Abs(float64(want[i])))
		worst = max(worst, math.Abs(float64(got[i])-float64(want[i])))
	}
	if !(worst <= 1e-3*top) {
		t.Errorf("%s: differs by %g, largest value %g", what, worst, top)
	}
}

// Every stage of the float network, each fed the fixture's own inputs, agrees to a thousandth of its largest value.
func TestStages(t *testing.T) {
	for _, f := range loadFixtures(t) {
		t.Run(f.path, func(t *testing.T) {
			twin := f.twin(t)
			for _, k := range f.frames {
				graph := f.graph(k)
				for _, stage := range stages[graph] {
					f.stage(t, twin, k, graph, stage)
				}
				f.scales(t, twin, k)
			}
		})
	}
}

func (f *fixture) stage(t *testing.T, twin *Twin, k int, graph, stage string) {
	pre := prefix(graph)
	what := f.path + " frame " + strconv.Itoa(k) + " " + stage
	e := twin.Evaluate(graph, f.qp(t, k))
	f.given(t, e, k, stage)
	value := func(name string) *Value[float32] {
		v, err := e.Value(pre + name)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		return v
	}
	switch stage {
	case "fusion":
		want := f.feature(t, k, pre+"fusion")
		for i, part := range fusionParts {
			near(t, what+"."+part, value("fusion."+part).Data, channels(want, i*want.C/3, (i+1)*want.C/3).Data)
		}
	case "scale_index":
		want := f.feature(t, k, stage).Data
		v := value("v")
		for i, got := range value("index").Index {
			if float32(got) != want[i] && !tie(8*float64(v.Data[i])) {
				t.Errorf("%s: element %d is %d, want %v", what, i, got, want[i])
			}
		}
	case "symbols":
		f.symbols(t, what, k, value)
	case "down":
		near(t, what, value(stage).Data, f.feature(t, k, "y").Data)
	case "yhat", "memory", "feature", "pred":
		near(t, what, value(stage).Data, f.feature(t, k, stage).Data)
	case "output":
		v := value("picture")
		if f.has(k, "output") {
			near(t, what, v.Data, f.feature(t, k, "output").Data)
		}
		equalPictures(t, what, v, f.picture(t, k))
	default:
		near(t, what, value(stage).Data, f.feature(t, k, pre+stage).Data)
	}
}

// tie reports whether x lies within 1e-3 of where rounding turns over.
func tie(x float64) bool { return math.Abs(math.Abs(x-math.Floor(x))-0.5) < 1e-3 }

func (f *fixture) symbols(t *testing.T, what string, k int, value func(string) *Value[float32]) {
	want := f.feature(t, k, "symbols")
	y, q := value("down"), value("q")
	for step, name := range []string{"fusion.mean", "spatial"} {
		got, mean := value("k"+strconv.Itoa(step)), value(name)
		for i := range want.Data {
			p, c := i/want.C, i%want.C
			if !codes(step, p/want.W, p%want.W, c, want.C) {
				continue
			}
			r := float64(y.Data[i])/math.Exp(float64(q.Data[i])) - float64(mean.Data[i])
			if g := float32(got.Symbols[p*got.C+c%got.C]); g != want.Data[i] && !tie(r) {
				t.Errorf("%s: position %d channel %d is %v, want %v (before rounding %g)", what, p, c, g, want.Data[i], r)
			}
		}
	}
}

// equalPictures wants the rounded planes equal where no value is near a tie.
func equalPictures(t *testing.T, what string, got *Value[float32], want *yuv.Planes) {
	t.Helper()
	for i := range got.H {
		for j := range got.W {
			at := (i*got.W + j) * pictureC
			var w [pictureC]byte
			unpackIndex(want, i, j, func(b []byte, offset, c int) { w[c] = b[offset] })
			unpackIndex(got.Picture, i, j, func(b []byte, offset, c int) {
				if b[offset] != w[c] && !tie((float64(got.Data[at+c])+0.5)*255) {
					t.Errorf("%s: position (%d, %d) channel %d is %d, want %d", what, i, j, c, b[offset], w[c])
				}
			})
		}
	}
}

// scales compares the QP scales, which have no inputs but the QP.
func (f *fixture) scales(t *testing.T, twin *Twin, k int) {
	pre := prefix(f.graph(k))
	for _, s := range []string{"qe", "qd", "qh", "qt"} {
		if f.has(k, pre+s) {
			near(t, fmt.Sprintf("%s frame %d %s", f.path, k, s), twin.QPScale(pre+s, f.qp(t, k)), f.get(t, k, pre+s).Float)
		}
	}
}

// The whole network, frame after frame on its own results, gives the fixture's symbols, pictures and bits.
func TestEndToEnd(t *testing.T) {
	for _, f := range loadFixtures(t) {
		t.Run(f.path, func(t *testing.T) {
			twin := f.twin(t)
			var s State[float32]
			for _, k := range f.frames {
				if k > 0 && !slices.Contains(f.frames, k-1) {
					s = State[float32]{Picture: f.picture(t, k-1)} // trimmed: a reset frame needs no more
				}
				frame := &Frame{Graph: f.graph(k), QP: f.qp(t, k), Source: f.source(t, k)}
				if frame.Graph != "intra" {
					frame.Vectors = f.vectors(t, k)
				}
				what := fmt.Sprintf("%s frame %d", f.path, k)
				e, err := run[float32](twin, twin.Network.Graphs[frame.Graph], frame, &s, nil)
				if err != nil {
					t.Fatal(err)
				}
				r, err := twin.result(e, frame, s.Picture)
				if err != nil {
					t.Fatal(err)
				}
				f.symbols(t, what, k, func(name string) *Value[float32] { return e.Values[prefix(frame.Graph)+name] })
				equalPictures(t, what, e.Values[prefix(frame.Graph)+"picture"], f.picture(t, k))
				want := float64(f.get(t, k, "bits").Float[0])
				if got := r.ZBits + r.YBits; math.Abs(got-want) > 1e-3*want {
					t.Errorf("%s: %g bits, want %g", what, got, want)
				}
			}
		})
	}
}
