package main

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nvcodec/nvcodec/codec"
	"github.com/nvcodec/nvcodec/inference"
	"github.com/nvcodec/nvcodec/yuv"
)

// A bench is one line's work.
type bench struct {
	o       *options
	backend inference.Backend
	model   *inference.Model
	w, h    int
	qp      int
	show    *reel
}

func (b *bench) total() int { return b.o.warm + b.o.runs*b.o.frames }

// A watch takes the time of each run as frames are finished.
type watch struct {
	o     *options
	n     int
	since time.Time
	runs  []float64 // frames a second
}

func (w *watch) frame() {
	w.n++
	done := w.n - w.o.warm
	switch {
	case done == 0:
		w.since = time.Now()
	case done > 0 && done%w.o.frames == 0:
		now := time.Now()
		w.runs = append(w.runs, float64(w.o.frames)/now.Sub(w.since).Seconds())
		w.since = now
	}
}

// time submits frames 0..total-1, at most so many in flight, and receives each; it returns the median of the runs.
func (w *watch) time(total, inFlight int, receive func() error, submit func(n int) error) (float64, error) {
	for submitted := 0; w.n < total; {
		if submitted < total {
			if err := submit(submitted); err != nil {
				return 0, err
			}
			if submitted++; submitted-w.n < inFlight {
				continue
			}
		}
		if err := receive(); err != nil {
			return 0, err
		}
		w.frame()
	}
	return w.median(), nil
}

func (w *watch) median() float64 {
	slices.Sort(w.runs)
	return w.runs[len(w.runs)/2]
}

// stream times pictures in host memory to stream bytes and back, and, where the backend codes whole frames, that part
// alone on the same frames.
func (b *bench) stream(ctx context.Context, l *line) error {
	coding := strings.Contains(b.o.settings, "coding")
	var tape *recorder
	if whole, ok := b.backend.(inference.CodingBackend); ok && coding {
		tape = &recorder{CodingBackend: whole}
		if _, _, err := b.encode(ctx, tape); err != nil {
			return err
		}
	}
	var bytesOut *bytes.Buffer
	if strings.Contains(b.o.settings, "stream") {
		var err error
		if bytesOut, l.stream.encode, err = b.encode(ctx, b.backend); err != nil {
			return err
		}
		l.bytes = int64(bytesOut.Len())
		if l.stream.decode, err = b.decode(ctx, bytesOut); err != nil {
			return err
		}
	}
	if tape != nil {
		var err error
		if l.coding.encode, err = b.encodeFrames(tape); err != nil {
			return err
		}
		if l.coding.decode, err = b.decodeFrames(tape); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) encode(ctx context.Context, backend inference.Backend) (*bytes.Buffer, float64, error) {
	out := &bytes.Buffer{}
	o := codec.DefaultOptions()
	o.Model, o.Backend, o.QPI, o.QPP, o.InFlight, o.Threads = b.model, backend, b.qp, b.qp, b.o.inFlight, b.o.threads
	o.IntraPeriod, o.NoPictures = b.o.intraPeriod, true
	f := yuv.Format{W: b.w, H: b.h, TimeBase: yuv.Rational{Num: 1, Den: 25}, FrameRate: yuv.Rational{Num: 25, Den: 1}}
	enc, err := codec.NewEncoder(out, f, o)
	if err != nil {
		return nil, 0, err
	}
	defer enc.Abort()
	w := &watch{o: b.o}
	_, most := enc.InFlight()
	receive := func() error {
		_, err := enc.Receive(ctx)
		return err
	}
	speed, err := w.time(b.total(), most, receive, func(n int) error {
		return enc.Submit(ctx, &yuv.Frame{Planes: *b.show.at(n), PTS: int64(n), Duration: 1})
	})
	if err != nil {
		return nil, 0, err
	}
	if _, err := enc.Close(); err != nil {
		return nil, 0, err
	}
	return out, speed, nil
}

// decode checks every picture's hash, as decoders do.
func (b *bench) decode(ctx context.Context, in *bytes.Buffer) (float64, error) {
	dec, err := codec.NewDecoder(in, codec.DecoderOptions{
		Models:  func([32]byte) (*inference.Model, error) { return b.model, nil },
		Backend: b.backend, InFlight: b.o.inFlight, Threads: b.o.threads,
	})
	if err != nil {
		return 0, err
	}
	defer dec.Close()
	w := &watch{o: b.o}
	for n := range b.total() {
		if _, _, err := dec.Next(ctx); err != nil {
			return 0, fmt.Errorf("frame %d: %w", n, err)
		}
		w.frame()
	}
	return w.median(), nil
}
