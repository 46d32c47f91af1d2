package rans

import (
	"encoding/binary"
	"fmt"
)

// A CorruptError says which part of a payload breaks the format, and how.
type CorruptError struct{ Field, Cause string }

func (e *CorruptError) Error() string { return e.Field + ": " + e.Cause }

func corrupt(field, format string, a ...any) error {
	return &CorruptError{Field: field, Cause: fmt.Sprintf(format, a...)}
}

// A Decoder reads one payload, forward. It copies the payload, never reads beyond it, and keeps its buffers from one payload to the next.
type Decoder struct {
	lanes int
	n     int // symbols decoded
	state [MaxLanes]uint32
	words []uint16 // each group's words, then pad zeros, so that a run needs no check before its end
	pos   [MaxLanes / GroupLanes]int
	end   [MaxLanes / GroupLanes]int
	err   error
}

const pad = 2 * GroupLanes

// Reset starts a payload of so many lanes.
func (d *Decoder) Reset(payload []byte, lanes int) error {
	d.lanes, d.n = 0, 0
	d.err = d.reset(payload, lanes)
	if d.err == nil {
		d.lanes = lanes
	}
	return d.err
}

func (d *Decoder) reset(b []byte, lanes int) error {
	if !ValidLanes(lanes) {
		return corrupt("lanes", "%d, want a power of two up to %d", lanes, MaxLanes)
	}
	ng := groups(lanes)
	var count [MaxLanes / GroupLanes]int
	for g := range ng - 1 {
		v, k := binary.Uvarint(b)
		if k <= 0 || k > 4 || k > 1 && b[k-1] == 0 {
			return corrupt("group_words", "group %d: no valid count", g)
		}
		count[g], b = int(v), b[k:]
	}
	if lanes == 1 {
		k := min(len(b), 4)
		if len(b) > 4 {
			k -= len(b) & 1
		}
		y := uint32(0)
		for i := range k {
			y |= uint32(b[i]) << (8 * i)
		}
		shortest := k == 0 || b[k-1] != 0 || k == 3 && len(b) > 3
		if y > 1<<32-1-Low || !shortest {
			return corrupt("states", "no valid state in %d bytes", k)
		}
		d.state[0], b = y+Low, b[k:]
	} else {
		if len(b) < 4*lanes {
			return corrupt("states", "%d bytes left, want %d", len(b), 4*lanes)
		}
		for i := range lanes {
			if d.state[i] = binary.LittleEndian.Uint32(b[4*i:]); d.state[i] < Low {
				return corrupt("states", "lane %d: state %d below 2^16", i, d.state[i])
			}
		}
		b = b[4*lanes:]
	}
	left := len(b) / 2
	if len(b)%2 != 0 {
		return corrupt("words", "%d bytes, want an even number", len(b))
	}
	for g := range ng - 1 {
		if left -= count[g]; left < 0 {
			return corrupt("group_words", "group %d: %d words, %d too many", g, count[g], -left)
		}
	}
	count[ng-1] = left
	if need := len(b)/2 + ng*pad; cap(d.words) < need {
		d.words = make([]uint16, need+need/2)
	}
	p := 0
	w := d.words[:cap(d.words)]
	for g := range ng {
		d.pos[g] = p
		for range count[g] {
			w[p] = binary.LittleEndian.Uint16(b)
			b = b[2:]
			p++
		}
		d.end[g] = p
		clear(w[p : p+pad])
		p += pad
	}
	d.words = w
	return nil
}

// Slot returns lane 0's next slot.
func (d *Decoder) Slot() uint32 { return d.state[0] & 0xFFFF }

// Advance takes the range (start, freq), in which Slot lies, from lane 0. When the words run out it goes on with
// zeros; Err tells, so that a caller with a bounded loop needs to ask only at its end.
func (d *Decoder) Advance(start, freq uint32) {
	x := d.state[0]
	x = freq*(x>>16) + x&0xFFFF - start
	if x < Low {
		x <<= 16
		if d.pos[0] < d.end[0] {
			x |= uint32(d.words[d.pos[0]])
			d.pos[0]++
		} else {
			d.fail(0) // x is at least 1 before the shift, so the state stays valid
		}
	}
	d.state[0] = x
}

// Bits takes n uniform bits from lane 0, 1 ≤ n ≤ 15.
func (d *Decoder) Bits(n int) uint32 {
	v := d.Slot() >> (16 - n)
	d.Advance(v<<(16-n), 1<<(16-n))
	return v
}

func (d *Decoder) fail(g int) {
	if d.err == nil {
		d.err = corrupt("words", "group %d ends early", g)
	}
}

// Err returns the first error met.
func (d *Decoder) Err() error { return d.err }

