//go:build cuda

package cuda

import (
	"fmt"
	"unsafe"

	"github.com/nvcodec/nvcodec/entropy"
	"github.com/nvcodec/nvcodec/inference"
	"github.com/nvcodec/nvcodec/rans"
)

// What the host does of a frame's coding: the vectors, which stand ahead of the symbols in lane 0, and the payload's
// bytes around what the device has coded or will decode.

// A payloadWriter finishes payloads; its buffers are kept from one to the next.
type payloadWriter struct {
	encoder *entropy.Encoder
	coded   rans.Handover
}

func newPayloadWriter(t *coderTables) *payloadWriter {
	return &payloadWriter{encoder: entropy.NewEncoder(t.host)}
}

// append appends the payload of a result that encodeCalls left, p's vectors in front of it, to dst. Of p it reads the
// vectors alone.
func (w *payloadWriter) append(dst, result []byte, p *entropy.Payload) ([]byte, error) {
	r := structure[encoderResult](result)
	lanes := int(r.Lanes)
	words := wordsIn(result, unsafe.Sizeof(*r), int(r.Words))
	w.coded.States = append(w.coded.States[:0], r.State[:lanes]...)
	w.coded.Words = w.coded.Words[:0]
	for g := 0; g*groupLanes < lanes; g++ {
		end := r.Words
		if (g+1)*groupLanes < lanes {
			end = r.Begin[g+1]
		}
		w.coded.Words = append(w.coded.Words, words[r.Begin[g]:end])
	}
	return w.encoder.AppendBefore(dst, p, &w.coded)
}

// A payloadReader begins payloads; its buffers are kept from one to the next.
type payloadReader struct {
	*entropy.Decoder // Start and Vectors come first
	left             rans.Handover
}

func newPayloadReader(t *coderTables) *payloadReader {
	return &payloadReader{Decoder: entropy.NewDecoder(t.host)}
}

// take gets hold of what is left behind the vectors and returns how many bytes of input stage wants for a frame of
// so many symbols.
func (r *payloadReader) take(symbols int64) int {
	r.Handover(&r.left)
	n := int(unsafe.Sizeof(payloadImage{}))
	for g, words := range r.left.Words {
		n += 2 * r.wanted(g, len(words), symbols)
	}
	return (n + 15) / 16 * 16
}

// wanted is how many of a group's n words its lanes can possibly want; the device is told of the others but not given them.
func (r *payloadReader) wanted(g, n int, symbols int64) int {
	lanes := int64(len(r.left.States))
	most := (symbols/lanes + 2) * min(lanes, groupLanes)
	if g == 0 {
		most += 2 * symbols // escapes
	}
	return int(min(int64(n), most))
}

// stage writes the payload's image to input, which has the bytes that take returned, and sets what f says of it, all
// but its address.
func (r *payloadReader) stage(f *frameParameters, input []byte, symbols int64) {
	head := structure[payloadImage](input)
	copy(head.State[:], r.left.States)
	at := 0
	for g := range maxGroups {
		head.Begin[g], head.Count[g] = uint32(at), 0
		if g >= len(r.left.Words) {
			continue
		}
		words := r.left.Words[g]
		n := r.wanted(g, len(words), symbols)
		copy(wordsIn(input, unsafe.Sizeof(*head)+uintptr(2*at), n), words)
		head.Count[g] = uint32(len(words))
		at += n
	}
	head.Begin[maxGroups] = uint32(at)
	f.Lanes, f.InputBytes = int32(len(r.left.States)), uint32(len(input))
}

// check reads what decodeCalls left: the payload's tail, or what is wrong with it, in entropy.Decoder's words, as it
// would have been found level by level.
func (r *decoderResult) check(sections []codedSection) (tail uint16, err error) {
	levels := 1
	for i := range sections {
		levels = max(levels, sections[i].level+1)
	}
	for l := range levels {
		if err := r.Level[l].err(); err != nil {
			return 0, err
		}
		if key := r.Range[l]; key != 1<<64-1 {
			s := &sections[key>>48]
			return 0, fmt.Errorf("cuda: section %s: symbol %d is %d, want -%d..%d: %w", s.name, uint32(key>>16), int16(key), s.limit, s.limit, inference.ErrSymbol)
		}
	}
	return uint16(r.Tail), r.End.err()
}

func (i *coderIssue) err() error {
	corrupt := func(field, format string, a ...any) error {
		return &rans.CorruptError{Field: field, Cause: fmt.Sprintf(format, a...)}
	}
	switch i.Kind {
	case issueNone:
		return nil
	case issueEndsEarly:
		return corrupt("words", "group %d ends early", i.At)
	case issueNoClass:
		return corrupt("escape", "symbol %d: no class", i.At)
	case issueEscapeRange:
		return corrupt("escape", "symbol %d is %d", i.At, int32(i.Value))
	case issueLeftOver:
		return corrupt("words", "group %d: %d left over", i.At, i.Value)
	case issueLaneEnd:
		return corrupt("states", "lane %d ends at %#x", i.At, i.Value)
	}
	return fmt.Errorf("cuda: the device reports %d", i.Kind)
}
