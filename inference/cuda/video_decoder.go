//go:build cuda

package cuda

import (
	"errors"
	"fmt"

	"github.com/nvcodec/nvcodec/inference"
)

// A decoder decodes whole frames. The host reads a payload's vectors, which depend on nothing but the frame before's,
// and hands the rest to the device; p is the frame's parity:
//
//	network  payload in the slot, vectors, pictures[p], state → symbols level by level, pictures[1-p], its hash, state
//	output   pictures[1-p] → the slot
//
// One graph computes the first, so that no frame waits for the host.
type decoder struct {
	coder
	reader *payloadReader
	hashAt int64 // where the picture's hash lies in the decoder's own memory, behind what the entropy coder works in

	before  *slot // the frame submitted last; a reference
	broken  error // what was wrong with a payload; until Reset nothing is decoded
	decoded inference.Decoded
}

// OpenDecoder plans every graph, takes all memory and makes the streams.
func (b *backend) OpenDecoder(o *inference.CodingOptions) (inference.FrameDecoder, error) {
	return b.openDecoder(nil, o)
}

// OpenDecoderOn is OpenDecoder with the network on a stream of the caller's, in order with what else that stream is
// given; the other stage waits for it and it waits for that one.
func (b *backend) OpenDecoderOn(on *Stream, o *inference.CodingOptions) (inference.FrameDecoder, error) {
	return b.openDecoder(borrowed{on.m}, o)
}

func (b *backend) openDecoder(on machine, o *inference.CodingOptions) (inference.FrameDecoder, error) {
	if err := checkOptions(o); err != nil {
		return nil, err
	}
	d := &decoder{}
	if err := d.open(b, on, o); err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

func (d *decoder) open(b *backend, on machine, o *inference.CodingOptions) error {
	if err := d.coder.open(b, on, o, false); err != nil {
		return err
	}
	d.reader = newPayloadReader(d.tables)
	if err := d.reserve(d.layout()); err != nil {
		return err
	}
	for p := range 2 {
		for _, g := range d.graphs {
			var err error
			if g.network[p], err = d.network.part(d.calls(g, p)); err != nil {
				return err
			}
		}
	}
	return nil
}

// layout says how much device memory the decoder takes beside the network's, and what a slot has.
func (d *decoder) layout() (device int64, slot *slotLayout) {
	slot = &slotLayout{picture: d.net.layout.picture, vectors: d.net.layout.field}
	var scratch int64
	for _, g := range d.graphs {
		s, result, input := decodeLayout(g.sections)
		scratch, slot.result, slot.input = max(scratch, s), max(slot.result, result), max(slot.input, input)
	}
	d.hashAt = aligned(scratch)
	return d.hashAt + alignment, slot
}

// calls is everything that the device does of a frame.
func (d *decoder) calls(g *codingGraph, parity int) []call {
	calls := d.net.frameCalls(g.plan, parity, func(level int) []call {
		return decodeCalls(d.tables, g.sections, level, d.net.frameParameters(), d.memory)
	})
	if !d.o.NoHash {
		calls = append(calls, d.hash.calls(d.memory+pointer(d.hashAt), d.place(d.net.layout.pictures, 1-parity), d.net.frameParameters())...)
	}
	return calls
}

func (d *decoder) Submit(f *inference.CodedFrame) error {
	switch {
	case d.err != nil:
		return d.failed()
	case d.closed:
		return errors.New("cuda: decoder is closed")
	case d.submitted-d.received == d.o.InFlight:
		return fmt.Errorf("cuda: %d frames are in flight already", d.o.InFlight)
	}
	n := d.submitted
	if d.broken != nil {
		d.take(n).err = d.broken
		d.submitted++
		return nil
	}
	if _, err := d.net.check(&inference.Frame{Graph: f.Graph, QP: f.QP, Threshold: f.Threshold}); err != nil {
		return err
	}
	s, g, l := d.take(n), d.graphs[f.Graph], &d.net.layout
	s.graph = g
	d.submitted++
	if s.err = d.parse(s, f); s.err != nil {
		d.broken = s.err
		return nil
	}
	d.before.release()
	d.before = s.retain()

	d.network.after(d.output, n-2)
	d.network.poison(d.place(l.pictures, n+1), l.picture)
	d.network.put(d.net.frameParameters(), s.params)
	if g.needs.vectors {
		d.network.put(d.place(l.vectors, n), s.field)
	}
	d.network.do(g.network[n&1])
	d.network.done(n)
	d.output.after(d.network, n)
	d.output.get(s.picture, d.place(l.pictures, n+1))
	d.output.done(n)
	d.net.end(g.program)
	return d.failed()
}

// parse reads what the host reads of a payload and puts the rest where the device finds it.
func (d *decoder) parse(s *slot, f *inference.CodedFrame) error {
	if err := d.reader.Start(f.Payload, f.Lanes); err != nil {
		return err
	}
	if s.graph.needs.vectors {
		var before []int16
		if d.before != nil && d.before.graph.needs.vectors {
			before = d.before.vectors
		}
		hb, wb := d.blocksOf()
		if err := d.reader.Vectors(s.vectors, before, hb, wb); err != nil {
			return err
		}
	}
	params := frameParameters{QP: int32(f.QP), Threshold: int32(f.Threshold), Input: mapped(s.input), Result: mapped(s.result)}
	d.reader.stage(&params, s.input[:d.reader.take(s.graph.symbols)], s.graph.symbols)
	*structure[frameParameters](s.params) = params
	return nil
}

func (d *decoder) Receive() (*inference.Decoded, error) {
	switch {
	case d.err != nil:
		return nil, d.failed()
	case d.received == d.submitted:
		return nil, errors.New("cuda: no frame is in flight")
	}
	n := d.received
	s := d.slot(n)
	if s.err != nil {
		err := s.err
		d.lend()
		return nil, &inference.PayloadError{Err: err}
	}
	d.output.await(n)
	if d.err != nil {
		return nil, d.failed()
	}
	d.lend()
	r := structure[decoderResult](s.result)
	tail, err := r.check(s.graph.sections)
	if err != nil {
		d.broken = err
		return nil, &inference.PayloadError{Err: err}
	}
	d.decoded = inference.Decoded{Picture: s.shown, Tail: tail}
	if !d.o.NoHash {
		d.decoded.Hash = r.Hash
	}
	if s.graph.needs.vectors {
		d.decoded.Vectors = s.vectors
	}
	return &d.decoded, nil
}

func (d *decoder) Reset() error {
	if d.err == nil {
		d.err = d.sync()
	}
	for d.received < d.submitted {
		d.lend()
	}
	d.lent.release()
	d.before.release()
	d.lent, d.before, d.broken = nil, nil, nil
	d.net.have.picture, d.net.have.memory, d.net.have.feature = false, false, false
	return d.failed()
}

// Close waits for what is in flight and gives everything back.
func (d *decoder) Close() error { return d.close(nil) }
