package entropy

import (
	"fmt"
	"math/bits"

	"github.com/nvcodec/nvcodec/rans"
)

// A CorruptError says which part of a payload breaks the format, and how.
type CorruptError = rans.CorruptError

func corrupt(field, format string, a ...any) error {
	return &CorruptError{Field: field, Cause: fmt.Sprintf(format, a...)}
}

// A Payload is what one frame codes.
type Payload struct {
	Vectors       []int16 // (vy, vx) of each block, [HB][WB]; nil: the frame has none
	VectorsBefore []int16 // the field of the frame before; nil: zero
	HB, WB        int
	Levels        [][]Section // in coding order; the sections of one level are coded together (nvc1: {z}, {y0, y1})
	Threshold     int         // see Section.Skip
	Tail          uint16      // 16 bits that ride in lane 0's start state
}

// A Section is one run of symbols in coding order. Symbols[i] is coded by table Tables[i].
type Section struct {
	Symbols []int16
	Tables  []uint8
	Skip    bool // symbols whose table is below the threshold are 0 and not coded
}

// threshold returns the lowest table of s that is coded.
func threshold(s *Section, t int) int {
	if s.Skip {
		return t
	}
	return 0
}

// escapeClass returns the class of a value outside ±k: the position of the highest set bit of |v|-k, which is at least 1.
func escapeClass(v, k int) int { return bits.Len32(uint32(max(v, -v)-k)) - 1 }

// An Encoder codes payloads; its buffers are kept from one to the next. Not safe for concurrent use.
type Encoder struct {
	t       *Tables
	rans    rans.Encoder
	model   modeller
	values  []int16 // coded symbols of the whole payload, escapes replaced
	tabs    []uint8
	escapes []escape
	ends    []levelEnd
}

type escape struct{ v, k int16 }

type levelEnd struct{ symbols, escapes int }

// NewEncoder returns an encoder for a model's tables.
func NewEncoder(t *Tables) *Encoder { return &Encoder{t: t} }

// Append codes p over so many lanes and appends the payload to dst. An error means that p breaks the rules of its fields.
func (e *Encoder) Append(dst []byte, p *Payload, lanes int) ([]byte, error) {
	if !rans.ValidLanes(lanes) {
		return dst, fmt.Errorf("entropy: %d lanes", lanes)
	}
	e.model.reset(e.t)
	if p.Vectors != nil {
		if err := walk(&e.model, p.Vectors, p.VectorsBefore, p.HB, p.WB, false); err != nil {
			return dst, fmt.Errorf("entropy: %w", err)
		}
	}
	if err := e.gather(p); err != nil {
		return dst, fmt.Errorf("entropy: %w", err)
	}
	// Backward from here.
	e.rans.Reset(lanes, p.Tail)
	for i := len(e.ends) - 1; i >= 0; i-- {
		var from levelEnd
		if i > 0 {
			from = e.ends[i-1]
		}
		to := e.ends[i]
		for j := to.escapes - 1; j >= from.escapes; j-- {
			e.putEscape(e.escapes[j])
		}
		e.rans.Encode(e.values[from.symbols:to.symbols], e.tabs[from.symbols:to.symbols], from.symbols, e.t.rans)
	}
	e.putVectors()
	return e.rans.Append(dst), nil
}

func (e *Encoder) putVectors() {
	for i := len(e.model.ops) - 1; i >= 0; i-- {
		e.rans.Put(uint32(e.model.ops[i].start), uint32(e.model.ops[i].freq))
	}
}

// gather lists the coded symbols of all levels one after the other, and their escapes.
func (e *Encoder) gather(p *Payload) error {
	e.escapes, e.ends = e.escapes[:0], e.ends[:0]
	n := 0
	for _, level := range p.Levels {
		for i := range level {
			if len(level[i].Symbols) != len(level[i].Tables) {
				return fmt.Errorf("section %d: %d symbols, %d tables", i, len(level[i].Symbols), len(level[i].Tables))
			}
			n += len(level[i].Tables)
		}
	}
	if cap(e.tabs) < n+1 {
		e.tabs, e.values = make([]uint8, n+1), make([]int16, n+1)
	}
	values, tabs, all, lost := e.values[:n+1], e.tabs[:n+1], uint8(0), int16(0)
	n = 0
	for _, level := range p.Levels {
		for i := range level {
			s := &level[i]
			T := threshold(s, p.Threshold)
			symbols := s.Symbols[:len(s.Tables)]
			for j, x := range s.Tables {
				coded := int(int64(T-1-int(x)) >> 63) // all ones where x ≥ T
				v, k := symbols[j], e.t.k[x&(TableCount-1)]
				all |= x
				lost |= v &^ int16(coded)
				if coded != 0 && (v < -k || v > k) {
					e.escapes = append(e.escapes, escape{v, k})
					v = -k - 1
				}
				values[n], tabs[n] = v, x
				n -= coded
			}
			if all >= TableCount {
				return fmt.Errorf("section %d: a table is %d or above", i, TableCount)
			}
			if lost != 0 {
				return fmt.Errorf("section %d: a symbol below the threshold %d is not 0", i, T)
			}
		}
		e.ends = append(e.ends, levelEnd{n, len(e.escapes)})
	}
	e.values, e.tabs = values, tabs
	return nil
}

