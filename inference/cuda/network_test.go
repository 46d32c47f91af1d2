//go:build cuda

package cuda

import (
	"testing"

	"github.com/nvcodec/nvcodec/inference"
)

// BenchmarkNetwork is the kernels of inter frames' networks and nothing else, frame behind frame: no copies, no entropy
// coding, no waiting for the host. It is what the whole frames of BenchmarkFrames and bench/gpu can come near to.
func BenchmarkNetwork(b *testing.B) {
	eachNetwork(b, func(name string, back *Backend, m *inference.Model, size inference.Size) {
		all := benchTakes(size)
		var given []coded
		b.Run("dir=encode/"+name, func(b *testing.B) { benchNetwork(b, back, m, size, all, &given, true) })
		b.Run("dir=decode/"+name, func(b *testing.B) { benchNetwork(b, back, m, size, all, &given, false) })
	})
}

func benchNetwork(b *testing.B, back *Backend, m *inference.Model, size inference.Size, all []take, given *[]coded, encode bool) {
	opened, err := back.Open(m, size, 0, encode)
	if err != nil {
		b.Fatal(err)
	}
	defer opened.Close()
	if encode {
		*given = nil
	}
	for i := range all {
		if encode {
			sections, err := opened.Encode(&all[i].frame, all[i].source)
			if err != nil {
				b.Fatal(err)
			}
			*given = append(*given, keep(sections, opened.Picture()))
			continue
		}
		at := 0
		if err := opened.Decode(&all[i].frame, func(level []inference.Section) error {
			for _, x := range level {
				copy(x.Symbols, (*given)[i].sections[at].Symbols)
				at++
			}
			return nil
		}); err != nil {
			b.Fatal(err)
		}
	}
	s := opened.(*session)
	both := &fork{m: s.m}
	defer both.close()
	var frames [2]captured // by parity
	for parity := range frames {
		steps, err := both.launches(s.frameCalls(s.programs["inter"].plan, parity, nil))
		if err != nil {
			b.Fatal(err)
		}
		if frames[parity], err = s.m.capture((&part{steps: steps}).all); err != nil {
			b.Fatal(err)
		}
		defer frames[parity].close()
	}
	frame := func(n int) {
		if err := frames[n%2].run(); err != nil {
			b.Fatal(err)
		}
	}
	for n := range warmUp() {
		frame(n)
	}
	if err := s.m.sync(); err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	for n := range b.N {
		frame(n)
	}
	if err := s.m.sync(); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "frames/s")
}
