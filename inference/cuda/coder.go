//go:build cuda

package cuda

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"unsafe"

	"github.com/nvcodec/nvcodec/entropy"
	"github.com/nvcodec/nvcodec/inference"
)

// The entropy coder on the device: calls that gather a frame's symbols and code them over lanes, or decode them. What
// is coded as vectors, ahead of the symbols in lane 0, is the host's: see coderhost.go.

// A codedSection is one section of symbols on the device. Symbols and tables begin at multiples of 16 bytes.
type codedSection struct {
	name            string
	symbols, tables pointer
	count           int64
	skip            bool // symbols below the frame's threshold are not coded: y, with the tables 0..63; z has 64..127
	level           int
	limit           int // decoder: the largest symbol that the network takes
}

// coderTables are a model's entropy tables in a device's memory.
type coderTables struct {
	host *entropy.Tables
	base pointer

	table, coding, segments, entries pointer
	segmentsOf, entriesOf            [2]int64 // of y and of z

	shared int64 // bytes of shared memory that a block may have
}

// newCoderTables loads the tables of a model; release gives them back.
func newCoderTables(m machine, model *inference.Model) (*coderTables, error) {
	host, err := entropy.NewTables(model.Ints)
	if err != nil {
		return nil, err
	}
	return loadCoderTables(m, host)
}

func loadCoderTables(m machine, host *entropy.Tables) (*coderTables, error) {
	t := &coderTables{host: host, shared: unaskedShared}
	f := host.Flat()
	half := len(f.Segments) // segments of y
	if at := f.Base[tableHalf]; at < len(f.Segment) {
		half = f.Segment[at]
	}
	t.entriesOf = [2]int64{int64(f.Base[tableHalf]), int64(len(f.Dec) - f.Base[tableHalf])}
	t.segmentsOf = [2]int64{int64(half) + 3, int64(len(f.Segments)-half) + 3}
	var image []byte
	put := func(values ...uint32) {
		for _, v := range values {
			image = append(image, byte(v), byte(v>>8), byte(v>>16), byte(v>>24))
		}
	}
	begin := func() pointer {
		image = append(image, make([]byte, aligned(int64(len(image)))-int64(len(image)))...)
		return pointer(len(image))
	}
	order, first := arranged(f)
	for i := range f.Base {
		put(uint32(f.Shift[i]-3) | uint32(f.K[i])<<8 | uint32(8*first[i])<<15)
	}
	for _, c := range f.Cost {
		put(uint32(c))
	}
	t.coding = begin()
	for _, table := range order {
		for i := f.Base[table]; i < f.Base[table]+sizeOf(f, table); i++ {
			segment := f.Segment[i]
			if table >= tableHalf {
				segment -= half
			}
			put(uint32(f.Reciprocal[i]), uint32(f.Reciprocal[i]>>32)|uint32(f.Shift[table])<<24, f.Freq[i], uint32(4*segment))
		}
	}
	t.segments = begin()
	for _, part := range [][]uint32{f.Segments[:half], f.Segments[half:]} {
		for _, s := range part {
			put(s<<16 | s>>16)
		}
		put(0, 0, 0)
	}
	t.entries = begin()
	for _, table := range order {
		for _, d := range f.Dec[f.Base[table]:][:sizeOf(f, table)] {
			put(uint32(d), uint32(d>>32)<<16|uint32(d>>48))
		}
	}
	var err error
	if t.base, err = loadedImage(m, int64(len(image)), image); err != nil {
		return nil, err
	}
	t.table = t.base
	for _, p := range []*pointer{&t.coding, &t.segments, &t.entries} {
		*p += t.base
	}
	return t, nil
}

// sizeOf is how many entries a table has, a power of two.
func sizeOf(f *entropy.Flat, table int) int { return 1 << (16 - f.Shift[table]) }

// arranged gives the tables of each half an order, larger ones first, and so each a place in its half that is a multiple of
// its size: decoding puts the number of an entry together without an addition.
func arranged(f *entropy.Flat) (order, first []int) {
	order, first = make([]int, len(f.Base)), make([]int, len(f.Base))
	for i := range order {
		order[i] = i
	}
	for half := 0; half < len(order); half += tableHalf {
		tables := order[half:][:tableHalf]
		slices.SortStableFunc(tables, func(a, b int) int { return sizeOf(f, b) - sizeOf(f, a) })
		at := 0
		for _, table := range tables {
			first[table] = at
			at += sizeOf(f, table)
		}
	}
	return order, first
}

func (t *coderTables) release(m machine) error { return m.free(t.base) }

// A symbol that is coded makes one word at most, an escape two more.
const wordsPerSymbol = 3

// sectionWords bounds the words that a section makes by its bits: 16 of a symbol, two for each bit of what an escape's
// value can have, and one for the rounding of each of the three.
func sectionWords(s *codedSection) int64 {
	return (s.count*min(16*wordsPerSymbol, int64(19+2*bits.Len(uint(s.limit)))) + 15) / 16
}

