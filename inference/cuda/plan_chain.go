//go:build cuda

package cuda

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/nvcodec/nvcodec/inference"
	"github.com/nvcodec/nvcodec/inference/kernel"
)

// Chains of a graph: which nodes one kernel of kernels/chain.cuh computes together.
//
// A network's block, x' = x + pw2(dw(pw1(x))), x” = x' + ff2(sum(ff1(x'))), is a chain from dw to ff2, and the lins that
// read x”, the next block's pw1 first of all, are its tails. A lin in front of a block (an adaptor) is a chain with the
// block's pw1 as tail; and so is, without computing anything itself, a tensor that a block reads and no chain makes.

// A fusion is what becomes of a graph's nodes whatever the size and direction.
type fusion struct {
	sums   map[string]bool // lins that the gated sum behind them computes
	chains []*nodeChain
	groups []*grouping // what kernels of compute capability 9.0 alone compute
}

// A nodeChain is the nodes of one chain; those that it has not are nil.
type nodeChain struct {
	head        chainHead // chainDepthwise also where the width of a picture leads to chainResidual
	x           *inference.Node
	lin         *inference.Node // of the head, but for chainCopy
	conv        *inference.Node
	up, sum     *inference.Node
	down, scale *inference.Node
	tails       []*inference.Node
	c           int
}

// nodes returns everything that the chain computes.
func (c *nodeChain) nodes() []*inference.Node {
	var all []*inference.Node
	for _, n := range append([]*inference.Node{c.conv, c.lin, c.up, c.sum, c.down, c.scale}, c.tails...) {
		if n != nil {
			all = append(all, n)
		}
	}
	return all
}

// key names the chain's weights.
func (c *nodeChain) key() string {
	var b strings.Builder
	fmt.Fprintf(&b, "chain %d", c.head)
	for _, n := range c.nodes() {
		if n != c.scale && n != c.sum {
			b.WriteString("|" + n.Tensors["w"] + "|" + n.Tensors["bias"] + "|" + n.Tensors["mul"])
		}
	}
	return b.String()
}

// fuse decides what runs together in a graph on a family.
func fuse(g *inference.Graph, tensors map[string]*inference.Tensor, family int) *fusion {
	f := &fusion{sums: summed(g, tensors)}
	if family < 80 {
		return f
	}
	s := &chainSearch{tensors: tensors, nodes: map[string]*inference.Node{}, readers: map[string][]*inference.Node{}, at: map[*inference.Node]*nodeChain{}}
	for i := range g.Nodes {
		n := &g.Nodes[i]
		s.nodes[n.Out] = n
		for _, name := range n.In {
			s.readers[name] = append(s.readers[name], n)
		}
	}
	for i := range g.Nodes {
		s.block(&g.Nodes[i])
	}
	for _, c := range slices.Clone(s.chains) {
		s.front(c)
	}
	for i := range g.Nodes {
		s.tail(&g.Nodes[i])
	}
	f.chains = slices.DeleteFunc(s.chains, func(c *nodeChain) bool { return c.head == chainCopy && len(c.tails) == 0 })
	if family == 90 {
		f.groups = groupings(g, tensors, f.chained)
	}
	return f
}

// chained reports whether a chain computes a node.
func (f *fusion) chained(n *inference.Node) bool {
	return slices.ContainsFunc(f.chains, func(c *nodeChain) bool { return slices.Contains(c.nodes(), n) })
}

type chainSearch struct {
	tensors map[string]*inference.Tensor
	nodes   map[string]*inference.Node
	readers map[string][]*inference.Node
	chains  []*nodeChain
	at      map[*inference.Node]*nodeChain // by x
}

func (s *chainSearch) add(c *nodeChain) *nodeChain {
	s.chains = append(s.chains, c)
	s.at[c.x] = c
	return c
}

// fits reports whether a node is an operator with weights that a chain can compute, of so many inputs.
func (s *chainSearch) fits(n *inference.Node, op string, inputs int) bool {
	if n == nil || n.Op != op || len(n.In) != inputs || s.tensors[n.Tensors["w"]].Type != "I8" || n.C%8 != 0 {
		return false
	}
	_, _, ok := raised(s.tensors[n.Tensors["mul"]].I32, uint(n.Ints["shift"]))
	return ok
}

// read reports whether these and no others read a node, in any order.
func (s *chainSearch) read(n *inference.Node, by ...*inference.Node) bool {
	r := s.readers[n.Out]
	return len(r) == len(by) && !slices.ContainsFunc(by, func(x *inference.Node) bool { return !slices.Contains(r, x) })
}

