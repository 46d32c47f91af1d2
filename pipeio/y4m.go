package pipeio

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/nvcodec/nvcodec/yuv"
)

const (
	y4mMagic   = "YUV4MPEG2"
	y4mMaxLine = 4096 // of a header; real ones have fewer than 200 bytes
)

// newY4MSource reads the header at once and the pictures as they are asked for.
func newY4MSource(ctx context.Context, name string, in io.Reader, o OpenOptions) (*planarSource, error) {
	s := &planarSource{name: name, in: in, r: bufio.NewReaderSize(in, 1<<16), y4m: true}
	err := func() error {
		var h y4mHeader
		if err := interruptible(ctx, func() error {
			line, err := readLine(s.r)
			if err != nil {
				return fmt.Errorf("header: %w", err)
			}
			h, err = parseY4MHeader(line)
			s.offset = int64(len(line)) + 1
			return err
		}); err != nil {
			if ctx.Err() != nil {
				return err
			}
			return fileError(name, err)
		}
		s.lay = h.layout
		s.format = h.format
		s.interl, s.topFst = h.interlaced, h.topFirst
		if h.format.FrameRate.Num == 0 {
			rate := yuv.Rational{Num: 25, Den: 1}
			if o.InputFPS.Num != 0 {
				rate = o.InputFPS
			}
			s.format.FrameRate = rate
			s.notes = append(s.notes, Note{"frame_rate", fmt.Sprintf("no frame rate in the header: taken as %d/%d", rate.Num, rate.Den), false})
		}
		s.format.TimeBase = yuv.Rational{Num: s.format.FrameRate.Den, Den: s.format.FrameRate.Num}
		return s.start(ctx, o)
	}()
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// readLine reads up to a line feed, which it leaves out, within y4mMaxLine bytes.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		c, err := r.ReadByte()
		if err != nil {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return line, err
		}
		if c == '\n' {
			return line, nil
		}
		if line = append(line, c); len(line) > y4mMaxLine {
			return line, fmt.Errorf("line is longer than %d bytes", y4mMaxLine)
		}
		if n := len(line); n <= len(y4mMagic) && !bytes.HasPrefix([]byte(y4mMagic), line) && !bytes.HasPrefix([]byte("FRAME"), line[:min(n, 5)]) {
			return line, errors.New("not a y4m stream: it does not start with " + y4mMagic)
		}
	}
}

// y4mFrameLine reads the line before a picture and returns its length. io.EOF: no more pictures.
func y4mFrameLine(r *bufio.Reader) (int, error) {
	if _, err := r.Peek(1); err != nil {
		return 0, err // io.EOF between pictures is the clean end
	}
	line, err := readLine(r)
	n := len(line) + 1
	if err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return len(line), err
		}
		return n, fmt.Errorf("FRAME line: %.20q", line)
	}
	if p, ok := bytes.CutPrefix(line, []byte("FRAME")); !ok || len(p) > 0 && p[0] != ' ' {
		return n, fmt.Errorf("FRAME line: %.20q", line)
	}
	return n, nil
}

type y4mHeader struct {
	layout     layout
	format     yuv.Format // without a time base; FrameRate 0/1 when unknown
	interlaced bool
	topFirst   bool
}

