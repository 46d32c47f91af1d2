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
//	input    vectors in the slot → vectors[p]
//	network  payload in the slot, vectors[p], pictures[p], state → symbols level by level, pictures[1-p], state
//	output   pictures[1-p] → its hash and itself in the slot
//
// One graph computes the network's, so that no frame waits for the host.
type decoder struct {
	coder
	input  *stage
	reader *payloadReader
	hashAt int64 // where the picture's hash lies in the decoder's own memory, behind what the entropy coder works in

	broken  error // the host's: what was wrong with a payload; until Reset nothing is decoded
	failure error // the caller's: why there is no going on
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
	var err error
	if d.input, err = d.stageOfItsOwn(atOnce); err != nil {
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
		hash, err := d.output.part(d.hash.calls(d.memory+pointer(d.hashAt), d.place(d.net.layout.pictures, 1-p), 0))
		if err != nil {
			return err
		}
		d.hashing = append(d.hashing, hash)
	}
	d.host(d.begin)
	return nil
}

// layout says how much device memory the decoder takes beside the network's, and what a slot has.
func (d *decoder) layout() (device int64, slot *slotLayout) {
	slot = &slotLayout{picture: d.net.layout.picture, vectors: d.net.layout.field, hash: 4}
	var scratch int64
	for _, g := range d.graphs {
		s, result, input := decodeLayout(g.sections)
		scratch, slot.result, slot.input = max(scratch, s), max(slot.result, result), max(slot.input, input)
	}
	d.hashAt = aligned(scratch)
	return d.hashAt + alignment, slot
}

// calls is all that stands between a payload and its picture.
func (d *decoder) calls(g *codingGraph, parity int) []call {
	return behindLists(d.net.frameCalls(g.plan, parity, func(level int) []call {
		return decodeCalls(d.tables, g.sections, level, d.net.frameParameters(), d.memory)
	}))
}

// behindLists has what begins beside the decoding of symbols wait for their list too, which decoding waits for: its many
// blocks of threads would find the device taken.
func behindLists(calls []call) []call {
	for i := range calls {
		c := &calls[i]
		for c.after > 0 && c.after < i && calls[c.after].kernel == "coder_list" && calls[c.after].stream != c.stream {
			c.after++
		}
	}
	return calls
}

func (d *decoder) Submit(f *inference.CodedFrame) error {
	switch {
	case d.failure != nil:
		return d.failure
	case d.closed:
		return errors.New("cuda: decoder is closed")
	case d.submitted-d.received == d.o.InFlight:
		return fmt.Errorf("cuda: %d frames are in flight already", d.o.InFlight)
	}
	if _, err := d.net.check(&inference.Frame{Graph: f.Graph, QP: f.QP, Threshold: f.Threshold}); err != nil {
		return err
	}
	s := d.take(d.submitted)
	s.graph, s.lanes, s.payload = d.graphs[f.Graph], f.Lanes, append(s.payload[:0], f.Payload...)
	*structure[frameParameters](s.params) = frameParameters{QP: int32(f.QP), Threshold: int32(f.Threshold), Input: mapped(s.input), Result: mapped(s.result)}
	d.follow(s)
	d.net.end(s.graph.program)
	d.submitted++
	d.hosting <- s
	return nil
}

// begin does the host's part of a frame and hands it to the device. Behind a payload that is no good it does nothing.
func (d *decoder) begin(s *slot) error {
	if d.broken == nil && d.err == nil {
		d.broken = d.parse(s)
	}
	if d.err != nil {
		return d.failed()
	}
	if d.broken != nil {
		return &inference.PayloadError{Err: d.broken}
	}
	n, g, l := s.number, s.graph, &d.net.layout
	if g.needs.vectors {
		d.input.after(d.network, n-2)
		d.input.poison(d.place(l.vectors, n), l.field)
		d.input.put(d.place(l.vectors, n), s.field)
	}
	d.input.done(n)
	d.network.after(d.input, n)
	d.network.after(d.output, n-2)
	d.network.poison(d.place(l.pictures, n+1), l.picture)
	d.network.put(d.net.frameParameters(), s.params)
	d.network.do(g.network[n&1])
	d.network.done(n)
	d.output.after(d.network, n)
	if !d.o.NoHash {
		d.output.do(d.hashing[n&1])
		d.output.get(s.hash, d.memory+pointer(d.hashAt))
	}
	d.output.get(s.picture, d.place(l.pictures, n+1))
	d.output.done(n)
	return d.failed()
}

// parse reads what the host reads of a payload and puts the rest where the device finds it.
func (d *decoder) parse(s *slot) error {
	if err := d.reader.Start(s.payload, s.lanes); err != nil {
		return err
	}
	if s.graph.needs.vectors {
		hb, wb := d.blocksOf()
		if err := d.reader.Vectors(s.vectors, s.vectorsBefore(), hb, wb); err != nil {
			return err
		}
	}
	n := d.reader.take(s.graph.symbols)
	d.reader.stage(structure[frameParameters](s.params), s.input[:n], s.graph.symbols)
	return nil
}

func (d *decoder) Receive() (*inference.Decoded, error) {
	switch {
	case d.failure != nil:
		return nil, d.failure
	case d.received == d.submitted:
		return nil, errors.New("cuda: no frame is in flight")
	}
	s := d.slot(d.received)
	<-s.ready
	d.lend()
	if s.err == nil {
		if err := d.output.event(s.number).sync(); err != nil {
			s.err = fmt.Errorf("cuda: %w", err)
		}
	}
	if s.err != nil {
		if bad := new(inference.PayloadError); !errors.As(s.err, &bad) {
			d.failure = s.err
		}
		return nil, s.err
	}
	r := structure[decoderResult](s.result)
	tail, err := r.check(s.graph.sections)
	if err != nil {
		return nil, &inference.PayloadError{Err: err}
	}
	d.decoded = inference.Decoded{Picture: s.shown, Tail: tail}
	if !d.o.NoHash {
		d.decoded.Hash = *structure[uint32](s.hash)
	}
	if s.graph.needs.vectors {
		d.decoded.Vectors = s.vectors
	}
	return &d.decoded, nil
}

func (d *decoder) Reset() error {
	for n := d.received; n < d.submitted; n++ {
		<-d.slot(n).ready
	}
	if err := d.sync(); err != nil && d.failure == nil {
		d.failure = fmt.Errorf("cuda: %w", err)
	}
	for d.received < d.submitted {
		d.lend()
	}
	d.lent.release()
	d.last.release()
	d.lent, d.last, d.broken = nil, nil, nil
	d.net.have.picture, d.net.have.memory, d.net.have.feature = false, false, false
	return d.failure
}

// Close waits for what is in flight and gives everything back.
func (d *decoder) Close() error { return d.close(nil) }
