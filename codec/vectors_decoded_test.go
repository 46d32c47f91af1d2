package codec

import (
	"slices"
	"testing"

	"github.com/nvcodec/nvcodec/codec/motion"
	"github.com/nvcodec/nvcodec/inference"
	"github.com/nvcodec/nvcodec/inference/kernel"
	"github.com/nvcodec/nvcodec/yuv"
)

// TestVectorsPointIntoDecodedPictures: a search between sources would find other vectors, off by what the decoded picture is.
func TestVectorsPointIntoDecodedPictures(t *testing.T) {
	o := testOptions()
	frames := video(64, 64, 4, 99)
	e, err := newPlainEncoder(o.Backend, &inference.CodingOptions{Model: o.Model, W: 64, H: 64, InFlight: 2, Reach: 16, Pictures: true, Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	costs, err := motion.NewTables(o.Model.Ints)
	if err != nil {
		t.Fatal(err)
	}
	search := motion.NewSearcher(costs, kernel.Generic(), 64, 64, 1, 16)
	var before []int16
	decoded, others := yuv.New(64, 64), 0
	for n, f := range frames {
		if err := e.Load(&f.Planes); err != nil {
			t.Fatal(err)
		}
		if err := e.Submit(&inference.Frame{Graph: []string{"intra", "reset", "inter"}[min(n, 2)], QP: 20}); err != nil {
			t.Fatal(err)
		}
		c, err := e.Receive()
		if err != nil {
			t.Fatal(err)
		}
		if n > 0 {
			if want := search.Search(&f.Planes, decoded, before, 20); !slices.Equal(c.Vectors, want) {
				t.Errorf("frame %d: vectors %v, want %v", n, c.Vectors, want)
			}
			if between := search.Search(&f.Planes, &frames[n-1].Planes, before, 20); !slices.Equal(c.Vectors, between) {
				others++
			}
		}
		before = slices.Clone(c.Vectors)
		decoded.Pad(c.Picture)
	}
	if others == 0 {
		t.Error("a search between sources finds the same vectors: this video tells nothing")
	}
}
