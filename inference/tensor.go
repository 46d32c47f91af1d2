package inference

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// A Tensor is one array of integers of a model file, row-major; Type names the one slice that holds it.
type Tensor struct {
	Name  string
	Type  string // "I8", "I16", "I32", "U8", "U16", "U32"
	Shape []int
	I8    []int8
	I16   []int16
	I32   []int32
	U8    []uint8
	U16   []uint16
	U32   []uint32
}

// Len returns the number of elements that the shape states.
func (t *Tensor) Len() int {
	n := 1
	for _, d := range t.Shape {
		n *= d
	}
	return n
}

// Int64s returns a copy of the elements, whatever their type.
func (t *Tensor) Int64s() []int64 {
	switch t.Type {
	case "I8":
		return widen(t.I8)
	case "I16":
		return widen(t.I16)
	case "I32":
		return widen(t.I32)
	case "U8":
		return widen(t.U8)
	case "U16":
		return widen(t.U16)
	}
	return widen(t.U32)
}

func widen[T int8 | int16 | int32 | uint8 | uint16 | uint32](x []T) []int64 {
	y := make([]int64, len(x))
	for i, v := range x {
		y[i] = int64(v)
	}
	return y
}

// NewTensor holds data as the named type and refuses values that it cannot hold and shapes that do not fit.
func NewTensor(name, typ string, shape []int, data []int64) (*Tensor, error) {
	t := &Tensor{Name: name, Type: typ, Shape: slices.Clone(shape)}
	ok := true
	switch typ {
	case "I8":
		t.I8, ok = narrow[int8](data)
	case "I16":
		t.I16, ok = narrow[int16](data)
	case "I32":
		t.I32, ok = narrow[int32](data)
	case "U8":
		t.U8, ok = narrow[uint8](data)
	case "U16":
		t.U16, ok = narrow[uint16](data)
	case "U32":
		t.U32, ok = narrow[uint32](data)
	default:
		return nil, fmt.Errorf("inference: tensor %s: unknown type %q", name, typ)
	}
	if !ok {
		return nil, fmt.Errorf("inference: tensor %s: a value does not fit %s", name, typ)
	}
	if t.Len() != len(data) {
		return nil, fmt.Errorf("inference: tensor %s: shape %v with %d values", name, shape, len(data))
	}
	return t, nil
}

func narrow[T int8 | int16 | int32 | uint8 | uint16 | uint32](x []int64) ([]T, bool) {
	y := make([]T, len(x))
	for i, v := range x {
		y[i] = T(v)
		if int64(y[i]) != v {
			return nil, false
		}
	}
	return y, true
}

// bytes returns the elements little-endian.
func (t *Tensor) bytes() []byte {
	var b []byte
	switch t.Type {
	case "I8":
		b = make([]byte, len(t.I8))
		for i, v := range t.I8 {
			b[i] = byte(v)
		}
	case "U8":
		b = slices.Clone(t.U8)
	case "I16":
		for _, v := range t.I16 {
			b = binary.LittleEndian.AppendUint16(b, uint16(v))
		}
	case "U16":
		for _, v := range t.U16 {
			b = binary.LittleEndian.AppendUint16(b, v)
		}
	case "I32":
		for _, v := range t.I32 {
			b = binary.LittleEndian.AppendUint32(b, uint32(v))
		}
	case "U32":
		for _, v := range t.U32 {
			b = binary.LittleEndian.AppendUint32(b, v)
		}
	}
	return b
}

// decode fills the slice that Type names from little-endian bytes; the caller has checked their number.
func (t *Tensor) decode(b []byte) error {
	switch t.Type {
	case "I8":
		t.I8 = make([]int8, len(b))
		for i, v := range b {
			t.I8[i] = int8(v)
		}
	case "U8":
		t.U8 = slices.Clone(b)
	case "I16":
		t.I16 = make([]int16, len(b)/2)
		for i := range t.I16 {
			t.I16[i] = int16(binary.LittleEndian.Uint16(b[2*i:]))
		}
	case "U16":
		t.U16 = make([]uint16, len(b)/2)
		for i := range t.U16 {
			t.U16[i] = binary.LittleEndian.Uint16(b[2*i:])
		}
	case "I32":
		t.I32 = make([]int32, len(b)/4)
		for i := range t.I32 {
			t.I32[i] = int32(binary.LittleEndian.Uint32(b[4*i:]))
		}
	case "U32":
		t.U32 = make([]uint32, len(b)/4)
		for i := range t.U32 {
			t.U32[i] = binary.LittleEndian.Uint32(b[4*i:])
		}
	default:
		return fmt.Errorf("type %q is not an integer type of model files", t.Type)
	}
	return nil
}

// check reports a tensor whose slices do not fit its type and shape, as a program could build it.
func (t *Tensor) check() error {
	held := map[string]int{"I8": len(t.I8), "I16": len(t.I16), "I32": len(t.I32), "U8": len(t.U8), "U16": len(t.U16), "U32": len(t.U32)}
	if _, ok := held[t.Type]; !ok {
		return fmt.Errorf("inference: tensor %s: unknown type %q", t.Name, t.Type)
	}
	for _, d := range t.Shape {
		if d <= 0 {
			return fmt.Errorf("inference: tensor %s: shape %v", t.Name, t.Shape)
		}
	}
	for typ, n := range held {
		if typ == t.Type && n != t.Len() || typ != t.Type && n != 0 {
			return fmt.Errorf("inference: tensor %s: %d values of %s, shape %v of %s", t.Name, n, typ, t.Shape, t.Type)
		}
	}
	return nil
}

// Ints gives packages that know nothing of models what they read from one: a tensor's shape and values, ok when there
// is such a tensor and its values fit int32.
func (m *Model) Ints(name string) (shape []int, data []int32, ok bool) {
	t, ok := m.Tensors[name]
	if !ok {
		return nil, nil, false
	}
	wide := t.Int64s()
	data = make([]int32, len(wide))
	for i, v := range wide {
		data[i] = int32(v)
		if int64(data[i]) != v {
			return nil, nil, false
		}
	}
	return t.Shape, data, true
}
