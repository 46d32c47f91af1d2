package codec

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/nvcodec/nvcodec/yuv"
)

// testStream writes a stream of the given GOP lengths whose payloads are arbitrary bytes. It returns where each frame
// chunk begins, with the GOP that it belongs to.
type testChunk struct {
	offset, end int64
	gop         int
}

func testStream(t testing.TB, h Header, lowDelay bool, gops ...int) (stream []byte, records []record, chunks []testChunk) {
	t.Helper()
	rnd := rand.New(rand.NewPCG(uint64(len(gops)), 5))
	var out bytes.Buffer
	w := newWriter(&out, &h, lowDelay)
	at := int64(0)
	grown := func(gop int) {
		if w.offset > at {
			chunks = append(chunks, testChunk{at, w.offset, gop})
			at = w.offset
		}
	}
	grown(-1)
	w.metadata(Entry{"conversion", "10 bits to 8"})
	pts := int64(0)
	for g, n := range gops {
		w.startGOP(gopHeader{frame: int64(len(records)), pts: pts, qpI: 40, qpP: 42, threshold: 10})
		grown(g - 1)
		for k := range n {
			typ := Inter
			switch {
			case k == 0:
				typ = Intra
			case k%8 == 1:
				typ = Reset
			}
			r := w.implied.record(typ)
			if rnd.IntN(4) == 0 {
				r.qp = rnd.IntN(64)
			}
			if rnd.IntN(4) == 0 && k > 0 {
				r.pts += rnd.Int64N(1000)
			}
			if rnd.IntN(4) == 0 {
				r.threshold = rnd.IntN(65)
			}
			if rnd.IntN(4) == 0 {
				r.lanes = 1 << rnd.IntN(11)
			}
			r.payload = make([]byte, rnd.IntN(20))
			for i := range r.payload {
				r.payload[i] = byte(rnd.Uint32())
			}
			hash := rnd.Uint32()
			if _, err := w.add(r, hash); err != nil {
				t.Fatal(err)
			}
			records = append(records, r)
			grown(g)
			pts = r.pts + 1
		}
	}
	w.flush()
	grown(len(gops) - 1)
	if err := w.finish(pts); err != nil {
		t.Fatal(err)
	}
	grown(-1)
	return out.Bytes(), records, chunks
}

// parseAll reads a stream to its end and returns its records and every error but io.EOF.
func parseAll(r io.Reader) (records []record, numbers []int64, errs []error) {
	p, err := newParser(r)
	if err != nil {
		return nil, nil, []error{err}
	}
	for len(errs) < 1000 {
		r, info, err := p.next()
		if err == io.EOF {
			break
		}
		if err != nil {
			errs = append(errs, err)
			var bad *CorruptError
			if !errors.As(err, &bad) {
				break
			}
			continue
		}
		r.payload = bytes.Clone(r.payload)
		records, numbers = append(records, r), append(numbers, info.Number)
	}
	return records, numbers, errs
}

func sameRecord(a, b record) bool {
	return a.typ == b.typ && a.qp == b.qp && a.pts == b.pts && a.threshold == b.threshold && a.lanes == b.lanes &&
		bytes.Equal(a.payload, b.payload)
}

// A slowReader gives one byte a call.
type slowReader struct{ r io.Reader }

func (s slowReader) Read(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	return s.r.Read(b[:1])
}

