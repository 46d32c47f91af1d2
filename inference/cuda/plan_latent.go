//go:build cuda

package cuda

import "slices"

// join has a latent compute its symbols too, in the encoder, and an unstep the latent that nothing else reads: all three
// go value by value over the same tensors.
func (p *plan) join() {
	for _, v := range p.values {
		x := v.in
		switch {
		case v.node.Op == "latent" && p.encode && x[0].node.Op == "code_y" && x[0].in[2] == x[1] && only(x[0], v):
		case v.node.Op == "unstep" && x[0].node.Op == "latent" && x[0].level == v.level && only(x[0], v):
			x[0].place = nowhere
		default:
			continue
		}
		v.takes(x[0])
	}
}

func only(x, reader *value) bool { return len(x.readers) == 1 && x.readers[0] == reader }

// takes has v compute x, and what x computes: what they read must last until v.
func (v *value) takes(x *value) {
	x.by = v
	for _, in := range x.reads() {
		if !slices.Contains(in.readers, v) {
			in.readers = append(in.readers, v)
		}
		if in.by == x {
			v.takes(in)
		}
	}
}

// through returns where a value that may be clamped is read.
func (s *session) through(x *value, parity int) clamped {
	if x.place != nowhere {
		return clamped{s.address(x, parity), -32768, 32767}
	}
	from := x.sources[0]
	c := clamped{s.address(from.from, parity), -32768, 32767}
	if from.clamp != nil {
		c.lo, c.hi = from.clamp.Ints["lo"], from.clamp.Ints["hi"]
	}
	return c
}

// compileLatent returns the calls for a code_y, latent or unstep and what it computes with it.
func (s *session) compileLatent(v *value, parity int) []call {
	at := func(x *value) pointer { return s.address(x, parity) }
	exp := func(x *value, role string) pointer { return s.weights.pointer(x.node.Tensors[role]) }
	var l latentStep
	hat := v
	if v.node.Op == "unstep" {
		hat = v.in[0]
		if hat.by != v {
			return []call{callUnstep(at(v), at(hat), s.through(v.in[1], parity), exp(v, "exp"), v.count(), 16+hat.node.F-v.node.F)}
		}
		l.out, l.q, l.exp, l.outShift = at(v), s.through(v.in[1], parity), exp(v, "exp"), 16+hat.node.F-v.node.F
	}
	k := hat
	if hat.node.Op == "latent" {
		k = hat.in[0]
		if hat.place != nowhere {
			l.yhat = at(hat)
		}
		l.mean = at(hat.in[1])
		if len(hat.in) == 3 {
			l.base = at(hat.in[2])
		}
		l.fm = hat.node.F
	}
	l.k, l.step = at(k), k.node.Ints["step"]
	if k == v || k.by != nil {
		index := k.in[len(k.in)-1]
		l.v, l.fIndex = s.through(index, parity), index.in[0].node.F
		if !s.encode {
			return s.compileTables(k, l.v, l.fIndex)
		}
		l.fm, l.mean = k.in[2].node.F, at(k.in[2])
		l.tables, l.y, l.q, l.rexp, l.shift = s.tables(k), at(k.in[0]), s.through(k.in[1], parity), exp(k, "rexp"), 16+k.in[0].node.F-l.fm
	}
	return []call{callLatent(&l, s.frameParameters(), v.positions(), v.w, 2*k.node.C)}
}

// compileTables fills the tables of both steps at once, where they are known at the same time.
func (s *session) compileTables(k *value, v clamped, f int) []call {
	var tables [2]pointer
	for _, r := range k.in[0].readers {
		if r.level != k.level {
			continue
		}
		if r.order < k.order {
			return nil // that one did
		}
		tables[r.node.Ints["step"]] = s.tables(r)
	}
	return []call{callYTables(tables, v, k.positions(), k.w, 2*k.node.C, f)}
}
