package codec

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/nvcodec/nvcodec/yuv"
)

// Numbers of varying size are LEB128: seven bits a byte, the lowest first, the top bit set on all but the last byte,
// and the shortest form only. Signed numbers are zigzag coded first: 0, −1, 1, −2 … become 0, 1, 2, 3 ….

func appendVarint(dst []byte, v uint64) []byte { return binary.AppendUvarint(dst, v) }

func appendSigned(dst []byte, v int64) []byte { return binary.AppendVarint(dst, v) }

// fields reads one structure's fields in order. The first failure sticks: what follows reads as zero, and err names
// the field.
type fields struct {
	b      []byte
	pos    int
	offset int64 // of b[0] in the stream
	err    error
	short  bool // the failure is that b ended
}

func (f *fields) left() int { return len(f.b) - f.pos }

func (f *fields) fail(at int, field, format string, args ...any) {
	if f.err == nil {
		f.err = corrupt(f.offset+int64(at), field, format, args...)
	}
}

func (f *fields) end(field string) {
	if f.err == nil {
		f.short = true
		f.err = &CorruptError{Offset: f.offset + int64(len(f.b)), Field: field, Err: io.ErrUnexpectedEOF}
	}
}

func (f *fields) bytes(field string, n int) []byte {
	if f.err != nil {
		return nil
	}
	if f.left() < n {
		f.end(field)
		return nil
	}
	f.pos += n
	return f.b[f.pos-n : f.pos]
}

func (f *fields) u8(field string, most uint8) uint8 {
	b := f.bytes(field, 1)
	if b == nil {
		return 0
	}
	if b[0] > most {
		f.fail(f.pos-1, field, "%d, at most %d is allowed", b[0], most)
		return 0
	}
	return b[0]
}

func (f *fields) u16(field string) uint16 {
	if b := f.bytes(field, 2); b != nil {
		return binary.LittleEndian.Uint16(b)
	}
	return 0
}

func (f *fields) u32(field string) uint32 {
	if b := f.bytes(field, 4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (f *fields) varint(field string, least, most uint64) uint64 {
	if f.err != nil {
		return 0
	}
	at := f.pos
	v, n, err := parseVarint(f.b[at:])
	if err == io.ErrUnexpectedEOF {
		f.end(field)
		return 0
	}
	if err != nil {
		f.fail(at, field, "%v", err)
		return 0
	}
	f.pos += n
	if v < least || v > most {
		f.fail(at, field, "%d, outside %d..%d", v, least, most)
		return 0
	}
	return v
}

func (f *fields) signed(field string) int64 {
	u := f.varint(field, 0, 1<<64-1)
	return int64(u>>1) ^ -int64(u&1)
}

func (f *fields) rational(field string) yuv.Rational {
	num := f.varint(field, 1, maxRational)
	den := f.varint(field, 1, maxRational)
	return yuv.Rational{Num: int64(num), Den: int64(den)}
}

// parseVarint returns the number at the start of b and its size; io.ErrUnexpectedEOF when b ends within it.
func parseVarint(b []byte) (v uint64, n int, err error) {
	for i, c := range b {
		if i == 9 && c > 1 {
			return 0, 0, fmt.Errorf("number of more than 64 bits")
		}
		v |= uint64(c&0x7f) << (7 * i)
		if c < 0x80 {
			if c == 0 && i > 0 {
				return 0, 0, fmt.Errorf("number not in its shortest form")
			}
			return v, i + 1, nil
		}
		if i == 9 {
			return 0, 0, fmt.Errorf("number of more than 64 bits")
		}
	}
	return 0, 0, io.ErrUnexpectedEOF
}