func TestStreamRoundTrip(t *testing.T) {
	for _, gops := range [][]int{nil, {1}, {2}, {32}, {33}, {96, 1, 65}, {1, 1, 1, 1}} {
		for _, lowDelay := range []bool{false, true} {
			t.Run(fmt.Sprintf("%v/%v", gops, lowDelay), func(t *testing.T) {
				stream, want, _ := testStream(t, plainHeader(), lowDelay, gops...)
				got, numbers, errs := parseAll(slowReader{bytes.NewReader(stream)})
				if len(errs) > 0 || len(got) != len(want) {
					t.Fatalf("%d of %d frames, %v", len(got), len(want), errs)
				}
				for i := range got {
					if !sameRecord(got[i], want[i]) || numbers[i] != int64(i) {
						t.Errorf("frame %d (%d): got %+v, want %+v", i, numbers[i], got[i], want[i])
					}
				}
				info, err := Scan(bytes.NewReader(stream), int64(len(stream)))
				if err != nil || !info.Complete || info.Frames != int64(len(want)) || info.GOPs != int64(len(gops)) {
					t.Errorf("scan: %+v, %v", info, err)
				}
				brief, err := Peek(bytes.NewReader(stream), int64(len(stream)))
				if err != nil || !brief.Complete || brief.Frames != info.Frames || !reflect.DeepEqual(brief.Footer, info.Footer) {
					t.Errorf("peek: %+v, %v, want %+v", brief, err, info)
				}
				if v, ok := brief.Setting("conversion"); !ok || v != "10 bits to 8" {
					t.Errorf("metadata: %v", brief.Metadata)
				}
				for i, g := range info.Footer.GOPs {
					b := stream[g.Offset:]
					if b[0] != chunkGOP || want[g.Frame].typ != Intra || want[g.Frame].pts != g.PTS {
						t.Errorf("index entry %d %+v does not name a GOP", i, g)
					}
				}
			})
		}
	}
}

// What an ordinary frame costs beside its payload.
func TestOverhead(t *testing.T) {
	h := plainHeader()
	var out bytes.Buffer
	w := newWriter(&out, &h, false)
	const frames, payload = 96, 40
	w.startGOP(gopHeader{qpI: 42, qpP: 42, threshold: 10})
	header := w.offset
	for k := range int64(frames) {
		typ := Inter
		switch k {
		case 0:
			typ = Intra
		case 1, 33, 65:
			typ = Reset
		}
		r := w.implied.record(typ)
		r.payload = make([]byte, payload)
		size, err := w.add(r, 0)
		if err != nil || k%32 != 31 && size != payload+2 {
			t.Fatalf("frame %d: a record of %d bytes, %v", k, size, err)
		}
	}
	w.finish(frames)
	perFrame := float64(w.offset-header)/frames - payload
	if perFrame > 2.7 {
		t.Errorf("%.2f bytes a frame beside the payload", perFrame)
	}
	t.Logf("header %d bytes, %.2f bytes a frame beside the payload, footer included", header, perFrame)
}

// Cut anywhere, a stream gives every whole frame before the cut and then ErrTruncated.
func TestCutAnywhere(t *testing.T) {
	for _, lowDelay := range []bool{false, true} {
		stream, want, _ := testStream(t, plainHeader(), lowDelay, 34, 3)
		ends := make([]int, len(want)) // where each frame's record ends
		p, _ := newParser(bytes.NewReader(stream))
		for i := range ends {
			_, info, err := p.next()
			if err != nil {
				t.Fatal(err)
			}
			ends[i] = int(info.Offset) + info.Bytes
		}
		for cut := range stream {
			whole := 0
			for whole < len(ends) && ends[whole] <= cut {
				whole++
			}
			got, _, errs := parseAll(bytes.NewReader(stream[:cut]))
			if len(errs) != 1 || !errors.Is(errs[0], ErrTruncated) || len(got) != whole {
				t.Fatalf("cut at %d: %d frames, want %d, %v", cut, len(got), whole, errs)
			}
			for i := range got {
				if !sameRecord(got[i], want[i]) {
					t.Fatalf("cut at %d: frame %d: got %+v, want %+v", cut, i, got[i], want[i])
				}
			}
		}
	}
}

