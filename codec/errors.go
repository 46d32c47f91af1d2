package codec

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
)

// What can be wrong with a stream, besides a failing reader:
//
//	*CorruptError     bytes that break docs/FORMAT.md; decoding goes on with the next GOP
//	ErrTruncated      the stream ends before its footer; every whole frame before the end has been returned
//	ErrUnsupported    valid, but of another version or with a critical chunk that this package does not know
//	ErrModelMismatch  the model that the stream names is not at hand
//	*HashError        this backend decodes another picture than the encoder had
var (
	ErrTruncated     = errors.New("codec: stream is truncated")
	ErrUnsupported   = errors.New("codec: unsupported stream")
	ErrModelMismatch = errors.New("codec: stream needs another model")
)

// A CorruptError reports bytes that break docs/FORMAT.md.
type CorruptError struct {
	Offset int64  // bytes from the start of the stream
	Field  string // name used in docs/FORMAT.md
	Err    error  // the rule that is broken
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("codec: corrupt at byte %d, %s: %v", e.Offset, e.Field, e.Err)
}

func (e *CorruptError) Unwrap() error { return e.Err }

// A HashError reports a picture that differs from the one its encoder had, although the stream's bytes are whole: one
// of the two backends does not keep to docs/MODEL.md.
type HashError struct {
	Frame   int64  // number of the frame in the stream
	Offset  int64  // of the frame's record
	Bits    int    // how many bits of the hash the stream holds, 16 or 32
	Want    uint32 // the stream's
	Got     uint32 // this decoder's, cut to the same bits
	Backend string // name and kernels, "cpu/avx2"
}

func (e *HashError) Error() string {
	return fmt.Sprintf("codec: frame %d at byte %d: picture hash %0*x on %s, stream says %0*x",
		e.Frame, e.Offset, e.Bits/4, e.Got, e.Backend, e.Bits/4, e.Want)
}

// A ModelError names the model that a stream needs and why it cannot be had. errors.Is finds ErrModelMismatch in it.
type ModelError struct {
	Want [32]byte
	Have [32]byte // the model offered instead; zero when there was none
	Err  error    // why there was none, or nil
}

func (e *ModelError) Error() string {
	want := hex.EncodeToString(e.Want[:])
	switch {
	case e.Err != nil:
		return fmt.Sprintf("codec: stream needs model %s: %v", want, e.Err)
	case e.Have == [32]byte{}:
		return fmt.Sprintf("codec: stream needs model %s, which is not at hand", want)
	}
	return fmt.Sprintf("codec: stream needs model %s, not %s", want, hex.EncodeToString(e.Have[:]))
}

func (e *ModelError) Is(target error) bool { return target == ErrModelMismatch }

func (e *ModelError) Unwrap() error { return e.Err }

func corrupt(offset int64, field, format string, args ...any) error {
	return &CorruptError{Offset: offset, Field: field, Err: fmt.Errorf(format, args...)}
}

func unsupported(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrUnsupported}, args...)...)
}

// truncated says where the bytes ran out, and what was missing there.
func truncated(offset int64, missing string) error {
	return fmt.Errorf("%w at byte %d, where %s is missing: %w", ErrTruncated, offset, missing, io.ErrUnexpectedEOF)
}
