package codec

import (
	"fmt"
	"io"
)

// A writer puts a stream together from frame records: the counterpart of parser.
type writer struct {
	w         io.Writer
	offset    int64 // bytes written
	err       error // the first failure; it sticks
	framesMax int   // frames a chunk holds at most

	implied implied
	typ     byte   // of the chunk being filled
	body    []byte // its payload
	frames  int    // in it
	firstK  int64  // of its first frame
	last    struct {
		start, payload int // of the latest record
		hash           uint32
	}
	entries []Entry // metadata for the next chunk boundary

	count  int64 // frames of the stream
	gops   int64
	stride int64 // every stride-th GOP is indexed
	index  []GOPEntry
}

func newWriter(w io.Writer, h *Header, lowDelay bool) *writer {
	out := &writer{w: w, implied: newImplied(h), framesMax: maxChunkFrames, stride: 1}
	if lowDelay {
		out.framesMax = 1
	}
	out.write(appendHeader(nil, h))
	return out
}

func (w *writer) write(b []byte) {
	if w.err != nil {
		return
	}
	n, err := w.w.Write(b)
	w.offset += int64(n)
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	if err != nil {
		w.err = fmt.Errorf("codec: writing the stream: %w", err)
	}
}

// startGOP ends the chunk at hand; the next record is the intra frame of a new GOP.
func (w *writer) startGOP(g gopHeader) {
	w.flush()
	w.implied.start(g)
	w.body = g.append(w.body[:0])
	w.typ = chunkGOP
}

// add takes the next frame's record, hash being that of its whole picture, and returns the record's size.
func (w *writer) add(r record, hash uint32) (int, error) {
	if len(r.payload) > maxChunk-1024 {
		return 0, fmt.Errorf("codec: frame %d has a payload of %d bytes, a chunk holds %d", w.count, len(r.payload), maxChunk)
	}
	if w.frames > 0 && len(w.body)+len(r.payload) > maxChunk-1024 {
		w.flush()
	}
	if w.frames == 0 {
		w.firstK = w.implied.k
	}
	start := len(w.body)
	body, err := w.implied.append(w.body, &r)
	if err != nil {
		return 0, fmt.Errorf("codec: frame %d: %w", w.count, err)
	}
	w.body = body
	w.frames++
	w.count++
	w.last.start, w.last.payload, w.last.hash = start, len(r.payload), hash
	size := len(body) - start
	if w.frames == w.framesMax {
		w.flush()
		size += 2 // hash_high
	}
	return size, w.err
}

// metadata keeps an entry for the next chunk boundary.
func (w *writer) metadata(e Entry) { w.entries = append(w.entries, e) }

// flush writes the chunk at hand and, before it, the metadata that waits.
func (w *writer) flush() {
	if len(w.entries) > 0 {
		var b []byte
		for _, e := range w.entries {
			b = appendEntry(b, e)
		}
		w.write(appendChunk(nil, chunkMetadata, 0, b))
		w.entries = w.entries[:0]
	}
	if w.frames == 0 {
		return
	}
	if w.typ == chunkGOP {
		w.indexGOP()
	}
	w.body = markLast(w.body, w.last.start, w.last.payload, uint16(w.last.hash>>16))
	w.write(appendChunk(nil, w.typ, int(w.firstK), w.body))
	w.typ, w.body, w.frames = chunkFrames, w.body[:0], 0
}

func (w *writer) indexGOP() {
	if w.gops%w.stride == 0 {
		if len(w.index) == maxIndex {
			for i := range maxIndex / 2 {
				w.index[i] = w.index[2*i]
			}
			w.index = w.index[:maxIndex/2]
			w.stride *= 2
		}
		if w.gops%w.stride == 0 {
			g := w.implied.gop
			w.index = append(w.index, GOPEntry{Offset: w.offset, Frame: g.frame, PTS: g.pts})
		}
	}
	w.gops++
}

// finish writes the footer.
func (w *writer) finish(duration int64) error {
	w.flush()
	w.write(appendFooter(nil, &Footer{Frames: w.count, Duration: duration, GOPs: w.index}))
	return w.err
}
