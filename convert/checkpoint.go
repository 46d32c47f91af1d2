// Package convert turns float checkpoints of the network nvc1 into integer model files. It also holds the float
// network itself (the twin), which calibrates the conversion and measures what the conversion costs.
package convert

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"sort"

	"github.com/nvcodec/nvcodec/inference/safetensors"
)

// A Tensor of a checkpoint. Floats of every width become float32, which holds F16 and BF16 exactly; integers become
// int32. Exactly one of Float and Int is set.
type Tensor struct {
	Type  string // "F32", "F16", "BF16", "I32", "I16", "I8", "U8"
	Shape []int
	Float []float32
	Int   []int32
}

// A Checkpoint is the content of one safetensors file.
type Checkpoint struct {
	Meta    map[string]string
	Tensors map[string]*Tensor
}

// Names lists the tensors in order.
func (c *Checkpoint) Names() []string {
	names := make([]string, 0, len(c.Tensors))
	for n := range c.Tensors {
		names = append(names, n)
	}
	sort.Strings(names)
	return names
}

// ReadCheckpoint reads the safetensors file at path.
func ReadCheckpoint(path string) (*Checkpoint, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	c, err := ParseCheckpoint(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

// ParseCheckpoint reads a safetensors file. Types other than F32, F16, BF16, I32, I16, I8 and U8 are refused, and so
// are floats that are not finite.
func ParseCheckpoint(b []byte) (*Checkpoint, error) {
	f, err := safetensors.Parse(b)
	if err != nil {
		return nil, err
	}
	c := &Checkpoint{Meta: f.Metadata, Tensors: map[string]*Tensor{}}
	for _, t := range f.Tensors {
		v, err := decode(t)
		if err != nil {
			return nil, fmt.Errorf("convert: tensor %s: %w", t.Name, err)
		}
		c.Tensors[t.Name] = v
	}
	return c, nil
}

func decode(t safetensors.Tensor) (*Tensor, error) {
	v := &Tensor{Type: t.Type, Shape: t.Shape}
	order := binary.LittleEndian
	switch t.Type {
	case "F32":
		v.Float = make([]float32, len(t.Data)/4)
		for i := range v.Float {
			v.Float[i] = math.Float32frombits(order.Uint32(t.Data[4*i:]))
		}
	case "BF16":
		v.Float = make([]float32, len(t.Data)/2)
		for i := range v.Float {
			v.Float[i] = math.Float32frombits(uint32(order.Uint16(t.Data[2*i:])) << 16)
		}
	case "F16":
		v.Float = make([]float32, len(t.Data)/2)
		for i := range v.Float {
			v.Float[i] = half(order.Uint16(t.Data[2*i:]))
		}
	case "I32":
		v.Int = make([]int32, len(t.Data)/4)
		for i := range v.Int {
			v.Int[i] = int32(order.Uint32(t.Data[4*i:]))
		}
	case "I16":
		v.Int = make([]int32, len(t.Data)/2)
		for i := range v.Int {
			v.Int[i] = int32(int16(order.Uint16(t.Data[2*i:])))
		}
	case "I8":
		v.Int = make([]int32, len(t.Data))
		for i, b := range t.Data {
			v.Int[i] = int32(int8(b))
		}
	case "U8":
		v.Int = make([]int32, len(t.Data))
		for i, b := range t.Data {
			v.Int[i] = int32(b)
		}
	default:
		return nil, fmt.Errorf("type %s is not supported", t.Type)
	}
	for i, x := range v.Float {
		if x-x != 0 {
			return nil, fmt.Errorf("element %d is %v", i, x)
		}
	}
	return v, nil
}

// half converts an IEEE 754 binary16 value; float32 holds all of them.
func half(h uint16) float32 {
	sign, exp, frac := uint32(h>>15), uint32(h>>10&31), uint32(h&1023)
	switch exp {
	case 0: // zero and subnormals: frac * 2^-24
		return math.Float32frombits(sign<<31 | math.Float32bits(float32(frac)/(1<<24)))
	case 31:
		return math.Float32frombits(sign<<31 | 255<<23 | frac<<13)
	}
	return math.Float32frombits(sign<<31 | (exp+127-15)<<23 | frac<<13)
}
