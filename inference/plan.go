package inference

import "slices"

// A plan is how one graph is computed at one size: its nodes in order of execution, cut into groups, and a place for
// every value. It holds no memory itself.
type plan struct {
	graph    *Graph
	encode   bool
	size     Size
	values   []*value // of the live nodes, in order of execution
	groups   []*group
	arena    int64 // int16 values that the graph's values need together
	scratch  int64 // channels a position that the largest group needs together
	pictures int   // that compensate makes
}

// A group is a run of nodes that one step computes: a single node that works on rows, or nodes that work position by
// position, tile after tile, so that values with no reader outside stay in the thread's cache.
type group struct {
	level  int
	values []*value
	rows   bool
}

// A place says which memory holds a value.
type place uint8

const (
	inArena   place = iota
	inScratch       // of the thread, for the tile it works on
	inState         // what frames leave to the next one
	inSymbols       // the buffer of a section
	inBytes         // scale indices
	outside         // pictures and vectors
)

// A state is a buffer that lives from frame to frame; what a frame reads and what it leaves are two buffers.
type state uint8

const (
	memoryIn state = iota
	memoryOut
	featureIn
	featureOut
)

// A value is what one node computes.
type value struct {
	node    *Node
	order   int // in plan.values
	level   int
	group   *group // nil for inputs of the graph
	step    int    // the group's place in plan.groups
	h, w    int    // positions
	in      []*value
	readers []*value
	place   place
	state   state     // with inState
	life    *lifetime // with inArena and inScratch; shared by values that overwrite each other
	picture int       // number of the buffer that compensate fills
}

func (v *value) positions() int64 { return int64(v.h) * int64(v.w) }

// An access is how an operator reads its inputs.
type access uint8

const (
	pointwise access = iota // output position p reads input position p only
	gather                  // output position p reads other positions too
	byRows                  // works on rows of whole tensors or pictures
	given                   // an input of the graph, computes nothing
)

func accessOf(op string) access {
	switch op {
	case "source", "reference", "vectors", "memory_in", "feature_in":
		return given
	case "move", "s2d", "d2s":
		return gather
	case "dwact", "dw", "conv3", "pack", "compensate", "picture":
		return byRows
	}
	return pointwise
}

// newPlan plans a valid graph. Without fuse every node is a group of its own.
func newPlan(g *Graph, s Size, encode, fuse bool) *plan {
	p := &plan{graph: g, encode: encode, size: s}
	p.arrange()
	p.cut(fuse)
	p.settle()
	p.allot()
	return p
}

// arrange lists the live nodes level by level; within a level, and in the encoder, in the graph's order.
func (p *plan) arrange() {
	live := p.graph.live(p.encode)
	levels := make([]int, len(live))
	if !p.encode {
		levels = p.graph.levels()
	}
	byName := map[string]*value{}
	for i := range p.graph.Nodes {
		if !live[i] {
			continue
		}
		n := &p.graph.Nodes[i]
		v := &value{node: n, level: levels[i], step: -1}
		if n.Stride > 0 {
			v.h, v.w = p.size.H/n.Stride, p.size.W/n.Stride
		}
		for _, name := range n.needs(p.encode) {
			in := byName[name]
			v.in = append(v.in, in)
			in.readers = append(in.readers, v)
		}
		byName[n.Out] = v
		p.values = append(p.values, v)
	}
	slices.SortStableFunc(p.values, func(a, b *value) int { return a.level - b.level })
	for i, v := range p.values {
		v.order = i
	}
}

// cut joins neighbours in the order of execution into groups.
func (p *plan) cut(fuse bool) {
	var g *group
	for _, v := range p.values {
		how := accessOf(v.node.Op)
		if how == given {
			continue
		}
		if g == nil || !fuse || how == byRows || !g.takes(v) {
			g = &group{level: v.level, rows: how == byRows}
			p.groups = append(p.groups, g)
		}
		g.values = append(g.values, v)
		v.group, v.step = g, len(p.groups)-1
	}
}

// takes reports whether v can join: it has the same positions, and what it gathers is whole before the group starts.
func (g *group) takes(v *value) bool {
	first := g.values[0]
	if g.rows || v.level != g.level || v.h != first.h || v.w != first.w {
		return false
	}
	return accessOf(v.node.Op) != gather || !slices.ContainsFunc(v.in, func(in *value) bool { return in.group == g })
}

// settle decides which memory each value lies in.
func (p *plan) settle() {
	for _, v := range p.values {
		switch n := v.node; {
		case n.Kind == Picture || n.Kind == Field:
			v.place = outside
			if n.Op == "compensate" {
				v.picture = p.pictures
				p.pictures++
			}
		case n.Kind == Index:
			v.place = inBytes
		case n.isCoding():
			v.place = inSymbols
		case n.Op == "memory_in":
			v.place, v.state = inState, memoryIn
		case n.Op == "feature_in":
			v.place, v.state = inState, featureIn
		case n.Op == "memory_out":
			p.leave(v, memoryOut)
		case n.Op == "feature_out":
			p.leave(v, featureOut)
		case !v.group.rows && !slices.ContainsFunc(v.readers, func(r *value) bool { return r.group != v.group }):
			v.place = inScratch
		}
	}
}

// leave has the input of an output computed right in the state's buffer, unless it is to lie elsewhere.
func (p *plan) leave(out *value, s state) {
	out.place, out.state = inState, s
	if x := out.in[0]; x.place == inArena || x.place == inScratch {
		x.place, x.state = inState, s
	}
}

// allot gives every value of the arena and of the scratch an offset.
func (p *plan) allot() {
	var arena []*lifetime
	for _, v := range p.values {
		if v.place != inArena {
			continue
		}
		last := v.step
		for _, r := range v.readers {
			last = max(last, r.step)
		}
		if a := v.overwrites(); a != nil {
			v.life = a.life
			v.life.last = last
			continue
		}
		v.life = &lifetime{first: v.step, last: last, size: v.positions() * int64(v.node.C)}
		arena = append(arena, v.life)
	}
	p.arena = stack(arena)
	for _, g := range p.groups {
		var scratch []*lifetime
		for _, v := range g.values {
			if v.place != inScratch {
				continue
			}
			last := v.order
			for _, r := range v.readers {
				last = max(last, r.order)
			}
			v.life = &lifetime{first: v.order, last: last, size: int64(v.node.C)}
			scratch = append(scratch, v.life)
		}
		p.scratch = max(p.scratch, stack(scratch))
	}
}

// overwrites returns the value of the arena whose memory v can take over position by position: one of the same shape
// that only this group still reads, pointwise, and not after v is written; v itself may read it as a residual.
// A chain of residual blocks runs in one buffer that way.
func (v *value) overwrites() *value {
	for _, node := range v.group.values {
		for _, a := range node.in {
			if a.place == inArena && a.group != v.group && a.node.C == v.node.C && a.h == v.h && a.w == v.w && a.life.last == v.step && a.yields(v) {
				return a
			}
		}
	}
	return nil
}

func (a *value) yields(v *value) bool {
	for _, r := range a.readers {
		if r.group != v.group {
			continue
		}
		if accessOf(r.node.Op) != pointwise || r.order > v.order {
			return false
		}
		if r == v && !(v.node.Op == "lin" && v.in[0] != a) {
			return false
		}
	}
	return true
}
