package codec

import (
	"errors"
	"fmt"

	"github.com/nvcodec/nvcodec/entropy"
	"github.com/nvcodec/nvcodec/inference"
)

// A plainDecoder is the inference.FrameDecoder of backends that compute networks only: entropy decoding is the host's.
// All the work is done in Receive.
type plainDecoder struct {
	o       inference.CodingOptions
	session inference.Session
	coder   *entropy.Decoder

	frames              []inference.CodedFrame // frame n has frames[n%len]
	submitted, received int                    // so far
	fields              [2][]int16             // motion vectors of the frame at hand and of the one before, by turns
	before              []int16                // the field of the frame before, nil when it had none
	level               []entropy.Section
	decoded             inference.Decoded
}

func newPlainDecoder(b inference.Backend, o *inference.CodingOptions) (*plainDecoder, error) {
	tables, err := entropy.NewTables(o.Model.Ints)
	if err != nil {
		return nil, fmt.Errorf("codec: model %s: %w", o.Model.Name, err)
	}
	d := &plainDecoder{o: *o, coder: entropy.NewDecoder(tables), frames: make([]inference.CodedFrame, o.InFlight)}
	size := o.Padded()
	if d.session, err = b.Open(o.Model, size, o.Threads, false); err != nil {
		return nil, err
	}
	for i := range d.fields {
		d.fields[i] = make([]int16, size.H/16*(size.W/16)*2)
	}
	return d, nil
}

func (d *plainDecoder) Submit(f *inference.CodedFrame) error {
	switch {
	case d.submitted-d.received == len(d.frames):
		return fmt.Errorf("codec: %d frames are in flight already", len(d.frames))
	case d.o.Model.Graphs[f.Graph] == nil:
		return fmt.Errorf("codec: model has no graph %q", f.Graph)
	}
	slot := &d.frames[d.submitted%len(d.frames)]
	payload := append(slot.Payload[:0], f.Payload...)
	*slot = *f
	slot.Payload = payload
	d.submitted++
	return nil
}

func (d *plainDecoder) Receive() (*inference.Decoded, error) {
	if d.received == d.submitted {
		return nil, errors.New("codec: no frame is in flight")
	}
	f := &d.frames[d.received%len(d.frames)]
	d.received++
	frame := inference.Frame{Graph: f.Graph, QP: f.QP, Threshold: f.Threshold}
	if err := d.coder.Start(f.Payload, f.Lanes); err != nil {
		return nil, &inference.PayloadError{Err: err}
	}
	size := d.o.Padded()
	if d.o.Model.Graphs[f.Graph].HasVectors() {
		frame.Vectors = d.fields[0]
		if err := d.coder.Vectors(frame.Vectors, d.before, size.H/16, size.W/16); err != nil {
			return nil, &inference.PayloadError{Err: err}
		}
	}
	var bad error
	err := d.session.Decode(&frame, func(level []inference.Section) error {
		d.level = d.level[:0]
		for i := range level {
			s := &level[i]
			d.level = append(d.level, entropy.Section{Symbols: s.Symbols, Tables: s.Tables, Skip: s.Skip})
		}
		bad = d.coder.Level(d.level, f.Threshold)
		return bad
	})
	switch {
	case bad != nil:
		return nil, &inference.PayloadError{Err: bad}
	case errors.Is(err, inference.ErrSymbol):
		return nil, &inference.PayloadError{Err: err}
	case err != nil:
		return nil, err
	}
	tail, err := d.coder.Tail()
	if err != nil {
		return nil, &inference.PayloadError{Err: err}
	}
	d.before = frame.Vectors
	d.fields[0], d.fields[1] = d.fields[1], d.fields[0]
	d.decoded = inference.Decoded{Picture: crop(d.session.Picture(), d.o.W, d.o.H), Tail: tail, Vectors: frame.Vectors}
	if !d.o.NoHash {
		d.decoded.Hash = PictureHash(d.decoded.Picture)
	}
	return &d.decoded, nil
}

func (d *plainDecoder) Reset() error {
	d.received, d.before = d.submitted, nil
	return nil
}

func (d *plainDecoder) Close() error { return d.session.Close() }
