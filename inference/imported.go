package inference

import (
	"math/bits"
	"slices"

	"github.com/nvcodec/nvcodec/inference/kernel"
)

// The operators that imported networks need beyond nvc1's, apart from their loops in package kernel.

// packedChannels is what a packed picture next to n has: 192 if n has, else 96.
func packedChannels(n *Node) int {
	if n.C == kernel.PackedFull {
		return kernel.PackedFull
	}
	return kernel.Packed
}

func checkConv3(c *checker, n *Node, in []*Node) error {
	if err := within("r", n.Ints["r"], 1, 2); err != nil {
		return err
	}
	if err := same("output", n, n.C, n.F, in[0].Stride*n.Ints["r"]); err != nil {
		return err
	}
	if _, err := c.tensor(n, "w", []string{"I8", "I16"}, n.C, 9, in[0].C); err != nil {
		return err
	}
	return c.checkRequantise(n)
}

func checkDW(c *checker, n *Node, in []*Node) error {
	if err := same("output", n, in[0].C, n.F, in[0].Stride); err != nil {
		return err
	}
	if _, err := c.tensor(n, "w", []string{"I8"}, 9, n.C); err != nil {
		return err
	}
	return c.checkRequantise(n)
}

func checkLookup(c *checker, n *Node, in []*Node) error {
	if err := same("output", n, in[0].C, n.F, in[0].Stride); err != nil {
		return err
	}
	_, err := c.tensor(n, "table", []string{"I16"}, 1<<16)
	return err
}

func checkSum2(_ *checker, n *Node, in []*Node) error {
	return same("input", in[0], 2*n.C, n.F, n.Stride)
}

func checkAdd(_ *checker, n *Node, in []*Node) error {
	for _, x := range in {
		if err := same("input "+x.Out, x, n.C, n.F, n.Stride); err != nil {
			return err
		}
	}
	return nil
}

func conv3(n *Node, in int, tensor func(role string) *Tensor) *kernel.Conv3 {
	w := tensor("w")
	c := &kernel.Conv3{In: in, Out: n.C, R: n.Ints["r"], W: w.I8, W16: w.I16, Bias: tensor("bias").I32, Mul: tensor("mul").I32, Shift: uint(n.Ints["shift"])}
	c.Check()
	return c
}

func dw(n *Node, tensor func(role string) *Tensor) *kernel.DW {
	d := &kernel.DW{C: n.C, W: tensor("w").I8, Bias: tensor("bias").I32, Mul: tensor("mul").I32, Shift: uint(n.Ints["shift"])}
	d.Check()
	return d
}

// conv3 proves a 3x3 convolution: nine times the input's channels, each of them 0 outside.
func (p *prover) conv3(n *Node, in []Range) ([]Range, error) {
	w := p.m.Tensors[n.Tensors["w"]]
	var all []Range
	for range 9 {
		for _, r := range in {
			all = append(all, r.join(Range{}))
		}
	}
	layer := newLayer(p, n, w.Type)
	if err := layer.products(w, all); err != nil {
		return nil, err
	}
	p.proof.Layers = append(p.proof.Layers, layer.proof)
	return layer.out, nil
}

// lookup returns what the table holds over each channel's range.
func (p *prover) lookup(n *Node, in []Range) []Range {
	name := n.Tensors["table"]
	if p.tables[name] == nil {
		p.tables[name] = spans(p.m.Tensors[name].I16)
	}
	out := make([]Range, n.C)
	for c, r := range in {
		lo, length := int(r.Lo)+1<<15, int(r.Hi-r.Lo)+1
		level := p.tables[name][bits.Len(uint(length))-1]
		out[c] = level[lo].join(level[lo+length-1<<(bits.Len(uint(length))-1)])
	}
	return out
}

// spans gives for every power of two the range of that many entries from each place of a table on, so that the range
// of any run of entries is that of two.
func spans(table []int16) [][]Range {
	level := make([]Range, len(table))
	for i, v := range table {
		level[i] = Range{int32(v), int32(v)}
	}
	all := [][]Range{level}
	for n := 1; 2*n <= len(table); n *= 2 {
		next := make([]Range, len(level)-n)
		for i := range next {
			next[i] = level[i].join(level[i+n])
		}
		all, level = append(all, next), next
	}
	return slices.Clip(all)
}
