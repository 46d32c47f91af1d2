//go:build cuda

package cuda

import (
	"slices"

	"github.com/nvcodec/nvcodec/inference"
)

// What only copies, moves or rescales values is not computed for itself where it need not be: its readers read through
// it. A concatenation of moved, rescaled and packed tensors is one launch that reads each of them where it lies.

// A source is where a run of a gathered value's channels comes from: a piece before memory has addresses.
type source struct {
	from    *value
	kind    pieceKind
	r       int
	count   int
	scale   *inference.Node // each nil or one step, in this order
	clamp   *inference.Node
	requant int
	pack    *inference.Node
}

func (v *value) gathers() bool { return v.group == nil && gathers(v.node) }

func gathers(n *inference.Node) bool {
	return slices.Contains([]string{"requant", "scale", "clamp", "concat", "s2d", "d2s", "move", "pack"}, n.Op) && !(n.Op == "pack" && full(n))
}

// gather decides what is read through. A value is computed if anything that cannot read through it reads it, or if what
// it does cannot be joined to what its reader does.
func (p *plan) gather() {
	through := map[*value]bool{}
	for _, v := range p.values {
		through[v] = v.gathers() && len(v.readers) > 0 && !slices.ContainsFunc(v.readers, func(r *value) bool { return !readsThrough(r, v) })
	}
	for _, v := range p.values {
		if x := v.clamped(); x != nil && !onlyClamps(x) {
			through[x] = false
		}
		if v.node.Op == "index" { // code_y reads v through it
			through[v] = true
		}
		if !v.gathers() && v.node.Op != "index" {
			continue
		}
		in := v.in
		if v.node.Op == "move" {
			in = in[:1] // the other one is the vectors
		}
		for _, x := range in {
			joined, ok := x.sources, through[x]
			if ok {
				joined, ok = v.join(joined)
			}
			if !ok {
				through[x] = false
				joined, _ = v.join([]source{{from: x, count: x.node.C}})
			}
			v.sources = append(v.sources, joined...)
		}
	}
	for _, v := range p.values {
		if through[v] {
			v.place = nowhere
			for _, x := range v.in {
				x.readers = slices.DeleteFunc(x.readers, func(r *value) bool { return r == v })
			}
		}
	}
	for _, v := range p.values {
		if v.place != nowhere {
			for _, x := range v.reads() {
				if !slices.Contains(x.readers, v) {
					x.readers = append(x.readers, v)
				}
			}
		}
	}
}

// reads returns the values in memory that computing v reads.
func (v *value) reads() []*value {
	var all []*value
	for _, s := range v.sources {
		all = append(all, s.from)
	}
	if v.sources != nil {
		return all
	}
	for _, x := range v.in {
		switch {
		case x.place != nowhere:
			all = append(all, x)
		case x.sources != nil:
			all = append(all, x.reads()...)
		}
	}
	return all
}

// clamped returns the input that an operator of latent coding reads through a clamp, if it can.
func (v *value) clamped() *value {
	i := slices.Index([]string{"index", "code_y", "unstep"}, v.node.Op)
	if i < 0 || len(v.in) < min(i, 1)+1 {
		return nil
	}
	x := v.in[min(i, 1)] // v; q of y, q, …; q of yhat, q
	if slices.Index(v.in, x) != min(i, 1) || slices.Contains(v.in[min(i, 1)+1:], x) {
		return nil // read as something else too
	}
	return x
}

func onlyClamps(v *value) bool {
	s := v.sources
	return v.node.Op == "clamp" && len(s) == 1 && s[0].kind == pieceHere && s[0].scale == nil && s[0].requant == 0
}

// readsThrough reports whether r can read what v reads instead of v: all that gather, latent coding through a clamp, and
// a picture that the prediction is added to.
func readsThrough(r, v *value) bool {
	return r.gathers() || v.node.Op == "clamp" && r.clamped() == v || r.node.Op == "picture" && v.node.Op == "pack" && !full(v.node) && r.in[0] != v
}

// join puts what v does behind what the sources of an input do, if a piece can do both.
func (v *value) join(in []source) ([]source, bool) {
	out := slices.Clone(in)
	for i := range out {
		s, n := &out[i], v.node
		still := s.kind == pieceHere || s.kind == pieceMoved // channels are the source's
		switch n.Op {
		case "requant":
			if s.requant != 0 {
				return nil, false
			}
			s.requant = v.in[0].node.F - n.F
		case "clamp":
			if s.clamp != nil || s.requant != 0 {
				return nil, false
			}
			s.clamp = n
		case "scale":
			if s.scale != nil || s.clamp != nil || s.requant != 0 || !still || len(in) > 1 {
				return nil, false
			}
			s.scale = n
		case "s2d", "d2s", "move", "pack":
			if s.kind != pieceHere || len(in) > 1 {
				return nil, false
			}
			s.count = n.C
			s.r = n.Ints["r"]
			switch n.Op {
			case "s2d":
				s.kind = pieceDeep
			case "d2s":
				s.kind = pieceFlat
			case "move":
				s.kind = pieceMoved
			case "pack":
				s.kind, s.pack = piecePacked, n
			}
		}
	}
	return out, true
}

// pieces returns the sources of a value with their addresses in a frame of that parity.
func (s *session) pieces(v *value, parity int) []piece {
	var all []piece
	for _, x := range v.sources {
		p := whole(s.address(x.from, parity), x.from.node.C)
		p.count, p.kind, p.r, p.requant = x.count, x.kind, x.r, x.requant
		if x.pack != nil {
			p.c, p.table = x.count, s.weights.pointer(x.pack.Tensors["table"])
		}
		if x.scale != nil {
			p.scale, p.table = x.scale.Ints["shift"], s.weights.pointer(x.scale.Tensors["table"])
		}
		if x.clamp != nil {
			p.lo, p.hi = x.clamp.Ints["lo"], x.clamp.Ints["hi"]
		}
		all = append(all, p)
	}
	return all
}
