// Package pipeio carries pictures between files and the codec.
//
// A [Source] gives 8-bit 4:2:0 pictures with their times; a [Sink] takes them. [Open] and [Create] choose by name:
// .y4m, .yuv and "-" (y4m on standard input and output) are pure Go, every other name goes through FFmpeg. Under the
// build tag noffmpeg only the pure Go ones exist, and nothing needs cgo.
//
// Inside, a file's way is Demuxer → PacketDecoder → ColorConverter. Each is a [Stage] and works alone;
// [PrefetchStage] put between any two of them moves what is before it to its own goroutine and changes nothing else.
//
// What the codec cannot keep (bit depth, chroma, alpha, sound, ...) is changed or left out and said in a [Note].
package pipeio

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/nvcodec/nvcodec/yuv"
)

// Largest picture that is read or written: what a stream can hold (FORMAT.md: side 16384, 2^27 samples).
const (
	maxSide    = 16384
	maxSamples = 1 << 27
)

var (
	// ErrExists: the output is there already and Overwrite is not set.
	ErrExists = fs.ErrExist
	// ErrSameFile: the output is one of the inputs.
	ErrSameFile = errors.New("output is the input")
	// ErrNoFFmpeg: the name needs FFmpeg and this build has none.
	ErrNoFFmpeg = errors.New("built without FFmpeg: only .y4m, .yuv and - can be read and written")
)

// A Note says what became of something in the input that does not reach the output as it was.
type Note struct {
	Key  string // a short constant: bit_depth, chroma, audio, truncated, ...
	Text string // for people
	Loss bool   // something of the input is lost; an error under Strict
}

// A LossError is what Strict makes of a note.
type LossError struct {
	File string
	Note Note
}

func (e *LossError) Error() string { return e.File + ": strict: " + e.Note.Text }

// A Source gives a video's pictures in the order they are shown. It is not safe for concurrent use.
type Source interface {
	// Format describes the pictures; it holds for all of them.
	Format() yuv.Format
	// Frames is the number of pictures, as far as the container tells or its duration suggests; -1 if unknown. It
	// is for progress, not for allocation.
	Frames() int64
	// Conversions are the notes so far. The list only grows at its end; those on damage and truncation come with the
	// pictures, so it is complete after io.EOF.
	Conversions() []Note
	// Next gives the next picture, which is valid until the following call of Next or Close, or io.EOF. The first picture
	// has time 0, and times only rise. Any other error is final and names the file.
	Next(ctx context.Context) (*yuv.Frame, error)
	Close() error
}

// A Sink takes pictures in the order they are shown, with rising times. It is not safe for concurrent use.
type Sink interface {
	Write(ctx context.Context, f *yuv.Frame) error
	// Conversions are the notes so far, as in Source; complete after Close.
	Conversions() []Note
	// Close finishes the file and gives it its name. After an error nothing is left behind.
	Close() error
	// Abort leaves nothing. After Close it does nothing, so it can be deferred.
	Abort() error
}

// OpenOptions adjust Open; the zero value is the default.
type OpenOptions struct {
	InputRes   string       // "WxH", for raw .yuv
	InputFPS   yuv.Rational // for raw .yuv; elsewhere it stands in for an unknown rate
	Resolution int          // scale the smaller side to this, both sides even; 0 keeps the size
	Seek       time.Duration
	Strict     bool // a note of loss is an error
	Threads    int  // of the decoder; 0: as many as there are processors
	Logger     *slog.Logger

	// Queue lengths behind the demuxer and behind the decoder, which then run in goroutines of their own; 0: none.
	// For one behind the converter see Prefetch. They change the speed only.
	PrefetchPackets, PrefetchPictures int
}

func (o *OpenOptions) logger() *slog.Logger {
	if o.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return o.Logger
}

// Open opens a video for reading. Notes on what the container holds and what its first picture needs are there when
// it returns. ctx is for opening only.
func Open(ctx context.Context, path string, o OpenOptions) (Source, error) {
	if o.Resolution < 0 || o.Resolution > maxSide {
		return nil, fmt.Errorf("%s: resolution %d is not within 0..%d", path, o.Resolution, maxSide)
	}
	if o.Seek < 0 {
		return nil, fmt.Errorf("%s: seek %v is negative", path, o.Seek)
	}
	if o.InputFPS != (yuv.Rational{}) && (o.InputFPS.Num <= 0 || o.InputFPS.Den <= 0) {
		return nil, fmt.Errorf("%s: input rate %d/%d is not positive", path, o.InputFPS.Num, o.InputFPS.Den)
	}
	src, err := open(ctx, path, o)
	if err != nil {
		return nil, err
	}
	if o.Strict {
		if err := firstLoss(path, src.Conversions()); err != nil {
			src.Close()
			return nil, err
		}
	}
	return src, nil
}

func open(ctx context.Context, path string, o OpenOptions) (Source, error) {
	var src *planarSource
	var err error
	switch {
	case path == "-":
		if s, e := os.Stdin.Stat(); e == nil && s.Mode()&os.ModeCharDevice != 0 {
			return nil, errors.New("standard input: want a y4m stream, this is a terminal")
		}
		src, err = newY4MSource(ctx, "standard input", os.Stdin, o)
	case hasExt(path, ".y4m"), hasExt(path, ".yuv"):
		f, e := os.Open(path)
		if e != nil {
			return nil, fileError(path, e)
		}
		if hasExt(path, ".y4m") {
			src, err = newY4MSource(ctx, path, f, o)
		} else {
			src, err = newRawSource(ctx, path, f, o)
		}
	default:
		return openFFmpeg(ctx, path, o)
	}
	if err != nil {
		return nil, err
	}
	return adapt(ctx, src, o)
}

