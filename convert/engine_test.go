package convert

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/nvcodec/nvcodec/inference"
	"github.com/nvcodec/nvcodec/yuv"
)

// The engine and the plain evaluation of the same model agree in every symbol, table and sample: random networks
// under random fractional bits, so that values saturate and concatenations move theirs up and down, and a shipped one.
func TestEngineEqualsExact(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			widths := [][2]int{{8, 16}, {24, 8}, {96, 8}, {8, 96}}[seed]
			p, err := NewParams(tiny(t, widths[0], widths[1], seed))
			if err != nil {
				t.Fatal(err)
			}
			net, err := NVC1(p.CI, p.CP, nil)
			if err != nil {
				t.Fatal(err)
			}
			r := rand.New(rand.NewPCG(seed, 4))
			f := Fractions{}
			for _, g := range net.Groups() {
				f[g] = 9 + r.IntN(6)
			}
			m, err := p.Build("tiny", f, nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := inference.Marshal(m); err != nil {
				t.Fatal(err)
			}
			clip := noise(100, 60, 6, seed)
			equalsExact(t, m, &clip, seed)
		})
	}
	t.Run("nvc1-lite", func(t *testing.T) {
		b, err := os.ReadFile("../models/nvc1-lite.nvm")
		if err != nil {
			t.Fatal(err)
		}
		m, err := inference.Load(b)
		if err != nil {
			t.Fatal(err)
		}
		clip := noise(64, 128, 4, 9)
		equalsExact(t, m, &clip, 9)
	})
}

func equalsExact(t *testing.T, m *inference.Model, clip *Clip, seed uint64) {
	backend, err := inference.CPU("auto")
	if err != nil {
		t.Fatal(err)
	}
	first := pad(clip.Frames[0])
	s, err := backend.Open(m, inference.Size{W: first.W, H: first.H}, 2, true)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	exact := NewExact(m)
	var state State[float64]
	err = clip.sequence(60, 4, randomVectors(seed), func(k int, f *Frame) error {
		f.QP = []int{63, 0, 40, 21, 7, 55}[k%6]
		e, err := exact.Frame(f, &state)
		if err != nil {
			return err
		}
		sections, err := s.Encode(&inference.Frame{Graph: f.Graph, QP: f.QP, Vectors: f.Vectors}, f.Source)
		if err != nil {
			return err
		}
		equalSections(t, fmt.Sprintf("frame %d (%s)", k, f.Graph), prefix(f.Graph), e, sections)
		if !equalPlanes(s.Picture(), state.Picture) {
			t.Errorf("frame %d (%s): the pictures differ", k, f.Graph)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func equalSections(t *testing.T, what, pre string, e *evaluation[float64], sections []inference.Section) {
	t.Helper()
	if len(sections) != 3 {
		t.Fatalf("%s: %d sections, want 3", what, len(sections))
	}
	for i, v := range e.Values[pre+"z"].Data {
		if float64(sections[0].Symbols[i]) != v {
			t.Fatalf("%s: z symbol %d is %d, want %v", what, i, sections[0].Symbols[i], v)
		}
	}
	index := e.Values[pre+"index"]
	for step, s := range sections[1:] {
		k := e.Values[fmt.Sprintf("%sk%d", pre, step)]
		if !slices.Equal(s.Symbols, k.Symbols) {
			t.Errorf("%s: the symbols of step %d differ", what, step)
		}
		eachCoded(e.nodes[fmt.Sprintf("%sk%d", pre, step)], index.H, index.W, index.C, func(i, at int) {
			if s.Tables[i] != index.Index[at] {
				t.Fatalf("%s: step %d table %d is %d, want %d", what, step, i, s.Tables[i], index.Index[at])
			}
		})
	}
}

func equalPlanes(a, b *yuv.Planes) bool {
	if a.W != b.W || a.H != b.H {
		return false
	}
	for y := range a.H {
		if !slices.Equal(a.Y[y*a.StrideY:][:a.W], b.Y[y*b.StrideY:][:a.W]) {
			return false
		}
	}
	for y := range a.CH() {
		if !slices.Equal(a.U[y*a.StrideC:][:a.CW()], b.U[y*b.StrideC:][:a.CW()]) || !slices.Equal(a.V[y*a.StrideC:][:a.CW()], b.V[y*b.StrideC:][:a.CW()]) {
			return false
		}
	}
	return true
}
