package rans

// A Handover is what lies between two parts of one payload: what an encoder has made of its later part and a decoder
// has left behind its earlier part. So the lanes' symbols can be coded elsewhere than the ranges in front of them.
type Handover struct {
	States []uint32   // of each lane, at least Low
	Words  [][]uint16 // of each group of GroupLanes lanes, as they stand in the payload
}

// Continue starts a payload whose later part is h. What is put from now on stands in front of it. The words are read
// when the payload is appended.
func (e *Encoder) Continue(h *Handover) {
	lanes := len(h.States)
	e.Reset(lanes, 0)
	if len(h.Words) != groups(lanes) {
		panic("rans: groups of words")
	}
	copy(e.state[:], h.States)
	for g, w := range h.Words {
		e.groups[g].later = w
	}
}

// Handover sets h to what is left to decode. The words stay valid until the next Reset.
func (d *Decoder) Handover(h *Handover) {
	h.States = append(h.States[:0], d.state[:d.lanes]...)
	h.Words = h.Words[:0]
	for g := range groups(d.lanes) {
		h.Words = append(h.Words, d.words[d.pos[g]:d.end[g]])
	}
}

// Flat is the content of Tables as numbers, for coders that run elsewhere.
type Flat struct {
	Base  []int // where each table's entries begin
	Shift []int // 16-n of each table

	// Of each bucket: split | f(bucket)<<16 | f(right)<<32 | (offset-pos of the right part)<<48.
	Dec []uint64
	// Of each symbol, at its table's Base: ⌈2^48 / f⌉, f, and the symbol's first segment.
	Reciprocal []uint64
	Freq       []uint32
	Segment    []int
	// Segments are runs of consecutive slots of one symbol within one bucket, those of a table one behind the other:
	// offsets below end, and not below the end before, lie at slot offset+delta mod 2^16. Each holds end | delta<<16.
	// Offset o lies o>>Shift segments behind the symbol's first, or further.
	Segments []uint32
}

// Flat lists the first n tables.
func (t *Tables) Flat(n int) *Flat {
	f := &Flat{}
	end := 0
	for i := range n {
		d := &t.desc[i]
		f.Base, f.Shift = append(f.Base, int(d.base)), append(f.Shift, int(d.shift))
		end = int(d.base) + 1<<(16-d.shift)
	}
	f.Dec = append(f.Dec, t.dec[:end]...)
	for _, e := range t.enc[:end] {
		f.Reciprocal, f.Freq, f.Segment = append(f.Reciprocal, e.rcp), append(f.Freq, e.freq), append(f.Segment, int(e.seg))
	}
	for _, s := range t.segs {
		f.Segments = append(f.Segments, uint32(s.end)|uint32(s.delta)<<16)
	}
	return f
}
