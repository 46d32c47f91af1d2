package rans

import "encoding/binary"

// An Encoder codes one payload, backward: what the decoder reads last is put first. Its buffers are kept from one payload to the next.
type Encoder struct {
	lanes  int
	state  [MaxLanes]uint32
	groups [MaxLanes / GroupLanes]wordStack
}

// A wordStack holds a group's words in the order of their making, the reverse of the payload's.
type wordStack struct {
	w     []uint16 // its length is the room there is
	n     int
	later []uint16 // words that stand behind these, in the payload's order
}

func (s *wordStack) count() int { return s.n + len(s.later) }

// room makes sure that a run of GroupLanes words fits.
func (s *wordStack) room() {
	if len(s.w)-s.n < 2*GroupLanes {
		w := make([]uint16, max(1024, 2*len(s.w)))
		copy(w, s.w[:s.n])
		s.w = w
	}
}

// Reset starts a payload of so many lanes (a power of two up to MaxLanes), whose lane 0 will give tail back at its end.
func (e *Encoder) Reset(lanes int, tail uint16) {
	if !ValidLanes(lanes) {
		panic("rans: number of lanes")
	}
	e.lanes = lanes
	for i := range e.state[:lanes] {
		e.state[i] = Low
	}
	e.state[0] += uint32(tail)
	for g := range groups(lanes) {
		e.groups[g].n, e.groups[g].later = 0, nil
	}
}

// ValidLanes says whether n can be a number of lanes.
func ValidLanes(n int) bool { return n >= 1 && n <= MaxLanes && n&(n-1) == 0 }

func groups(lanes int) int { return (lanes + GroupLanes - 1) / GroupLanes }

// Put codes the range (start, freq) in lane 0; 1 ≤ freq ≤ 65535, start+freq ≤ 65536.
func (e *Encoder) Put(start, freq uint32) {
	x := e.state[0]
	if uint64(x) >= uint64(freq)<<16 {
		s := &e.groups[0]
		s.room()
		s.w[s.n] = uint16(x)
		s.n++
		x >>= 16
	}
	e.state[0] = x/freq<<16 + x%freq + start
}

// PutBits codes the low n bits of v in lane 0, 1 ≤ n ≤ 15.
func (e *Encoder) PutBits(v uint32, n int) { e.Put(v<<(16-n)&0xFFFF, 1<<(16-n)) }

// Encode codes the symbols numbered n0, n0+1, …: values[i] (First of its table up to First+m-1) by table tabs[i].
// Calls go from the last run of symbols to the first.
func (e *Encoder) Encode(values []int16, tabs []uint8, n0 int, t *Tables) {
	tabs = tabs[:len(values)]
	if e.lanes <= GroupLanes {
		for hi := len(values); hi > 0; {
			lo := max(0, hi-GroupLanes)
			e.run(0, values[lo:hi], tabs[lo:hi], n0+lo, uint32(e.lanes-1), t)
			hi = lo
		}
		return
	}
	n1 := n0 + len(values)
	for g := range groups(e.lanes) {
		// r is the number of the first symbol of the group's run in the last round that may reach below n1.
		for r := (n1-1)&^(e.lanes-1) + g*GroupLanes; r+GroupLanes > n0; r -= e.lanes {
			if lo, hi := max(n0, r), min(n1, r+GroupLanes); lo < hi {
				e.run(g, values[lo-n0:hi-n0], tabs[lo-n0:hi-n0], lo, GroupLanes-1, t)
			}
		}
	}
}

// run codes at most GroupLanes consecutive symbols of group g, backward; symbol n is in lane n & mask of the group.
func (e *Encoder) run(g int, values []int16, tabs []uint8, n int, mask uint32, t *Tables) {
	s := &e.groups[g]
	s.room()
	w := (*[2 * GroupLanes]uint16)(s.w[s.n:])
	state := (*[GroupLanes]uint32)(e.state[g*GroupLanes:])
	segs := t.segs
	k := uint32(0) // words made
	tabs = tabs[:len(values)]
	for i := len(values) - 1; i >= 0; i-- {
		d := &t.desc[tabs[i]&(MaxTables-1)]
		c := &t.enc[(uint32(d.base)+uint32(int32(values[i])-int32(d.first)))&(MaxTables<<MaxLog-1)]
		lane := &state[(uint32(n+i)&mask)&(GroupLanes-1)]
		x, f := *lane, c.freq
		w[k&(2*GroupLanes-1)] = uint16(x)
		if x>>16 >= f {
			k++
			x >>= 16
		}
		// Exact for x < f<<16 and f < 2^16: the reciprocal is too large by less than 1/2^32 of 1/f, and the product stays below 2^64.
		q := uint32(uint64(x) * c.rcp >> 48)
		o := x - q*f
		j := c.seg + o>>(d.shift&15)
		j += (uint32(segs[j].end) - o - 1) >> 31 // one step more where o ≥ end, without a branch
		for o >= uint32(segs[j].end) {
			j++
		}
		*lane = q<<16 | uint32(uint16(o)+segs[j].delta)
	}
	s.n += int(k)
}

// Append ends the payload and appends it to dst.
func (e *Encoder) Append(dst []byte) []byte {
	ng := groups(e.lanes)
	if e.lanes == 1 {
		y := e.state[0] - Low
		k := 0
		if e.groups[0].count() > 0 {
			k = 3
		}
		for ; k < 4 && y>>(8*k) != 0; k++ {
		}
		for i := range k {
			dst = append(dst, byte(y>>(8*i)))
		}
	} else {
		for g := range ng - 1 {
			dst = binary.AppendUvarint(dst, uint64(e.groups[g].count()))
		}
		for _, x := range e.state[:e.lanes] {
			dst = binary.LittleEndian.AppendUint32(dst, x)
		}
	}
	for g := range ng {
		s := &e.groups[g]
		for i := s.n - 1; i >= 0; i-- {
			dst = append(dst, byte(s.w[i]), byte(s.w[i]>>8))
		}
		for _, w := range s.later {
			dst = append(dst, byte(w), byte(w>>8))
		}
	}
	return dst
}
