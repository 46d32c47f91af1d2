package codec

import (
	"encoding/binary"
)

// maxIndex bounds the GOPs that a footer lists; of a longer stream an encoder lists every second, fourth ….
const maxIndex = 1 << 16

// footerTail is what stands at the end of a footer chunk: footer_len and the chunk's CRC.
const footerTail = 4 + chunkCRC

// A GOPEntry says where a GOP begins.
type GOPEntry struct {
	Offset int64 // of its 'G' chunk in the stream
	Frame  int64 // number of its intra frame
	PTS    int64 // of its intra frame
}

// A Footer closes a whole stream.
type Footer struct {
	Frames   int64
	Duration int64 // in ticks, from the first frame's time to the end of the last
	GOPs     []GOPEntry
}

// appendFooter writes the footer chunk, which has its own size in its last bytes so that it is found from the end of a
// file.
func appendFooter(dst []byte, ft *Footer) []byte {
	p := appendVarint(nil, uint64(ft.Frames))
	p = appendVarint(p, uint64(ft.Duration))
	p = appendVarint(p, uint64(len(ft.GOPs)))
	var before GOPEntry
	for _, g := range ft.GOPs {
		p = appendVarint(p, uint64(g.Offset-before.Offset))
		p = appendVarint(p, uint64(g.Frame-before.Frame))
		p = appendSigned(p, g.PTS-before.PTS)
		before = g
	}
	total := len(appendChunkHeader(nil, chunkFooter, len(p)+4)) + len(p) + footerTail
	p = binary.LittleEndian.AppendUint32(p, uint32(total))
	return appendChunk(dst, chunkFooter, 0, p)
}

// parseFooter reads a footer's payload; chunk and total are the chunk's own place and size, first the offset of the
// stream's first chunk.
func parseFooter(f *fields, chunk int64, total int, first int64) *Footer {
	ft := &Footer{
		Frames:   int64(f.varint("frame_count", 0, maxFrames)),
		Duration: int64(f.varint("duration", 0, 2*maxPTS)),
	}
	const least = 3 // bytes an entry
	n := f.varint("index_count", 0, min(maxIndex, uint64(max(f.left()-4, 0)/least)))
	ft.GOPs = make([]GOPEntry, 0, n)
	var g GOPEntry
	for i := uint64(0); i < n && f.err == nil; i++ {
		at := f.pos
		offset, frame := f.varint("gop_offset", 1, 1<<62), f.varint("gop_frame", 0, maxFrames)
		pts := addTimes(g.PTS, f.signed("gop_pts"))
		g = GOPEntry{g.Offset + int64(offset), g.Frame + int64(frame), pts}
		switch {
		case f.err != nil:
		case g.Offset < first || g.Offset >= chunk:
			f.fail(at, "gop_offset", "%d, outside the stream's chunks", g.Offset)
		case g.Frame >= ft.Frames || (i == 0) != (g.Frame == 0) || i > 0 && frame == 0:
			f.fail(at, "gop_frame", "entry %d begins with frame %d of %d", i, g.Frame, ft.Frames)
		case g.PTS <= -maxPTS || g.PTS >= maxPTS:
			f.fail(at, "gop_pts", "%d, outside ±2^60", g.PTS)
		}
		ft.GOPs = append(ft.GOPs, g)
	}
	if size := f.u32("footer_len"); f.err == nil && size != uint32(total) {
		f.fail(f.pos-4, "footer_len", "%d, chunk has %d bytes", size, total)
	}
	if f.left() > 0 {
		f.fail(f.pos, "footer_len", "%d bytes after the last field", f.left())
	}
	return ft
}

// footerAtEnd finds a whole footer chunk that ends where b ends; offset is b's place in the stream, first the place of
// the stream's first chunk. It returns nil when there is none.
func footerAtEnd(b []byte, offset, first int64) *Footer {
	n := footerSize(b)
	if n == 0 || n > len(b) {
		return nil
	}
	b, offset = b[len(b)-n:], offset+int64(len(b)-n)
	h, err := parseChunkHeader(b, offset)
	if err != nil || h.typ != chunkFooter || h.total() != n {
		return nil
	}
	if chunkSum(h.typ, 0, b[:n-chunkCRC]) != binary.LittleEndian.Uint32(b[n-chunkCRC:]) {
		return nil
	}
	f := &fields{b: b[h.size : n-chunkCRC], offset: offset + int64(h.size)}
	ft := parseFooter(f, offset, n, first)
	if f.err != nil {
		return nil
	}
	return ft
}

// footerSize reads footer_len from the end of b, 0 when it cannot be one.
func footerSize(b []byte) int {
	if len(b) < footerTail {
		return 0
	}
	n := binary.LittleEndian.Uint32(b[len(b)-footerTail:])
	if n > maxChunk+chunkHeaderMax+chunkCRC {
		return 0
	}
	return int(n)
}