// block finds the chain of a network's block by its last node.
func (s *chainSearch) block(down *inference.Node) {
	c := down.C
	if !slices.Contains(chainWidths, c) || !s.fits(down, "lin", 2) {
		return
	}
	sum, mid := s.nodes[down.In[0]], s.nodes[down.In[1]]
	if sum.Op != "actsum4" || sum.C != c/2 || !s.read(sum, down) || !s.fits(mid, "lin", 2) || mid.C != c {
		return
	}
	up, conv := s.nodes[sum.In[0]], s.nodes[mid.In[0]]
	if !s.fits(up, "lin", 1) || up.In[0] != mid.Out || up.C != 2*c || !s.read(up, sum) || !s.read(mid, up, down) {
		return
	}
	if !s.fits(conv, "dwact", 1) || conv.C != c/2 || !s.read(conv, mid) || s.nodes[mid.In[1]].C != c {
		return
	}
	x := &nodeChain{head: chainDepthwise, x: down, c: c, conv: conv, lin: mid, up: up, sum: sum, down: down}
	if r := s.readers[down.Out]; len(r) == 1 && r[0].Op == "scale" && slices.ContainsFunc(s.readers[r[0].Out], func(n *inference.Node) bool { return s.fits(n, "lin", 1) }) {
		x.scale, x.x = r[0], r[0]
	}
	s.add(x)
}

// front gives the lin that a block's depthwise convolution reads to a chain, as its first tail.
func (s *chainSearch) front(block *nodeChain) {
	pw := s.nodes[block.conv.In[0]]
	if !s.fits(pw, "lin", 1) {
		return
	}
	x := s.nodes[pw.In[0]]
	c := s.at[x]
	switch {
	case c != nil:
	case !slices.Contains(chainWidths, x.C):
		return
	case s.fits(x, "lin", 1) && s.nodes[x.In[0]].C%8 == 0:
		c = s.add(&nodeChain{head: chainLin, x: x, lin: x, c: x.C})
	default:
		c = s.add(&nodeChain{head: chainCopy, x: x, c: x.C})
	}
	if len(c.tails) < chainTails {
		c.tails = append(c.tails, pw)
	}
}

// tail gives a lin to the chain that makes what it reads.
func (s *chainSearch) tail(n *inference.Node) {
	if !s.fits(n, "lin", 1) || s.at[n] != nil {
		return
	}
	c := s.at[s.nodes[n.In[0]]]
	if c == nil || c.head == chainCopy || len(c.tails) == chainTails || slices.Contains(c.tails, n) {
		return
	}
	if r := s.readers[n.Out]; len(r) == 1 && r[0].Op == "actsum4" {
		return
	}
	c.tails = append(c.tails, n)
}

// packChain returns the weights of a chain.
func packChain(c *nodeChain, tensors map[string]*inference.Tensor) []byte {
	lin := func(n *inference.Node) *kernel.Lin {
		if n == nil {
			return nil
		}
		w := tensors[n.Tensors["w"]]
		return &kernel.Lin{In: w.Shape[1], Out: w.Shape[0], W: w.I8, Bias: tensors[n.Tensors["bias"]].I32, Mul: tensors[n.Tensors["mul"]].I32, Shift: uint(n.Ints["shift"])}
	}
	p := chain{c: c.c, head: c.head, lin: lin(c.lin), up: lin(c.up), down: lin(c.down)}
	if n := c.conv; n != nil {
		p.conv = &kernel.DWAct{C: n.C, W: tensors[n.Tensors["w"]].I8, Bias: tensors[n.Tensors["bias"]].I32, Mul: tensors[n.Tensors["mul"]].I32, Shift: uint(n.Ints["shift"])}
	}
	for _, n := range c.tails {
		p.tails = append(p.tails, lin(n))
	}
	packed, ok := p.pack()
	if !ok {
		panic("cuda: a chain of layers that are not for it") // fits has asked
	}
	return packed
}

// A valueChain is a chain in a plan.
type valueChain struct {
	*nodeChain
	head     chainHead
	x        *value   // what tails read
	src, res *value   // what the chain reads
	members  []*value // what it computes, in order
	tails    []*value // of members, nil where nothing needs one
}

// chain has the chains of a graph computed at once, where all that they need is there.
func (p *plan) chain(chains []*nodeChain) {
	values := map[*inference.Node]*value{}
	for _, v := range p.values {
		values[v.node] = v
	}
	for _, c := range chains {
		p.bind(c, values)
	}
	for _, v := range p.values {
		if c := v.chain; c != nil && c.head == chainDepthwise {
			// The convolution's input comes through its activation, or the convolution runs alone.
			pw := c.src
			if v.w%2 == 0 && pw.chain != nil && only(pw, values[c.conv]) {
				pw.activated = true
				continue
			}
			conv := values[c.conv]
			c.head, c.src = chainResidual, conv
			c.members = slices.DeleteFunc(c.members, func(m *value) bool { return m == conv })
			conv.chain, conv.place = nil, inArena
		}
	}
	p.regroup()
}

