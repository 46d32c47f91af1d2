package inference_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/nvcodec/nvcodec/inference"
	"github.com/nvcodec/nvcodec/inference/inferencetest"
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
	all := takes(2, testSize, 9)
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
