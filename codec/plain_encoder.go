package codec

import (
	"errors"
	"fmt"
	"slices"

	"github.com/nvcodec/nvcodec/codec/motion"
	"github.com/nvcodec/nvcodec/entropy"
	"github.com/nvcodec/nvcodec/inference"
	"github.com/nvcodec/nvcodec/inference/kernel"
	"github.com/nvcodec/nvcodec/yuv"
)

// A plainEncoder is the inference.FrameEncoder of backends that compute networks only; the host does the rest, all of it in Receive:
// a search waits for the decoded picture before, and a network for the search.
type plainEncoder struct {
	o       inference.CodingOptions
	session inference.Session
	tables  *entropy.Tables
	coder   *entropy.Encoder
	search  *motion.Searcher

	// Frame n has pictures[n%len] and frames[n%len]. One more than there are frames in flight: a scene cut is told from the picture before.
	pictures                    []*yuv.Planes
	frames                      []inference.Frame
	before                      []int16 // the field of the frame received last; nil when it had none
	loaded, submitted, received int     // so far
	coded                       inference.Coded
}

func newPlainEncoder(b inference.Backend, o *inference.CodingOptions) (*plainEncoder, error) {
	e := &plainEncoder{o: *o}
	var err error
	if e.tables, err = entropy.NewTables(o.Model.Ints); err != nil {
		return nil, fmt.Errorf("codec: model %s: %w", o.Model.Name, err)
	}
	e.coder = entropy.NewEncoder(e.tables)
	costs, err := motion.NewTables(o.Model.Ints)
	if err != nil {
		return nil, fmt.Errorf("codec: model %s: %w", o.Model.Name, err)
	}
	size := o.Padded()
	if e.session, err = b.Open(o.Model, size, o.Threads, true); err != nil {
		return nil, err
	}
	e.search = motion.NewSearcher(costs, searchKernels(b), size.W, size.H, o.Threads, o.Reach)
	for range o.InFlight + 1 {
		e.pictures = append(e.pictures, yuv.New(size.W, size.H))
	}
	e.frames = make([]inference.Frame, len(e.pictures))
	return e, nil
}

// searchKernels picks the CPU kernels of the motion search: the backend's when it has any. All give equal fields.
func searchKernels(b inference.Backend) kernel.Set {
	if set, err := kernel.ByName(b.Kernels()); err == nil {
		return set
	}
	set, err := kernel.ByName("auto")
	if err != nil {
		return kernel.Generic()
	}
	return set
}

// picture of frame n, at padded size.
func (e *plainEncoder) picture(n int) *yuv.Planes    { return e.pictures[n%len(e.pictures)] }
func (e *plainEncoder) frame(n int) *inference.Frame { return &e.frames[n%len(e.frames)] }

func (e *plainEncoder) Load(src *yuv.Planes) error {
	switch {
	case e.loaded > e.submitted:
		return errors.New("codec: the picture loaded before was not submitted")
	case e.loaded-e.received == e.o.InFlight:
		return fmt.Errorf("codec: %d frames are in flight already", e.o.InFlight)
	}
	e.picture(e.loaded).Pad(src)
	e.loaded++
	return nil
}

func (e *plainEncoder) Cut() (bool, error) {
	if e.loaded < 2 {
		return false, nil
	}
	return motion.SceneCut(e.picture(e.loaded-1), e.picture(e.loaded-2)), nil
}

func (e *plainEncoder) Submit(f *inference.Frame) error {
	g := e.o.Model.Graphs[f.Graph]
	switch {
	case e.submitted == e.loaded:
		return errors.New("codec: no picture is loaded")
	case g == nil:
		return fmt.Errorf("codec: model has no graph %q", f.Graph)
	}
	if e.submitted == 0 && f.Vectors == nil && g.HasVectors() {
		return fmt.Errorf("codec: graph %s needs a picture decoded before", f.Graph)
	}
	now := e.frame(e.submitted)
	*now = *f
	now.Vectors = slices.Clone(f.Vectors)
	e.submitted++
	return nil
}

func (e *plainEncoder) Receive() (*inference.Coded, error) {
	if e.received == e.submitted {
		return nil, errors.New("codec: no frame is in flight")
	}
	n := e.received
	e.received++
	f, source := e.frame(n), e.picture(n)
	if f.Vectors == nil && e.o.Model.Graphs[f.Graph].HasVectors() {
		f.Vectors = e.search.Search(source, e.session.Picture(), e.before, f.QP)
	}
	sections, err := e.session.Encode(f, source)
	if err != nil {
		return nil, err
	}
	picture := crop(e.session.Picture(), e.o.W, e.o.H)
	hash := PictureHash(picture)
	symbols := entropy.Payload{
		Vectors: f.Vectors, VectorsBefore: e.before, HB: source.H / 16, WB: source.W / 16,
		Levels: levels(sections), Threshold: f.Threshold, Tail: uint16(hash),
	}
	c := inference.Coded{Payload: e.coded.Payload[:0], Lanes: e.tables.Lanes(&symbols), Hash: hash, Vectors: f.Vectors}
	if e.o.Pictures {
		c.Picture = picture
	}
	if c.Payload, err = e.coder.Append(c.Payload, &symbols, c.Lanes); err != nil {
		return nil, err
	}
	e.coded, e.before = c, f.Vectors
	return &e.coded, nil
}

// levels groups an encoder's sections as the decoder will be asked for them.
func levels(sections []inference.Section) [][]entropy.Section {
	var all [][]entropy.Section
	for i := range sections {
		s := &sections[i]
		if s.Level == len(all) {
			all = append(all, nil)
		}
		all[s.Level] = append(all[s.Level], entropy.Section{Symbols: s.Symbols, Tables: s.Tables, Skip: s.Skip})
	}
	return all
}

func (e *plainEncoder) Close() error { return e.session.Close() }
