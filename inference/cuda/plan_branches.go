//go:build cuda

package cuda

import "slices"

// What a frame launches goes to two streams where a graph has branches that need nothing of each other, since many
// launches leave most of a device idle: those at low resolutions, and the decoding of symbols. In an encoder the second
// stream has what z has no part in, beside what leads to z and what the hyperprior makes of it. In a decoder it has the
// decoding of z and what the hyperprior makes of it, beside everything up to the memory; and then what no symbol's tables
// need, the context, beside the decoding of y.

// asideStride is where an encoder's branches part: ahead of what leads to z at this stride and above.
const asideStride = 32

// A moment says when a value is computed.
type moment struct {
	stream int
	start  *value // it begins behind this one too, though it needs nothing of it; of symbols, behind their tables
	waits  int    // order of the value in the other stream that must have been computed, or -1
	tables bool   // of that one's symbols the tables are enough
	known  [2]int // by stream: the highest order of what has been computed by then
}

// split assigns streams, arranges the values in the order in which they are launched, and cuts that order into levels.
func (p *plan) split() {
	s := &branchSearch{leads: map[*value]bool{}, after: map[*value]bool{}, only: map[*value]bool{}}
	var z *value
	for _, v := range p.values {
		switch {
		case v.node.Op == "code_z":
			z = v
			s.lead(v)
		case isCoding(v.node) && !p.encode:
			s.lead(v)
		}
	}
	if z != nil {
		s.follow(p, z)
		if p.encode {
			p.splitEncoder(s)
		} else {
			p.splitDecoder(s)
		}
	}
	p.number()
	p.order()
}

func (p *plan) splitEncoder(s *branchSearch) {
	fork := slices.IndexFunc(p.values, func(v *value) bool { return s.leads[v] && v.node.Stride >= asideStride })
	if fork < 0 {
		return
	}
	aside := func(v *value) bool { return !s.leads[v] && !s.after[v] && !given(v) }
	var head, side, tail []*value
	for i, v := range p.values {
		switch {
		case !v.idle() && aside(v):
			v.when.stream = 1
			side = append(side, v)
		case v.idle() && slices.ContainsFunc(v.inputs(), aside):
			side = append(side, v)
		case i < fork:
			head = append(head, v)
		default:
			tail = append(tail, v)
		}
	}
	if i := slices.IndexFunc(side, func(v *value) bool { return !v.idle() }); i >= 0 {
		side[i].when.start = head[len(head)-1]
	}
	p.values = slices.Concat(head, side, tail)
}

func (p *plan) splitDecoder(s *branchSearch) {
	coded := 0 // the last value with symbols
	other := false
	for i, v := range p.values {
		if isCoding(v.node) {
			coded = i
		}
		other = other || !s.after[v] && !v.idle() && !given(v)
	}
	if !other {
		return // nothing to do beside z
	}
	late := func(v *value) bool { return !s.after[v] && !s.leads[v] && !given(v) && v.node.Stride > 0 }
	var first, head, side, tail []*value
	for i, v := range p.values {
		switch {
		case s.only[v]:
			first = append(first, v)
		case !v.idle() && late(v) || v.idle() && !s.after[v] && slices.ContainsFunc(v.inputs(), late):
			side = append(side, v)
		case i <= coded:
			head = append(head, v)
		default:
			tail = append(tail, v)
		}
	}
	for _, v := range slices.Concat(first, side) {
		if !v.idle() {
			v.when.stream = 1
		}
	}
	if i := slices.IndexFunc(side, func(v *value) bool { return !v.idle() }); i >= 0 {
		side[i].when.start = p.values[coded]
	}
	p.values = slices.Concat(first, head, side, tail)
	level := 0
	for _, v := range p.values {
		if isCoding(v.node) {
			level = v.level + 1
		} else {
			v.level = level
		}
	}
	for i, v := range slices.Backward(p.values) { // what stands between a level's symbols comes ahead of them
		if i+1 < len(p.values) && !isCoding(v.node) {
			v.level = min(v.level, p.values[i+1].level)
		}
	}
}

type branchSearch struct {
	leads, after, only map[*value]bool // leads to z, or a decoder's symbols; depends on z; depends on nothing else
}

// lead marks what v waits for.
func (s *branchSearch) lead(v *value) {
	for _, x := range v.inputs() {
		if s.leads[x] {
			continue
		}
		s.leads[x] = true
		if x.chain != nil {
			for _, m := range x.chain.members {
				s.leads[m] = true
			}
		}
		s.lead(x)
	}
}

// follow marks what depends on z.
func (s *branchSearch) follow(p *plan, z *value) {
	s.after[z], s.only[z] = true, true
	for _, v := range p.values {
		if in := v.inputs(); v != z {
			s.after[v] = slices.ContainsFunc(in, func(x *value) bool { return s.after[x] })
			s.only[v] = s.after[v] && !isCoding(v.node) && !slices.ContainsFunc(in, func(x *value) bool { return !s.only[x] })
		}
	}
}

