package pipeio

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"
)

func TestStatedSize(t *testing.T) {
	be := func(v uint32) string { return string(binary.BigEndian.AppendUint32(nil, v)) }
	be64 := func(v uint64) string { return string(binary.BigEndian.AppendUint64(nil, v)) }
	le := func(v uint32) string { return string(binary.LittleEndian.AppendUint32(nil, v)) }
	pad := func(n int) string { return strings.Repeat("x", n) }
	ftyp := be(16) + "ftypisom" + pad(4)
	ebml := "\x1A\x45\xDF\xA3\x84" + pad(4)
	for name, c := range map[string]struct {
		data string
		want int64
	}{
		"mp4 whole":          {ftyp + be(20) + "mdat" + pad(12), 36},
		"mp4 cut":            {ftyp + be(20) + "mdat" + pad(3), 36},
		"mp4 64-bit":         {ftyp + be(1) + "mdat" + be64(1<<33) + pad(9), 16 + 1<<33},
		"mp4 to the end":     {ftyp + be(0) + "mdat" + pad(9), 0},
		"mp4 stray bytes":    {ftyp + pad(3), 0},
		"mp4 junk after":     {ftyp + be(99) + "\x00\x01\x02\x03" + pad(9), 0},
		"mp4 tiny box":       {ftyp + be(4) + "free" + pad(9), 0},
		"mp4 huge box":       {ftyp + be(1) + "mdat" + be64(1<<63) + pad(9), 0},
		"mov":                {be(8) + "wide" + be(12) + "mdat" + pad(2), 20},
		"matroska whole":     {ebml + "\x18\x53\x80\x67\x85" + pad(5), 19},
		"matroska cut":       {ebml + "\x18\x53\x80\x67\x01\x00\x00\x00\x00\x00\x10\x00" + pad(5), 21 + 4096},
		"matroska live":      {ebml + "\x18\x53\x80\x67\x01\xFF\xFF\xFF\xFF\xFF\xFF\xFF" + pad(5), 0},
		"matroska live 1":    {ebml + "\x18\x53\x80\x67\xFF" + pad(5), 0},
		"matroska broken":    {ebml + "\x18\x53\x80\x67\x00" + pad(5), 0},
		"matroska no more":   {ebml + "\x18\x53", 0},
		"avi":                {"RIFF" + le(20) + "AVI " + pad(3), 28},
		"avi two, odd":       {"RIFF" + le(5) + "AVI " + pad(2) + "RIFF" + le(30) + "AVIX", 14 + 38},
		"avi never finished": {"RIFF" + le(0) + "AVI " + pad(9), 0},
		"wav":                {"RIFF" + le(99) + "WAVE" + pad(9), 0},
		"nothing":            {"", 0},
		"text":               {"some words here and there", 0},
	} {
		b := []byte(c.data)
		if got := statedSize(bytes.NewReader(b), int64(len(b))); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// Any bytes: an end is reached, nothing overflows.
func FuzzStatedSize(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x10ftypisomxxxx\x00\x00\x00\x01mdat\x0F\xFF\xFF\xFF\xFF\xFF\xFF\xFF"))
	f.Add([]byte("\x1A\x45\xDF\xA3\x84xxxx\x18\x53\x80\x67\x01\x7F\xFF\xFF\xFF\xFF\xFF\xFF"))
	f.Add([]byte("RIFF\xFF\xFF\xFF\xFFAVI "))
	f.Fuzz(func(t *testing.T, b []byte) {
		if n := statedSize(bytes.NewReader(b), int64(len(b))); n < 0 {
			t.Fatal(n)
		}
	})
}
