//go:build !noffmpeg

package pipeio

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"

	"github.com/nvcodec/nvcodec/internal/av"
	"github.com/nvcodec/nvcodec/yuv"
)

var containers = map[string]string{".mp4": "mp4", ".mov": "mov", ".mkv": "matroska"}

// An ffSink encodes one picture behind its caller, since a picture's duration may be known by the next one's time only.
type ffSink struct {
	ctx    context.Context // of Create
	out    *output
	w      *av.Writer
	format yuv.Format // of the pictures that Write gets
	turn   int
	tmp    yuv.Planes
	cw, ch int // size that is encoded: the format's, turned, and even if the encoder asks for it
	notes  []Note

	held    *av.Frame // the last picture, not encoded yet
	heldPTS int64
	heldDur int64
	step    int64 // the last known duration
	any     bool
	err     error
	done    bool
}

func createFFmpeg(ctx context.Context, path string, f yuv.Format, o CreateOptions) (Sink, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	container, ok := containers[strings.ToLower(filepath.Ext(path))]
	if !ok {
		return nil, fmt.Errorf("%s: output type %q is none of .mp4, .mkv, .mov, .y4m, .yuv", path, filepath.Ext(path))
	}
	for _, r := range []yuv.Rational{f.TimeBase, f.FrameRate, f.SAR} {
		if r.Num > math.MaxInt32 || r.Den > math.MaxInt32 {
			return nil, fmt.Errorf("%s: ratio %d/%d does not fit 32 bits, which is FFmpeg's limit", path, r.Num, r.Den)
		}
	}
	s := &ffSink{ctx: ctx, format: f}
	enc := f
	if f.Rotation != 0 && !av.StoresRotation(container) {
		s.turn = f.Rotation
		enc = uprightFormat(f)
		s.notes = append(s.notes, Note{"rotation", fmt.Sprintf("pictures turned by %d degrees: %s has no tag for it", f.Rotation, filepath.Ext(path)), false})
	}
	var err error
	if s.out, err = createOutput(path, o.Overwrite); err != nil {
		return nil, err
	}
	if err := s.open(container, enc, o); err != nil {
		s.out.abort()
		return nil, fileError(path, err)
	}
	s.cw, s.ch = s.w.Size()
	if s.cw != enc.W || s.ch != enc.H {
		s.notes = append(s.notes, Note{"padded", fmt.Sprintf("pictures padded from %dx%d to %dx%d: the encoder takes even sizes only", enc.W, enc.H, s.cw, s.ch), false})
	}
	return s, nil
}

func (s *ffSink) open(container string, f yuv.Format, o CreateOptions) (err error) {
	w := av.WriterOptions{URL: "file:" + s.out.path, Container: container, Encoder: o.Encoder, Format: f, Full: f.Colour.Range == 2, Threads: o.Threads, Options: map[string]string{}}
	if w.Encoder == "" {
		w.Encoder = "libx264"
	}
	if w.Encoder == "libx264" || w.Encoder == "libx264rgb" {
		w.Options["preset"] = "medium"
		w.Options["crf"] = "17"
		for _, k := range []string{"crf", "qp", "b"} { // another way to control the rate
			if _, ok := o.EncoderOptions[k]; ok {
				delete(w.Options, "crf")
			}
		}
	}
	for k, v := range o.EncoderOptions {
		w.Options[k] = v
	}
	if f.Colour.Matrix == 0 {
		w.Format.Colour.Matrix = 2 // 0 is RGB, and these are not
	}
	if s.w, err = av.OpenWriter(w); err == nil || f.W%2 == 0 && f.H%2 == 0 {
		return err
	}
	w.Format.W, w.Format.H = (f.W+1)/2*2, (f.H+1)/2*2
	if padded, e := av.OpenWriter(w); e == nil {
		s.w = padded
		return nil
	}
	return err
}

func (s *ffSink) Conversions() []Note { return append([]Note(nil), s.notes...) }

func (s *ffSink) Write(ctx context.Context, f *yuv.Frame) error {
	if s.err == nil {
		s.err = s.write(ctx, f)
	}
	return s.err
}

func (s *ffSink) write(ctx context.Context, f *yuv.Frame) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := checkFrame(s.format, f); err != nil {
		return fileError(s.out.name, err)
	}
	if s.held != nil {
		if f.PTS <= s.heldPTS {
			return fmt.Errorf("%s: time %d follows %d", s.out.name, f.PTS, s.heldPTS)
		}
		s.step = f.PTS - s.heldPTS
		if s.heldDur <= 0 || s.heldDur > s.step {
			s.heldDur = s.step
		}
		if err := s.encode(ctx); err != nil {
			return err
		}
	}
	p := &f.Planes
	if s.turn != 0 {
		rotate(&s.tmp, p, s.turn)
		p = &s.tmp
	}
	h := av.NewFrame()
	if err := h.Alloc(s.cw, s.ch, s.w.PixelFormat()); err != nil {
		h.Free()
		return fileError(s.out.name, err)
	}
	if p.W != s.cw || p.H != s.ch {
		p = padded(p, s.cw, s.ch)
	}
	h.FillPlane(p.Y, p.StrideY, 0, p.W, p.H)
	h.FillPlane(p.U, p.StrideC, 1, p.CW(), p.CH())
	h.FillPlane(p.V, p.StrideC, 2, p.CW(), p.CH())
	s.held, s.heldPTS, s.heldDur = h, f.PTS, f.Duration
	return nil
}

// encode sends the picture that is held.
func (s *ffSink) encode(ctx context.Context) error {
	s.w.Tag(s.held, s.heldPTS, s.heldDur)
	err := s.w.Write(ctx, s.held)
	s.held.Free()
	s.held = nil
	s.any = true
	if err != nil && ctx.Err() == nil {
		err = fileError(s.out.name, err)
	}
	return err
}

// padded repeats the last column and row.
func padded(p *yuv.Planes, w, h int) *yuv.Planes {
	q := yuv.New(w, h)
	q.Pad(p)
	return q
}

func (s *ffSink) Close() error {
	if s.done {
		return nil
	}
	err := s.err
	if err == nil {
		err = s.finish()
	}
	if err != nil {
		s.Abort()
		return err
	}
	s.done = true
	s.w.Close()
	return s.out.close()
}

func (s *ffSink) finish() error {
	if s.held != nil {
		if s.heldDur <= 0 {
			s.heldDur = s.nominal()
		}
		if err := s.encode(s.ctx); err != nil {
			return err
		}
	}
	if !s.any {
		return fmt.Errorf("%s: %w", s.out.name, errNoPictures)
	}
	if err := s.w.Finish(s.ctx); err != nil {
		if s.ctx.Err() != nil {
			return err
		}
		return fileError(s.out.name, err)
	}
	return nil
}

var errNoPictures = errors.New("no pictures to write")

// nominal is the duration of a last picture that says none: as the one before it, else by the rate.
func (s *ffSink) nominal() int64 {
	if s.step > 0 {
		return s.step
	}
	if r, tb := s.format.FrameRate, s.format.TimeBase; r.Num > 0 && r.Den > 0 {
		return max(1, int64(float64(r.Den)/float64(r.Num)*float64(tb.Den)/float64(tb.Num)+0.5))
	}
	return 1
}

func (s *ffSink) Abort() error {
	if s.done {
		return nil
	}
	s.done = true
	if s.held != nil {
		s.held.Free()
		s.held = nil
	}
	s.w.Close()
	return s.out.abort()
}
