package motion

import (
	"fmt"
	"testing"

	"github.com/nvcodec/nvcodec/inference/kernel"
)

// BenchmarkSearch takes a moving picture with detail and noise, about the worst case: nothing is settled early.
func BenchmarkSearch(b *testing.B) {
	const w, h = 640, 384
	ref, cur := moving(w, h, 0), moving(w, h, 1)
	for _, set := range kernel.Available() {
		for _, threads := range []int{1, 2} {
			b.Run(fmt.Sprintf("n=%dx%d/threads=%d/impl=%s", w, h, threads, set.Name), func(b *testing.B) {
				s := NewSearcher(testTables, set, w, h, threads, 128)
				field := s.Search(cur, ref, nil, 42)
				for b.Loop() {
					s.Search(cur, ref, field, 42)
				}
				b.ReportMetric(1000*b.Elapsed().Seconds()/float64(b.N), "ms/frame")
			})
		}
	}
}

func BenchmarkSceneCut(b *testing.B) {
	const w, h = 640, 384
	ref, cur := moving(w, h, 0), moving(w, h, 1)
	for b.Loop() {
		SceneCut(cur, ref)
	}
}
