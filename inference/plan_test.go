package inference

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// TestStack: blocks that live at the same moment never overlap, and the total is no more than their sum.
func TestStack(t *testing.T) {
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 1))
		var blocks []*lifetime
		var sum int64
		for range r.IntN(30) {
			first := r.IntN(20)
			b := &lifetime{first: first, last: first + r.IntN(8), size: 1 + r.Int64N(200)}
			blocks = append(blocks, b)
			sum += aligned(b.size)
		}
		total := stack(blocks)
		for i, a := range blocks {
			if a.offset%alignment != 0 || a.offset < 0 || a.offset+a.size > total {
				t.Fatalf("seed=%d: block %+v in %d", seed, *a, total)
			}
			for _, b := range blocks[:i] {
				if a.first <= b.last && b.first <= a.last && a.offset < b.offset+b.size && b.offset < a.offset+a.size {
					t.Fatalf("seed=%d: %+v and %+v overlap", seed, *a, *b)
				}
			}
		}
		if total > sum {
			t.Fatalf("seed=%d: %d for blocks of %d", seed, total, sum)
		}
	}
}

// checkPlan follows a plan position by position as a thread would and reports a value that is read when its memory
// holds another. Groups are the unit of time for the arena: tiles of one group run in any order.
func checkPlan(p *plan) error {
	holder := func(v *value) string { return fmt.Sprintf("%s/%s", p.graph.Name, v.node.Out) }
	overlap := func(a, b *value) bool {
		size := func(v *value) int64 {
			if v.place == inScratch {
				return int64(v.node.C)
			}
			return v.positions() * int64(v.node.C)
		}
		return a.place == b.place && a.life.offset < b.life.offset+size(b) && b.life.offset < a.life.offset+size(a)
	}
	for i, v := range p.values {
		for _, in := range v.in {
			if in.order >= i || in.step > v.step {
				return fmt.Errorf("%s is read before it is computed", holder(in))
			}
			if in.place == inScratch && in.group != v.group {
				return fmt.Errorf("%s is read by another group than its own", holder(in))
			}
			if in.level > v.level {
				return fmt.Errorf("%s is read a level too early", holder(in))
			}
			if in.place != inArena && in.place != inScratch {
				continue
			}
			// Nothing that is written between them may touch the input's memory.
			for _, w := range p.values[:i+1] {
				if w.order <= in.order || w.place != in.place || !overlap(w, in) || w.place == inScratch && w.group != v.group {
					continue
				}
				same := w.life.offset == in.life.offset && w.positions() == in.positions() && w.node.C == in.node.C
				switch {
				case w == v && same && v.node.Op == "lin" && v.in[0] != in: // a residual, position by position
				default:
					return fmt.Errorf("%s is overwritten by %s before %s reads it", holder(in), holder(w), holder(v))
				}
			}
			// Another tile may be ahead: what the whole group writes may touch the input only position by position.
			for _, w := range v.group.values {
				if w == in || in.group == v.group || w.place != inArena || in.place != inArena || !overlap(w, in) {
					continue
				}
				if w.life.offset != in.life.offset || w.node.C != in.node.C || w.positions() != in.positions() || accessOf(v.node.Op) != pointwise {
					return fmt.Errorf("%s overwrites %s in other positions than %s reads", holder(w), holder(in), holder(v))
				}
			}
		}
	}
	return nil
}

// CheckPlans checks the plans of every graph, both ways, fused and plain.
func CheckPlans(m *Model, s Size) error {
	for name, g := range m.Graphs {
		for _, encode := range []bool{false, true} {
			for _, fuse := range []bool{false, true} {
				p := newPlan(g, s, encode, fuse)
				if err := checkPlan(p); err != nil {
					return fmt.Errorf("encode=%v fuse=%v: %w", encode, fuse, err)
				}
				for _, v := range p.values {
					if !encode && v.node.Op == "source" {
						return fmt.Errorf("%s: the decoder computes from the source", name)
					}
				}
			}
		}
	}
	return nil
}

func TestPlans(t *testing.T) {
	for seed, m := range planModels() {
		if err := CheckPlans(m, Size{640, 384}); err != nil {
			t.Errorf("seed=%d: %v", seed, err)
		}
	}
}
