package convert

import (
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/nvcodec/nvcodec/inference"
	"github.com/nvcodec/nvcodec/yuv"
)

func scratchModel(t *testing.T, name string) *inference.Model {
	b, err := os.ReadFile("/work/api/" + name + ".nvm")
	if err != nil {
		t.Skip(err)
	}
	m, err := inference.Load(b)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// The engine and the plain evaluation of the same model agree in every symbol, table and sample.
func TestEngineEqualsExact(t *testing.T) {
	for _, name := range []string{"nvc1-base", "nvc1-lite"} {
		m := scratchModel(t, name)
		b, err := inference.CPU("auto")
		if err != nil {
			t.Fatal(err)
		}
		s, err := b.Open(m, inference.Size{W: 128, H: 64}, 2, true)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		exact := NewExact(m)
		var state State[float64]
		r := rand.New(rand.NewPCG(1, 2))
		for k, graph := range []string{"intra", "reset", "inter", "inter", "reset"} {
			src := yuv.New(128, 64)
			for i := range src.Y {
				src.Y[i] = byte(i*3/(k+2) + r.IntN(20))
			}
			for i := range src.U {
				src.U[i], src.V[i] = byte(i*5), byte(i/(k+3))
			}
			f := &Frame{Graph: graph, QP: 63 - 13*k, Source: src}
			if graph != "intra" {
				f.Vectors = make([]int16, 8*4*2)
				for i := range f.Vectors {
					f.Vectors[i] = int16(r.IntN(400) - 200)
				}
			}
			e, err := exact.Frame(f, &state)
			if err != nil {
				t.Fatal(err)
			}
			sections, err := s.Encode(&inference.Frame{Graph: graph, QP: f.QP, Vectors: f.Vectors}, src)
			if err != nil {
				t.Fatal(err)
			}
			pre := prefix(graph)
			for _, sec := range sections[1:] {
				want := e.Values[pre+"k"+sec.Name[1:]].Symbols
				if !slices.Equal(sec.Symbols, want) {
					t.Errorf("%s frame %d: section %s differs", name, k, sec.Name)
				}
			}
			for i, v := range e.Values[pre+"z"].Data {
				if float64(sections[0].Symbols[i]) != v {
					t.Fatalf("%s frame %d: z symbol %d is %d, want %v", name, k, i, sections[0].Symbols[i], v)
				}
			}
			p := s.Picture()
			for y := range 64 {
				if !slices.Equal(p.Y[y*p.StrideY:y*p.StrideY+128], state.Picture.Y[y*128:(y+1)*128]) {
					t.Fatalf("%s frame %d: luma row %d differs", name, k, y)
				}
			}
			for y := range 32 {
				if !slices.Equal(p.U[y*p.StrideC:y*p.StrideC+64], state.Picture.U[y*64:(y+1)*64]) || !slices.Equal(p.V[y*p.StrideC:y*p.StrideC+64], state.Picture.V[y*64:(y+1)*64]) {
					t.Fatalf("%s frame %d: chroma row %d differs", name, k, y)
				}
			}
		}
	}
}
