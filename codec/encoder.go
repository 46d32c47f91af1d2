package codec

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/nvcodec/nvcodec/codec/motion"
	"github.com/nvcodec/nvcodec/entropy"
	"github.com/nvcodec/nvcodec/inference"
	"github.com/nvcodec/nvcodec/inference/kernel"
	"github.com/nvcodec/nvcodec/yuv"
)

// An Encoder turns frames into a stream. It is not safe for concurrent use.
type Encoder struct {
	o         EncoderOptions
	header    Header
	out       *writer
	threshold int
	log       *slog.Logger

	front     *front
	announced []*announced // at most two: a frame for Write, and the one whose search runs meanwhile

	session inference.Session
	tables  *entropy.Tables
	coder   *entropy.Encoder
	payload []byte

	metaSize     int
	first, end   int64 // the first frame's time, and where the last frame ends
	payloadBytes int64
	failed       error // after a failure the stream cannot go on
	closed       bool
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
	if e.tables, err = entropy.NewTables(o.Model.Ints); err != nil {
		return nil, fmt.Errorf("codec: model %s: %w", o.Model.Name, err)
	}
	e.coder = entropy.NewEncoder(e.tables)
	costs, err := motion.NewTables(o.Model.Ints)
	if err != nil {
		return nil, fmt.Errorf("codec: model %s: %w", o.Model.Name, err)
	}
	pw, ph := e.header.PaddedSize()
	if e.session, err = o.Backend.Open(o.Model, inference.Size{W: pw, H: ph}, o.Threads, true); err != nil {
		return nil, err
	}
	search := motion.NewSearcher(costs, searchKernels(o.Backend), pw, ph, o.Threads, o.Reach)
	e.front = newFront(&e.o, shift, search, pw, ph)
	e.out = newWriter(w, &e.header, o.LowDelay)
	if s := o.unusual(); s != "" {
		if err := e.Metadata(SettingsKey, s); err != nil {
			e.Abort()
			return nil, err
		}
	}
	return e, e.fail(e.out.err)
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

// Write encodes the next frame.
func (e *Encoder) Write(ctx context.Context, f *yuv.Frame) (FrameInfo, error) {
	if err := e.ready(f); err != nil {
		return FrameInfo{}, err
	}
	if err := ctx.Err(); err != nil {
		return FrameInfo{}, err
	}
	if len(e.announced) == 0 {
		if err := e.Ahead(f); err != nil {
			return FrameInfo{}, err
		}
	}
	next := e.announced[0]
	if next.pts != f.PTS {
		return FrameInfo{}, fmt.Errorf("codec: frame %d has time %d, announced was %d", e.out.count, f.PTS, next.pts)
	}
	next.wait()
	e.announced = e.announced[1:]
	info, err := e.encodeFrame(next.prepared, f.PTS)
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
		return fmt.Errorf("codec: frame %d is %dx%d, the stream %dx%d", e.out.count, f.W, f.H, e.header.W, e.header.H)
	}
	return nil
}

// encodeFrame is the encoder from the padded, searched picture to the record in the stream.
func (e *Encoder) encodeFrame(p prepared, pts int64) (FrameInfo, error) {
	frame := inference.Frame{Graph: p.typ.String(), QP: p.qp, Threshold: e.threshold, Vectors: p.vectors}
	sections, err := e.session.Encode(&frame, p.source)
	if err != nil {
		return FrameInfo{}, fmt.Errorf("codec: frame %d: %w", e.out.count, err)
	}
	picture := crop(e.session.Picture(), e.header.W, e.header.H)
	hash := PictureHash(picture)

	symbols := entropy.Payload{
		Vectors: p.vectors, VectorsBefore: p.before, HB: p.source.H / 16, WB: p.source.W / 16,
		Levels: levels(sections), Threshold: e.threshold, Tail: uint16(hash),
	}
	lanes := e.tables.Lanes(&symbols)
	if e.payload, err = e.coder.Append(e.payload[:0], &symbols, lanes); err != nil {
		return FrameInfo{}, fmt.Errorf("codec: frame %d: %w", e.out.count, err)
	}
	if p.typ == Intra {
		e.out.startGOP(gopHeader{frame: e.out.count, pts: pts, qpI: p.qp, qpP: e.o.QPP, threshold: e.threshold})
	}
	r := record{typ: p.typ, qp: p.qp, threshold: e.threshold, lanes: lanes, pts: pts, payload: e.payload}
	info := FrameInfo{
		Number: e.out.count, K: p.k, Type: p.typ, QP: p.qp, Threshold: e.threshold, Lanes: lanes, PTS: pts,
		Offset: -1, PayloadBytes: len(e.payload), Hash: hash, Whole: true, Decoded: picture,
	}
	info.Bytes, err = e.out.add(r, hash)
	e.payloadBytes += int64(len(e.payload))
	e.log.Debug("frame", "frame", info.Number, "type", p.typ.String(), "qp", p.qp, "bytes", info.Bytes, "lanes", lanes)
	return info, err
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

// timed keeps account of when the video begins and ends.
func (e *Encoder) timed(f *yuv.Frame) {
	lasts := f.Duration
	if lasts <= 0 {
		lasts = nominalDuration(&e.header.Format)
	}
	if e.out.count == 1 {
		e.first, e.end = f.PTS, f.PTS
	} else if lasts <= 0 {
		lasts = e.out.implied.clock.next() - f.PTS
	}
	e.end = max(e.end, f.PTS+min(max(lasts, 1), maxPTS))
}

// Close writes what is left and the footer. The writer stays open.
func (e *Encoder) Close() (Summary, error) {
	if e.closed {
		return Summary{}, e.failed
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
		for _, a := range e.announced {
			a.wait()
		}
		e.session.Close()
	}
}
