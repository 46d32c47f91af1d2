package codec

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/nvcodec/nvcodec/inference"
	"github.com/nvcodec/nvcodec/yuv"
)

// Limits of the header; FORMAT.md §8 lists all limits.
const (
	maxSide         = 16384
	maxPaddedPixels = 1 << 27
	maxRational     = 1<<31 - 1
	maxHeader       = 255
)

const (
	magic        = "NVC\x1a"
	version      = 1
	profileInt1  = 1
	formatYUV420 = 0
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Header is what a stream says of itself before its first chunk.
type Header struct {
	yuv.Format
	Version int
	Profile string   // arithmetic profile, "nvc-int-1"
	Model   [32]byte // identity of the model that decodes the stream

	// QPShift is the pattern that inter frames take their QP from: frame k after an intra frame has
	// max(0, qp_p − QPShift[(k−1) mod 8]) unless its record says otherwise.
	QPShift [8]uint8

	size int // bytes in the stream
}

// qpPatterns are the QP patterns that a header names by number; any other stands in the header itself.
var qpPatterns = [...][8]uint8{
	{},
	{0, 14, 8, 14, 4, 14, 8, 14},
}

const (
	qpPatternStated = 2
	flagSAR         = 1 << 4
	flagColour      = 1 << 5

	rateUnknown  = 0
	rateTimeBase = 1
	rateStated   = 2
)

var unspecifiedColour = yuv.Colour{Primaries: 2, Transfer: 2, Matrix: 2}

// PaddedSize returns the size that the network works at: the picture's, rounded up to multiples of 64.
func (h *Header) PaddedSize() (w, ht int) {
	s := inference.Padded(h.W, h.H)
	return s.W, s.H
}

// check says what docs/FORMAT.md does not allow in h, naming the field.
func (h *Header) check() (field string, err error) {
	rational := func(r yuv.Rational) error {
		if r.Num < 1 || r.Num > maxRational || r.Den < 1 || r.Den > maxRational {
			return fmt.Errorf("%d/%d, both must lie in 1..%d", r.Num, r.Den, maxRational)
		}
		return nil
	}
	if h.W < 1 || h.W > maxSide {
		return "width", fmt.Errorf("%d, outside 1..%d", h.W, maxSide)
	}
	if h.H < 1 || h.H > maxSide {
		return "height", fmt.Errorf("%d, outside 1..%d", h.H, maxSide)
	}
	if w, ht := h.PaddedSize(); w*ht > maxPaddedPixels {
		return "height", fmt.Errorf("%dx%d is %d samples padded, more than %d", h.W, h.H, w*ht, maxPaddedPixels)
	}
	if err := rational(h.TimeBase); err != nil {
		return "time_base", err
	}
	if h.FrameRate.Num != 0 {
		if err := rational(h.FrameRate); err != nil {
			return "frame_rate", err
		}
	}
	if h.SAR.Num != 0 {
		if err := rational(h.SAR); err != nil {
			return "sample_aspect", err
		}
	}
	if h.Rotation < 0 || h.Rotation > 270 || h.Rotation%90 != 0 {
		return "rotation", fmt.Errorf("%d degrees, want 0, 90, 180 or 270", h.Rotation)
	}
	if h.Colour.Range > 2 {
		return "colour_range", fmt.Errorf("%d, at most 2 is allowed", h.Colour.Range)
	}
	if h.Colour.ChromaLoc > 6 {
		return "chroma_location", fmt.Errorf("%d, at most 6 is allowed", h.Colour.ChromaLoc)
	}
	for _, s := range h.QPShift {
		if s > 63 {
			return "qp_shift", fmt.Errorf("%d, at most 63 is allowed", s)
		}
	}
	return "", nil
}

// appendHeader writes the header; h has passed check.
func appendHeader(dst []byte, h *Header) []byte {
	start := len(dst)
	flags := uint8(h.Rotation / 90)
	switch {
	case h.FrameRate.Num == 0:
		flags |= rateUnknown << 2
	case h.FrameRate.Num == h.TimeBase.Den && h.FrameRate.Den == h.TimeBase.Num:
		flags |= rateTimeBase << 2
	default:
		flags |= rateStated << 2
	}
	if h.SAR.Num != 0 {
		flags |= flagSAR
	}
	colour := h.Colour != unspecifiedColour && h.Colour != yuv.Colour{}
	if colour {
		flags |= flagColour
	}
	pattern := 0
	for pattern < len(qpPatterns) && qpPatterns[pattern] != h.QPShift {
		pattern++
	}
	flags |= uint8(pattern) << 6

	rational := func(r yuv.Rational) {
		dst = appendVarint(dst, uint64(r.Num))
		dst = appendVarint(dst, uint64(r.Den))
	}
	dst = append(dst, magic...)
	dst = append(dst, version, 0 /* header_len, below */, profileInt1)
	dst = append(dst, h.Model[:]...)
	dst = append(dst, formatYUV420, flags)
	dst = appendVarint(dst, uint64(h.W))
	dst = appendVarint(dst, uint64(h.H))
	rational(h.TimeBase)
	if flags>>2&3 == rateStated {
		rational(h.FrameRate)
	}
	if flags&flagSAR != 0 {
		rational(h.SAR)
	}
	if colour {
		c := h.Colour
		dst = append(dst, c.Range|c.ChromaLoc<<2, c.Primaries, c.Transfer, c.Matrix)
	}
	if pattern == qpPatternStated {
		dst = append(dst, h.QPShift[:]...)
	}
	dst[start+5] = uint8(len(dst) - start + 4)
	return binary.LittleEndian.AppendUint32(dst, crc32.Checksum(dst[start:], castagnoli))
}

// readHeader takes the header from the start of a stream.
func readHeader(w *window) (Header, error) {
	b, err := w.peek(6)
	if n := min(len(b), len(magic)); !bytes.Equal(b[:n], []byte(magic)[:n]) {
		return Header{}, corrupt(0, "magic", "% x, not an nvc stream", b[:n])
	}
	if len(b) > 4 && b[4] != version {
		return Header{}, unsupported("version %d, this is version %d", b[4], version)
	}
	if err != nil {
		return Header{}, w.ended(err, "the rest of the header")
	}
	size := int(b[5])
	const least = 6 + 1 + 32 + 1 + 1 + 1 + 1 + 2 + 4
	if size < least {
		return Header{}, corrupt(5, "header_len", "%d, at least %d is needed", size, least)
	}
	if b, err = w.peek(size); err != nil {
		return Header{}, w.ended(err, "the rest of the header")
	}
	if got, want := crc32.Checksum(b[:size-4], castagnoli), binary.LittleEndian.Uint32(b[size-4:]); got != want {
		return Header{}, corrupt(int64(size-4), "header_crc", "bytes give %08x, header says %08x", got, want)
	}
	h, err := parseHeader(b[:size-4])
	h.size = size
	w.discard(size)
	return h, err
}

// parseHeader reads the header's bytes without its CRC, which has been checked.
func parseHeader(b []byte) (Header, error) {
	f := &fields{b: b, pos: 6}
	h := Header{Version: version, Profile: "nvc-int-1"}
	if profile := f.u8("profile", 255); profile != profileInt1 {
		return h, unsupported("arithmetic profile %d, only %d (%s) is known", profile, profileInt1, h.Profile)
	}
	copy(h.Model[:], f.bytes("model_id", 32))
	if format := f.u8("pixel_format", 255); format != formatYUV420 {
		return h, unsupported("pixel format %d, only %d (8-bit 4:2:0) is known", format, formatYUV420)
	}
	flags := f.u8("header_flags", 255)
	h.Rotation = int(flags&3) * 90
	h.W = int(f.varint("width", 1, maxSide))
	h.H = int(f.varint("height", 1, maxSide))
	h.TimeBase = f.rational("time_base")
	h.FrameRate = yuv.Rational{Num: 0, Den: 1}
	switch flags >> 2 & 3 {
	case rateUnknown:
	case rateTimeBase:
		h.FrameRate = yuv.Rational{Num: h.TimeBase.Den, Den: h.TimeBase.Num}
	case rateStated:
		h.FrameRate = f.rational("frame_rate")
	default:
		f.fail(40, "header_flags", "frame rate code 3 is reserved")
	}
	h.SAR = yuv.Rational{Num: 0, Den: 1}
	if flags&flagSAR != 0 {
		h.SAR = f.rational("sample_aspect")
	}
	h.Colour = unspecifiedColour
	if flags&flagColour != 0 {
		c := f.u8("colour_range", 1<<5-1)
		h.Colour = yuv.Colour{Range: c & 3, ChromaLoc: c >> 2}
		h.Colour.Primaries = f.u8("primaries", 255)
		h.Colour.Transfer = f.u8("transfer", 255)
		h.Colour.Matrix = f.u8("matrix", 255)
	}
	switch pattern := int(flags >> 6); {
	case pattern < len(qpPatterns):
		h.QPShift = qpPatterns[pattern]
	case pattern == qpPatternStated:
		copy(h.QPShift[:], f.bytes("qp_shift", 8))
	default:
		f.fail(40, "header_flags", "QP pattern 3 is reserved")
	}
	if f.left() > 0 {
		f.fail(f.pos, "header_len", "%d bytes after the last field", f.left())
	}
	if f.err != nil {
		return h, f.err
	}
	if field, err := h.check(); err != nil {
		return h, &CorruptError{Field: field, Err: err}
	}
	return h, nil
}
