package codec

import (
	"errors"
	"fmt"
	"io"
)

// A window is the part of a stream that is in memory: it grows as bytes arrive, so that a length in the stream
// costs memory only once its bytes are there.
type window struct {
	r      io.Reader
	buf    []byte // buf[start:] has been read and not discarded
	start  int
	kept   int   // buf[kept:start] has been discarded, but rewind may come back to it
	hold   bool  // discard leaves kept where it is
	offset int64 // of buf[start] in the stream
	err    error // from r, once its bytes are used up
}

const windowStep = 64 << 10

// peek returns the next n bytes, or fewer with the reason: io.EOF, or what the reader says. The slice is valid until
// the next call of peek.
func (w *window) peek(n int) ([]byte, error) {
	for idle := 0; len(w.buf)-w.start < n && w.err == nil; {
		if w.kept > 0 && len(w.buf) == cap(w.buf) {
			w.buf = w.buf[:copy(w.buf, w.buf[w.kept:])]
			w.start -= w.kept
			w.kept = 0
		}
		if len(w.buf) == cap(w.buf) {
			b := make([]byte, len(w.buf), max(2*cap(w.buf), windowStep))
			copy(b, w.buf)
			w.buf = b
		}
		got, err := w.r.Read(w.buf[len(w.buf):cap(w.buf)])
		w.buf = w.buf[:len(w.buf)+got]
		if w.err = err; got > 0 {
			idle = 0
		} else if idle++; idle > 100 && err == nil {
			w.err = io.ErrNoProgress
		}
	}
	b := w.buf[w.start:]
	if len(b) >= n {
		return b[:n], nil
	}
	return b, w.err
}

// buffered returns how many bytes are in memory.
func (w *window) buffered() int { return len(w.buf) - w.start }

// discard drops n bytes that peek has returned.
func (w *window) discard(n int) {
	w.start += n
	w.offset += int64(n)
	if !w.hold {
		w.kept = w.start
	}
}

// keep has what is discarded from offset on stay in memory for rewind; what stands before it goes.
func (w *window) keep(offset int64) {
	w.kept = w.start - int(w.offset-offset)
	w.hold = true
}

// rewind goes back to an offset that is kept.
func (w *window) rewind(offset int64) {
	w.start -= int(w.offset - offset)
	w.offset = offset
}

// end is the offset just behind the bytes in memory.
func (w *window) end() int64 { return w.offset + int64(w.buffered()) }

// ended turns peek's reason for too few bytes into an error: truncated at the end of input, else the reader's own.
func (w *window) ended(err error, missing string) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return truncated(w.end(), missing)
	}
	return fmt.Errorf("codec: reading the stream at byte %d: %w", w.end(), err)
}