func countSymbols(sections []codedSection) (n, tiles int64) {
	for i := range sections {
		n += sections[i].count
		tiles += sections[i].tiles()
	}
	return n, tiles
}

// tiles is how many blocks of threads a section has.
func (s *codedSection) tiles() int64 { return max(1, (s.count+tileSymbols-1)/tileSymbols) }

// A sectionRun is what one launch has: up to four sections, the first of them number first of all.
type sectionRun struct {
	sections    []codedSection
	first       int
	tile, tiles int64 // those ahead of it in what is cut, and its own
}

// runsOf cuts sections into runs; first is the number of the first of them.
func runsOf(sections []codedSection, first int) []sectionRun {
	var all []sectionRun
	tile := int64(0)
	for len(sections) > 0 {
		r := sectionRun{sections: sections[:min(4, len(sections))], first: first, tile: tile}
		_, r.tiles = countSymbols(r.sections)
		tile += r.tiles
		first += len(r.sections)
		sections = sections[len(r.sections):]
		all = append(all, r)
	}
	return all
}

func (r *sectionRun) args() []uint64 {
	var all []uint64
	for i := range 4 {
		if i < len(r.sections) {
			s := &r.sections[i]
			all = append(all, arg(s.symbols, s.tables, s.count)...)
		} else {
			all = append(all, arg(0, 0, -1)...)
		}
	}
	return all
}

// levelOf returns the sections of a level and the number of the first.
func levelOf(sections []codedSection, level int) ([]codedSection, int) {
	from := 0
	for from < len(sections) && sections[from].level < level {
		from++
	}
	to := from
	for to < len(sections) && sections[to].level == level {
		to++
	}
	return sections[from:to], from
}

func lastLevel(sections []codedSection) int { return sections[len(sections)-1].level }

// checkSections refuses what the kernels cannot do.
func checkSections(sections []codedSection) error {
	level := 0
	for i := range sections {
		s := &sections[i]
		switch {
		case s.name == "":
			return errors.New("cuda: a section without a name")
		case s.level < level || s.level > level+1 || s.level >= maxLevels || i == 0 && s.level != 0:
			return fmt.Errorf("cuda: section %s is of level %d", s.name, s.level)
		case i > 0 && s.level == level && (s.skip != sections[i-1].skip || s.limit != sections[i-1].limit):
			return fmt.Errorf("cuda: section %s differs from the one before it in its level", s.name)
		case s.symbols%16 != 0 || s.tables%16 != 0:
			return fmt.Errorf("cuda: section %s is not aligned", s.name)
		case s.count < 0 || s.count > 1<<31:
			return fmt.Errorf("cuda: section %s has %d symbols", s.name, s.count)
		}
		level = s.level
	}
	return nil
}

// A coderLayout says where things begin in a coder's memory.
type coderLayout struct {
	sums, starts, entries, escapes, words, values int64
	bytes                                         int64
}

func (l *coderLayout) take(p *int64, n int64) {
	*p = l.bytes
	l.bytes += aligned(n)
}

func encoderLayout(sections []codedSection) coderLayout {
	n, tiles := countSymbols(sections)
	l := coderLayout{bytes: aligned(int64(unsafe.Sizeof(encoderHead{})))}
	l.take(&l.sums, 16*tiles)
	l.bytes += 16 * aheadRounds * maxLanes // what is loaded ahead
	l.take(&l.entries, 16*(n+1))
	l.take(&l.escapes, 4*n)
	l.take(&l.words, 2*(wordsPerSymbol*n+maxLanes))
	return l
}

// encodeLayout returns how many bytes of device memory the coding of a frame takes, from its gathering to its end, and
// how many of page-locked memory its result.
func encodeLayout(sections []codedSection) (scratch, result int64) {
	words := int64(2 * maxLanes)
	for i := range sections {
		words += sectionWords(&sections[i])
	}
	return encoderLayout(sections).bytes, aligned(int64(unsafe.Sizeof(encoderResult{})) + 2*words)
}

// gatherCalls returns the launches that list a frame's coded symbols in scratch, as soon as they are known. Behind
// them nothing reads the sections or frame any more.
func gatherCalls(t *coderTables, sections []codedSection, frame, scratch pointer) []call {
	l := encoderLayout(sections)
	at := func(offset int64) pointer { return scratch + pointer(offset) }
	var sum, gather []call
	for _, r := range runsOf(sections, 0) {
		skips, closes := 0, 0
		for i := range r.sections {
			n := r.first + i
			skips |= yes(r.sections[i].skip) << i
			if n+1 == len(sections) || sections[n+1].level > sections[n].level {
				closes |= (sections[n].level + 1) << (4 * i)
			}
		}
		sum = append(sum, call{kernel: "coder_sum", grid: int(r.tiles), args: append(arg(at(l.sums+16*r.tile), t.table, frame, skips), r.args()...)})
		gather = append(gather, call{kernel: "coder_gather", grid: int(r.tiles), args: append(arg(scratch, at(l.sums), at(l.entries), at(l.escapes), t.table, t.coding, t.entriesOf[0], frame,
			r.tile, lastLevel(sections), closes, skips), r.args()...)})
	}
	return append(sum, gather...)
}

