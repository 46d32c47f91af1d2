package codec

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"

	"github.com/nvcodec/nvcodec/entropy"
	"github.com/nvcodec/nvcodec/inference"
	"github.com/nvcodec/nvcodec/yuv"
)

// DecoderOptions say how to decode.
type DecoderOptions struct {
	// Models returns the model with an identity, or says why it cannot.
	Models  func(id [32]byte) (*inference.Model, error)
	Backend inference.Backend
	Threads int // below 1 as many as the machine has

	NoVerify  bool // leave the picture hashes unchecked
	MaxPixels int  // refuse larger pictures, counted padded; 0: no limit but the format's

	Logger *slog.Logger // nil: silent
}

// A Decoder turns a stream into frames. It reads forward only, so a pipe will do. It is not safe for concurrent use.
type Decoder struct {
	o        DecoderOptions
	parser   *parser
	preamble []Entry // metadata before the first frame
	source   io.Reader
	base     int64 // where the stream begins in a source that seeks, else −1
	log      *slog.Logger

	session inference.Session
	coder   *entropy.Decoder
	fields  [2][]int16 // motion vectors of the frame at hand and of the one before, by turns
	before  []int16    // the field of the frame before, nil when it had none
	level   []entropy.Section
	frame   yuv.Frame
	nominal int64 // ticks that a frame lasts
}

// NewDecoder reads a stream's header and what stands before its first frame.
func NewDecoder(r io.Reader, o DecoderOptions) (*Decoder, error) {
	d := &Decoder{o: o, source: r, base: -1, log: o.Logger}
	if d.log == nil {
		d.log = slog.New(slog.DiscardHandler)
	}
	if s, ok := r.(io.Seeker); ok {
		if at, err := s.Seek(0, io.SeekCurrent); err == nil {
			d.base = at
		}
	}
	p, err := newParser(r)
	if err != nil {
		return nil, err
	}
	d.parser = p
	model, err := d.model()
	if err != nil {
		return nil, err
	}
	tables, err := entropy.NewTables(model.Ints)
	if err != nil {
		return nil, fmt.Errorf("codec: model %s: %w", model.Name, err)
	}
	d.coder = entropy.NewDecoder(tables)
	w, h := p.header.PaddedSize()
	if o.MaxPixels > 0 && w*h > o.MaxPixels {
		return nil, unsupported("picture of %dx%d: %d samples padded, at most %d are allowed here", p.header.W, p.header.H, w*h, o.MaxPixels)
	}
	if o.Backend == nil {
		return nil, errors.New("codec: a decoder needs a backend")
	}
	if d.session, err = o.Backend.Open(model, inference.Size{W: w, H: h}, o.Threads, false); err != nil {
		return nil, err
	}
	for i := range d.fields {
		d.fields[i] = make([]int16, h/16*(w/16)*2)
	}
	d.nominal = nominalDuration(&p.header.Format)
	p.preamble()
	d.preamble = slices.Clip(p.metadata)
	return d, nil
}

// model gets the stream's model and makes sure that it is the right one.
func (d *Decoder) model() (*inference.Model, error) {
	want := d.parser.header.Model
	if d.o.Models == nil {
		return nil, &ModelError{Want: want}
	}
	m, err := d.o.Models(want)
	switch {
	case err != nil:
		return nil, &ModelError{Want: want, Err: err}
	case m == nil:
		return nil, &ModelError{Want: want}
	case m.ID != want:
		return nil, &ModelError{Want: want, Have: m.ID}
	case m.Profile != d.parser.header.Profile:
		return nil, unsupported("stream has arithmetic profile %s, its model %s", d.parser.header.Profile, m.Profile)
	}
	return m, nil
}

// Header returns what the stream says of itself.
func (d *Decoder) Header() Header { return d.parser.header }

// Metadata returns the entries read so far: from the beginning those before the first frame.
func (d *Decoder) Metadata() []Entry { return d.parser.metadata }

// Footer returns the stream's footer once Next has returned io.EOF, else nil.
func (d *Decoder) Footer() *Footer { return d.parser.footer }

// Next decodes the next frame, which is valid until the following call. Behind the last it returns io.EOF. After a
// *CorruptError or a *HashError it goes on with the next GOP; FrameInfo.Number shows what was left out.
func (d *Decoder) Next(ctx context.Context) (*yuv.Frame, FrameInfo, error) {
	if err := ctx.Err(); err != nil {
		return nil, FrameInfo{}, err
	}
	r, info, err := d.parser.next()
	if err != nil {
		return nil, info, err
	}
	if err := d.decodeFrame(&r, &info); err != nil {
		d.parser.skip()
		return nil, info, err
	}
	d.log.Debug("frame", "frame", info.Number, "type", r.typ.String(), "qp", r.qp, "bytes", info.Bytes, "lanes", r.lanes)
	return &d.frame, info, nil
}

// decodeFrame is the decoder from the record to the checked picture.
func (d *Decoder) decodeFrame(r *record, info *FrameInfo) error {
	payload := func(err error) error { return &CorruptError{Offset: info.Offset, Field: "payload", Err: err} }
	frame := inference.Frame{Graph: r.typ.String(), QP: r.qp, Threshold: r.threshold}
	if err := d.coder.Start(r.payload, r.lanes); err != nil {
		return payload(err)
	}
	w, h := d.parser.header.PaddedSize()
	if r.typ != Intra {
		frame.Vectors = d.fields[info.K&1]
		if err := d.coder.Vectors(frame.Vectors, d.before, h/16, w/16); err != nil {
			return payload(err)
		}
	}
	var bad error
	err := d.session.Decode(&frame, func(level []inference.Section) error {
		d.level = d.level[:0]
		for i := range level {
			s := &level[i]
			d.level = append(d.level, entropy.Section{Symbols: s.Symbols, Tables: s.Tables, Skip: s.Skip})
		}
		bad = d.coder.Level(d.level, r.threshold)
		return bad
	})
	switch {
	case bad != nil:
		return payload(bad)
	case errors.Is(err, inference.ErrSymbol):
		return payload(err)
	case err != nil:
		return fmt.Errorf("codec: frame %d: %w", info.Number, err)
	}
	tail, err := d.coder.Tail()
	if err != nil {
		return payload(err)
	}
	d.before = frame.Vectors
	d.frame.Planes = *crop(d.session.Picture(), d.parser.header.W, d.parser.header.H)
	d.frame.PTS, d.frame.Duration = r.pts, d.nominal
	if d.o.NoVerify {
		return nil
	}
	return d.verify(r, info, tail)
}

// verify compares the picture's hash with what the stream holds of it: the low half in the payload, the high half in
// a chunk's last record.
func (d *Decoder) verify(r *record, info *FrameInfo, tail uint16) error {
	info.Hash = PictureHash(&d.frame.Planes)
	e := &HashError{
		Frame: info.Number, Offset: info.Offset, Bits: 16, Want: uint32(tail), Got: info.Hash & 0xffff,
		Backend: d.o.Backend.Name() + "/" + d.o.Backend.Kernels(),
	}
	if r.last {
		e.Bits, e.Want, e.Got = 32, e.Want|uint32(r.hashHigh)<<16, info.Hash
	}
	switch {
	case e.Got == e.Want:
		return nil
	case !info.Whole: // no CRC vouches for the bytes, so they are the likelier cause
		return &CorruptError{Offset: info.Offset, Field: "picture_hash", Err: e}
	}
	return e
}

// Close gives back memory and threads. The reader stays open.
func (d *Decoder) Close() error { return d.session.Close() }
