package pipeio

import (
	"encoding/binary"
	"io"
	"math/bits"
)

// statedSize is the number of bytes that a file's own structure says it has: of MP4's outer boxes, Matroska's
// segment, AVI's RIFF chunks. It is 0 if the structure says nothing. A file shorter than that was cut; FFmpeg reads
// such files to the cut without an error.
func statedSize(r io.ReaderAt, size int64) int64 {
	var h [12]byte
	if n, _ := r.ReadAt(h[:], 0); n < len(h) {
		return 0
	}
	switch {
	case string(h[4:8]) == "ftyp" || string(h[4:8]) == "moov" || string(h[4:8]) == "mdat" || string(h[4:8]) == "wide" || string(h[4:8]) == "free" || string(h[4:8]) == "skip":
		return boxesSize(r, size)
	case binary.BigEndian.Uint32(h[:]) == 0x1A45DFA3:
		return ebmlSize(r)
	case string(h[:4]) == "RIFF" && string(h[8:12]) == "AVI ":
		return riffSize(r, size)
	}
	return 0
}

// boxesSize adds up the outer boxes of an MP4 or MOV file. A size of 0 means "to the end of the file".
func boxesSize(r io.ReaderAt, size int64) int64 {
	var at int64
	for n := 0; at < size && n < 1<<16; n++ {
		var h [16]byte
		if n, _ := r.ReadAt(h[:], at); n < 8 {
			return 0 // a few stray bytes at the end are not a box
		}
		length := uint64(binary.BigEndian.Uint32(h[:]))
		for _, c := range h[4:8] {
			if c < ' ' || c > 0x7E && c != 0xA9 {
				return 0 // not a box: junk after the last one
			}
		}
		if length == 1 {
			length = binary.BigEndian.Uint64(h[8:])
		}
		if length == 0 || length > 1<<60 {
			return 0
		}
		if length < 8 {
			return 0
		}
		at += int64(length)
	}
	return at
}

// ebmlSize reads the EBML header's size and the segment's, which follows it.
func ebmlSize(r io.ReaderAt) int64 {
	at := int64(4)
	header, n, ok := ebmlLength(r, at)
	if !ok {
		return 0
	}
	at += n + header
	var id [4]byte
	if _, err := r.ReadAt(id[:], at); err != nil || binary.BigEndian.Uint32(id[:]) != 0x18538067 {
		return 0
	}
	at += 4
	segment, n, ok := ebmlLength(r, at)
	if !ok {
		return 0
	}
	return at + n + segment
}

// ebmlLength reads a length of variable size; ok is false for "unknown", which has all bits set.
func ebmlLength(r io.ReaderAt, at int64) (length, size int64, ok bool) {
	var b [8]byte
	n, _ := r.ReadAt(b[:], at)
	if n == 0 || b[0] == 0 {
		return 0, 0, false
	}
	size = int64(bits.LeadingZeros8(b[0])) + 1
	if int64(n) < size {
		return 0, 0, false
	}
	v := binary.BigEndian.Uint64(b[:]) >> (64 - 8*size) & (1<<(7*size) - 1)
	if v == 1<<(7*size)-1 || v > 1<<55 {
		return 0, 0, false
	}
	return int64(v), size, true
}

// riffSize adds up the RIFF chunks; long AVI files have several.
func riffSize(r io.ReaderAt, size int64) int64 {
	var at int64
	for at < size {
		var h [8]byte
		if n, _ := r.ReadAt(h[:], at); n < 8 || string(h[:4]) != "RIFF" {
			return at
		}
		length := int64(binary.LittleEndian.Uint32(h[4:]))
		if length == 0 {
			return 0 // never filled in
		}
		at += 8 + length + length&1
	}
	return at
}
