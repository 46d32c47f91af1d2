//go:build cuda

package cuda

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/nvcodec/nvcodec/inference"
)

// A plan is how one graph is computed at one size in one direction: its live nodes in order of execution and a place
// for every value. It holds no memory itself.
type plan struct {
	graph  *inference.Graph
	encode bool
	size   inference.Size
	values []*value
	arena  int64 // bytes that values with a lifetime need together
	coding int64 // bytes of symbols and their tables
	moved  int   // pictures that compensate makes
}

// A place says which of a session's memory holds a value.
type place uint8

const (
	inArena   place = iota // offset
	inCoding               // offset; the value's symbols
	inMemory               // kept for the next frame
	inFeature              // likewise
	inPicture              // source, reference, or the picture-th that compensate made
	inVectors
	nowhere // computed by its reader
)

type value struct {
	node      *inference.Node
	level     int
	section   int // coding level of a coding node, as the decoder counts
	order     int
	h, w      int
	in        []*value
	readers   []*value
	place     place
	kept      bool // inMemory, inFeature: what this frame leaves, not what the one before left
	offset    int64
	tables    int64 // inCoding: where the symbols' tables stand
	picture   int
	when      moment
	life      *lifetime
	sum       bool     // an actsum4 that computes the lin in front of it too
	sources   []source // of a value that is gathered
	chain     *valueChain
	group     *grouping // how it is computed, with what only it reads
	activated bool      // what is stored has been through the activation of its reader
	by        *value    // a reader that computes this one too, of a code_y or latent
}

func (v *value) positions() int64 { return int64(v.h) * int64(v.w) }
func (v *value) count() int64     { return v.positions() * int64(v.node.C) }

func isCoding(n *inference.Node) bool { return n.Op == "code_z" || n.Op == "code_y" }
func isSink(n *inference.Node) bool {
	return n.Op == "picture" || n.Op == "memory_out" || n.Op == "feature_out"
}

// needs returns the inputs that computing a node reads: of a coding node the decoder reads only what its tables
// depend on.
func needs(n *inference.Node, encode bool) []string {
	switch {
	case encode:
		return n.In
	case n.Op == "code_z":
		return nil
	case n.Op == "code_y":
		return n.In[3:]
	}
	return n.In
}

// newPlan plans a graph that Prove has validated.
func newPlan(g *inference.Graph, s inference.Size, encode bool, f *fusion) (*plan, error) {
	p := &plan{graph: g, encode: encode, size: s}
	p.arrange()
	p.group(f.groups)
	p.fuse(f.sums)
	p.gather()
	p.read()
	p.join()
	p.chain(f.chains)
	p.split()
	p.settle()
	for _, v := range p.values {
		if v.node.Kind != inference.Picture && v.node.Kind != inference.Field && v.count() > math.MaxInt32/2 {
			return nil, fmt.Errorf("cuda: graph %s: %s has %d values at %dx%d, at most %d", g.Name, v.node.Out, v.count(), s.W, s.H, math.MaxInt32/2)
		}
	}
	p.allot()
	return p, nil
}

// arrange lists the live nodes; in the decoder level by level, where a node's level is how many round trips to the
// entropy decoder stand before it.
func (p *plan) arrange() {
	nodes := p.graph.Nodes
	at := map[string]int{}
	for i := range nodes {
		at[nodes[i].Out] = i
	}
	live := make([]bool, len(nodes))
	for i := len(nodes) - 1; i >= 0; i-- {
		live[i] = live[i] || isSink(&nodes[i]) || isCoding(&nodes[i])
		if live[i] {
			for _, name := range needs(&nodes[i], p.encode) {
				live[at[name]] = true
			}
		}
	}
	levels := make([]int, len(nodes))
	byName := map[string]*value{}
	for i := range nodes {
		n := &nodes[i]
		for _, name := range needs(n, false) {
			level := levels[at[name]]
			if isCoding(&nodes[at[name]]) {
				level++
			}
			levels[i] = max(levels[i], level)
		}
		if !live[i] {
			continue
		}
		v := &value{node: n, section: levels[i]}
		if !p.encode {
			v.level = levels[i]
		}
		if n.Stride > 0 {
			v.h, v.w = p.size.H/n.Stride, p.size.W/n.Stride
		}
		for _, name := range needs(n, p.encode) {
			in := byName[name]
			v.in = append(v.in, in)
			in.readers = append(in.readers, v)
		}
		byName[n.Out] = v
		p.values = append(p.values, v)
	}
	slices.SortStableFunc(p.values, func(a, b *value) int { return cmp.Compare(a.level, b.level) })
	for i, v := range p.values {
		v.order = i
	}
}

