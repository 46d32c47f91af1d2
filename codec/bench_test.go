package codec

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"testing"

	"github.com/nvcodec/nvcodec/inference"
	"github.com/nvcodec/nvcodec/yuv"
)

// benchSource is a moving picture and the options that every benchmark here uses. The generic kernels take many
// seconds for a frame of 640x360, so they get a small one.
func benchSource(b *testing.B, kernels inference.Backend) (*source, EncoderOptions) {
	o := DefaultOptions()
	o.Model, o.Backend, o.SceneCut = loadModel(b, "nvc1-base"), kernels, false
	w, h := benchSize(kernels)
	return &source{frames: video(w, h, 8, 0)}, o
}

func benchSize(kernels inference.Backend) (w, h int) {
	if kernels.Kernels() == "generic" {
		return 64, 64
	}
	return 640, 360
}

func benchName(kernels inference.Backend) string {
	w, h := benchSize(kernels)
	return fmt.Sprintf("model=base/size=%dx%d/impl=%s", w, h, kernels.Kernels())
}

// A source repeats its frames forwards and backwards, with rising times.
type source struct {
	frames []*yuv.Frame
	n      int64
}

func (s *source) next() *yuv.Frame {
	last := int64(len(s.frames) - 1)
	i := s.n % (2 * last)
	f := s.frames[min(i, 2*last-i)]
	f.PTS = s.n
	s.n++
	return f
}

func BenchmarkEncode(b *testing.B) {
	for _, kernels := range inference.Backends() {
		b.Run(benchName(kernels), func(b *testing.B) {
			src, o := benchSource(b, kernels)
			e, err := NewEncoder(io.Discard, formatOf(src.frames), o)
			if err != nil {
				b.Fatal(err)
			}
			defer e.Abort()
			for b.Loop() {
				if err := e.Submit(context.Background(), src.next()); err != nil {
					b.Fatal(err)
				}
				if now, most := e.InFlight(); now < most {
					continue
				}
				if _, err := e.Receive(context.Background()); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "frames/s")
		})
	}
}

func BenchmarkDecode(b *testing.B) {
	for _, kernels := range inference.Backends() {
		b.Run(benchName(kernels), func(b *testing.B) {
			src, o := benchSource(b, kernels)
			o.Backend = fastest()
			stream, _, _ := encode(b, o, src.frames, formatOf(src.frames))
			do := decoderOptionsOf(o)
			do.Backend = kernels
			r := bytes.NewReader(stream)
			d, err := NewDecoder(r, do)
			if err != nil {
				b.Fatal(err)
			}
			defer d.Close()
			for b.Loop() {
				_, _, err := d.Next(context.Background())
				if err == io.EOF {
					err = d.SeekTo(0)
				}
				if err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "frames/s")
		})
	}
}
