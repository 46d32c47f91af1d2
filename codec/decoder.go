package codec

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"

	"github.com/nvcodec/nvcodec/inference"
	"github.com/nvcodec/nvcodec/yuv"
)

// DecoderOptions say how to decode.
type DecoderOptions struct {
	// Models returns the model with an identity, or says why it cannot.
	Models  func(id [32]byte) (*inference.Model, error)
	Backend inference.Backend
	Threads int // below 1 as many as the machine has

	// InFlight is how many frames are read and decoded ahead of Next's, that one included, 1..16; 0 what keeps the
	// backend busy. What Next returns does not depend on it, but with more than 1 Next may wait for bytes behind its
	// frame.
	InFlight int

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

	coder    inference.FrameDecoder
	inFlight int
	pending  []pending // frames in flight, oldest first
	failed   error     // after it the coder is of no use
	ended    bool      // Next has returned io.EOF

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
	w, h := p.header.PaddedSize()
	if o.MaxPixels > 0 && w*h > o.MaxPixels {
		return nil, unsupported("picture of %dx%d: %d samples padded, at most %d are allowed here", p.header.W, p.header.H, w*h, o.MaxPixels)
	}
	if o.Backend == nil {
		return nil, errors.New("codec: a decoder needs a backend")
	}
	if d.inFlight, err = inFlight(o.InFlight, o.Backend); err != nil {
		return nil, err
	}
	if d.coder, err = openDecoder(o.Backend, &inference.CodingOptions{
		Model: model, W: p.header.W, H: p.header.H, InFlight: d.inFlight, NoHash: o.NoVerify, Threads: o.Threads,
	}); err != nil {
		return nil, err
	}
	d.nominal = nominalDuration(&p.header.Format)
	p.preamble()
	d.preamble = slices.Clip(p.metadata)
	p.w.keep(p.w.offset)
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

// Metadata returns the entries read so far, which may be ahead of Next: from the beginning those before the first frame.
func (d *Decoder) Metadata() []Entry { return d.parser.metadata }

// Footer returns the stream's footer once Next has returned io.EOF, else nil.
func (d *Decoder) Footer() *Footer {
	if !d.ended {
		return nil
	}
	return d.parser.footer
}

// Next decodes the next frame, which is valid until the following call. Behind the last it returns io.EOF. After a
// *CorruptError or a *HashError it goes on with the next GOP; FrameInfo.Number shows what was left out.
func (d *Decoder) Next(ctx context.Context) (*yuv.Frame, FrameInfo, error) {
	if err := ctx.Err(); err != nil {
		return nil, FrameInfo{}, err
	}
	if d.failed != nil {
		return nil, FrameInfo{}, d.failed
	}
	d.readAhead()
	p := d.take()
	if p.err != nil {
		d.ended = p.err == io.EOF
		return nil, p.info, p.err
	}
	if err := d.receive(&p); err != nil {
		d.failed = d.giveUp(&p)
		return nil, p.info, err
	}
	r := &p.record
	d.log.Debug("frame", "frame", p.info.Number, "type", r.typ.String(), "qp", r.qp, "bytes", p.info.Bytes, "lanes", r.lanes)
	return &d.frame, p.info, nil
}

// receive waits for the picture of the oldest frame in flight and checks it.
func (d *Decoder) receive(p *pending) error {
	got, err := d.coder.Receive()
	var bad *inference.PayloadError
	switch {
	case errors.As(err, &bad):
		return &CorruptError{Offset: p.info.Offset, Field: "payload", Err: bad.Err}
	case err != nil:
		return fmt.Errorf("codec: frame %d: %w", p.info.Number, err)
	}
	d.frame = yuv.Frame{Planes: *got.Picture, PTS: p.record.pts, Duration: d.nominal}
	if d.o.NoVerify {
		return nil
	}
	p.info.Hash = got.Hash
	return d.verify(&p.record, &p.info, got.Tail)
}

// verify compares the picture's hash with what the stream holds of it: the low half in the payload, the high half in
// a chunk's last record.
func (d *Decoder) verify(r *record, info *FrameInfo, tail uint16) error {
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
func (d *Decoder) Close() error { return d.coder.Close() }
