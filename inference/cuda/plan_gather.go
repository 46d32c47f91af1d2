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

func gathers(op string) bool {
	return slices.Contains([]string{"requant", "scale", "clamp", "concat", "s2d", "d2s", "move", "pack"}, op)
}

// gather decides what is read through. A value is computed if anything that cannot read through it reads it, or if what
// it does cannot be joined to what its reader does.
func (p *plan) gather() {
	through := map[*value]bool{}
	for _, v := range p.values {
		through[v] = gathers(v.node.Op) && len(v.readers) > 0 && !slices.ContainsFunc(v.readers, func(r *value) bool { return !readsThrough(r, v) })
	}
	for _, v := range p.values {
		if !gathers(v.node.Op) {
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
		switch {
		case through[v]:
			v.place = nowhere
			for _, x := range v.in {
				x.readers = slices.DeleteFunc(x.readers, func(r *value) bool { return r == v })
			}
		case v.sources != nil:
			for _, s := range v.sources {
				if !slices.Contains(s.from.readers, v) {
					s.from.readers = append(s.from.readers, v)
				}
			}
		}
	}
}

// readsThrough reports whether r can read what v reads instead of v: all that gather, and a picture that the prediction
// is added to.
func readsThrough(r, v *value) bool {
	return gathers(r.node.Op) || r.node.Op == "picture" && v.node.Op == "pack" && r.in[0] != v
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