// encodeCalls returns the launches that code what has been gathered, lane 0 with the low half of hash for its tail, and
// leave the result where the gathered frame's parameters said.
func encodeCalls(t *coderTables, sections []codedSection, hash, scratch pointer) []call {
	l := encoderLayout(sections)
	at := func(offset int64) pointer { return scratch + pointer(offset) }
	skips, levels := 0, lastLevel(sections)+1
	most := int64(0) // segments that shared memory is asked for
	for i := range sections {
		s := &sections[i]
		skips |= yes(s.skip) << s.level
		if n := t.segmentsOf[yes(!s.skip)]; 4*n+staticShared <= t.shared {
			most = max(most, n)
		}
	}
	return []call{
		{kernel: "coder_encode", grid: maxGroups, threads: 128, shared: int(4 * most), args: arg(scratch, at(l.entries), at(l.escapes), at(l.words),
			t.segments, t.segmentsOf[0], t.segmentsOf[1], most, hash, levels, skips)},
		{kernel: "coder_report", grid: reportBlocks, args: arg(scratch, at(l.words), hash, levels)},
	}
}

// unaskedShared is how much shared memory every device gives a block; staticShared is the most of it that a kernel has
// beside what its launch asks for.
const unaskedShared, staticShared = 48 << 10, 512

func yes(b bool) int {
	if b {
		return 1
	}
	return 0
}

func decoderLayout(sections []codedSection) coderLayout {
	n, tiles := countSymbols(sections)
	l := coderLayout{bytes: aligned(int64(unsafe.Sizeof(decoderHead{})))}
	l.take(&l.words, inputBytes(n))
	l.take(&l.sums, 4*tiles)
	l.take(&l.starts, 4*tiles)
	l.take(&l.escapes, tileSymbols/8*tiles)
	// Batches of rounds begin and end with some that are empty, and one more is loaded ahead.
	l.take(&l.entries, 4*(n+4*aheadRounds*maxLanes))
	l.take(&l.values, 2*(n+3*aheadRounds*maxLanes))
	return l
}

// inputBytes is how large the image of a payload of n symbols can be.
func inputBytes(n int64) int64 {
	return aligned(int64(unsafe.Sizeof(payloadImage{})) + 2*(wordsPerSymbol*n+2*maxLanes))
}

// decodeLayout returns how many bytes of device memory the decoding of a frame takes, from its first level to its last,
// and how many of page-locked memory its result and, at most, its input.
func decodeLayout(sections []codedSection) (scratch, result, input int64) {
	n, _ := countSymbols(sections)
	return decoderLayout(sections).bytes, aligned(int64(unsafe.Sizeof(decoderResult{}))), inputBytes(n)
}

// decodeCalls returns the launches that decode one level, whose tables are known by then. Level 0's begin with the
// payload's input, the last level's end with the result.
func decodeCalls(t *coderTables, sections []codedSection, level int, frame, scratch pointer) []call {
	l := decoderLayout(sections)
	at := func(offset int64) pointer { return scratch + pointer(offset) }
	these, first := levelOf(sections, level)
	v := &these[0]
	half := yes(!v.skip)
	skip, last := yes(v.skip), yes(level == lastLevel(sections))
	entries, capacity := t.entries, t.entriesOf[half]
	if half == 1 {
		entries += pointer(8 * t.entriesOf[0])
	}
	if wordRing+8*capacity+staticShared > t.shared {
		capacity = 0
	}
	_, ahead := countSymbols(sections[:first])
	_, tiles := countSymbols(these)
	var begin, list, scatter []call
	if level == 0 {
		_, all := countSymbols(sections)
		begin = []call{{kernel: "coder_begin", grid: reportBlocks, args: arg(scratch, at(l.words), at(l.sums), all, frame)}}
	}
	base := int64(0)
	for _, r := range runsOf(these, first) {
		list = append(list, call{kernel: "coder_list", grid: int(r.tiles), args: append(arg(scratch, at(l.sums+4*ahead), at(l.starts), at(l.escapes), at(l.entries), t.table, frame,
			base, r.tile, tiles, level, skip), r.args()...)})
		scatter = append(scatter, call{kernel: "coder_scatter", grid: int(r.tiles), args: append(arg(scratch, at(l.values), at(l.starts), t.table, frame,
			r.tile, tiles, level, last, v.limit, r.first, skip), r.args()...)})
		n, _ := countSymbols(r.sections)
		base += n
	}
	all := append(begin, list...)
	all = append(all, call{kernel: "coder_decode", grid: maxGroups, shared: int(max(wordRing+8*capacity, closingShared)),
		args: arg(scratch, at(l.words), at(l.values), at(l.entries), at(l.escapes), entries, t.entriesOf[half], capacity, level, last)})
	return append(all, scatter...)
}
