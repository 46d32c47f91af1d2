package inference

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Limits of graph text.
const (
	maxGraphText = 4 << 20 // bytes
	maxGraphs    = 64
	maxNodes     = 1 << 14 // of one graph
	maxInputs    = 64      // of one node
)

var kindNames = [...]string{Feature: "feature", Picture: "picture", Field: "field", Index: "index", Symbols: "symbols"}

func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// FormatGraphs writes graphs as canonical text, the form that a model file holds and its identity covers: graphs in
// name order, for each a line "graph NAME" and a line for each node,
//
//	OUT = OP(IN, IN) KIND c=192 f=11 stride=8 role=@tensor key=3
//
// with one space between parts. c, f and stride follow feature; c and stride follow index and symbols. Tensor roles
// come in order of their names, then integers in order of theirs.
func FormatGraphs(graphs map[string]*Graph) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(graphs)) {
		fmt.Fprintf(&b, "graph %s\n", name)
		for i := range graphs[name].Nodes {
			graphs[name].Nodes[i].format(&b)
		}
	}
	return b.String()
}

func (n *Node) format(b *strings.Builder) {
	fmt.Fprintf(b, "%s = %s(%s) %v", n.Out, n.Op, strings.Join(n.In, ", "), n.Kind)
	switch n.Kind {
	case Feature:
		fmt.Fprintf(b, " c=%d f=%d stride=%d", n.C, n.F, n.Stride)
	case Index, Symbols:
		fmt.Fprintf(b, " c=%d stride=%d", n.C, n.Stride)
	}
	for _, role := range slices.Sorted(maps.Keys(n.Tensors)) {
		fmt.Fprintf(b, " %s=@%s", role, n.Tensors[role])
	}
	for _, key := range slices.Sorted(maps.Keys(n.Ints)) {
		fmt.Fprintf(b, " %s=%d", key, n.Ints[key])
	}
	b.WriteByte('\n')
}

// ParseGraphs reads what FormatGraphs writes. It checks the text's form only; Graph.Validate checks the meaning.
func ParseGraphs(text string) (map[string]*Graph, error) {
	if len(text) > maxGraphText {
		return nil, fmt.Errorf("inference: graphs: %d bytes of text, at most %d", len(text), maxGraphText)
	}
	graphs := map[string]*Graph{}
	var g *Graph
	line := 0
	for s := range strings.Lines(text) {
		line++
		s, ended := strings.CutSuffix(s, "\n")
		if !ended {
			return nil, fmt.Errorf("inference: graphs: line %d: does not end", line)
		}
		if name, ok := strings.CutPrefix(s, "graph "); ok {
			if !isName(name) || graphs[name] != nil || len(graphs) == maxGraphs {
				return nil, fmt.Errorf("inference: graphs: line %d: graph %q is misnamed, repeated or one too many", line, name)
			}
			g = &Graph{Name: name}
			graphs[name] = g
			continue
		}
		if g == nil {
			return nil, fmt.Errorf("inference: graphs: line %d: no graph begins here", line)
		}
		n, err := parseNode(s)
		if err != nil {
			return nil, fmt.Errorf("inference: graphs: line %d: %w", line, err)
		}
		if len(g.Nodes) == maxNodes {
			return nil, fmt.Errorf("inference: graphs: line %d: more than %d nodes", line, maxNodes)
		}
		g.Nodes = append(g.Nodes, n)
	}
	return graphs, nil
}

func parseNode(s string) (n Node, err error) {
	out, rest, ok1 := strings.Cut(s, " = ")
	op, rest, ok2 := strings.Cut(rest, "(")
	in, rest, ok3 := strings.Cut(rest, ") ")
	if !ok1 || !ok2 || !ok3 || !isName(out) || !isName(op) {
		return n, fmt.Errorf("%.80q is not OUT = OP(IN) KIND …", s)
	}
	n = Node{Out: out, Op: op}
	if in != "" {
		n.In = strings.Split(in, ", ")
	}
	if len(n.In) > maxInputs {
		return n, fmt.Errorf("%s has %d inputs, at most %d", out, len(n.In), maxInputs)
	}
	for _, name := range n.In {
		if !isName(name) {
			return n, fmt.Errorf("%s: input %q is no name", out, name)
		}
	}
	fields := strings.Split(rest, " ")
	kind := slices.Index(kindNames[:], fields[0])
	if kind < 0 {
		return n, fmt.Errorf("%s: unknown kind %q", out, fields[0])
	}
	n.Kind = Kind(kind)
	shape := map[string]*int{}
	switch n.Kind {
	case Feature:
		shape = map[string]*int{"c": &n.C, "f": &n.F, "stride": &n.Stride}
	case Index, Symbols:
		shape = map[string]*int{"c": &n.C, "stride": &n.Stride}
	}
	for _, field := range fields[1:] {
		key, value, ok := strings.Cut(field, "=")
		if !ok || !isName(key) {
			return n, fmt.Errorf("%s: %q is not key=value", out, field)
		}
		if err := n.attribute(key, value, shape); err != nil {
			return n, fmt.Errorf("%s: %s: %w", out, key, err)
		}
	}
	if len(shape) > 0 {
		return n, fmt.Errorf("%s: c, f or stride is missing", out)
	}
	return n, nil
}

// attribute stores one key=value: a member of the shape (taken out of the map, so that a second one is seen), a
// tensor or an integer.
func (n *Node) attribute(key, value string, shape map[string]*int) error {
	_, tensor := n.Tensors[key]
	_, integer := n.Ints[key]
	if tensor || integer {
		return fmt.Errorf("occurs twice")
	}
	if name, ok := strings.CutPrefix(value, "@"); ok {
		if !isName(name) {
			return fmt.Errorf("%q is no tensor's name", name)
		}
		if n.Tensors == nil {
			n.Tensors = map[string]string{}
		}
		n.Tensors[key] = name
		return nil
	}
	v, err := strconv.ParseInt(value, 10, 32)
	if err != nil {
		return fmt.Errorf("%q is not an integer of 32 bits", value)
	}
	if field := shape[key]; field != nil {
		*field = int(v)
		delete(shape, key)
		return nil
	}
	if key == "c" || key == "f" || key == "stride" {
		return fmt.Errorf("occurs twice or does not belong to %v", n.Kind)
	}
	if n.Ints == nil {
		n.Ints = map[string]int{}
	}
	n.Ints[key] = int(v)
	return nil
}

// isName reports whether s is 1 to 200 of the characters that names of graphs, nodes and tensors are made of.
func isName(s string) bool {
	if s == "" || len(s) > 200 {
		return false
	}
	for _, r := range s {
		if !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '_' || r == '-') {
			return false
		}
	}
	return true
}
