package inference_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/nvcodec/nvcodec/inference"
	"github.com/nvcodec/nvcodec/inference/inferencetest"
	"github.com/nvcodec/nvcodec/inference/kernel"
	"github.com/nvcodec/nvcodec/yuv"
)

var testSize = inference.Size{W: 192, H: 128}

// A take is one frame of a test: what the encoder is given.
type take struct {
	frame  inference.Frame
	source *yuv.Planes
}

// takes returns frames that use every graph, with any vectors, QPs and thresholds.
func takes(seed uint64, s inference.Size, count int) []take {
	rng := rand.New(rand.NewPCG(seed, 1))
	var all []take
	for i := range count {
		t := take{source: yuv.New(s.W, s.H)}
		for _, plane := range [][]byte{t.source.Y, t.source.U, t.source.V} {
			for j := range plane {
				plane[j] = byte(rng.IntN(256))
			}
		}
		t.frame = inference.Frame{Graph: []string{"intra", "reset", "inter", "inter"}[i%4], QP: rng.IntN(64), Threshold: rng.IntN(24)}
		if i%4 > 0 {
			for range s.W / 16 * s.H / 16 * 2 {
				t.frame.Vectors = append(t.frame.Vectors, int16(rng.IntN(2*inference.MaxVector+1)-inference.MaxVector)>>rng.IntN(12))
			}
		}
		all = append(all, t)
	}
	return all
}

// A coded frame is all that a session says about one.
type coded struct {
	sections []inference.Section
	picture  *yuv.Planes
}

func (c coded) same(o coded) error {
	if len(c.sections) != len(o.sections) {
		return fmt.Errorf("%d sections, want %d", len(c.sections), len(o.sections))
	}
	for i, s := range c.sections {
		t := o.sections[i]
		if s.Name != t.Name || s.Skip != t.Skip {
			return fmt.Errorf("section %s, want %s", s.Name, t.Name)
		}
		for j := range max(len(s.Symbols), len(t.Symbols)) {
			if s.Symbols[j] != t.Symbols[j] || s.Tables[j] != t.Tables[j] {
				return fmt.Errorf("section %s, symbol %d: %d by table %d, want %d by %d", s.Name, j, s.Symbols[j], s.Tables[j], t.Symbols[j], t.Tables[j])
			}
		}
	}
	for i, p := range [][2][]byte{{c.picture.Y, o.picture.Y}, {c.picture.U, o.picture.U}, {c.picture.V, o.picture.V}} {
		if !bytes.Equal(p[0], p[1]) {
			return fmt.Errorf("plane %c differs", "YUV"[i])
		}
	}
	return nil
}

func keep(sections []inference.Section, p *yuv.Planes) coded {
	c := coded{picture: &yuv.Planes{W: p.W, H: p.H, Y: slices.Clone(p.Y), U: slices.Clone(p.U), V: slices.Clone(p.V), StrideY: p.StrideY, StrideC: p.StrideC}}
	for _, s := range sections {
		s.Symbols, s.Tables = slices.Clone(s.Symbols), slices.Clone(s.Tables)
		c.sections = append(c.sections, s)
	}
	return c
}

func encode(t *testing.T, b inference.Backend, m *inference.Model, s inference.Size, threads int, all []take) []coded {
	t.Helper()
	session, err := b.Open(m, s, threads, true)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	var out []coded
	for i := range all {
		sections, err := session.Encode(&all[i].frame, all[i].source)
		if err != nil {
			t.Fatalf("frame %d: %v", i, err)
		}
		out = append(out, keep(sections, session.Picture()))
	}
	return out
}

func decode(t *testing.T, b inference.Backend, m *inference.Model, s inference.Size, threads int, all []take, given []coded) []coded {
	t.Helper()
	session, err := b.Open(m, s, threads, false)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	var out []coded
	for i := range all {
		var sections []inference.Section
		err := session.Decode(&all[i].frame, func(level []inference.Section) error {
			for _, s := range level {
				copy(s.Symbols, given[i].sections[len(sections)].Symbols)
				sections = append(sections, s)
			}
			return nil
		})
		if err != nil {
			t.Fatalf("frame %d: %v", i, err)
		}
		out = append(out, keep(sections, session.Picture()))
	}
	return out
}

func compare(t *testing.T, what string, got, want []coded) {
	t.Helper()
	for i := range want {
		if err := got[i].same(want[i]); err != nil {
			t.Fatalf("%s: frame %d: %v", what, i, err)
		}
	}
}

