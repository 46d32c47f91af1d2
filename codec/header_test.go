package codec

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/nvcodec/nvcodec/yuv"
)

func plainHeader() Header {
	h := Header{
		Format: yuv.Format{
			W: 176, H: 144, TimeBase: yuv.Rational{Num: 1, Den: 30}, FrameRate: yuv.Rational{Num: 30, Den: 1},
			SAR: yuv.Rational{Num: 0, Den: 1}, Colour: unspecifiedColour,
		},
		Version: 1, Profile: "nvc-int-1",
		QPShift: [8]uint8{0, 14, 8, 14, 4, 14, 8, 14},
	}
	for i := range h.Model {
		h.Model[i] = byte(i * 7)
	}
	return h
}

func TestHeaderRoundTrip(t *testing.T) {
	for name, change := range map[string]func(*Header){
		"plain":        func(*Header) {},
		"1x1":          func(h *Header) { h.W, h.H = 1, 1 },
		"largest":      func(h *Header) { h.W, h.H = 16384, 8192 },
		"no rate":      func(h *Header) { h.FrameRate = yuv.Rational{Num: 0, Den: 1} },
		"stated rate":  func(h *Header) { h.FrameRate = yuv.Rational{Num: 30000, Den: 1001} },
		"time base":    func(h *Header) { h.TimeBase = yuv.Rational{Num: maxRational, Den: maxRational} },
		"SAR":          func(h *Header) { h.SAR = yuv.Rational{Num: 12, Den: 11} },
		"rotation":     func(h *Header) { h.Rotation = 270 },
		"colour":       func(h *Header) { h.Colour = yuv.Colour{Range: 2, Primaries: 1, Transfer: 13, Matrix: 6, ChromaLoc: 6} },
		"flat pattern": func(h *Header) { h.QPShift = [8]uint8{} },
		"own pattern":  func(h *Header) { h.QPShift = [8]uint8{1, 2, 3, 4, 5, 6, 7, 63} },
		"everything": func(h *Header) {
			h.FrameRate, h.SAR = yuv.Rational{Num: 30000, Den: 1001}, yuv.Rational{Num: 4, Den: 3}
			h.Colour.Range, h.Rotation, h.QPShift[3] = 1, 90, 9
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := plainHeader()
			change(&h)
			b := appendHeader([]byte("before"), &h)[6:]
			got, err := readHeader(&window{r: bytes.NewReader(b)})
			if err != nil {
				t.Fatal(err)
			}
			h.size = len(b)
			if got != h {
				t.Errorf("got  %+v\nwant %+v", got, h)
			}
		})
	}
	h := plainHeader()
	if n := len(appendHeader(nil, &h)); n > 60 {
		t.Errorf("a plain header has %d bytes", n)
	}
}

// sealHeader writes b's length and CRC anew.
func sealHeader(b []byte) []byte {
	b[5] = byte(len(b))
	binary.LittleEndian.PutUint32(b[len(b)-4:], crc32.Checksum(b[:len(b)-4], castagnoli))
	return b
}

