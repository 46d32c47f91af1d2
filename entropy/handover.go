package entropy

import (
	"fmt"

	"github.com/nvcodec/nvcodec/rans"
)

// AppendBefore appends a payload whose symbols, escapes and tail have been coded elsewhere, to h, and puts p's vectors
// in front of them. Of p it reads the vectors alone.
func (e *Encoder) AppendBefore(dst []byte, p *Payload, h *rans.Handover) ([]byte, error) {
	e.model.reset(e.t)
	if p.Vectors != nil {
		if err := walk(&e.model, p.Vectors, p.VectorsBefore, p.HB, p.WB, false); err != nil {
			return dst, fmt.Errorf("entropy: %w", err)
		}
	}
	e.rans.Continue(h)
	e.putVectors()
	return e.rans.Append(dst), nil
}

// Handover sets h to what is left to decode, for levels that are decoded elsewhere. It stays valid until the next Start.
func (d *Decoder) Handover(h *rans.Handover) { d.rans.Handover(h) }

// Flat is the content of Tables as numbers, for coders that run elsewhere.
type Flat struct {
	*rans.Flat
	K    []int // of each table
	Cost []int // mean of a symbol, in 1/4096 bit
}

// Flat lists the tables.
func (t *Tables) Flat() *Flat {
	f := &Flat{Flat: t.rans.Flat(TableCount)}
	for i, k := range t.k {
		f.K, f.Cost = append(f.K, int(k)), append(f.Cost, int(t.cost[i]))
	}
	return f
}