// Every backend, both directions and any number of threads give what one thread of generic kernels gives.
func TestSessionsAgree(t *testing.T) {
	m := inferencetest.TinyModel(1)
	all := takes(2, testSize, 6)
	backends := inference.Backends()
	want := encode(t, backends[0], m, testSize, 1, all)
	for _, b := range backends {
		for _, threads := range []int{1, 2, 5} {
			t.Run(fmt.Sprintf("impl=%s/threads=%d", b.Kernels(), threads), func(t *testing.T) {
				compare(t, "encode", encode(t, b, m, testSize, threads, all), want)
				compare(t, "decode", decode(t, b, m, testSize, threads, all, want), want)
			})
		}
	}
}

// Fused groups compute what every node alone computes.
func TestFusionAgrees(t *testing.T) {
	for seed := range uint64(3) {
		m := inferencetest.New(seed, inferencetest.Config{C: 8 + 16*int(seed), YIntra: 8, YInter: 12, Z: 4, Deep: seed == 0})
		if err := inference.CheckPlans(m, testSize); err != nil {
			t.Fatal(err)
		}
		all := takes(seed, testSize, 4)
		for _, set := range kernel.Available() {
			fused, err := inference.CPU(set.Name)
			if err != nil {
				t.Fatal(err)
			}
			plain := inference.Unfused(set)
			want := encode(t, plain, m, testSize, 1, all)
			compare(t, set.Name+" encode", encode(t, fused, m, testSize, 2, all), want)
			compare(t, set.Name+" decode plain", decode(t, plain, m, testSize, 1, all, want), want)
			compare(t, set.Name+" decode", decode(t, fused, m, testSize, 3, all, want), want)
		}
	}
}

// TestGolden pins the bits: they may change with the arithmetic of docs/MODEL.md only, and not with the machine.
func TestGolden(t *testing.T) {
	const wantModel, wantFrames = "c40b38d92f591044", "36d0747a179a14ff"
	m := inferencetest.TinyModel(1)
	if got := hex.EncodeToString(m.ID[:8]); got != wantModel {
		t.Fatalf("the test's model is %s, want %s", got, wantModel)
	}
	for _, b := range inference.Backends() {
		h := sha256.New()
		for _, c := range encode(t, b, m, testSize, 2, takes(5, testSize, 8)) {
			for _, s := range c.sections {
				fmt.Fprint(h, s.Name, s.Level, s.Skip, s.Symbols, s.Tables)
			}
			h.Write(c.picture.Y)
			h.Write(c.picture.U)
			h.Write(c.picture.V)
		}
		if got := hex.EncodeToString(h.Sum(nil)[:8]); got != wantFrames {
			t.Errorf("impl=%s: frames hash to %s, want %s", b.Kernels(), got, wantFrames)
		}
	}
}

// TestSizes: the smallest picture, one block of motion wide, and shapes whose positions do not fill a tile.
func TestSizes(t *testing.T) {
	m := inferencetest.TinyModel(4)
	for _, s := range []inference.Size{{W: 64, H: 64}, {W: 64, H: 320}, {W: 448, H: 64}} {
		all := takes(3, s, 4)
		backends := inference.Backends()
		want := encode(t, backends[0], m, s, 1, all)
		last := backends[len(backends)-1]
		compare(t, fmt.Sprint(s, " encode"), encode(t, last, m, s, 4, all), want)
		compare(t, fmt.Sprint(s, " decode"), decode(t, last, m, s, 4, all, want), want)
	}
	for _, s := range []inference.Size{{}, {W: 64}, {W: -64, H: -64}, {W: 64, H: 65}, {W: 96, H: 64}, {W: 1 << 14, H: 1<<13 + 64}, {W: math.MaxInt &^ 63, H: 64}, {W: 64, H: math.MaxInt &^ 63}} {
		if _, err := inference.Backends()[0].Open(m, s, 1, true); err == nil {
			t.Errorf("size %v is accepted", s)
		}
	}
}

