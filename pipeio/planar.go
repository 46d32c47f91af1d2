package pipeio

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"
	"os"
	"time"

	"github.com/nvcodec/nvcodec/yuv"
)

// A planarSource reads uncompressed pictures that follow each other in a file: raw ones, or y4m's, which have a line
// before each.
type planarSource struct {
	name    string
	in      io.Reader // the file; closed with the source if it is a Closer and not standard input
	r       *bufio.Reader
	format  yuv.Format
	lay     layout
	interl  bool // y4m says that the pictures are interlaced
	topFst  bool
	y4m     bool
	strict  bool
	regular bool // reads do not block

	frames int64 // in the file from the first one given; -1 unknown
	next   int64
	offset int64 // bytes read up to here, for error messages
	raw    []byte
	frame  yuv.Frame
	notes  []Note
	err    error // what every later Next returns
}

// start begins at the picture that is shown at o.Seek, and counts the pictures if the file's size tells.
func (s *planarSource) start(ctx context.Context, o OpenOptions) error {
	s.format.W, s.format.H = s.lay.w, s.lay.h
	s.format.Colour.ChromaLoc = s.lay.location(s.format.Colour.ChromaLoc)
	s.notes = append(s.notes, s.lay.notes()...)
	s.strict = o.Strict
	s.frames = -1
	if s.regular = isRegular(s.in); s.regular {
		if st, err := s.in.(*os.File).Stat(); err == nil {
			per := int64(s.lay.size())
			if s.y4m {
				per += int64(len("FRAME\n")) // parameters on the line are rare; then the count is a little high
			}
			left := max(0, st.Size()-s.offset)
			if s.frames = left / per; s.frames == 0 && left > 0 {
				return fmt.Errorf("%s: %d bytes of pictures, one of %dx%d has %d", s.name, left, s.lay.w, s.lay.h, s.lay.size())
			}
		}
	}
	skip := framesBefore(o.Seek, s.format.FrameRate)
	if skip == 0 {
		return nil
	}
	if s.frames >= 0 {
		s.frames = max(0, s.frames-skip)
	}
	for range skip {
		if err := s.read(ctx); err != nil {
			if errors.Is(err, io.EOF) {
				return fmt.Errorf("%s: seek %v is past the end", s.name, o.Seek)
			}
			return err
		}
	}
	return nil
}

// framesBefore counts the pictures that are shown before t at a constant rate, saturating.
func framesBefore(t time.Duration, rate yuv.Rational) int64 {
	hi, lo := bits.Mul64(uint64(t), uint64(rate.Num))
	den := uint64(rate.Den)
	if dh, dl := bits.Mul64(den, uint64(time.Second)); dh == 0 {
		den = dl
	} else {
		return 0
	}
	if hi >= den {
		return math.MaxInt64
	}
	q, r := bits.Div64(hi, lo, den)
	if r > 0 {
		q++
	}
	return int64(min(q, math.MaxInt64))
}

func (s *planarSource) Format() yuv.Format  { return s.format }
func (s *planarSource) Frames() int64       { return s.frames }
func (s *planarSource) Conversions() []Note { return append([]Note(nil), s.notes...) }

func (s *planarSource) Next(ctx context.Context) (*yuv.Frame, error) {
	if s.err == nil {
		s.err = s.read(ctx)
	}
	if s.err != nil {
		return nil, s.err
	}
	if !s.lay.plain() {
		s.lay.convert(&s.frame.Planes, s.raw)
	}
	s.frame.PTS = s.next
	s.next++
	return &s.frame, nil
}

// allocate makes the buffers, when there is a picture to read: a header alone costs nothing, whatever it says.
func (s *planarSource) allocate() {
	s.raw = make([]byte, s.lay.size())
	s.frame.Duration = 1
	if !s.lay.plain() {
		s.frame.Planes = *yuv.New(s.lay.w, s.lay.h)
		return
	}
	// the planes are raw's parts, so that one read fills them
	cw, ch := s.lay.chroma()
	n, c := s.lay.w*s.lay.h, cw*ch
	s.frame.Planes = yuv.Planes{W: s.lay.w, H: s.lay.h, Y: s.raw[:n:n], U: s.raw[n : n+c : n+c], V: s.raw[n+c:], StrideY: s.lay.w, StrideC: cw}
}

// read fills raw. A file that ends inside a picture ends before it, with a note.
func (s *planarSource) read(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	wait := ctx
	if s.regular {
		wait = context.Background()
	}
	err := interruptible(wait, func() error {
		if s.y4m {
			n, err := y4mFrameLine(s.r)
			s.offset += int64(n)
			if err != nil {
				return err
			}
		}
		if s.raw == nil {
			if _, err := s.r.Peek(1); err == nil {
				s.allocate()
			}
		}
		n, err := io.ReadFull(s.r, s.raw)
		if s.raw == nil {
			err = io.EOF
		}
		s.offset += int64(n)
		if err == io.EOF && s.y4m {
			err = io.ErrUnexpectedEOF // the line was there
		}
		return err
	})
	switch {
	case err == nil || err == io.EOF:
		return err
	case errors.Is(err, io.ErrUnexpectedEOF):
		n := Note{"truncated", fmt.Sprintf("the file ends inside picture %d, which is left out", s.next), true}
		s.notes = append(s.notes, n)
		if s.strict {
			return &LossError{File: s.name, Note: n}
		}
		return io.EOF
	case ctx.Err() != nil:
		return err
	}
	return fmt.Errorf("%s: picture %d at byte %d: %w", s.name, s.next, s.offset, err)
}

func (s *planarSource) Close() error {
	s.err = errClosed
	if c, ok := s.in.(io.Closer); ok && s.in != os.Stdin {
		s.in = nil
		return c.Close()
	}
	return nil
}

var errClosed = errors.New("pipeio: already closed")

// newRawSource reads .yuv: 8-bit 4:2:0 pictures and nothing else.
func newRawSource(ctx context.Context, name string, in io.Reader, o OpenOptions) (*planarSource, error) {
	s := &planarSource{name: name, in: in, r: bufio.NewReaderSize(in, 1<<16)}
	err := func() error {
		if o.InputRes == "" {
			return fmt.Errorf("%s: raw video has no header: give its size (--input-res WxH) and rate (--input-fps)", name)
		}
		w, h, err := parseRes(o.InputRes)
		if err != nil {
			return fmt.Errorf("%s: input-res: %w", name, err)
		}
		if o.InputFPS.Num == 0 {
			return fmt.Errorf("%s: raw video has no header: give its rate (--input-fps)", name)
		}
		s.lay = layout{w: w, h: h, depth: 8, hs: 1, vs: 1}
		s.format.FrameRate = o.InputFPS
		s.format.TimeBase = yuv.Rational{Num: o.InputFPS.Den, Den: o.InputFPS.Num}
		s.format.SAR = yuv.Rational{Num: 0, Den: 1}
		s.format.Colour = yuv.Colour{Primaries: 2, Transfer: 2, Matrix: 2}
		return s.start(ctx, o)
	}()
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// parseRes reads "WxH".
func parseRes(text string) (w, h int, err error) {
	var rest string
	if n, _ := fmt.Sscanf(text, "%dx%d%s", &w, &h, &rest); n != 2 {
		return 0, 0, fmt.Errorf("%q is not WIDTHxHEIGHT", text)
	}
	return w, h, checkSize(w, h)
}
