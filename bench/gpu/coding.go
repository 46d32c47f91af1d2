package main

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/nvcodec/nvcodec/codec"
	"github.com/nvcodec/nvcodec/inference"
)

// A recorder is a backend that keeps what its encoder was asked for and made.
type recorder struct {
	inference.CodingBackend
	frames []recorded
}

type recorded struct {
	frame   inference.Frame
	payload []byte
	lanes   int
	hash    uint32
}

type recordingEncoder struct {
	inference.FrameEncoder
	r        *recorder
	received int
}

func (r *recorder) OpenEncoder(o *inference.CodingOptions) (inference.FrameEncoder, error) {
	e, err := r.CodingBackend.OpenEncoder(o)
	r.frames = nil
	return &recordingEncoder{e, r, 0}, err
}

func (e *recordingEncoder) Submit(f *inference.Frame) error {
	e.r.frames = append(e.r.frames, recorded{frame: *f})
	return e.FrameEncoder.Submit(f)
}

func (e *recordingEncoder) Receive() (*inference.Coded, error) {
	c, err := e.FrameEncoder.Receive()
	if err == nil {
		f := &e.r.frames[e.received]
		e.received++
		f.frame.Vectors, f.payload, f.lanes, f.hash = slices.Clone(c.Vectors), bytes.Clone(c.Payload), c.Lanes, c.Hash
	}
	return c, err
}

func (b *bench) coder(whole inference.CodingBackend) *inference.CodingOptions {
	o := &inference.CodingOptions{Model: b.model, W: b.w, H: b.h, InFlight: b.o.inFlight, Reach: codec.DefaultOptions().Reach, Threads: b.o.threads}
	if o.InFlight == 0 {
		o.InFlight = inference.DeviceInFlight
	}
	return o
}

// encodeFrames times pictures and motion vectors to payloads. They must be those that were recorded.
func (b *bench) encodeFrames(r *recorder) (float64, error) {
	o := b.coder(r)
	e, err := r.CodingBackend.OpenEncoder(o)
	if err != nil {
		return 0, err
	}
	defer e.Close()
	w := &watch{o: b.o}
	receive := func() error {
		c, err := e.Receive()
		if err != nil {
			return err
		}
		if want := &r.frames[w.n]; c.Hash != want.hash || !bytes.Equal(c.Payload, want.payload) {
			return fmt.Errorf("frame %d differs from the one of the stream", w.n)
		}
		return nil
	}
	return w.time(len(r.frames), o.InFlight, receive, func(n int) error {
		if err := e.Load(b.show.at(n)); err != nil {
			return err
		}
		return e.Submit(&r.frames[n].frame)
	})
}

// decodeFrames times payloads to pictures and compares every hash.
func (b *bench) decodeFrames(r *recorder) (float64, error) {
	o := b.coder(r)
	d, err := r.CodingBackend.OpenDecoder(o)
	if err != nil {
		return 0, err
	}
	defer d.Close()
	w := &watch{o: b.o}
	receive := func() error {
		p, err := d.Receive()
		if err != nil {
			return err
		}
		if want := r.frames[w.n].hash; p.Hash != want {
			return fmt.Errorf("frame %d decodes to another picture: hash %08x, want %08x", w.n, p.Hash, want)
		}
		return nil
	}
	return w.time(len(r.frames), o.InFlight, receive, func(n int) error {
		f := &r.frames[n]
		return d.Submit(&inference.CodedFrame{Graph: f.frame.Graph, QP: f.frame.QP, Threshold: f.frame.Threshold, Lanes: f.lanes, Payload: f.payload})
	})
}