// TestSections: names, levels, lengths and the skipping of symbols below the threshold.
func TestSections(t *testing.T) {
	m := inferencetest.TinyModel(1)
	all := takes(7, testSize, 4)
	for i, c := range encode(t, inference.Backends()[0], m, testSize, 1, all) {
		y := 16
		if i > 0 {
			y = 12
		}
		for j, want := range []struct {
			name  string
			level int
			skip  bool
			n     int
		}{{"z", 0, false, 3 * 2 * 8}, {"y0", 1, true, 12 * 8 * y / 2}, {"y1", 1, true, 12 * 8 * y / 2}} {
			s := c.sections[j]
			if s.Name != want.name || s.Level != want.level || s.Skip != want.skip || len(s.Symbols) != want.n || len(s.Tables) != want.n {
				t.Errorf("frame %d section %d: %s level %d skip %v, %d symbols", i, j, s.Name, s.Level, s.Skip, len(s.Symbols))
			}
			for k, table := range s.Tables {
				if s.Skip && (table > 63 || int(table) < all[i].frame.Threshold && s.Symbols[k] != 0) || !s.Skip && (table < 64 || table > 127) {
					t.Fatalf("frame %d %s: symbol %d is %d by table %d", i, s.Name, k, s.Symbols[k], table)
				}
			}
		}
	}
}