func (e *Encoder) putEscape(x escape) {
	v, k := int(x.v), int(x.k)
	c := escapeClass(v, k)
	m := uint32(max(v, -v)-k) - 1<<c
	if v < 0 {
		m |= 1 << c
	}
	e.rans.PutBits(m, c+1)
	e.rans.Put(1<<(15-c), 1<<(15-c))
}

// A Decoder decodes payloads; its buffers are kept from one to the next. Not safe for concurrent use. The order of
// calls is Start, Vectors (where the frame has vectors), Level for each level, Finish or Tail.
type Decoder struct {
	t      *Tables
	rans   rans.Decoder
	model  modeller
	values []int16
	tabs   []uint8
}

// NewDecoder returns a decoder for a model's tables.
func NewDecoder(t *Tables) *Decoder { return &Decoder{t: t} }

// Start takes a payload, of which it keeps nothing but a copy.
func (d *Decoder) Start(payload []byte, lanes int) error { return d.rans.Reset(payload, lanes) }

// Vectors decodes the field of hb·wb blocks into dst; before is the field of the frame before, nil: zero.
func (d *Decoder) Vectors(dst, before []int16, hb, wb int) error {
	d.model.reset(d.t)
	d.model.in = &d.rans
	err := walk(&d.model, dst, before, hb, wb, true)
	if e := d.rans.Err(); e != nil {
		return e
	}
	return err
}

// Level decodes the sections of one level: it fills their Symbols, with 0 where skipped.
func (d *Decoder) Level(level []Section, T int) error {
	n := 0
	for i := range level {
		if len(level[i].Symbols) != len(level[i].Tables) {
			return fmt.Errorf("entropy: section %d: %d symbols, %d tables", i, len(level[i].Symbols), len(level[i].Tables))
		}
		n += len(level[i].Tables)
	}
	if cap(d.tabs) < n+1 {
		d.tabs, d.values = make([]uint8, n+1), make([]int16, n+1)
	}
	// The coded symbols' tables, packed without a branch on the data.
	tabs, all := d.tabs[:n+1], uint8(0)
	n = 0
	for i := range level {
		T := threshold(&level[i], T)
		for _, x := range level[i].Tables {
			tabs[n] = x
			all |= x
			n += int(^uint64(int(x)-T) >> 63) // 1 where x ≥ T
		}
	}
	if all >= TableCount {
		return fmt.Errorf("entropy: a symbol has table %d or above", TableCount)
	}
	values := d.values[:n+1]
	escapes, err := d.rans.Decode(values[:n], tabs[:n], d.t.rans)
	if err != nil {
		return err
	}
	if escapes {
		if err := d.escapes(values[:n], tabs[:n]); err != nil {
			return err
		}
	}
	n = 0
	for i := range level {
		s := &level[i]
		T := threshold(s, T)
		symbols := s.Symbols[:len(s.Tables)]
		for j, x := range s.Tables {
			coded := int(int64(T-1-int(x)) >> 63) // all ones where x ≥ T
			symbols[j] = values[n] & int16(coded)
			n -= coded
		}
	}
	return nil
}

// escapes reads the values that follow a level for its escape symbols.
func (d *Decoder) escapes(values []int16, tabs []uint8) error {
	for i, x := range tabs {
		k := d.t.k[x]
		if values[i] >= -k {
			continue
		}
		slot := d.rans.Slot()
		if slot < 2 {
			return corrupt("escape", "symbol %d: no class", i)
		}
		c := 16 - bits.Len32(slot)
		d.rans.Advance(1<<(15-c), 1<<(15-c))
		m := int(d.rans.Bits(c + 1))
		v := m&(1<<c-1) + 1<<c + int(k)
		if m>>c != 0 {
			v = -v
		}
		if v != int(int16(v)) {
			return corrupt("escape", "symbol %d is %d", i, v)
		}
		values[i] = int16(v)
	}
	return d.rans.Err()
}

// Finish checks that the payload ends where it should, lane 0 with tail 0.
func (d *Decoder) Finish() error {
	tail, err := d.rans.Finish()
	if err == nil && tail != 0 {
		err = corrupt("states", "lane 0 ends at %#x", rans.Low+int(tail))
	}
	return err
}

// Tail is Finish for payloads that carry a tail, which it returns.
func (d *Decoder) Tail() (uint16, error) { return d.rans.Finish() }
