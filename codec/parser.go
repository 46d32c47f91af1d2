package codec

import (
	"bytes"
	"encoding/binary"
	"io"
)

// A parser takes a stream apart into frame records. It knows no model and decodes nothing.
//
//	stream  = header { chunk } footer
//	chunk   = 'G' GOP header, records | 'F' records | 'm' metadata | others | 'i' footer
//
// Damage costs the GOP that it lies in: next returns a *CorruptError, and then goes on with the following GOP.
type parser struct {
	w        *window
	header   Header
	metadata []Entry
	metaSize int
	footer   *Footer // once it has been reached

	implied implied
	body    fields // the current frame chunk's records, empty between chunks
	count   int    // records taken from it
	whole   bool   // its CRC has been checked
	chunk   int    // its bytes in the window, dropped once its records are used up

	frames  int64 // of the stream so far, lost ones included as far as known
	gop     gopState
	lost    bool  // the next chunk's place is unknown: search for a GOP
	damaged bool  // something was left out, so the footer's count proves nothing
	held    error // met by preamble, for next to return once
	end     error // from now on, next returns this
}

// gopState says what a frame chunk would continue.
type gopState uint8

const (
	noGOP   gopState = iota // nothing: a GOP must begin
	inGOP                   // the current GOP
	skipGOP                 // a damaged GOP: it is passed over
)

func newParser(r io.Reader) (*parser, error) {
	p := &parser{w: &window{r: r}}
	h, err := readHeader(p.w)
	if err != nil {
		return nil, err
	}
	p.header, p.implied = h, newImplied(&h)
	return p, nil
}

// first is the offset of the stream's first chunk.
func (p *parser) first() int64 { return int64(p.header.size) }

// preamble reads up to the first frame, so that the metadata before it is known. Errors wait for next.
func (p *parser) preamble() {
	for p.body.left() == 0 && p.held == nil && p.end == nil {
		p.held = p.nextChunk()
	}
}

// next returns the next frame's record and what FrameInfo says of it; the payload is valid until the next call. Errors:
// io.EOF behind a whole stream, *CorruptError once for each damage, ErrTruncated, ErrUnsupported, the reader's own.
func (p *parser) next() (record, FrameInfo, error) {
	if err := p.held; err != nil {
		p.held = nil
		return record{}, FrameInfo{}, err
	}
	for {
		if p.body.left() > 0 {
			r, info, err := p.record()
			if err != errCut {
				return r, info, err
			}
		}
		if p.end != nil {
			return record{}, FrameInfo{}, p.end
		}
		if err := p.nextChunk(); err != nil {
			return record{}, FrameInfo{}, err
		}
	}
}

// errCut: the record runs beyond the end of a cut stream.
var errCut = io.ErrUnexpectedEOF

func (p *parser) record() (record, FrameInfo, error) {
	info := FrameInfo{
		Number: p.implied.gop.frame + p.implied.k, K: p.implied.k,
		Offset: p.body.offset + int64(p.body.pos), Whole: p.whole,
	}
	at := p.body.pos
	r := p.implied.parse(&p.body)
	p.count++
	switch left := p.body.left(); {
	case p.body.err != nil:
	case !p.whole:
	case r.last && left > 0:
		p.body.fail(p.body.pos, "record_flags", "%d bytes after the chunk's last frame", left)
	case !r.last && left == 0:
		p.body.fail(at, "record_flags", "the chunk ends here, but this is not its last frame")
	}
	if p.count > maxChunkFrames {
		p.body.fail(at, "record_flags", "more than %d frames in a chunk", maxChunkFrames)
	}
	if info.Number >= maxFrames {
		p.body.fail(at, "frame_number", "more than 2^48 frames")
	}
	if err := p.body.err; err != nil {
		cut := p.body.short && !p.whole
		p.body = fields{}
		if cut {
			return record{}, info, errCut
		}
		p.skip()
		return record{}, info, err
	}
	info.Type, info.QP, info.Threshold, info.Lanes = r.typ, r.qp, r.threshold, r.lanes
	info.PTS, info.Bytes, info.PayloadBytes = r.pts, p.body.pos-at, len(r.payload)
	p.frames = info.Number + 1
	return r, info, nil
}

// skip gives the current GOP up: next goes on with the one after it.
func (p *parser) skip() {
	p.body = fields{}
	p.gop = skipGOP
	p.damaged = true
}

// nextChunk brings the next chunk into memory and, when it holds frames, its records into body.
func (p *parser) nextChunk() error {
	p.w.discard(p.chunk)
	p.chunk = 0
	if p.lost {
		if err := p.search(); err != nil {
			p.end = err
			return err
		}
		p.lost = false
	}
	offset := p.w.offset
	b, err := p.w.peek(chunkHeaderMax)
	if err != nil && err != io.EOF {
		return p.ended(err, "a chunk")
	}
	if p.footer != nil {
		return p.afterFooter(len(b))
	}
	if len(b) == 0 {
		return p.ended(err, "the footer")
	}
	h, bad := parseChunkHeader(b, offset)
	if bad == io.ErrUnexpectedEOF {
		return p.ended(err, "the rest of a chunk's header")
	}
	if bad != nil {
		p.skip()
		p.lost = true
		return bad
	}
	b, err = p.w.peek(h.total())
	if err != nil {
		p.ended(err, "the rest of a chunk of type "+quoteType(h.typ))
		return p.cut(h, b)
	}
	p.chunk = h.total()
	if h.typ == chunkFrames && p.gop == skipGOP {
		return nil
	}
	sum := chunkSum(h.typ, int(p.implied.k), b[:h.size+h.len])
	if want := binary.LittleEndian.Uint32(b[h.size+h.len:]); sum != want {
		p.badSum(h.typ)
		return corrupt(offset+int64(h.size+h.len), "chunk_crc", "chunk of type %s: bytes give %08x, stream says %08x",
			quoteType(h.typ), sum, want)
	}
	return p.take(h, offset, b[h.size:h.size+h.len])
}