// TestFailedCalls: a call that fails leaves the state as it was, whatever failed.
func TestFailedCalls(t *testing.T) {
	m := inferencetest.TinyModel(1)
	all := takes(2, testSize, 4)
	b := inference.Backends()[0]
	want := encode(t, b, m, testSize, 1, all)
	enc, dec := open(t, b, m, true), open(t, b, m, false)
	stop := errors.New("stop")
	none := func([]inference.Section) error { return nil }
	if enc.Picture() != nil || dec.Picture() != nil {
		t.Error("a picture before the first frame")
	}
	short := all[3].frame
	short.Vectors = short.Vectors[2:]
	far := all[3].frame
	far.Vectors = append([]int16{2048}, far.Vectors[1:]...)
	for i := range all {
		f, src := all[i].frame, all[i].source
		for name, bad := range map[string]inference.Frame{
			"no graph":  {Graph: "other"},
			"QP 64":     {Graph: "intra", QP: 64},
			"QP -1":     {Graph: "intra", QP: -1},
			"threshold": {Graph: "intra", Threshold: 65},
			"vectors":   short,
			"far":       far,
		} {
			if _, err := enc.Encode(&bad, src); err == nil {
				t.Errorf("frame %d: %s: encoded", i, name)
			}
			if err := dec.Decode(&bad, none); err == nil {
				t.Errorf("frame %d: %s: decoded", i, name)
			}
		}
		for name, graph := range map[int][]string{0: {"inter", "reset"}, 1: {"inter"}}[i] {
			bad := all[3].frame
			bad.Graph = graph
			if _, err := enc.Encode(&bad, src); err == nil {
				t.Errorf("frame %d: %d: graph %s runs without state", i, name, graph)
			}
		}
		if _, err := enc.Encode(&f, yuv.New(64, 64)); err == nil {
			t.Error("a source of another size is encoded")
		}
		if _, err := dec.Encode(&f, src); err == nil {
			t.Error("a decoding session encodes")
		}
		if err := enc.Decode(&f, none); err == nil {
			t.Error("an encoding session decodes")
		}
		if err := dec.Decode(&f, func(level []inference.Section) error {
			if level[0].Name != "z" {
				return stop
			}
			return nil
		}); err != stop {
			t.Errorf("frame %d: fill's error comes back as %v", i, err)
		}
		for name, spoil := range map[string]func(s inference.Section){
			"z":       func(s inference.Section) { s.Symbols[3] = -128 },
			"y0":      func(s inference.Section) { s.Symbols[5] = 128 }, // the mean has F 8
			"y1":      func(s inference.Section) { s.Symbols[len(s.Symbols)-1] = -32768 },
			"skipped": func(s inference.Section) { setSkipped(s, f.Threshold) },
		} {
			err := dec.Decode(&f, func(level []inference.Section) error {
				for j, s := range level {
					copy(s.Symbols, want[i].sections[s.Level+j].Symbols)
					if s.Name == name || name == "skipped" && s.Skip && f.Threshold > 0 {
						spoil(s)
					}
				}
				return nil
			})
			if !errors.Is(err, inference.ErrSymbol) && !(name == "skipped" && f.Threshold == 0) {
				t.Errorf("frame %d: symbol of %s out of range: error %v", i, name, err)
			}
			if name == "skipped" && f.Threshold == 0 && err == nil {
				t.Fatal("the test needs a threshold in every frame")
			}
		}
		sections, err := enc.Encode(&f, src)
		if err != nil {
			t.Fatal(err)
		}
		if err := keep(sections, enc.Picture()).same(want[i]); err != nil {
			t.Fatalf("encode after failures: frame %d: %v", i, err)
		}
		at := 0
		if err := dec.Decode(&f, func(level []inference.Section) error {
			for _, s := range level {
				copy(s.Symbols, want[i].sections[at].Symbols)
				at++
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if err := keep(want[i].sections, dec.Picture()).same(want[i]); err != nil {
			t.Fatalf("decode after failures: frame %d: %v", i, err)
		}
	}
	for range 2 {
		if err := enc.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := enc.Encode(&all[0].frame, all[0].source); err == nil {
		t.Error("a closed session encodes")
	}
}

// setSkipped gives a symbol that is not coded a value.
func setSkipped(s inference.Section, threshold int) {
	for i, table := range s.Tables {
		if int(table) < threshold {
			s.Symbols[i] = 1
			return
		}
	}
}

func open(t *testing.T, b inference.Backend, m *inference.Model, encode bool) inference.Session {
	t.Helper()
	s, err := b.Open(m, testSize, 2, encode)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// TestLooseSource: a source with wide rows gives what its tight copy gives, and is not written to.
func TestLooseSource(t *testing.T) {
	m := inferencetest.TinyModel(1)
	all := takes(2, testSize, 1)
	b := inference.Backends()[0]
	want := encode(t, b, m, testSize, 1, all)
	src := all[0].source
	widen := func(p []byte, w, stride int) []byte {
		var out []byte
		for i := 0; i < len(p); i += w {
			out = append(append(out, p[i:i+w]...), bytes.Repeat([]byte{9}, stride-w)...)
		}
		return out
	}
	const strideY, strideC = 200, 99
	loose := &yuv.Planes{W: src.W, H: src.H, StrideY: strideY, StrideC: strideC, Y: widen(src.Y, src.W, strideY), U: widen(src.U, src.W/2, strideC), V: widen(src.V, src.W/2, strideC)}
	before := slices.Clone(loose.Y)
	compare(t, "loose", encode(t, b, m, testSize, 1, []take{{all[0].frame, loose}}), want)
	if !bytes.Equal(before, loose.Y) {
		t.Error("the source is written to")
	}
}

// TestSharedModel: sessions of one model run side by side.
func TestSharedModel(t *testing.T) {
	m, err := inference.Load(marshal(t, inferencetest.TinyModel(1)))
	if err != nil {
		t.Fatal(err)
	}
	all := takes(2, testSize, 3)
	want := encode(t, inference.Backends()[0], m, testSize, 1, all)
	for range 3 {
		for _, b := range inference.Backends() {
			t.Run("impl="+b.Kernels(), func(t *testing.T) {
				t.Parallel()
				compare(t, "encode", encode(t, b, m, testSize, 2, all), want)
				compare(t, "decode", decode(t, b, m, testSize, 2, all, want), want)
			})
		}
	}
}

// race is set under the race detector, where sync.Pool forgets on purpose.
var race bool

// TestSteadyState: once it is open, a session allocates nothing.
func TestSteadyState(t *testing.T) {
	if race {
		t.Skip("the race detector allocates")
	}
	m := inferencetest.TinyModel(1)
	all := takes(2, testSize, 3)
	for _, b := range inference.Backends() {
		enc, dec := open(t, b, m, true), open(t, b, m, false)
		none := func([]inference.Section) error { return nil }
		frame := func() {
			for i := range all {
				if _, err := enc.Encode(&all[i].frame, all[i].source); err != nil {
					t.Fatal(err)
				}
				if err := dec.Decode(&all[i].frame, none); err != nil {
					t.Fatal(err)
				}
			}
		}
		if n := testing.AllocsPerRun(5, frame); n > 1 {
			t.Errorf("impl=%s: %v allocations for %d frames both ways", b.Kernels(), n, len(all))
		}
	}
}

func TestArenaBytes(t *testing.T) {
	m := inferencetest.New(1, inferencetest.Base)
	for _, c := range []struct {
		size      inference.Size
		low, high int64 // MiB
	}{{inference.Size{W: 640, H: 384}, 8, 16}, {inference.Size{W: 1920, H: 1088}, 70, 125}} {
		for _, encode := range []bool{false, true} {
			if n := inference.ArenaBytes(m, c.size, encode) >> 20; n < c.low || n > c.high {
				t.Errorf("%v encode=%v: %d MiB", c.size, encode, n)
			}
		}
	}
	if n := inference.ArenaBytes(m, inference.Size{W: 63, H: 64}, true); n != 0 {
		t.Errorf("%d bytes for a size that no session has", n)
	}
}