func firstLoss(path string, notes []Note) error {
	for _, n := range notes {
		if n.Loss {
			return &LossError{File: path, Note: n}
		}
	}
	return nil
}

// CreateOptions adjust Create; the zero value is the default.
type CreateOptions struct {
	Encoder        string            // FFmpeg's name; "" is libx264
	EncoderOptions map[string]string // FFmpeg's names; they add to and replace crf=17 and preset=medium of libx264
	Overwrite      bool              // an existing output is replaced (on Close)
	Upright        bool              // turn the pictures where the container has no tag for rotation (.y4m, .yuv)
	Inputs         []string          // the output must be none of these
	Threads        int               // of the encoder; 0: as many as there are processors
	Logger         *slog.Logger
}

// Create opens a video for writing; its name decides the container. The file gets its name on Close; until then a
// temporary one stands beside it. When ctx ends, Close fails too instead of finishing.
func Create(ctx context.Context, path string, f yuv.Format, o CreateOptions) (Sink, error) {
	if err := checkFormat(f); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for _, in := range o.Inputs {
		if SameFile(in, path) {
			return nil, fmt.Errorf("%s: %w", path, ErrSameFile)
		}
	}
	switch {
	case path == "-":
		return newPlanarSink(&output{name: "standard output", w: os.Stdout}, f, true, o)
	case hasExt(path, ".y4m"), hasExt(path, ".yuv"):
		out, err := createOutput(path, o.Overwrite)
		if err != nil {
			return nil, err
		}
		return newPlanarSink(out, f, hasExt(path, ".y4m"), o)
	}
	return createFFmpeg(ctx, path, f, o)
}

// Readable tells whether Open would try a file of this name: for walking folders. The content decides in the end.
func Readable(path string) bool {
	return hasExt(path, ".y4m") || hasExt(path, ".yuv") || ffmpegReads(strings.ToLower(filepath.Ext(path)))
}

func hasExt(path, ext string) bool { return strings.EqualFold(filepath.Ext(path), ext) }

// SameFile tells whether two names mean one file, existing or not.
func SameFile(a, b string) bool {
	if a == "-" || b == "-" {
		return false
	}
	sa, ea := os.Stat(a)
	sb, eb := os.Stat(b)
	if ea == nil && eb == nil {
		return sa.Mode().IsRegular() && os.SameFile(sa, sb)
	}
	if ea == nil || eb == nil {
		return false
	}
	pa, ea := filepath.Abs(a)
	pb, eb := filepath.Abs(b)
	return ea == nil && eb == nil && pa == pb
}

// checkSize refuses sizes that no stream can hold, before anything is allocated for them.
func checkSize(w, h int) error {
	if w < 1 || h < 1 || w > maxSide || h > maxSide || w*h > maxSamples {
		return fmt.Errorf("size %dx%d is not within 1x1..%dx%d and %d samples", w, h, maxSide, maxSide, maxSamples)
	}
	return nil
}

func checkFormat(f yuv.Format) error {
	if err := checkSize(f.W, f.H); err != nil {
		return err
	}
	if f.TimeBase.Num <= 0 || f.TimeBase.Den <= 0 {
		return fmt.Errorf("time base %d/%d is not positive", f.TimeBase.Num, f.TimeBase.Den)
	}
	if f.FrameRate.Num < 0 || f.FrameRate.Den < 0 {
		return fmt.Errorf("frame rate %d/%d is negative", f.FrameRate.Num, f.FrameRate.Den)
	}
	switch f.Rotation {
	case 0, 90, 180, 270:
		return nil
	}
	return fmt.Errorf("rotation %d is none of 0, 90, 180, 270", f.Rotation)
}

// checkFrame refuses a picture that does not fit its format: a mistake of the caller, but of one that reads streams.
func checkFrame(f yuv.Format, p *yuv.Frame) error {
	if p.W != f.W || p.H != f.H {
		return fmt.Errorf("picture of %dx%d in a video of %dx%d", p.W, p.H, f.W, f.H)
	}
	if len(p.Y) < p.StrideY*(p.H-1)+p.W || min(len(p.U), len(p.V)) < p.StrideC*(p.CH()-1)+p.CW() || p.StrideY < p.W || p.StrideC < p.CW() {
		return errors.New("picture's planes are shorter than its size")
	}
	return nil
}

// fileError puts the file's name before an error once.
func fileError(name string, err error) error {
	var pe *os.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	return fmt.Errorf("%s: %w", name, err)
}

// interruptible runs f, which may block in the operating system, and returns early when ctx ends. After an early
// return f still runs and owns whatever it uses.
func interruptible(ctx context.Context, f func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if ctx.Done() == nil {
		return f()
	}
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func isRegular(r io.Reader) bool {
	f, ok := r.(*os.File)
	if !ok {
		return false
	}
	s, err := f.Stat()
	return err == nil && s.Mode().IsRegular()
}