// parseY4MHeader reads a header line. Each field may stand once; unknown fields are errors, unknown X fields are not.
func parseY4MHeader(line []byte) (h y4mHeader, err error) {
	magic, rest, _ := strings.Cut(string(line), " ")
	if magic != y4mMagic {
		return h, errors.New("not a y4m stream: it does not start with " + y4mMagic)
	}
	h.format.Colour = yuv.Colour{Primaries: 2, Transfer: 2, Matrix: 2}
	h.format.SAR = yuv.Rational{Num: 0, Den: 1}
	h.format.FrameRate = yuv.Rational{Num: 0, Den: 1}
	fields := map[byte]string{'C': "420"}
	seen := map[byte]bool{}
	for field := range strings.SplitSeq(rest, " ") {
		if field == "" {
			continue // some writers leave two spaces, or one before the line feed
		}
		k, v := field[0], field[1:]
		if k == 'X' {
			switch v {
			case "COLORRANGE=LIMITED":
				h.format.Colour.Range = 1
			case "COLORRANGE=FULL":
				h.format.Colour.Range = 2
			}
			continue
		}
		if !strings.ContainsRune("WHFIAC", rune(k)) {
			return h, fmt.Errorf("field %q is unknown", field)
		}
		if seen[k] {
			return h, fmt.Errorf("field %c stands twice", k)
		}
		seen[k], fields[k] = true, v
	}
	if h.layout, h.format.Colour.ChromaLoc, err = y4mLayout(fields['C']); err != nil {
		return h, err
	}
	for k, p := range map[byte]*int{'W': &h.layout.w, 'H': &h.layout.h} {
		if *p, err = strconv.Atoi(fields[k]); err != nil {
			return h, fmt.Errorf("field %c: %q is not a number", k, fields[k])
		}
	}
	if err := checkSize(h.layout.w, h.layout.h); err != nil {
		return h, fmt.Errorf("fields W and H: %w", err)
	}
	if v, ok := fields['F']; ok {
		if h.format.FrameRate, err = parseRatio(v); err != nil {
			return h, fmt.Errorf("field F: %w", err)
		}
	}
	if v, ok := fields['A']; ok {
		if h.format.SAR, err = parseRatio(v); err != nil {
			return h, fmt.Errorf("field A: %w", err)
		}
	}
	switch v := fields['I']; v {
	case "", "p", "?":
	case "t", "b", "m":
		h.interlaced, h.topFirst = true, v != "b"
	default:
		return h, fmt.Errorf("field I: %q is none of p, t, b, m, ?", v)
	}
	return h, nil
}

// parseRatio reads "N:D"; 0 in either place means unknown and gives 0/1.
func parseRatio(text string) (yuv.Rational, error) {
	a, b, ok := strings.Cut(text, ":")
	n, e1 := strconv.ParseInt(a, 10, 32)
	d, e2 := strconv.ParseInt(b, 10, 32)
	if !ok || e1 != nil || e2 != nil || n < 0 || d < 0 {
		return yuv.Rational{}, fmt.Errorf("%q is not NUMBER:NUMBER", text)
	}
	if n == 0 || d == 0 {
		return yuv.Rational{Num: 0, Den: 1}, nil
	}
	return yuv.Rational{Num: n, Den: d}, nil
}

// y4mLayout reads the colour space field. Plain 420 is taken as 420jpeg, as mjpegtools and FFmpeg do.
func y4mLayout(c string) (l layout, location uint8, err error) {
	l.depth = 8
	base := c
	switch c {
	case "420", "420jpeg":
		l.hs, l.vs = 1, 1
		return l, 2, nil
	case "420mpeg2":
		l.hs, l.vs = 1, 1
		return l, 1, nil
	case "420paldv":
		l.hs, l.vs = 1, 1
		return l, 3, nil
	case "444alpha":
		l.alpha = true
		return l, 0, nil
	case "411":
		l.hs = 2
		return l, 1, nil
	}
	if rest, ok := strings.CutPrefix(c, "mono"); ok && rest != "" {
		base = "mono"
		l.depth, err = strconv.Atoi(rest)
	} else if before, after, ok := strings.Cut(c, "p"); ok {
		base = before
		l.depth, err = strconv.Atoi(after)
	}
	deep := base != c
	if err != nil || deep && (l.depth < 9 || l.depth > 16) {
		return l, 0, fmt.Errorf("field C: colour space %q is unknown", c)
	}
	switch base {
	case "420":
		l.hs, l.vs, location = 1, 1, 1
	case "422":
		l.hs, location = 1, 1
	case "444":
	case "mono":
		l.mono = true
	default:
		return l, 0, fmt.Errorf("field C: colour space %q is unknown", c)
	}
	return l, location, nil
}
