package inference

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

type checker struct {
	tensors map[string]*Tensor
	nodes   map[string]*Node
}

// Validate checks that every node names a known operator, that its inputs stand before it, and that kinds, shapes,
// strides, fractional bits and tensors fit; that the graph makes exactly one picture; that a decoder needs neither
// the source nor a symbol before it is decoded.
func (g *Graph) Validate(tensors map[string]*Tensor) error {
	c := &checker{tensors: tensors, nodes: map[string]*Node{}}
	fail := func(n *Node, err error) error { return &ModelError{g.Name + "/" + n.Out, err} }
	if !isName(g.Name) {
		return &ModelError{"graphs", fmt.Errorf("graph name %.80q is not allowed", g.Name)}
	}
	if len(g.Nodes) > maxNodes {
		return &ModelError{g.Name, fmt.Errorf("%d nodes, at most %d", len(g.Nodes), maxNodes)}
	}
	once := map[string]bool{}
	sections := map[string]bool{}
	for i := range g.Nodes {
		n := &g.Nodes[i]
		op := operators[n.Op]
		if op == nil {
			return &UnsupportedError{g.Name + "/" + n.Out + ": operator", n.Op}
		}
		if !isName(n.Out) || c.nodes[n.Out] != nil {
			return fail(n, errors.New("the name is not allowed or occurs twice"))
		}
		if op.once && once[n.Op] {
			return fail(n, fmt.Errorf("a second %s", n.Op))
		}
		once[n.Op] = true
		if n.isCoding() {
			if sections[n.section()] {
				return fail(n, fmt.Errorf("a second section %s", n.section()))
			}
			sections[n.section()] = true
		}
		if err := c.node(n, op); err != nil {
			return fail(n, err)
		}
		c.nodes[n.Out] = n
	}
	if !once["picture"] {
		return &ModelError{g.Name, errors.New("no node of operator picture")}
	}
	return g.checkDecoder()
}

func (c *checker) node(n *Node, op *operator) error {
	least, most := op.inputs()
	if len(n.In) < least || len(n.In) > most {
		return fmt.Errorf("%s has %d inputs, want %d to %d", n.Op, len(n.In), least, most)
	}
	in := make([]*Node, len(n.In))
	for i, name := range n.In {
		in[i] = c.nodes[name]
		if in[i] == nil {
			return fmt.Errorf("input %q is not a node before this one", name)
		}
		if kind := op.in[min(i, len(op.in)-1)]; in[i].Kind != kind {
			return fmt.Errorf("input %s is a %v, %s wants a %v", name, in[i].Kind, n.Op, kind)
		}
		if operators[in[i].Op].sink {
			return fmt.Errorf("input %s is an output of the graph", name)
		}
	}
	if n.Kind != op.out {
		return fmt.Errorf("kind is %v, %s makes a %v", n.Kind, n.Op, op.out)
	}
	if err := checkDims(n); err != nil {
		return err
	}
	if got := slices.Sorted(maps.Keys(n.Tensors)); !slices.Equal(got, op.tensors) {
		return fmt.Errorf("tensors %v, %s wants %v", got, n.Op, op.tensors)
	}
	if got := slices.Sorted(maps.Keys(n.Ints)); !slices.Equal(got, op.ints) {
		return fmt.Errorf("attributes %v, %s wants %v", got, n.Op, op.ints)
	}
	if op.check == nil {
		return nil
	}
	return op.check(c, n, in)
}

// checkDims checks C, F and Stride against what the kind has.
func checkDims(n *Node) error {
	switch n.Kind {
	case Picture, Field:
		if n.C != 0 || n.F != 0 || n.Stride != 0 {
			return fmt.Errorf("a %v has no c, f or stride", n.Kind)
		}
		return nil
	case Index, Symbols:
		if n.F != 0 {
			return fmt.Errorf("a %v has no f", n.Kind)
		}
	}
	if err := within("c", n.C, 1, maxChannels); err != nil {
		return err
	}
	if err := within("f", n.F, 0, maxF); err != nil {
		return err
	}
	if n.Stride < 1 || n.Stride > 64 || n.Stride&(n.Stride-1) != 0 {
		return fmt.Errorf("stride is %d, want a power of two up to 64", n.Stride)
	}
	return nil
}