func TestHeaderRefused(t *testing.T) {
	for _, c := range []struct {
		name  string
		edit  func(b []byte) []byte
		field string // of the CorruptError; "" for ErrUnsupported, "cut" for ErrTruncated
	}{
		{"empty", func(b []byte) []byte { return nil }, "cut"},
		{"magic", func(b []byte) []byte { b[0] ^= 1; return b }, "magic"},
		{"other file", func([]byte) []byte { return []byte("RIFF....AVI LIST") }, "magic"},
		{"short other file", func([]byte) []byte { return []byte("NVD") }, "magic"},
		{"version", func(b []byte) []byte { b[4] = 2; return b }, ""},
		{"version alone", func(b []byte) []byte { b[4] = 9; return b[:5] }, ""},
		{"header_len", func(b []byte) []byte { b[5] = 20; return b }, "header_len"},
		{"cut", func(b []byte) []byte { return b[:20] }, "cut"},
		{"header_crc", func(b []byte) []byte { b[20] ^= 1; return b }, "header_crc"},
		{"profile", func(b []byte) []byte { b[6] = 2; return sealHeader(b) }, ""},
		{"pixel format", func(b []byte) []byte { b[39] = 1; return sealHeader(b) }, ""},
		{"flags rate", func(b []byte) []byte { b[40] |= 0x0c; return sealHeader(b) }, "header_flags"},
		{"flags pattern", func(b []byte) []byte { b[40] |= 0xc0; return sealHeader(b) }, "header_flags"},
		{"zero width", func(b []byte) []byte { b[41], b[42] = 0, 5; return sealHeader(b) }, "width"},
		{"long zero", func(b []byte) []byte { b[41], b[42] = 0x80, 0; return sealHeader(b) }, "width"},
		{"huge width", func(b []byte) []byte {
			b = append(b[:41], append([]byte{0x81, 0x80, 0x01}, b[43:]...)...)
			return sealHeader(b)
		}, "width"},
		{"too many pixels", func(b []byte) []byte {
			b = append(b[:41], append([]byte{0x80, 0x80, 0x01, 0x80, 0x80, 0x01}, b[45:]...)...)
			return sealHeader(b)
		}, "height"},
		{"no time base", func(b []byte) []byte { b[45] = 0; return sealHeader(b) }, "time_base"},
		{"field missing", func(b []byte) []byte { return sealHeader(append(b[:len(b)-5], 0, 0, 0, 0)) }, "time_base"},
		{"field too many", func(b []byte) []byte { return sealHeader(append(b, 0)) }, "header_len"},
		{"SAR missing", func(b []byte) []byte { b[40] |= flagSAR; return sealHeader(b) }, "sample_aspect"},
		{"colour location", func(b []byte) []byte {
			b[40] |= flagColour
			return sealHeader(append(b[:len(b)-4], 7<<2, 2, 2, 2, 0, 0, 0, 0))
		}, "chroma_location"},
		{"colour range", func(b []byte) []byte {
			b[40] |= flagColour
			return sealHeader(append(b[:len(b)-4], 3, 2, 2, 2, 0, 0, 0, 0))
		}, "colour_range"},
		{"pattern value", func(b []byte) []byte {
			b[40] = b[40]&0x3f | 0x80
			return sealHeader(append(b[:len(b)-4], 0, 0, 64, 0, 0, 0, 0, 0, 0, 0, 0, 0))
		}, "qp_shift"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := plainHeader()
			_, err := readHeader(&window{r: bytes.NewReader(c.edit(appendHeader(nil, &h)))})
			var bad *CorruptError
			switch {
			case c.field == "" && errors.Is(err, ErrUnsupported):
			case c.field == "cut" && errors.Is(err, ErrTruncated):
			case errors.As(err, &bad) && bad.Field == c.field:
			default:
				t.Errorf("got %v, want %q", err, c.field)
			}
		})
	}
}

// Whatever the bytes, a header is refused or written again as the same bytes.
func FuzzHeader(f *testing.F) {
	h := plainHeader()
	f.Add(appendHeader(nil, &h)[6:])
	f.Fuzz(func(t *testing.T, body []byte) {
		if len(body) > 240 || len(body) < 44 {
			return
		}
		b := sealHeader(append([]byte("NVC\x1a\x01\x00"), body...))
		h, err := readHeader(&window{r: bytes.NewReader(b)})
		if err != nil {
			return
		}
		again, err := readHeader(&window{r: bytes.NewReader(appendHeader(nil, &h))})
		again.size = h.size
		if err != nil || again != h {
			t.Errorf("%x: read %+v, written again it reads %+v, %v", b, h, again, err)
		}
	})
}

func TestVarint(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		u := rnd.Uint64() >> rnd.UintN(64)
		b := appendVarint(nil, u)
		if got, n, err := parseVarint(append(b, 0xff)); got != u || n != len(b) || err != nil {
			t.Fatalf("%d: got %d, size %d of %d, %v", u, got, n, len(b), err)
		}
		s := int64(rnd.Uint64()) >> rnd.UintN(64)
		f := &fields{b: appendSigned(nil, s)}
		if got := f.signed("x"); got != s || f.err != nil || f.left() != 0 {
			t.Fatalf("%d: got %d, %v", s, got, f.err)
		}
	}
	for b, want := range map[string]string{
		"":         "EOF",
		"\x80":     "EOF",
		"\x80\x00": "shortest",
		"\xff\x00": "shortest",
		"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02": "64 bits",
		"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x80": "64 bits",
	} {
		if _, _, err := parseVarint([]byte(b)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("% x: got %v, want %s", b, err, want)
		}
	}
}