func (p *plan) bind(c *nodeChain, values map[*inference.Node]*value) {
	b := &valueChain{nodeChain: c, head: c.head, x: values[c.x]}
	if b.x == nil || b.x.chain != nil && c.head != chainCopy {
		return
	}
	for _, n := range c.nodes() {
		v := values[n]
		tail := slices.Contains(c.tails, n)
		if tail {
			b.tails = append(b.tails, v)
		}
		if v == nil || v.place == nowhere && n != c.up || v.sources != nil && n != c.scale {
			if tail && v == nil {
				continue
			}
			return
		}
		b.members = append(b.members, v)
	}
	if len(b.members) == 0 {
		return
	}
	switch c.head {
	case chainCopy:
		b.src = b.x
	case chainLin:
		b.src = values[c.lin].in[0]
	default:
		b.src, b.res = values[c.conv].in[0], values[c.lin].in[1]
	}
	if b.src.place == nowhere || b.res != nil && b.res.place == nowhere {
		return
	}
	for _, v := range b.members {
		v.chain = b
		if v != b.x && !slices.Contains(b.tails, v) {
			v.place = nowhere
		}
	}
	if c.head != chainCopy && !slices.ContainsFunc(b.x.readers, func(r *value) bool { return r.chain != b }) {
		b.x.place = nowhere
	}
}

// regroup moves the members of a chain together, to where the last one is that is no tail, or else the first tail.
func (p *plan) regroup() {
	var out []*value
	for _, v := range p.values {
		c := v.chain
		switch {
		case c == nil:
			out = append(out, v)
		case v == c.anchor():
			out = append(out, c.members...)
		}
	}
	p.values = out
	for i, v := range p.values {
		v.order = i
		if v.chain != nil {
			v.order = slices.Index(out, v.chain.members[0])
		}
	}
}

// anchor is the member whose turn is the whole chain's.
func (c *valueChain) anchor() *value {
	if c.nodeChain.head != chainCopy {
		return c.x
	}
	return slices.MinFunc(c.members, func(a, b *value) int { return cmp.Compare(a.order, b.order) })
}

// compileChain returns the launch of a chain.
func (s *session) compileChain(c *valueChain, parity int) call {
	at := func(v *value) pointer {
		if v == nil || v.place == nowhere {
			return 0
		}
		return s.address(v, parity)
	}
	shift := func(n *inference.Node) int {
		if n == nil {
			return 0
		}
		return max(n.Ints["shift"], chainShift)
	}
	_, bytes := chainStage(c.c)
	weights := c.key()
	r := &chainRun{
		c: c.c, head: c.head, src: at(c.src), res: at(c.res), weights: s.weights.pointer(weights), stages: s.weights.sizes[weights] / bytes,
		n: int(c.x.positions()), h: c.x.h, w: c.x.w, in: c.src.node.C,
		conv: shift(c.conv), lin: shift(c.lin), up: shift(c.up), down: shift(c.down),
	}
	if c.nodeChain.head != chainCopy {
		r.dst = at(c.x)
	}
	if c.head == chainResidual { // the weights begin with the convolution's
		r.weights += pointer(bytes)
		r.stages--
	}
	if c.sum != nil {
		r.f = c.sum.F
	}
	if c.scale != nil {
		r.table, r.tableShift, r.frame = s.weights.pointer(c.scale.Tensors["table"]), c.scale.Ints["shift"], s.frameParameters()
	}
	for i, n := range c.nodeChain.tails {
		r.tails[i] = chainTail{n: n.C, shift: shift(n)}
		if v := c.tails[i]; v != nil {
			r.tails[i].dst = at(v)
			if v.activated {
				r.tails[i].f = n.F
			}
		}
	}
	return callChain(r, s.m.processors(), s.m.shared())
}

// products counts those of int8 by int8 that a chain makes.
func (c *valueChain) products() float64 {
	sum := 0
	add := func(n *inference.Node, in int) {
		if n != nil {
			sum += 2 * n.C * in
		}
	}
	if c.lin != nil {
		in := c.c / 2
		if c.head == chainLin {
			in = c.src.node.C
		}
		add(c.lin, in)
	}
	add(c.up, c.c)
	add(c.down, c.c/2)
	for _, n := range c.nodeChain.tails {
		add(n, c.c)
	}
	return float64(sum) * float64(c.x.positions())
}