// summed returns the names of the lins whose only reader is a gated sum, which computes both.
func summed(g *inference.Graph, tensors map[string]*inference.Tensor) map[string]bool {
	readers := map[string]int{}
	sums := map[string]bool{}
	for i := range g.Nodes {
		for _, name := range g.Nodes[i].In {
			readers[name]++
			sums[name] = g.Nodes[i].Op == "actsum4"
		}
	}
	out := map[string]bool{}
	for i := range g.Nodes {
		n := &g.Nodes[i]
		if n.Op == "lin" && len(n.In) == 1 && readers[n.Out] == 1 && sums[n.Out] && tensors[n.Tensors["w"]].Type == "I8" {
			out[n.Out] = true
		}
	}
	return out
}

// fuse has the sums of these lins compute them.
func (p *plan) fuse(lins map[string]bool) {
	for _, v := range p.values {
		if v.group != nil || v.node.Op != "actsum4" || !lins[v.node.In[0]] {
			continue
		}
		lin := v.in[0]
		lin.place, lin.readers = nowhere, nil
		v.sum = true
		x := lin.in[0]
		x.readers[slices.Index(x.readers, lin)] = v
	}
}

// settle decides which memory each value lies in.
func (p *plan) settle() {
	for _, v := range p.values {
		switch n := v.node; n.Op {
		case "source", "reference", "picture":
			v.place = inPicture
		case "compensate":
			v.place, v.picture = inPicture, p.moved
			p.moved++
		case "vectors":
			v.place = inVectors
		case "memory_in":
			v.place = inMemory
		case "feature_in":
			v.place = inFeature
		case "memory_out", "feature_out":
			v.place, v.kept = inMemory, true
			if n.Op == "feature_out" {
				v.place = inFeature
			}
			// What the graph leaves is computed there, unless it is an input or goes to the other output too.
			if x := v.in[0]; x.place == inArena {
				x.place, x.kept = v.place, true
			}
		case "code_z", "code_y":
			v.place = inCoding
		}
	}
}

// allot gives every value of the arena, and the symbols, an offset.
func (p *plan) allot() {
	var all []*lifetime
	for _, v := range p.values {
		switch v.place {
		case inCoding:
			v.offset = p.coding
			v.tables = v.offset + aligned(2*v.count())
			p.coding = v.tables + aligned(v.count())
		case inArena:
			last := v.order
			for _, r := range v.readers {
				last = max(last, r.order)
			}
			users := slices.DeleteFunc(append(slices.Clone(v.readers), v), (*value).idle)
			if res := v.overwrites(); res != nil && res.life.yields(v) {
				v.life = res.life
				v.life.last = last
				v.life.users = append(v.life.users, users...)
				continue
			}
			size := 2 * v.count()
			if v.node.Kind == inference.Index {
				size = v.count()
			}
			v.life = &lifetime{maker: v, last: last, users: users, size: size}
			all = append(all, v.life)
		}
	}
	p.arena = stack(all)
	for _, v := range p.values {
		if v.place == inArena {
			v.offset = v.life.offset
		}
	}
}

// overwrites returns the residual whose memory a lin may take over: it reads each value of it just before it writes
// there, so that a chain of residual blocks runs in one buffer. The residual must have no later reader and must not be
// what the lin multiplies, which other blocks of threads still read.
func (v *value) overwrites() *value {
	if c := v.chain; c != nil {
		if v != c.x || c.res == nil || c.res.place != inArena || c.res.life == c.src.life || c.res.life.last != v.order {
			return nil
		}
		return c.res
	}
	if v.node.Op != "lin" || len(v.in) != 2 {
		return nil
	}
	res := v.in[1]
	if res.place != inArena || res == v.in[0] || res.life == v.in[0].life || res.life.last != v.order {
		return nil
	}
	return res
}

// A lifetime is a block of memory that is needed from when a value is computed until the last of its users has been.
type lifetime struct {
	maker  *value
	users  []*value // its maker too
	last   int      // of their orders
	size   int64
	offset int64 // set by stack
}

// alignment keeps every value on what 16-byte accesses and full memory transactions want.
const alignment = 256

func aligned(n int64) int64 { return (n + alignment - 1) / alignment * alignment }

// stack gives every block an offset such that no two that live at the same moment overlap, and returns the size of
// the memory that holds them all. Larger blocks choose first and take the lowest gap.
func stack(all []*lifetime) int64 {
	order := slices.Clone(all)
	slices.SortStableFunc(order, func(a, b *lifetime) int { return cmp.Compare(b.size, a.size) })
	var placed []*lifetime // by offset
	var total int64
	for _, b := range order {
		for _, o := range placed {
			if o.precedes(b.maker) || b.precedes(o.maker) {
				continue
			}
			if o.offset-b.offset >= b.size {
				break
			}
			b.offset = max(b.offset, aligned(o.offset+o.size))
		}
		i, _ := slices.BinarySearchFunc(placed, b.offset, func(o *lifetime, at int64) int { return cmp.Compare(o.offset, at) })
		placed = slices.Insert(placed, i, b)
		total = max(total, aligned(b.offset+b.size))
	}
	return total
}
