package pipeio

import (
	"context"
	"fmt"
	"strings"

	"github.com/nvcodec/nvcodec/yuv"
)

// A planarSink writes pictures one after the other, plane by plane without padding, as y4m or raw.
type planarSink struct {
	out    *output
	format yuv.Format
	turn   int // clockwise degrees that each picture is turned
	y4m    bool
	buf    []byte
	tmp    yuv.Planes
	notes  []Note
	n      int64
	last   int64
	err    error
	done   bool
}

// newPlanarSink owns out, also when it fails.
func newPlanarSink(out *output, f yuv.Format, y4m bool, o CreateOptions) (Sink, error) {
	if o.Encoder != "" || len(o.EncoderOptions) > 0 {
		out.abort()
		return nil, fmt.Errorf("%s: uncompressed output takes no encoder and no encoder options", out.name)
	}
	s := &planarSink{out: out, format: f, y4m: y4m}
	if f.Rotation != 0 {
		if o.Upright {
			s.turn = f.Rotation
			s.format = uprightFormat(f)
			s.notes = append(s.notes, Note{"rotation", fmt.Sprintf("pictures turned by %d degrees", f.Rotation), false})
		} else {
			s.notes = append(s.notes, Note{"rotation", fmt.Sprintf("the file has no tag for rotation: turn it by %d degrees for display", f.Rotation), false})
		}
	}
	if y4m {
		s.buf = append(s.buf, y4mHeaderLine(s.format)...)
	}
	return s, nil
}

// y4mHeaderLine is the header of a stream with this format.
func y4mHeaderLine(f yuv.Format) string {
	var b strings.Builder
	rate, sar := f.FrameRate, f.SAR
	if rate.Num <= 0 || rate.Den <= 0 {
		rate = yuv.Rational{}
	}
	if sar.Num <= 0 || sar.Den <= 0 {
		sar = yuv.Rational{}
	}
	// FFmpeg and mjpegtools read Ip and A always, so they are there even when they say nothing
	fmt.Fprintf(&b, "%s W%d H%d F%d:%d Ip A%d:%d C", y4mMagic, f.W, f.H, rate.Num, rate.Den, sar.Num, sar.Den)
	switch f.Colour.ChromaLoc {
	case 1:
		b.WriteString("420mpeg2 XYSCSS=420MPEG2")
	case 3:
		b.WriteString("420paldv XYSCSS=420PALDV")
	default: // unspecified, centre, and those that y4m has no name for
		b.WriteString("420jpeg XYSCSS=420JPEG")
	}
	switch f.Colour.Range {
	case 1:
		b.WriteString(" XCOLORRANGE=LIMITED")
	case 2:
		b.WriteString(" XCOLORRANGE=FULL")
	}
	b.WriteByte('\n')
	return b.String()
}

func (s *planarSink) Conversions() []Note { return append([]Note(nil), s.notes...) }

func (s *planarSink) Write(ctx context.Context, f *yuv.Frame) error {
	if s.err != nil {
		return s.err
	}
	if s.err = ctx.Err(); s.err != nil {
		return s.err
	}
	p := &f.Planes
	if s.turn != 0 {
		if err := checkFrame(turnedFormat(s.format, s.turn), f); err != nil {
			return s.fail(err)
		}
		rotate(&s.tmp, p, s.turn)
		p = &s.tmp
	} else if err := checkFrame(s.format, f); err != nil {
		return s.fail(err)
	}
	s.checkTiming(f)
	if s.y4m {
		s.buf = append(s.buf, "FRAME\n"...)
	}
	s.buf = appendPlanes(s.buf, p)
	buf := s.buf
	if err := interruptible(ctx, func() error { _, err := s.out.w.Write(buf); return err }); err != nil {
		s.buf = nil // an interrupted write may go on with it
		if ctx.Err() != nil {
			s.err = err
			return err
		}
		return s.fail(err)
	}
	s.buf = s.buf[:0]
	s.n++
	return nil
}

// checkTiming notes the first picture that a constant rate does not show at its time (to one and a half ticks, since
// containers round times).
func (s *planarSink) checkTiming(f *yuv.Frame) {
	rate, tb := s.format.FrameRate, s.format.TimeBase
	if s.last >= 0 && s.n > 0 && rate.Num > 0 && rate.Den > 0 {
		want := float64(s.n) * float64(rate.Den) / float64(rate.Num) * float64(tb.Den) / float64(tb.Num)
		if d := want - float64(f.PTS-s.last); d > 1.5 || d < -1.5 {
			s.notes = append(s.notes, Note{"timing", fmt.Sprintf("times of the pictures are not kept: they differ from a constant rate from picture %d on", s.n), true})
			s.last = -1
			return
		}
	}
	if s.n == 0 {
		s.last = max(f.PTS, 0)
	}
}

func (s *planarSink) fail(err error) error {
	s.err = fileError(s.out.name, err)
	return s.err
}

func (s *planarSink) Close() error {
	if s.done {
		return nil
	}
	s.done = true
	if s.err != nil {
		s.out.abort()
		return s.err
	}
	if len(s.buf) > 0 { // a header without pictures
		if _, err := s.out.w.Write(s.buf); err != nil {
			s.out.abort()
			return s.fail(err)
		}
	}
	return s.out.close()
}

func (s *planarSink) Abort() error {
	if s.done {
		return nil
	}
	s.done = true
	return s.out.abort()
}

// appendPlanes appends the rows of Y, U and V without padding.
func appendPlanes(b []byte, p *yuv.Planes) []byte {
	b = appendRows(b, p.Y, p.StrideY, p.W, p.H)
	b = appendRows(b, p.U, p.StrideC, p.CW(), p.CH())
	return appendRows(b, p.V, p.StrideC, p.CW(), p.CH())
}

func appendRows(b, plane []byte, stride, w, h int) []byte {
	if stride == w {
		return append(b, plane[:w*h]...)
	}
	for y := range h {
		b = append(b, plane[y*stride:][:w]...)
	}
	return b
}
