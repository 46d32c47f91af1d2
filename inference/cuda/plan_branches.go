//go:build cuda

package cuda

import "slices"

// Two lanes of launches run side by side where a graph has two branches that need nothing of each other: what leads to z
// at low resolutions and what the hyperprior makes of z, where a launch leaves most of a device idle, and what z has no
// part in. In a decoder the latter is everything up to the context, and the other lane holds the decoding of z too.

// A branch says when a value is computed: first what both branches need, or everything, then both, then what needs both.
type branch uint8

const (
	leading branch = iota
	aside          // the branch with less memory; its memory is its own for as long as the other one runs
	ahead
	behind
)

// asideStride is where an encoder's branches part: what leads to z at this stride and above.
const asideStride = 32

// split sorts the values into lanes, in the order of the lanes.
func (p *plan) split() {
	i := slices.IndexFunc(p.values, func(v *value) bool { return v.node.Op == "code_z" })
	if i < 0 {
		return
	}
	s := &branchSearch{before: map[*value]bool{}, after: map[*value]bool{}, only: map[*value]bool{}}
	z := p.values[i]
	s.ancestors(z)
	s.after[z], s.only[z] = true, true
	sets, bytes := [4][]*value{}, [4]int64{}
	lanes := map[*value]branch{}
	for _, v := range p.values {
		in := v.inputs()
		if v != z {
			s.after[v] = slices.ContainsFunc(in, func(x *value) bool { return s.after[x] })
			s.only[v] = s.after[v] && !slices.ContainsFunc(in, func(x *value) bool { return !s.only[x] })
		}
		at := behind
		switch {
		case v.idle(): // comes to whatever reads it, and so where what it reads is
			at = leading
			for _, x := range in {
				switch l := lanes[x]; {
				case l == leading || l == at:
				case at == leading:
					at = l
				default:
					at = behind
				}
			}
		case s.before[v] && v.node.Stride < asideStride || v.node.Stride == 0 && !s.after[v]:
			at = leading
		case s.before[v] || s.only[v]:
			at = aside
		case !s.after[v]:
			at = ahead
		}
		for _, x := range in {
			if l := lanes[x]; l > at || l == aside && at == ahead {
				return // not two branches
			}
		}
		lanes[v] = at
		sets[at] = append(sets[at], v)
		bytes[at] += v.count()
	}
	if bytes[aside] == 0 || bytes[ahead] == 0 {
		return
	}
	if bytes[aside] > bytes[ahead] {
		sets[aside], sets[ahead] = sets[ahead], sets[aside]
	}
	for at, set := range sets {
		for _, v := range set {
			v.branch = branch(at)
		}
	}
	p.values = slices.Concat(sets[:]...)
	p.number()
}

func (p *plan) number() {
	for i, v := range p.values {
		v.order = i
		if v.chain != nil && v != v.chain.members[0] {
			v.order = v.chain.members[0].order
		}
	}
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

type branchSearch struct {
	before, after, only map[*value]bool // leads to z, depends on z, depends on nothing else
}

func (s *branchSearch) ancestors(v *value) {
	for _, x := range v.inputs() {
		if s.before[x] {
			continue
		}
		s.before[x] = true
		if x.chain != nil {
			for _, m := range x.chain.members {
				s.before[m] = true
			}
		}
		s.ancestors(x)
	}
}

// keep has what lives while the lane aside runs live until the other one has ended.
func (p *plan) keep(all []*lifetime) {
	first, last, end := len(p.values), -1, -1
	for _, v := range p.values {
		switch v.branch {
		case aside:
			first, last = min(first, v.order), max(last, v.order)
		case ahead:
			end = max(end, v.order)
		}
	}
	for _, l := range all {
		if l.first <= last && l.last >= first {
			l.last = max(l.last, end)
		}
	}
}

// crosses reports whether one lane reads x and the other would write v over it.
func crosses(v, x *value) bool {
	return slices.ContainsFunc(x.readers, func(r *value) bool {
		return r.branch == aside && v.branch == ahead || r.branch == ahead && v.branch == aside
	})
}

// frameCalls returns all that a frame of that parity launches. decode is what stands between a level's values and the
// next's, in a decoder. Calls of the lane aside are marked, and so is the first one behind both lanes.
func (s *session) frameCalls(p *plan, parity int, decode func(level int) []call) []call {
	var all []call
	for at := leading; at <= behind; at++ {
		from := len(all)
		for level := 0; ; level++ {
			more := false
			for _, v := range p.values {
				more = more || v.branch == at && v.level > level
				if v.branch == at && v.level == level {
					all = append(all, s.compile(v, parity)...)
				}
			}
			if decode != nil && slices.ContainsFunc(p.values, func(v *value) bool { return v.branch == at && v.level == level && isCoding(v.node) }) {
				all = append(all, decode(level)...)
			}
			if !more {
				break
			}
		}
		for i := from; i < len(all); i++ {
			all[i].aside = at == aside
			all[i].joins = at == behind && i == from
		}
	}
	return all
}