// take reads a whole chunk's payload.
func (p *parser) take(h chunkHeader, offset int64, payload []byte) error {
	f := fields{b: payload, offset: offset + int64(h.size)}
	switch h.typ {
	case chunkGOP, chunkFrames:
		return p.open(h.typ, f, true)
	case chunkMetadata:
		if p.metaSize += len(payload); p.metaSize > maxMetadata {
			return corrupt(offset, "metadata", "more than %d bytes in the stream", maxMetadata)
		}
		p.metadata = append(p.metadata, parseMetadata(&f)...)
		return f.err
	case chunkFooter:
		p.footer = parseFooter(&f, offset, h.total(), p.first())
		if f.err == nil && !p.damaged && p.footer.Frames != p.frames {
			return corrupt(f.offset, "frame_count", "%d, stream has %d frames", p.footer.Frames, p.frames)
		}
		return f.err
	}
	if critical(h.typ) {
		p.end = unsupported("critical chunk of type %s at byte %d", quoteType(h.typ), offset)
		return p.end
	}
	return nil
}

// open makes a frame chunk's payload the current body; a 'G' chunk's GOP header is read first.
func (p *parser) open(typ byte, f fields, whole bool) (missing error) {
	if typ == chunkGOP {
		g := parseGOPHeader(&f)
		if f.err == nil && g.frame < p.frames {
			f.fail(len(gopSync), "frame_number", "GOP begins with frame %d, which is past", g.frame)
		}
		if f.err != nil {
			if whole || !f.short {
				p.skip()
				return f.err
			}
			return nil
		}
		p.implied.start(g)
		p.gop = inGOP
		if g.frame > p.frames && !p.damaged { // the GOP itself is fine
			p.damaged = true
			missing = corrupt(f.offset+int64(len(gopSync)), "frame_number", "frames %d to %d are missing", p.frames, g.frame-1)
		}
	} else if p.gop == noGOP {
		p.skip()
		return corrupt(f.offset, "chunk_type", "frames before the first GOP")
	}
	if whole && f.left() == 0 {
		f.fail(f.pos, "record_flags", "chunk without a frame")
		p.skip()
		return f.err
	}
	p.body, p.count, p.whole = f, 0, whole
	return missing
}

// cut opens what is there of a frame chunk that the end of the stream cut, for the whole records in it.
func (p *parser) cut(h chunkHeader, b []byte) error {
	p.chunk = len(b)
	if h.typ != chunkGOP && (h.typ != chunkFrames || p.gop != inGOP) || len(b) <= h.size {
		return nil
	}
	b = b[h.size:min(len(b), h.size+h.len)]
	return p.open(h.typ, fields{b: b, offset: p.w.offset + int64(h.size)}, false)
}

// badSum decides what a chunk with a wrong CRC costs.
func (p *parser) badSum(typ byte) {
	switch typ {
	case chunkGOP, chunkFrames:
		p.skip()
	case chunkFooter:
		p.footer = &Footer{Frames: p.frames}
	}
	p.damaged = true
}

// afterFooter checks that nothing follows a footer.
func (p *parser) afterFooter(left int) error {
	p.end = io.EOF
	if left > 0 {
		return corrupt(p.w.offset, "chunk_type", "bytes after the footer")
	}
	return io.EOF
}

// ended makes the end of input the answer from now on.
func (p *parser) ended(err error, missing string) error {
	p.end = p.w.ended(err, missing)
	return p.end
}

// search moves to the next chunk that begins a GOP: its sync word, behind a chunk header that its check confirms. At
// the end of input it looks for a footer there, which shows that no GOP is missing behind the damage.
func (p *parser) search() error {
	const keep = 64 << 10 // bytes kept for footerAtEnd
	p.w.discard(min(1, p.w.buffered()))
	for pos := 0; ; {
		b, err := p.w.peek(pos + windowStep)
		for {
			i := bytes.Index(b[pos:], gopSync)
			if i < 0 {
				break
			}
			pos += i
			for size := 3; size <= min(chunkHeaderMax, pos); size++ {
				h, bad := parseChunkHeader(b[pos-size:pos], p.w.offset)
				if bad == nil && h.typ == chunkGOP && h.size == size {
					p.w.discard(pos - size)
					return nil
				}
			}
			pos++
		}
		if err == io.EOF {
			if p.footer = footerAtEnd(b, p.w.offset, p.first()); p.footer != nil {
				return io.EOF
			}
		}
		if err != nil {
			return p.w.ended(err, "a footer, behind damage,")
		}
		if pos = max(pos, len(b)-len(gopSync)+1); pos > keep {
			p.w.discard(pos - keep)
			pos = keep
		}
	}
}

func quoteType(typ byte) string {
	const hex = "0123456789abcdef"
	if typ > ' ' && typ < 0x7f {
		return "'" + string(typ) + "'"
	}
	return "0x" + string([]byte{hex[typ>>4], hex[typ&15]})
}
