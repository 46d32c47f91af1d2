package codec

import (
	"fmt"

	"github.com/nvcodec/nvcodec/inference"
)

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
