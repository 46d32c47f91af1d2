package inference_test

import (
	"fmt"
	"testing"

	"github.com/nvcodec/nvcodec/inference"
	"github.com/nvcodec/nvcodec/inference/inferencetest"
)

// BenchmarkFrame computes whole inter frames of a network of nvc1-base's size.
func BenchmarkFrame(b *testing.B) {
	m := inferencetest.New(1, inferencetest.Base)
	size := inference.Size{W: 640, H: 384}
	all := takes(1, size, 3)
	for _, backend := range inference.Backends() {
		for _, threads := range []int{1, 2} {
			name := fmt.Sprintf("n=%dx%d/impl=%s/threads=%d", size.W, size.H, backend.Kernels(), threads)
			b.Run("encode/"+name, func(b *testing.B) { benchFrame(b, backend, m, size, threads, all, true) })
			b.Run("decode/"+name, func(b *testing.B) { benchFrame(b, backend, m, size, threads, all, false) })
		}
	}
}

func benchFrame(b *testing.B, backend inference.Backend, m *inference.Model, size inference.Size, threads int, all []take, encode bool) {
	session, err := backend.Open(m, size, threads, encode)
	if err != nil {
		b.Fatal(err)
	}
	defer session.Close()
	run := func(t *take) {
		if encode {
			_, err = session.Encode(&t.frame, t.source)
		} else {
			err = session.Decode(&t.frame, func([]inference.Section) error { return nil }) // all symbols 0
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	for i := range all {
		run(&all[i])
	}
	b.ReportAllocs()
	for b.Loop() {
		run(&all[2])
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "frames/s")
}
