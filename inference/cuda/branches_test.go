//go:build cuda

package cuda

import (
	"fmt"
	"slices"
	"testing"

	"github.com/nvcodec/nvcodec/inference"
	"github.com/nvcodec/nvcodec/inference/inferencetest"
)

// TestBranches: the two branches of a frame need nothing of each other, and neither writes where the other has something
// to read.
func TestBranches(t *testing.T) {
	for _, c := range []inferencetest.Config{{C: 32, YIntra: 16, YInter: 8, Z: 16, Deep: true}, {C: 192, YIntra: 128, YInter: 96, Z: 64}} {
		m := inferencetest.New(2, c)
		for name, g := range m.Graphs {
			for _, family := range []int{61, 80} {
				for _, encode := range []bool{true, false} {
					what := fmt.Sprintf("%d channels, %s, sm_%d, encode %v", c.C, name, family, encode)
					p, err := newPlan(g, inference.Size{W: 128, H: 64}, encode, fuse(g, m.Tensors, family))
					if err != nil {
						t.Fatal(err)
					}
					checkBranches(t, what, p, name != "intra")
				}
			}
		}
	}
}

func checkBranches(t *testing.T, what string, p *plan, two bool) {
	t.Helper()
	count := [4]int{}
	for _, v := range p.values {
		if !v.idle() {
			count[v.branch]++
		}
		for _, x := range v.inputs() {
			if x.branch > v.branch || x.branch == aside && v.branch == ahead {
				t.Errorf("%s: %s of branch %d waits for %s of branch %d", what, v.node.Out, v.branch, x.node.Out, x.branch)
			}
		}
	}
	if two && (count[aside] == 0 || count[ahead] == 0 || count[behind] == 0) {
		t.Errorf("%s: %d values on the branches", what, count)
	}
	// What one branch touches: what it computes and what it reads.
	touches := func(b branch) (all []*value) {
		for _, v := range p.values {
			if v.branch == b && !v.idle() {
				all = append(all, append(v.inputs(), v)...)
			}
		}
		return all
	}
	for _, a := range touches(aside) {
		for _, b := range touches(ahead) {
			if a == b || a.place != inArena || b.place != inArena || a.branch != aside && b.branch != ahead {
				continue // both only read
			}
			if a.offset < b.offset+2*b.count() && b.offset < a.offset+2*a.count() {
				t.Errorf("%s: %s and %s share memory", what, a.node.Out, b.node.Out)
			}
		}
	}
}

// TestForks: launches of two branches in either order give the same.
func TestForks(t *testing.T) {
	m := inferencetest.TinyModel(1)
	size := inference.Size{W: 128, H: 64}
	all := takes(2, size, 5)
	want := encode(t, generic(t), m, size, all)
	for _, late := range []bool{false, true} {
		t.Run(fmt.Sprintf("aside late=%v", late), func(t *testing.T) {
			d := newEmulatedDevice()
			b := &backend{name: emulation, sm: 80, open: func() (machine, error) { return newEmulated(d, 80), nil }}
			opened, err := b.Open(m, size, 0, true)
			if err != nil {
				t.Fatal(err)
			}
			defer opened.Close()
			s := opened.(*session)
			for name, p := range s.programs {
				for parity := range p.parts {
					calls := s.frameCalls(p.plan, parity, nil)
					if late { // the branch aside behind the other one
						first := slices.IndexFunc(calls, func(c call) bool { return c.aside })
						end := slices.IndexFunc(calls, func(c call) bool { return c.joins })
						if first < 0 || end < 0 {
							if name != "intra" {
								t.Fatalf("%s has no branches", name)
							}
							continue
						}
						var moved []call
						for _, c := range calls[first:end] {
							if c.aside {
								moved = append(moved, c)
							}
						}
						calls = slices.Concat(calls[:first], slices.DeleteFunc(slices.Clone(calls[first:end]), func(c call) bool { return c.aside }), moved, calls[end:])
					}
					part := p.parts[parity][0]
					var steps []launch
					for _, l := range part.steps {
						if _, ok := l.(*emulatedLaunch); !ok {
							steps = append(steps, l)
						}
					}
					up := slices.IndexFunc(steps, func(l launch) bool { _, ok := l.(*downloading); return ok })
					var prepared []launch
					for _, c := range calls {
						l, err := s.m.prepare(c)
						if err != nil {
							t.Fatal(err)
						}
						prepared = append(prepared, l)
					}
					part.steps = slices.Concat(steps[:up], prepared, steps[up:])
				}
			}
			var got []coded
			for i := range all {
				sections, err := s.Encode(&all[i].frame, all[i].source)
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, keep(sections, s.Picture()))
			}
			compare(t, "encode", got, want)
		})
	}
}
