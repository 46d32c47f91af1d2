package codec

import (
	"fmt"

	"github.com/nvcodec/nvcodec/inference"
)

// tensorsOf gives packages that know nothing of models what they read from one.
func tensorsOf(m *inference.Model) func(name string) (shape []int, data []int32, ok bool) {
	return func(name string) ([]int, []int32, bool) {
		t, ok := m.Tensors[name]
		if !ok {
			return nil, nil, false
		}
		wide := t.Int64s()
		data := make([]int32, len(wide))
		for i, v := range wide {
			data[i] = int32(v)
			if int64(data[i]) != v {
				return nil, nil, false
			}
		}
		return t.Shape, data, true
	}
}

// qpShift reads the QP pattern that the network was trained with.
func qpShift(m *inference.Model) (shift [8]uint8, err error) {
	t, ok := m.Tensors["qp.shift"]
	if !ok || t.Type != "U8" || len(t.U8) != len(shift) {
		return shift, fmt.Errorf("codec: model %s: tensor qp.shift is missing or not U8[8]", m.Name)
	}
	copy(shift[:], t.U8)
	for _, s := range shift {
		if s > maxQP {
			return shift, fmt.Errorf("codec: model %s: tensor qp.shift holds %d, at most %d is allowed", m.Name, s, maxQP)
		}
	}
	return shift, nil
}