// Decode decodes the next len(values) symbols: values[i] by table tabs[i]. first says whether any of them is symbol 0.
func (d *Decoder) Decode(values []int16, tabs []uint8, t *Tables) (first bool, err error) {
	tabs = tabs[:len(values)]
	if d.err != nil {
		return false, d.err
	}
	n0, n1 := d.n, d.n+len(values)
	d.n = n1
	zero := int32(0) // negative once a symbol 0 is seen
	switch {
	case d.lanes == 1:
		for lo := 0; lo < len(values) && d.err == nil; lo += GroupLanes {
			hi := min(lo+GroupLanes, len(values))
			zero |= d.run1(values[lo:hi], tabs[lo:hi], t)
		}
	case d.lanes <= GroupLanes:
		for lo := 0; lo < len(values) && d.err == nil; lo += GroupLanes {
			hi := min(lo+GroupLanes, len(values))
			zero |= d.run(0, values[lo:hi], tabs[lo:hi], n0+lo, uint32(d.lanes-1), t)
		}
	default:
		for g := range groups(d.lanes) {
			for r := n0&^(d.lanes-1) + g*GroupLanes; r < n1 && d.err == nil; r += d.lanes {
				if lo, hi := max(n0, r), min(n1, r+GroupLanes); lo < hi {
					zero |= d.run(g, values[lo-n0:hi-n0], tabs[lo-n0:hi-n0], lo, GroupLanes-1, t)
				}
			}
		}
	}
	return zero < 0, d.err
}

// run decodes at most GroupLanes consecutive symbols of group g; symbol n is in lane n & mask of the group. The loop
// has no branch that depends on the data: a lane always loads the next word and keeps it or not.
func (d *Decoder) run(g int, values []int16, tabs []uint8, n int, mask uint32, t *Tables) (zero int32) {
	w := (*[pad]uint16)(d.words[d.pos[g]:])
	state := (*[GroupLanes]uint32)(d.state[g*GroupLanes:])
	dec := t.dec
	k := uint32(0) // words consumed
	tabs = tabs[:len(values)]
	for i := range values {
		c := &t.desc[tabs[i]&(MaxTables-1)]
		lane := &state[(uint32(n+i)&mask)&(GroupLanes-1)]
		x := *lane
		slot := x & 0xFFFF
		bucket := slot >> (c.shift & 15)
		e := dec[(uint32(c.base)+bucket)&(MaxTables<<MaxLog-1)]
		pos := slot & uint32(c.mask)
		split := uint32(e) & 0xFFFF
		cut := split & uint32(c.mask)
		left := uint32(int32(pos-cut) >> 31) // all ones where pos < cut
		right := split >> (c.shift & 15)
		s := right ^ (right^bucket)&left
		f := uint32(uint16(e >> (32 - left&16)))
		o := (pos + uint32(e>>48)&^left) & 0xFFFF
		x = f*(x>>16) + o
		need := uint32(int64(uint64(x)-Low) >> 63) // all ones where x < Low
		x = x<<(need&16) | uint32(w[k&(pad-1)])&need
		k -= need
		*lane = x
		values[i] = int16(int32(s) + int32(c.first))
		zero |= int32(s) - 1
	}
	if d.pos[g] += int(k); d.pos[g] > d.end[g] {
		d.fail(g)
	}
	return zero
}

// run1 is run for a single lane, whose state stays in a register.
func (d *Decoder) run1(values []int16, tabs []uint8, t *Tables) (zero int32) {
	w := (*[pad]uint16)(d.words[d.pos[0]:])
	dec := t.dec
	k := uint32(0)
	x := d.state[0]
	tabs = tabs[:len(values)]
	for i := range values {
		c := &t.desc[tabs[i]&(MaxTables-1)]
		slot := x & 0xFFFF
		s := slot >> (c.shift & 15)
		e := dec[(uint32(c.base)+s)&(MaxTables<<MaxLog-1)]
		pos := slot & uint32(c.mask)
		f := uint32(e>>16) & 0xFFFF
		if pos >= uint32(e)&uint32(c.mask) {
			s = uint32(e) & 0xFFFF >> (c.shift & 15)
			f = uint32(e>>32) & 0xFFFF
			pos = (pos + uint32(e>>48)) & 0xFFFF
		}
		x = f*(x>>16) + pos
		if x < Low {
			x = x<<16 | uint32(w[k&(pad-1)])
			k++
		}
		values[i] = int16(int32(s) + int32(c.first))
		zero |= int32(s) - 1
	}
	d.state[0] = x
	if d.pos[0] += int(k); d.pos[0] > d.end[0] {
		d.fail(0)
	}
	return zero
}

// Finish checks that every lane is back at its start state and every word consumed, and returns the tail.
func (d *Decoder) Finish() (tail uint16, err error) {
	if d.err != nil {
		return 0, d.err
	}
	for g := range groups(d.lanes) {
		if d.pos[g] != d.end[g] {
			return 0, corrupt("words", "group %d: %d left over", g, d.end[g]-d.pos[g])
		}
	}
	for i, x := range d.state[:d.lanes] {
		if x != Low && (i > 0 || x>>16 != 1) {
			return 0, corrupt("states", "lane %d ends at %#x", i, x)
		}
	}
	return uint16(d.state[0]), nil
}
