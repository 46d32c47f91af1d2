package codec

import (
	"encoding/binary"
	"hash/crc32"
	"io"
)

// Chunk types are ASCII letters; a reader that does not know a type with bit 5 clear (upper case) must refuse the
// stream, with bit 5 set (lower case) it skips the chunk.
const (
	chunkGOP      = 'G' // the first frames of a GOP
	chunkFrames   = 'F' // further frames of the same GOP
	chunkMetadata = 'm'
	chunkSide     = 's' // reserved for audio and subtitle packets
	chunkFooter   = 'i'
)

const (
	maxChunk       = 64 << 20 // bytes of a chunk's payload
	chunkHeaderMax = 1 + 4 + 1
	chunkCRC       = 4
)

func critical(typ byte) bool { return typ&0x20 == 0 }

// A chunkHeader is type, payload length (varint) and an 8-bit check of the two. The check tells a damaged length from
// a damaged payload, so that one wrong byte never hides the chunks behind it.
type chunkHeader struct {
	typ  byte
	len  int // of the payload
	size int // of the header itself
}

func (h chunkHeader) total() int { return h.size + h.len + chunkCRC }

func appendChunkHeader(dst []byte, typ byte, length int) []byte {
	start := len(dst)
	dst = append(dst, typ)
	dst = appendVarint(dst, uint64(length))
	return append(dst, crc8(dst[start:]))
}

// parseChunkHeader reads the header at the start of b; io.ErrUnexpectedEOF when b ends in it.
func parseChunkHeader(b []byte, offset int64) (chunkHeader, error) {
	f := &fields{b: b, offset: offset}
	h := chunkHeader{typ: f.u8("chunk_type", 255)}
	h.len = int(f.varint("chunk_len", 0, maxChunk))
	h.size = f.pos + 1
	check := f.u8("chunk_check", 255)
	if f.err == nil && check != crc8(b[:h.size-1]) {
		f.fail(h.size-1, "chunk_check", "bytes give %02x, stream says %02x", crc8(b[:h.size-1]), check)
	}
	switch {
	case f.short && len(b) < chunkHeaderMax:
		return h, io.ErrUnexpectedEOF
	case f.short:
		return h, corrupt(offset+1, "chunk_len", "more than 4 bytes, for at most %d", maxChunk)
	}
	return h, f.err
}

// appendChunk writes a whole chunk. k is the number within its GOP of an 'F' chunk's first frame.
func appendChunk(dst []byte, typ byte, k int, payload []byte) []byte {
	start := len(dst)
	dst = appendChunkHeader(dst, typ, len(payload))
	dst = append(dst, payload...)
	return binary.LittleEndian.AppendUint32(dst, chunkSum(typ, k, dst[start:]))
}

// chunkSum is the CRC-32C of a chunk's header and payload. For an 'F' chunk it starts with k, which the stream does
// not hold: a chunk lost before this one shows here, not as a wrong picture.
func chunkSum(typ byte, k int, b []byte) uint32 {
	sum := uint32(0)
	if typ == chunkFrames {
		sum = crc32.Checksum(binary.LittleEndian.AppendUint32(nil, uint32(k)), castagnoli)
	}
	return crc32.Update(sum, castagnoli, b)
}

// crc8 has the polynomial x^8 + x^2 + x + 1, highest bit first, start value 0.
func crc8(b []byte) uint8 {
	sum := uint8(0)
	for _, c := range b {
		sum ^= c
		for range 8 {
			sum = sum<<1 ^ (sum>>7)*0x07
		}
	}
	return sum
}
