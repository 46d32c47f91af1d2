package codec

import (
	"github.com/nvcodec/nvcodec/codec/motion"
	"github.com/nvcodec/nvcodec/yuv"
)

// A front takes frames in order and prepares each for the network: padded, planned, its motion searched. It compares
// source pictures only, so it can run a frame ahead of the network.
type front struct {
	planner
	search   *motion.Searcher
	pictures [2]*yuv.Planes // the current frame's and the one before's, padded, by turns
	turn     int
	vectors  []int16 // of the frame before; nil when it was an intra frame
}

// prepared is a frame ready for the network.
type prepared struct {
	plan
	source  *yuv.Planes // at padded size, left alone while the next frame is prepared
	vectors []int16     // nil for an intra frame
	before  []int16     // the field of the frame before, nil when it had none
}

func newFront(o *EncoderOptions, shift [8]uint8, s *motion.Searcher, w, h int) *front {
	f := &front{planner: planner{o: o, shift: shift}, search: s}
	for i := range f.pictures {
		f.pictures[i] = yuv.New(w, h)
	}
	return f
}

// take copies the next frame's picture in; prepare follows it.
func (f *front) take(src *yuv.Planes) { f.pictures[f.turn].Pad(src) }

func (f *front) prepare() prepared {
	source, before := f.pictures[f.turn], f.pictures[1-f.turn]
	f.turn = 1 - f.turn
	cut := f.mayCut() && motion.SceneCut(source, before)
	p := prepared{plan: f.next(cut), source: source, before: f.vectors}
	if p.typ == Intra {
		p.before = nil
	} else {
		p.vectors = f.search.Search(source, before, p.before, p.qp)
	}
	f.vectors = p.vectors
	return p
}