// One wrong byte costs the GOP that it lies in and nothing else.
func TestFlipAnywhere(t *testing.T) {
	stream, want, chunks := testStream(t, plainHeader(), false, 3, 35, 2, 4)
	gopOf := make([]int, 0, len(want))
	for g, n := range []int{3, 35, 2, 4} {
		for range n {
			gopOf = append(gopOf, g)
		}
	}
	footer := chunks[len(chunks)-1].offset
	step := 5
	if testing.Short() {
		step = 63
	}
	for _, c := range chunks {
		for at := c.offset; at < c.end; at++ {
			for x := 1; x < 256; x += step {
				bad := bytes.Clone(stream)
				bad[at] ^= byte(x)
				got, numbers, errs := parseAll(bytes.NewReader(bad))
				if at < chunks[0].end { // the header
					var corrupt *CorruptError
					if len(errs) != 1 || !errors.As(errs[0], &corrupt) && !(at == 4 && errors.Is(errs[0], ErrUnsupported)) &&
						!(at == 5 && errors.Is(errs[0], ErrTruncated)) {
						t.Fatalf("byte %d ^ %02x: %v", at, x, errs)
					}
					continue
				}
				var corrupt *CorruptError
				footerGone := at >= footer && len(errs) == 2 && errors.Is(errs[1], ErrTruncated)
				if len(errs) != 1 && !footerGone || !errors.As(errs[0], &corrupt) {
					t.Fatalf("byte %d ^ %02x, GOP %d: %v", at, x, c.gop, errs)
				}
				seen := map[int64]bool{}
				for i, n := range numbers {
					if seen[n] = true; !sameRecord(got[i], want[n]) {
						t.Fatalf("byte %d ^ %02x: frame %d is %+v, want %+v", at, x, n, got[i], want[n])
					}
				}
				for n := range want {
					if !seen[int64(n)] && gopOf[n] != c.gop {
						t.Fatalf("byte %d ^ %02x, GOP %d: frame %d of GOP %d is lost, %v", at, x, c.gop, n, gopOf[n], errs)
					}
				}
			}
		}
	}
}

// splice returns stream with extra put in at an offset, the footer's index not adjusted.
func splice(stream []byte, at int64, extra ...byte) []byte {
	b := append(bytes.Clone(stream[:at]), extra...)
	return append(b, stream[at:]...)
}