// checkDecoder checks what a decoder runs: it must not reach the source, and the order of the sections must be one in
// which they can be decoded.
func (g *Graph) checkDecoder() error {
	live := g.live(false)
	levels := g.levels()
	last := 0
	for i := range g.Nodes {
		n := &g.Nodes[i]
		if live[i] && n.Op == "source" {
			return &ModelError{g.Name + "/" + n.Out, errors.New("the decoder would need it")}
		}
		if !n.isCoding() {
			continue
		}
		if levels[i] < last {
			return &ModelError{g.Name + "/" + n.Out, errors.New("could be decoded before the section in front of it")}
		}
		last = levels[i]
	}
	return nil
}

// needs returns the inputs that computing a node reads: of a coding node the decoder reads only what its tables
// depend on.
func (n *Node) needs(encode bool) []string {
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

// live marks the nodes that the outputs and the coding nodes depend on.
func (g *Graph) live(encode bool) []bool {
	at := g.places()
	live := make([]bool, len(g.Nodes))
	for i := len(g.Nodes) - 1; i >= 0; i-- {
		n := &g.Nodes[i]
		if operators[n.Op].sink || n.isCoding() {
			live[i] = true
		}
		if !live[i] {
			continue
		}
		for _, name := range n.needs(encode) {
			live[at[name]] = true
		}
	}
	return live
}

// levels gives for each node how many round trips to the entropy decoder stand before it: a coding node's level is
// that of its tables, and what reads its symbols comes one level later.
func (g *Graph) levels() []int {
	at := g.places()
	levels := make([]int, len(g.Nodes))
	for i := range g.Nodes {
		for _, name := range g.Nodes[i].needs(false) {
			j := at[name]
			level := levels[j]
			if g.Nodes[j].isCoding() {
				level++
			}
			levels[i] = max(levels[i], level)
		}
	}
	return levels
}

// places maps the values' names to their nodes' indices.
func (g *Graph) places() map[string]int {
	at := make(map[string]int, len(g.Nodes))
	for i := range g.Nodes {
		at[g.Nodes[i].Out] = i
	}
	return at
}

// validate checks the tensors, every graph alone, and that graphs agree on the state they leave to each other.
func (m *Model) validate() error {
	for name, t := range m.Tensors {
		if t == nil || t.Name != name || !isName(name) {
			return &ModelError{"tensor", fmt.Errorf("%.80q is not allowed, or not the name that the tensor states", name)}
		}
		if err := t.check(); err != nil {
			return &ModelError{name, err}
		}
	}
	if len(m.Graphs) == 0 || len(m.Graphs) > maxGraphs {
		return &ModelError{"graphs", fmt.Errorf("%d graphs, want 1 to %d", len(m.Graphs), maxGraphs)}
	}
	state := map[string]*Node{} // "memory" or "feature": the first node that states its shape
	for _, name := range slices.Sorted(maps.Keys(m.Graphs)) {
		g := m.Graphs[name]
		if g == nil || g.Name != name {
			return &ModelError{"graphs", fmt.Errorf("%.80q is not the name that the graph states", name)}
		}
		if err := g.Validate(m.Tensors); err != nil {
			return err
		}
		for i := range g.Nodes {
			n := &g.Nodes[i]
			what := stateOf(n.Op)
			if what == "" {
				continue
			}
			if state[what] == nil {
				state[what] = n
			}
			if err := same(what, n, state[what].C, state[what].F, state[what].Stride); err != nil {
				return &ModelError{name + "/" + n.Out, err}
			}
		}
	}
	return nil
}

func stateOf(op string) string {
	switch op {
	case "memory_in", "memory_out":
		return "memory"
	case "feature_in", "feature_out":
		return "feature"
	}
	return ""
}