// given reports whether a value is there when a frame begins.
func given(v *value) bool {
	return slices.Contains([]string{"source", "reference", "vectors", "memory_in", "feature_in"}, v.node.Op)
}

// idle reports whether a value launches nothing of its own.
func (v *value) idle() bool { return v.chain == nil && (v.place == nowhere || v.by != nil) }

// inputs returns what computing v, or the chain that v is part of, waits for: nothing that is idle.
func (v *value) inputs() []*value {
	if v.chain == nil {
		return v.awaits(nil)
	}
	var all []*value
	for _, m := range v.chain.members {
		all = append(all, m.awaits(v.chain)...)
	}
	return all
}

func (v *value) awaits(own *valueChain) []*value {
	in := v.in
	if v.sources != nil {
		in = nil
		for _, s := range v.sources {
			in = append(in, s.from)
		}
	}
	var all []*value
	for _, x := range in {
		switch {
		case x.idle():
			all = append(all, x.awaits(own)...)
		case own == nil || x.chain != own:
			all = append(all, x)
		}
	}
	return all
}

// number gives the values their order; a chain's members have one.
func (p *plan) number() {
	for i, v := range p.values {
		v.order = i
		if v.chain != nil && v != v.chain.members[0] {
			v.order = v.chain.members[0].order
		}
	}
}

// order finds out what a value waits for and knows to be there.
func (p *plan) order() {
	var now [2]moment // of each stream
	symbols := map[int]*value{}
	for stream := range now {
		now[stream] = moment{known: [2]int{-1, -1}}
	}
	for _, v := range p.values {
		if isCoding(v.node) {
			symbols[v.level] = v // a level's symbols are there behind its last one's tables
		}
	}
	for _, v := range p.values {
		if v.idle() || v.chain != nil && v != v.chain.members[0] {
			continue
		}
		mine := v.when.stream
		other := 1 - mine
		m := now[mine]
		m.stream, m.start, m.waits, m.tables = mine, v.when.start, -1, false
		need := -1
		for _, x := range v.inputs() {
			if isCoding(x.node) && !p.encode {
				x = symbols[x.level]
			}
			if x.when.stream == other && !given(x) {
				need = max(need, x.order)
			}
		}
		if o := m.start; o != nil && o.order > need && o.when.stream == other {
			need, m.tables = o.order, true
		}
		if need > m.known[other] {
			m.waits, m.known[other] = need, need
		}
		v.when = m
		if v.chain != nil {
			for _, o := range v.chain.members {
				o.when = m
			}
		}
		m.known[mine] = v.order
		now[mine] = m
	}
}

// precedes reports whether u has been computed when v begins.
func (u *value) precedes(v *value) bool { return u.order <= v.when.known[u.when.stream] }

// precedes reports whether nothing uses a block of memory any more when v begins.
func (l *lifetime) precedes(v *value) bool {
	return !slices.ContainsFunc(l.users, func(u *value) bool { return !u.precedes(v) })
}

// yields reports whether nothing but v itself does.
func (l *lifetime) yields(v *value) bool {
	return !slices.ContainsFunc(l.users, func(u *value) bool { return u.order != v.order && !u.precedes(v) })
}

// frameCalls returns all that a frame of that parity launches. decode is what makes symbols of a level's tables, in a
// decoder.
func (s *session) frameCalls(p *plan, parity int, decode func(level int) []call) []call {
	last := map[int]int{} // index of the last value with symbols of a level
	for i, v := range p.values {
		if isCoding(v.node) {
			last[v.level] = i
		}
	}
	var all []call
	at := map[int]int{}        // by a value's order: the number of its stream's last call by then, from 1
	tables := map[int]int{}    // likewise, without the decoding of symbols
	var latest, pending [2]int // by stream: the number of its last call; of the one that its next call waits for
	for i, v := range p.values {
		if v.idle() {
			continue
		}
		stream := v.when.stream
		if v.when.waits >= 0 {
			waits := at[v.when.waits]
			if n, ok := tables[v.when.waits]; ok && v.when.tables {
				waits = n
			}
			pending[stream] = max(pending[stream], waits)
		}
		calls := s.compile(v, parity)
		if decode != nil && isCoding(v.node) && last[v.level] == i {
			tables[v.order] = latest[stream]
			if len(calls) > 0 {
				tables[v.order] = len(all) + len(calls)
			}
			calls = append(calls, decode(v.level)...)
		}
		for k := range calls {
			calls[k].stream = stream
			if k == 0 {
				calls[k].after, pending[stream] = pending[stream], 0
			}
		}
		all = append(all, calls...)
		if len(calls) > 0 {
			latest[stream] = len(all)
		}
		at[v.order] = latest[stream]
	}
	return all
}