func TestOddStreams(t *testing.T) {
	h := plainHeader()
	stream, want, chunks := testStream(t, h, false, 40, 3) // chunks: header, m, G, F, G, footer
	middle := chunks[3].offset
	footer := chunks[len(chunks)-1]
	gopPayload := func(change func(*gopHeader)) []byte {
		g := gopHeader{qpI: 1, qpP: 2, threshold: 3}
		change(&g)
		return append(g.append(nil), 0x40, 0, 0, 0)
	}
	only := func(typ byte, payload []byte) []byte {
		return appendChunk(appendHeader(nil, &h), typ, 0, payload)
	}
	// oneFrame is a stream of one GOP with the given records.
	oneFrame := func(records ...byte) []byte {
		g := gopHeader{qpI: 1, qpP: 2, threshold: 3}
		return only(chunkGOP, append(g.append(nil), records...))
	}
	type outcome struct {
		frames int
		errs   []string // field of each CorruptError, "truncated", "unsupported"
	}
	for _, c := range []struct {
		name   string
		stream []byte
		want   outcome
	}{
		{"unknown chunk to skip", splice(stream, middle, appendChunk(nil, 'q', 0, make([]byte, 1000))...), outcome{len(want), nil}},
		{"side stream", splice(stream, middle, appendChunk(nil, chunkSide, 0, []byte("sound"))...), outcome{len(want), nil}},
		{"unknown critical chunk", splice(stream, middle, appendChunk(nil, 'Q', 0, nil)...), outcome{32, []string{"unsupported"}}},
		{"skipped chunk with a wrong sum", splice(stream, middle, append(appendChunk(nil, 'q', 0, []byte("a"))[:7], 9)...),
			outcome{len(want), []string{"chunk_crc"}}},
		{"garbage between chunks", splice(stream, middle, []byte("garbage")...), outcome{35, []string{"chunk_check"}}},
		{"garbage behind", append(bytes.Clone(stream), 1), outcome{len(want), []string{"chunk_type"}}},
		{"two streams", append(bytes.Clone(stream), stream...), outcome{len(want), []string{"chunk_type"}}},
		{"no footer", stream[:footer.offset], outcome{len(want), []string{"truncated"}}},
		{"frames chunk lost", append(bytes.Clone(stream[:middle]), stream[chunks[4].offset:]...), outcome{35, []string{"frame_number", "gop_offset"}}},
		{"GOP lost", append(bytes.Clone(stream[:chunks[4].offset]), stream[footer.offset:]...), outcome{40, []string{"gop_offset"}}},
		{"GOP twice", splice(stream, chunks[4].offset, stream[chunks[4].offset:footer.offset]...), outcome{len(want), []string{"frame_number"}}},
		{"frames before a GOP", splice(stream[:chunks[0].end], chunks[0].end, stream[middle:]...), outcome{3, []string{"chunk_crc", "gop_offset"}}},
		{"frames chunk without GOP", only(chunkFrames, []byte{0x42, 0}), outcome{0, []string{"chunk_type", "truncated"}}},
		{"length beyond the limit", append(appendHeader(nil, &h), appendChunkHeader(nil, 'F', maxChunk+1)...), outcome{0, []string{"chunk_len", "truncated"}}},
		{"length not shortest", append(appendHeader(nil, &h), 'F', 0x80, 0x00, crc8([]byte{'F', 0x80, 0})), outcome{0, []string{"chunk_len", "truncated"}}},
		{"chunk without frames", only(chunkGOP, (&gopHeader{}).append(nil)), outcome{0, []string{"record_flags", "truncated"}}},
		{"GOP sync", only(chunkGOP, append([]byte("GOPS"), gopPayload(func(*gopHeader) {})[4:]...)), outcome{0, []string{"sync", "truncated"}}},
		{"GOP frame number", only(chunkGOP, gopPayload(func(g *gopHeader) { g.frame = 5 })), outcome{1, []string{"frame_number", "truncated"}}},
		{"GOP frame number limit", only(chunkGOP, gopPayload(func(g *gopHeader) { g.frame = maxFrames + 1 })), outcome{0, []string{"frame_number", "truncated"}}},
		{"GOP pts", only(chunkGOP, gopPayload(func(g *gopHeader) { g.pts = maxPTS })), outcome{0, []string{"pts", "truncated"}}},
		{"GOP qp_i", only(chunkGOP, gopPayload(func(g *gopHeader) { g.qpI = 64 })), outcome{0, []string{"qp_i", "truncated"}}},
		{"GOP qp_p", only(chunkGOP, gopPayload(func(g *gopHeader) { g.qpP = 64 })), outcome{0, []string{"qp_p", "truncated"}}},
		{"GOP threshold", only(chunkGOP, gopPayload(func(g *gopHeader) { g.threshold = 65 })), outcome{0, []string{"threshold", "truncated"}}},
		{"GOP header short", only(chunkGOP, gopPayload(func(*gopHeader) {})[:7]), outcome{0, []string{"qp_p", "truncated"}}},
		{"empty payload", oneFrame(0x40, 0, 0, 0), outcome{1, []string{"truncated"}}},
		{"reserved flag", oneFrame(0xc0, 0, 0, 0), outcome{0, []string{"record_flags", "truncated"}}},
		{"reserved type", oneFrame(0x43, 0, 0, 0), outcome{0, []string{"record_flags", "truncated"}}},
		{"GOP begins inter", oneFrame(0x41, 0, 0, 0), outcome{0, []string{"record_flags", "truncated"}}},
		{"intra twice", oneFrame(0x00, 0, 0x40, 0, 0, 0), outcome{1, []string{"record_flags", "truncated"}}},
		{"no memory", oneFrame(0x00, 0, 0x41, 0, 0, 0), outcome{1, []string{"record_flags", "truncated"}}},
		{"last frame not marked", oneFrame(0x00, 0), outcome{0, []string{"record_flags", "truncated"}}},
		{"bytes after the last", oneFrame(0x40, 0, 0, 0, 2, 0), outcome{0, []string{"record_flags", "truncated"}}},
		{"payload too long", oneFrame(0x40, 9, 0, 0, 1), outcome{0, []string{"payload", "truncated"}}},
		{"pts on intra", oneFrame(0x48, 0, 1, 0, 0), outcome{0, []string{"record_flags", "truncated"}}},
		{"qp", oneFrame(0x44, 0, 64, 0, 0), outcome{0, []string{"qp", "truncated"}}},
		{"threshold", oneFrame(0x50, 0, 65, 0, 0), outcome{0, []string{"threshold", "truncated"}}},
		{"lanes", oneFrame(0x60, 0, 11, 0, 0), outcome{0, []string{"lanes_log2", "truncated"}}},
		{"hash missing", oneFrame(0x40, 0, 0), outcome{0, []string{"hash_high", "truncated"}}},
		{"pts overflow", oneFrame(append([]byte{0, 0, 0x4a, 0}, appendSigned(nil, -1<<63)...)...), outcome{1, []string{"hash_high", "truncated"}}},
		{"pts out of bounds", oneFrame(append(appendSigned([]byte{0, 0, 0x4a, 0}, 1<<63-1), 0, 0)...), outcome{1, []string{"pts_delta", "truncated"}}},
		{"33 frames", oneFrame(append(append([]byte{0, 0, 2, 0}, bytes.Repeat([]byte{1, 0}, 30)...), 0x41, 0, 0, 0)...), outcome{32, []string{"record_flags", "truncated"}}},
		{"metadata cut", only(chunkMetadata, []byte{3, 'a'}), outcome{0, []string{"key", "truncated"}}},
		{"metadata key", only(chunkMetadata, []byte{0, 0}), outcome{0, []string{"key_len", "truncated"}}},
		{"metadata text", only(chunkMetadata, []byte{1, 0xff, 0}), outcome{0, []string{"key", "truncated"}}},
		{"metadata size", only(chunkMetadata, make([]byte, maxMetadata+1)), outcome{0, []string{"metadata", "truncated"}}},
		{"footer count", only(chunkFooter, []byte{1, 0, 0, 14, 0, 0, 0}), outcome{0, []string{"frame_count"}}},
		{"footer length", only(chunkFooter, []byte{0, 0, 0, 15, 0, 0, 0}), outcome{0, []string{"footer_len"}}},
		{"footer index", only(chunkFooter, []byte{0, 0, 9, 14, 0, 0, 0}), outcome{0, []string{"index_count"}}},
		{"footer longer", only(chunkFooter, []byte{0, 0, 0, 15, 0, 0, 0, 0}), outcome{0, []string{"footer_len"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, _, errs := parseAll(bytes.NewReader(c.stream))
			var names []string
			for _, err := range errs {
				var bad *CorruptError
				switch {
				case errors.As(err, &bad):
					names = append(names, bad.Field)
				case errors.Is(err, ErrTruncated):
					names = append(names, "truncated")
				case errors.Is(err, ErrUnsupported):
					names = append(names, "unsupported")
				default:
					names = append(names, err.Error())
				}
			}
			if len(got) != c.want.frames || !reflect.DeepEqual(names, c.want.errs) {
				t.Errorf("%d frames, %v; want %d, %v", len(got), errs, c.want.frames, c.want.errs)
			}
		})
	}
}

// A length that the stream does not have costs no memory.
func TestLyingLength(t *testing.T) {
	h := plainHeader()
	b := appendChunkHeader(appendHeader(nil, &h), chunkGOP, maxChunk)
	p, err := newParser(bytes.NewReader(append(b, 1, 2, 3)))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := p.next(); !errors.Is(err, ErrTruncated) {
		t.Errorf("got %v", err)
	}
	if cap(p.w.buf) > 1<<20 {
		t.Errorf("%d bytes were taken for a stream of %d", cap(p.w.buf), len(b))
	}
}

func TestReaderFails(t *testing.T) {
	stream, _, _ := testStream(t, plainHeader(), false, 3)
	broken := errors.New("cable pulled")
	for _, n := range []int{0, 3, 30, len(stream) / 2, len(stream) - 1} {
		_, _, errs := parseAll(io.MultiReader(bytes.NewReader(stream[:n]), failing{broken}))
		if len(errs) != 1 || !errors.Is(errs[0], broken) || errors.Is(errs[0], ErrTruncated) {
			t.Errorf("after %d bytes: %v", n, errs)
		}
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestLongIndexIsThinned(t *testing.T) {
	h := plainHeader()
	w := newWriter(io.Discard, &h, false)
	const gops = 3*maxIndex + 5
	for range gops {
		w.startGOP(gopHeader{frame: w.count, pts: w.count})
		r := w.implied.record(Intra)
		if _, err := w.add(r, 0); err != nil {
			t.Fatal(err)
		}
	}
	w.flush()
	if len(w.index) != (gops+3)/4 {
		t.Fatalf("%d entries for %d GOPs", len(w.index), gops)
	}
	for i, g := range w.index {
		if g.Frame != int64(4*i) || g.PTS != g.Frame {
			t.Fatalf("entry %d: %+v", i, g)
		}
	}
}

func TestFooterFromTheEnd(t *testing.T) {
	stream, _, chunks := testStream(t, plainHeader(), false, 3, 2)
	first := chunks[0].end
	if footerAtEnd(stream, 0, first) == nil {
		t.Fatal("footer not found")
	}
	for at := chunks[len(chunks)-1].offset; at < int64(len(stream)); at++ {
		bad := bytes.Clone(stream)
		bad[at] ^= 0x10
		if footerAtEnd(bad, 0, first) != nil {
			t.Errorf("footer taken with byte %d changed", at)
		}
	}
	for n := range stream {
		if footerAtEnd(stream[:n], 0, first) != nil {
			t.Errorf("footer found in the first %d bytes", n)
		}
	}
}

func TestCRC8(t *testing.T) {
	if got := crc8([]byte("123456789")); got != 0xf4 { // the usual check value of this polynomial
		t.Errorf("got %02x", got)
	}
}

// FuzzParser: same bytes, same outcome however they arrive; records account for their bytes; nothing grows beyond them.
func FuzzParser(f *testing.F) {
	for _, lowDelay := range []bool{false, true} {
		stream, _, chunks := testStream(f, plainHeader(), lowDelay, 4, 2)
		f.Add(stream[chunks[0].end:])
		f.Add(stream[chunks[0].end : len(stream)-9])
		f.Add(splice(stream, chunks[1].end, appendChunk(nil, 'q', 0, []byte("abc"))...)[chunks[0].end:])
	}
	h := plainHeader()
	h.TimeBase, h.FrameRate = yuv.Rational{Num: 1, Den: 1000}, yuv.Rational{Num: 30000, Den: 1001}
	head := appendHeader(nil, &h)
	f.Fuzz(func(t *testing.T, body []byte) {
		stream := append(bytes.Clone(head), repair(body)...)
		a, an, aerrs := parseAll(bytes.NewReader(stream))
		b, bn, berrs := parseAll(slowReader{bytes.NewReader(stream)})
		if fmt.Sprint(a, an, aerrs) != fmt.Sprint(b, bn, berrs) {
			t.Fatalf("at once: %v %v\nby bytes: %v %v", a, aerrs, b, berrs)
		}
		sum := 0
		for _, r := range a {
			sum += len(r.payload) + 2
		}
		if sum > len(stream) {
			t.Fatalf("records of %d bytes in a stream of %d", sum, len(stream))
		}
		info, err := Scan(bytes.NewReader(stream), int64(len(stream)))
		if err != nil || info.Frames != int64(len(a)) {
			t.Fatalf("scan: %+v, %v; parsed %d frames", info, err, len(a))
		}
	})
}

// repair gives every chunk in b whose header can be read a right check and CRC, so that a fuzzer gets past them.
func repair(b []byte) []byte {
	b = bytes.Clone(b)
	k := 0 // frames of the GOP so far
	h := plainHeader()
	p := newImplied(&h)
	for rest := b; len(rest) > 2; {
		n, size, err := parseVarint(rest[1:min(len(rest), 5)])
		if err != nil || len(rest) < 2+size || n > uint64(len(rest)) {
			break
		}
		h := chunkHeader{typ: rest[0], len: int(n), size: 2 + size}
		rest[1+size] = crc8(rest[:1+size])
		if h.total() > len(rest) {
			break
		}
		f := &fields{b: rest[h.size : h.size+h.len]}
		if h.typ == chunkGOP {
			k = 0
			p.start(parseGOPHeader(f))
		}
		binary.LittleEndian.PutUint32(rest[h.size+h.len:], chunkSum(h.typ, k, rest[:h.size+h.len]))
		for (h.typ == chunkGOP || h.typ == chunkFrames) && f.left() > 0 {
			if p.parse(f); f.err != nil {
				break
			}
			k++
		}
		rest = rest[h.total():]
	}
	return b
}
