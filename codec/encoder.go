package codec

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/nvcodec/nvcodec/inference"
	"github.com/nvcodec/nvcodec/yuv"
)

// An Encoder turns frames into a stream. Write codes frame by frame; Submit and Receive have several in flight, which
// keeps a device or a second processor at work. The stream is the same, however many. It is not safe for concurrent use.
type Encoder struct {
	o         EncoderOptions
	header    Header
	out       *writer
	threshold int
	log       *slog.Logger

	planner  planner
	coder    inference.FrameEncoder
	inFlight int
	pending  []submitted // frames in flight, oldest first

	metaSize     int
	first, end   int64 // the first frame's time, and where the last frame ends
	payloadBytes int64
	failed       error // after a failure the stream cannot go on
	closed       bool
}

// submitted is what the encoder knows of a frame in flight.
type submitted struct {
	plan
	pts, duration int64
}

// Summary says what an encoder has written.
type Summary struct {
	Frames, GOPs int64
	Bytes        int64 // of the whole stream
	PayloadBytes int64 // of the frames' payloads alone
	Duration     int64 // in ticks of the time base
}

// NewEncoder writes the stream's header. Frames of f's size follow by Write, then Close; Abort gives up.
func NewEncoder(w io.Writer, f yuv.Format, o EncoderOptions) (*Encoder, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	e := &Encoder{o: o, log: o.Logger}
	if e.log == nil {
		e.log = slog.New(slog.DiscardHandler)
	}
	var err error
	if e.threshold, err = o.threshold(); err != nil {
		return nil, err
	}
	shift, err := qpShift(o.Model)
	if err != nil {
		return nil, err
	}
	e.header = Header{Format: f, Version: version, Profile: inference.Profile, Model: o.Model.ID, QPShift: shift}
	if field, err := e.header.check(); err != nil {
		return nil, fmt.Errorf("codec: %s: %w", field, err)
	}
	e.planner = planner{o: &e.o, shift: shift}
	if e.inFlight, err = inFlight(o.InFlight, o.Backend); err != nil {
		return nil, err
	}
	if e.coder, err = openEncoder(o.Backend, &inference.CodingOptions{
		Model: o.Model, W: f.W, H: f.H, InFlight: e.inFlight, Reach: o.Reach, Pictures: !o.NoPictures, Threads: o.Threads,
	}); err != nil {
		return nil, err
	}
	e.out = newWriter(w, &e.header, o.LowDelay)
	if s := o.unusual(); s != "" {
		if err := e.Metadata(SettingsKey, s); err != nil {
			e.Abort()
			return nil, err
		}
	}
	return e, e.fail(e.out.err)
}

// fail remembers the first failure and returns it.
func (e *Encoder) fail(err error) error {
	if e.failed == nil && err != nil {
		e.failed = err
		e.Abort()
	}
	return e.failed
}

// Metadata adds an entry to the stream, at the next chunk boundary.
func (e *Encoder) Metadata(key, value string) error {
	if e.closed {
		return errors.New("codec: metadata after Close")
	}
	entry := Entry{key, value}
	if err := entry.check(); err != nil {
		return fmt.Errorf("codec: metadata: %w", err)
	}
	e.metaSize += len(appendEntry(nil, entry))
	if e.metaSize > maxMetadata {
		return fmt.Errorf("codec: metadata: more than %d bytes", maxMetadata)
	}
	e.out.metadata(entry)
	return nil
}

// Write encodes the next frame; no other may be in flight.
func (e *Encoder) Write(ctx context.Context, f *yuv.Frame) (FrameInfo, error) {
	if len(e.pending) > 0 {
		return FrameInfo{}, fmt.Errorf("codec: Write with %d frames in flight", len(e.pending))
	}
	if err := e.Submit(ctx, f); err != nil {
		return FrameInfo{}, err
	}
	return e.Receive(ctx)
}

// InFlight returns how many frames are in flight, and how many may be: Submit of one more is an error.
func (e *Encoder) InFlight() (now, most int) { return len(e.pending), e.inFlight }

// Submit begins to encode the next frame, whose picture is copied.
func (e *Encoder) Submit(ctx context.Context, f *yuv.Frame) error {
	if err := e.ready(f); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if len(e.pending) == e.inFlight {
		return fmt.Errorf("codec: %d frames are in flight already", e.inFlight)
	}
	if err := e.submit(f); err != nil {
		return e.fail(fmt.Errorf("codec: frame %d: %w", e.number(), err))
	}
	return nil
}

