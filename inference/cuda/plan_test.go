//go:build cuda

package cuda

import (
	"testing"

	"github.com/nvcodec/nvcodec/inference"
	"github.com/nvcodec/nvcodec/inference/inferencetest"
)

// TestPlans: no value lies where another is still needed, unless a lin takes over its residual.
func TestPlans(t *testing.T) {
	for _, m := range []*inference.Model{inferencetest.TinyModel(1), inferencetest.New(2, inferencetest.Config{C: 32, YIntra: 16, YInter: 8, Z: 16, Deep: true})} {
		for _, g := range m.Graphs {
			for _, encode := range []bool{true, false} {
				p, err := newPlan(g, inference.Size{W: 128, H: 64}, encode, fuse(g, m.Tensors, 80))
				if err != nil {
					t.Fatal(err)
				}
				sums, inPlace := 0, 0
				last := func(v *value) int {
					n := v.order
					for _, r := range v.readers {
						n = max(n, r.order)
					}
					return n
				}
				bytes := func(v *value) int64 {
					if v.node.Kind == inference.Index {
						return v.count()
					}
					return 2 * v.count()
				}
				for i, a := range p.values {
					if a.sum {
						sums++
					}
					for _, in := range a.in {
						if in.order >= a.order {
							t.Fatalf("%s is computed before its input %s", a.node.Out, in.node.Out)
						}
					}
					if a.place != inArena {
						continue
					}
					if a.offset%alignment != 0 || a.offset+bytes(a) > p.arena {
						t.Fatalf("%s at %d of %d", a.node.Out, a.offset, p.arena)
					}
					for _, b := range p.values[i+1:] {
						if b.place != inArena || b.order > last(a) || a.offset >= b.offset+bytes(b) || b.offset >= a.offset+bytes(a) {
							continue
						}
						if b.node.Op != "lin" || len(b.in) != 2 || b.in[1] != a || b.in[0] == a || last(a) != b.order {
							t.Fatalf("%s: %s is written over %s, which is read until step %d", g.Name, b.node.Out, a.node.Out, last(a))
						}
						inPlace++
					}
				}
				if sums == 0 || inPlace == 0 {
					t.Errorf("%s: %d sums fused, %d residuals in place", g.Name, sums, inPlace)
				}
			}
		}
	}
}
