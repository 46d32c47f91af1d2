//go:build cuda

package cuda

import (
	"fmt"
	"slices"
	"testing"

	"github.com/nvcodec/nvcodec/inference"
	"github.com/nvcodec/nvcodec/inference/inferencetest"
)

// TestBranches: a value begins when what it waits for is there, whatever the other stream does, and nothing lies where
// something is still needed.
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
					checkBranches(t, what, p)
					beside := 0
					for _, u := range p.values {
						for _, v := range p.values {
							if u.when.stream == 0 && v.when.stream == 1 && !u.idle() && !given(u) && !u.precedes(v) && !v.precedes(u) {
								beside++
							}
						}
					}
					if name != "intra" && beside < 5 {
						t.Errorf("%s: %d pairs can run at the same time", what, beside)
					}
				}
			}
		}
	}
}

func checkBranches(t *testing.T, what string, p *plan) {
	t.Helper()
	for _, v := range p.values {
		for _, x := range v.inputs() {
			if isCoding(x.node) && !p.encode {
				for _, k := range p.values { // its symbols come with those of its level
					if isCoding(k.node) && k.level == x.level && k.order > x.order {
						x = k
					}
				}
			}
			if !v.idle() && !given(x) && !x.precedes(v) {
				t.Errorf("%s: %s may begin before %s is there", what, v.node.Out, x.node.Out)
			}
		}
	}
	for _, a := range p.values {
		for _, b := range p.values {
			if a == b || a.place != inArena || b.place != inArena || a.offset >= b.offset+2*b.count() || b.offset >= a.offset+2*a.count() {
				continue
			}
			ended := func(a, b *value) bool { // all that use a, but for b over it, before b begins
				return !slices.ContainsFunc(append(slices.Clone(a.readers), a), func(u *value) bool {
					return !u.idle() && !u.precedes(b) && (u.order != b.order || a.life != b.life)
				})
			}
			if !ended(a, b) && !ended(b, a) {
				t.Errorf("%s: %s and %s share memory", what, a.node.Out, b.node.Out)
			}
		}
	}
}

// inOrder returns calls in an order in which two streams may run them: those of one stream as early as can be.
func inOrder(calls []call, early int) []call {
	var at [2][]int
	for i, c := range calls {
		at[c.stream] = append(at[c.stream], i)
	}
	done := map[int]bool{}
	var all []call
	for len(all) < len(calls) {
		for _, stream := range []int{early, 1 - early} {
			if q := at[stream]; len(q) > 0 && (calls[q[0]].after == 0 || done[calls[q[0]].after-1]) {
				done[q[0]] = true
				all = append(all, calls[q[0]])
				at[stream] = q[1:]
				break
			}
		}
	}
	return all
}

// TestForks: launches of two streams give the same whichever is ahead of the other.
func TestForks(t *testing.T) {
	m := inferencetest.TinyModel(1)
	size := inference.Size{W: 128, H: 64}
	all := takes(2, size, 5)
	want := encode(t, generic(t), m, size, all)
	for early := range 2 {
		t.Run(fmt.Sprintf("early=%d", early), func(t *testing.T) {
			d := newEmulatedDevice()
			b := &backend{name: emulation, sm: 80, open: func() (machine, error) { return newEmulated(d, 80), nil }}
			opened, err := b.Open(m, size, 0, true)
			if err != nil {
				t.Fatal(err)
			}
			defer opened.Close()
			s := opened.(*session)
			for _, p := range s.programs {
				for parity := range p.parts {
					var prepared, up, down []launch
					for _, c := range inOrder(s.frameCalls(p.plan, parity, nil), early) {
						l, err := s.m.prepare(c)
						if err != nil {
							t.Fatal(err)
						}
						prepared = append(prepared, l)
					}
					part := p.parts[parity][0]
					for _, l := range part.steps {
						switch l.(type) {
						case *uploading:
							up = append(up, l)
						case *downloading:
							down = append(down, l)
						}
					}
					part.steps = slices.Concat(up, prepared, down)
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