// number of the next frame that Submit gets.
func (e *Encoder) number() int64 { return e.out.count + int64(len(e.pending)) }

func (e *Encoder) submit(f *yuv.Frame) error {
	if err := e.coder.Load(&f.Planes); err != nil {
		return err
	}
	cut := false
	if e.planner.mayCut() {
		var err error
		if cut, err = e.coder.Cut(); err != nil {
			return err
		}
	}
	p := e.planner.next(cut)
	if err := e.coder.Submit(&inference.Frame{Graph: p.typ.String(), QP: p.qp, Threshold: e.threshold}); err != nil {
		return err
	}
	e.pending = append(e.pending, submitted{p, f.PTS, f.Duration})
	return nil
}

// Receive waits for the oldest frame in flight and adds it to the stream.
func (e *Encoder) Receive(ctx context.Context) (FrameInfo, error) {
	switch {
	case e.failed != nil:
		return FrameInfo{}, e.failed
	case len(e.pending) == 0:
		return FrameInfo{}, errors.New("codec: no frame is in flight")
	}
	if err := ctx.Err(); err != nil {
		return FrameInfo{}, err
	}
	return e.receive()
}

func (e *Encoder) receive() (FrameInfo, error) {
	c, err := e.coder.Receive()
	if err != nil {
		return FrameInfo{}, e.fail(fmt.Errorf("codec: frame %d: %w", e.out.count, err))
	}
	f := e.pending[0]
	e.pending = e.pending[:copy(e.pending, e.pending[1:])]
	info, err := e.record(f, c)
	if err != nil {
		return FrameInfo{}, e.fail(err)
	}
	e.timed(f)
	return info, nil
}

// ready says why f cannot be encoded.
func (e *Encoder) ready(f *yuv.Frame) error {
	switch {
	case e.failed != nil:
		return e.failed
	case e.closed:
		return errors.New("codec: the encoder is closed")
	case f.W != e.header.W || f.H != e.header.H:
		return fmt.Errorf("codec: frame %d is %dx%d, the stream %dx%d", e.number(), f.W, f.H, e.header.W, e.header.H)
	}
	return nil
}

// record adds a coded frame to the stream.
func (e *Encoder) record(f submitted, c *inference.Coded) (FrameInfo, error) {
	if f.typ == Intra {
		e.out.startGOP(gopHeader{frame: e.out.count, pts: f.pts, qpI: f.qp, qpP: e.o.QPP, threshold: e.threshold})
	}
	r := record{typ: f.typ, qp: f.qp, threshold: e.threshold, lanes: c.Lanes, pts: f.pts, payload: c.Payload}
	info := FrameInfo{
		Number: e.out.count, K: f.k, Type: f.typ, QP: f.qp, Threshold: e.threshold, Lanes: c.Lanes, PTS: f.pts,
		Offset: -1, PayloadBytes: len(c.Payload), Hash: c.Hash, Whole: true, Decoded: c.Picture,
	}
	var err error
	info.Bytes, err = e.out.add(r, c.Hash)
	e.payloadBytes += int64(len(c.Payload))
	e.log.Debug("frame", "frame", info.Number, "type", f.typ.String(), "qp", f.qp, "bytes", info.Bytes, "lanes", c.Lanes)
	return info, err
}

// timed keeps account of when the video begins and ends.
func (e *Encoder) timed(f submitted) {
	lasts := f.duration
	if lasts <= 0 {
		lasts = nominalDuration(&e.header.Format)
	}
	if e.out.count == 1 {
		e.first, e.end = f.pts, f.pts
	} else if lasts <= 0 {
		lasts = e.out.implied.clock.next() - f.pts
	}
	e.end = max(e.end, f.pts+min(max(lasts, 1), maxPTS))
}

// Close writes the frames in flight, what else is left, and the footer. The writer stays open.
func (e *Encoder) Close() (Summary, error) {
	if e.closed {
		return Summary{}, e.failed
	}
	for len(e.pending) > 0 {
		if _, err := e.receive(); err != nil {
			break // fail keeps it
		}
	}
	duration := min(e.end-e.first, 2*maxPTS)
	err := e.fail(e.out.finish(duration))
	e.Abort()
	return Summary{
		Frames: e.out.count, GOPs: e.out.gops, Bytes: e.out.offset, PayloadBytes: e.payloadBytes, Duration: duration,
	}, err
}

// Abort gives back the encoder's memory and threads without finishing the stream. It does nothing after Close.
func (e *Encoder) Abort() {
	if !e.closed {
		e.closed = true
		e.coder.Close()
	}
}
