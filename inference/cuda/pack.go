//go:build cuda

package cuda

import "github.com/nvcodec/nvcodec/inference/kernel"

// The order of weights that kernels/lin.cuh reads. A block of 64 output channels is four groups of 16, one for each
// lane t of four; a step is 32 input channels.
const (
	blockOutputs = 64
	stepInputs   = 32
)

// A packed layer holds weights, bias and mul of a lin in the kernels' order, whole blocks and steps: what is past the
// ends is 0.
type packed struct {
	w         []byte
	bias, mul []int32
}

// outputOf returns the output channel at place p of the kernels' order, or -1. With sum4 a block holds 16 channels of
// all four quarters of the output.
func outputOf(p, out int, sum4 bool) int {
	if !sum4 {
		if p < out {
			return p
		}
		return -1
	}
	quarter := out / 4
	c := p/blockOutputs*16 + p%blockOutputs/16*4 + p%4
	if c >= quarter {
		return -1
	}
	return p%16/4*quarter + c
}

// packLin arranges a layer with int8 weights for a family.
func packLin(l *kernel.Lin, family int, sum4 bool) packed {
	perBlock := blockOutputs
	outputs := l.Out
	if sum4 {
		perBlock, outputs = 16, l.Out/4
	}
	blocks := (outputs + perBlock - 1) / perBlock
	steps := (l.In + stepInputs - 1) / stepInputs
	p := packed{
		w:    make([]byte, blocks*steps*blockOutputs*stepInputs),
		bias: make([]int32, blocks*blockOutputs), mul: make([]int32, blocks*blockOutputs),
	}
	for at := range p.bias {
		o := outputOf(at, l.Out, sum4)
		if o < 0 {
			continue
		}
		p.bias[at], p.mul[at] = l.Bias[o], l.Mul[o]
		for i, w := range l.W[o*l.In:][:l.In] {
			base := (at/blockOutputs*steps + i/stepInputs) * blockOutputs * stepInputs
			p.w[base+weightPlace(at%blockOutputs, i%stepInputs, family)] = byte(w)
		}
	}
	return p
}

// weightPlace returns where in a step's 2048 bytes the weight of output place o (0..63) and input channel k (0..31)
// stands.
func weightPlace(o, k, family int) int {
	t, i := o/16, o%16 // of lane t's 16 outputs number i
	if family < 75 {
		// Words of four input channels: [k/4][t][i].
		return ((k/4*4+t)*16+i)*4 + k%4
	}
	// Tile i/2 has the output as its column 2t + i%2, which lane group g of the fragment B holds; lane 4g + k/8 has the
	// bytes k%8: the first four in the register of the first half of the product's k, the others in the second.
	tile, g := i/2, 2*t+i%2
	lane, register := 4*g+k/8, k%8/4
	word := (tile/2*32+lane)*4 + tile%2*2 + register
	return word*4 + k%4
}
