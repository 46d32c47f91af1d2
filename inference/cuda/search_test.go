//go:build cuda

package cuda

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/nvcodec/nvcodec/codec/motion"
	"github.com/nvcodec/nvcodec/convert/tables"
	"github.com/nvcodec/nvcodec/inference/kernel"
	"github.com/nvcodec/nvcodec/yuv"
)

// eachMotionMachine runs a test in emulation and on each device: the kernels of the search are the same for all
// families.
func eachMotionMachine(t *testing.T, test func(t *testing.T, m *bench)) {
	eachMachine(t, func(t *testing.T, m *bench) {
		if m.family() != families[0] {
			t.Skip("the same kernels as the first family's")
		}
		test(t, m)
	})
}

// shippedTables are those of every model file.
func shippedTables() *motion.Tables {
	all := map[string]tables.Table{}
	for _, t := range tables.All() {
		all[t.Name] = t
	}
	costs, err := motion.NewTables(func(name string) ([]int, []int32, bool) {
		t, ok := all[name]
		var data []int32
		for _, v := range t.Data {
			data = append(data, int32(v))
		}
		return t.Shape, data, ok
	})
	if err != nil {
		panic(err)
	}
	return costs
}

// randomTables hold random costs within the limits of a model file, the greatest among them often.
func randomTables(r *rand.Rand) *motion.Tables {
	t := new(motion.Tables)
	value := func(top int32) int32 { return min(top, r.Int32N(top+top/2)) }
	for i := range t.Lambda16 {
		t.Lambda16[i], t.Search16[i] = value(1023), value(1023)
	}
	for c := range t.Bits16 {
		t.Bits16[c] = [2]int32{value(255), value(255)}
	}
	return t
}

// A scene makes the frames of a test at padded size.
type scene struct {
	name  string
	frame func(p *yuv.Planes, n int)
}

// moving is a texture that pans and zooms a little under noise, with a patch of its own motion, as real pictures do.
func moving(p *yuv.Planes, n int) {
	r := rand.New(rand.NewPCG(uint64(n), 3))
	hash := func(y, x int) int { // a texture in samples of an endless plane
		k := uint32(y*73856093) ^ uint32(x*19349663)
		k ^= k >> 13
		k *= 0x5bd1e995
		return int(k >> 24)
	}
	smooth := func(y, x, s int) int { // bilinear between points s samples apart
		y0, x0, fy, fx := y>>s, x>>s, y&(1<<s-1), x&(1<<s-1)
		top := hash(y0, x0)*(1<<s-fx) + hash(y0, x0+1)*fx
		low := hash(y0+1, x0)*(1<<s-fx) + hash(y0+1, x0+1)*fx
		return (top*(1<<s-fy) + low*fy) >> (2 * s)
	}
	for y := range p.H {
		for x := range p.W {
			vy, vx := 4*y+13*n+x*n/64, 4*x-29*n
			if dy, dx := y-p.H/3, x-p.W/2+23*n; dy >= 0 && dy < p.H/4 && dx >= 0 && dx < p.W/4 {
				vy, vx = 4*dy+5000, 4*dx+9000
			}
			v := (smooth(vy, vx, 4)+2*smooth(vy, vx, 6)+smooth(vy, vx, 3))/4 + r.IntN(5) - 2
			p.Y[y*p.StrideY+x] = byte(min(max(v, 0), 255))
		}
	}
}

var scenes = []scene{
	{"moving", moving},
	{"noise", func(p *yuv.Planes, n int) {
		r := rand.New(rand.NewPCG(uint64(n), 4))
		for i := range p.Y {
			p.Y[i] = byte(r.Uint32())
		}
	}},
	{"flat", func(p *yuv.Planes, n int) {
		for i := range p.Y {
			p.Y[i] = byte(100 + 20*(n/2))
		}
	}},
	{"extremes", func(p *yuv.Planes, n int) { // the filters' rails: checks and stripes that jump
		r := rand.New(rand.NewPCG(uint64(n), 5))
		size, dy, dx := 1+r.IntN(9), r.IntN(40), r.IntN(40)
		for y := range p.H {
			for x := range p.W {
				v := byte(0)
				if ((y+dy)/size+(x+dx)/(size+y*x%3))%2 == 0 {
					v = 255
				}
				p.Y[y*p.StrideY+x] = v
			}
		}
	}},
	{"shifted", func(p *yuv.Planes, n int) { // the same texture far away, so that what is before points far
		moving(p, 0)
		src := p.Clone()
		for y := range p.H {
			for x := range p.W {
				p.Y[y*p.StrideY+x] = src.Y[min(max(y+37*n, 0), p.H-1)*p.StrideY+min(max(x-51*n, 0), p.W-1)]
			}
		}
	}},
}

func (s *scene) frames(w, h, n int) []*yuv.Planes {
	var all []*yuv.Planes
	for i := range n {
		p := yuv.New(w, h)
		s.frame(p, i)
		all = append(all, p)
	}
	return all
}

// tight is a picture's memory.
func tight(p *yuv.Planes) []byte { return slices.Concat(p.Y, p.U, p.V) }

// A searchRig searches frame after frame on a machine.
type searchRig struct {
	*rig
	tables         *searchTables
	w, h           int
	vectors        [2]pointer
	frame, scratch pointer
	reach, turn    int
}

func newSearchRig(t *testing.T, m *bench, costs *motion.Tables, w, h, reach int) *searchRig {
	s := &searchRig{rig: &rig{t: t, m: m}, w: w, h: h, reach: reach}
	var err error
	s.tables, err = uploadSearchTables(m, costs)
	s.must(err)
	for i := range s.vectors {
		s.vectors[i] = upload(s.rig, make([]int16, 2*w/16*h/16))
	}
	s.frame = upload(s.rig, make([]int32, 2))
	s.scratch, err = m.alloc(searchBytes(w, h, reach))
	s.must(err)
	s.held = append(s.held, s.scratch)
	return s
}

func (s *searchRig) close() {
	s.free()
	s.must(s.tables.close())
}

func (s *searchRig) set(p pointer, b []byte) {
	s.t.Helper()
	h, err := s.m.stage(len(b))
	s.must(err)
	copy(h, b)
	s.must(s.m.upload(p, h))
	s.must(s.m.sync())
}

func (s *searchRig) start(calls []call) {
	s.t.Helper()
	for _, c := range calls {
		l, err := s.m.prepare(c)
		s.must(err)
		s.must(l.run())
	}
}

// search returns the field of cur; the field it returned last is that of the frame before.
func (s *searchRig) search(cur, ref pointer, qp int) []int16 {
	s.t.Helper()
	s.set(s.frame, raw([]int32{int32(qp), 0}))
	before := s.vectors[s.turn]
	s.turn = 1 - s.turn
	s.start(searchCalls(s.tables, s.vectors[s.turn], cur, ref, before, s.frame, s.scratch, s.w, s.h, s.reach))
	return s.field()
}

func (s *searchRig) field() []int16 {
	s.t.Helper()
	got := make([]int16, 2*s.w/16*s.h/16)
	s.down(bytesOfSlice(got), s.vectors[s.turn])
	return got
}

func sameField(t *testing.T, what string, got, want []int16, wb int) {
	t.Helper()
	different := 0
	for k := 0; k < len(want); k += 2 {
		if got[k] != want[k] || got[k+1] != want[k+1] {
			if different++; different == 1 {
				t.Errorf("%s: block (%d,%d) has (%d,%d), want (%d,%d)", what, k/2/wb, k/2%wb, got[k], got[k+1], want[k], want[k+1])
			}
		}
	}
	if different > 0 {
		t.Fatalf("%s: %d of %d blocks differ", what, different, len(want)/2)
	}
}

// TestSearch: the field of a device is that of codec/motion.
func TestSearch(t *testing.T) {
	type one struct{ w, h, reach int }
	// A short reach leaves emulation time for the choice in larger fields.
	emulated := []one{{64, 64, 128}, {320, 256, 8}, {128, 64, 1}, {256, 320, 6}, {64, 64, 0}, {128, 64, 16}, {64, 192, 40}, {320, 64, 7}, {192, 128, 128}, {64, 64, 511}, {320, 192, 32}}
	devices := append([]one{{1920, 1088, 128}, {1280, 768, 511}, {3840, 2176, 64}, {1984, 64, 300}, {64, 2048, 100}}, emulated...)
	eachMotionMachine(t, func(t *testing.T, m *bench) {
		sizes, frames := emulated, 3
		if cases(m, 4, 8) == 8 {
			sizes = devices
		} else if testing.Short() {
			sizes = emulated[:3]
		}
		for n, c := range sizes {
			for k := range scenes {
				if c.reach > 8 && n > 0 && (k+n)%len(scenes) > 1 {
					continue // emulation takes its time, and so does the host's own search of a large picture
				}
				name := fmt.Sprintf("%s %dx%d reach %d", scenes[k].name, c.w, c.h, c.reach)
				r := rand.New(rand.NewPCG(uint64(n), uint64(k)))
				costs := shippedTables()
				if (n+k)%2 == 0 {
					costs = randomTables(r)
				}
				all := scenes[k].frames(c.w, c.h, frames)
				set, err := kernel.ByName("")
				if err != nil {
					t.Fatal(err)
				}
				host := motion.NewSearcher(costs, set, c.w, c.h, 8, c.reach)
				s := newSearchRig(t, m, costs, c.w, c.h, c.reach)
				var pictures []pointer
				for _, p := range all {
					pictures = append(pictures, s.up(tight(p)))
				}
				var before []int16
				for i := 1; i < frames; i++ {
					qp := []int{42, 0, 63, r.IntN(64)}[(i+n+k)%4]
					want := host.Search(all[i], all[i-1], before, qp)
					sameField(t, fmt.Sprintf("%s QP %d frame %d", name, qp, i), s.search(pictures[i], pictures[i-1], qp), want, c.w/16)
					before = want
				}
				// A field before that no search finds: any that a caller gave.
				far := make([]int16, len(before))
				for i := range far {
					far[i] = int16(r.IntN(4095) - 2047)
					if i > 1 && r.IntN(2) == 0 {
						far[i] = far[i-2]
					}
				}
				s.set(s.vectors[s.turn], bytesOfSlice(far))
				want := host.Search(all[0], all[1], far, 30)
				sameField(t, name+" after any field", s.search(pictures[0], pictures[1], 30), want, c.w/16)
				s.close()
			}
		}
	})
}

// TestSearchRepeats: rows and passes of the choice run at once on a device, in an order that no two runs share.
func TestSearchRepeats(t *testing.T) {
	eachMotionMachine(t, func(t *testing.T, m *bench) {
		w, h := 1920, 1088
		repeats := int(cases(m, 1, 200))
		if repeats < 200 {
			w, h = 128, 128
		}
		all := scenes[0].frames(w, h, 2)
		s := newSearchRig(t, m, shippedTables(), w, h, 128)
		defer s.close()
		cur, ref := s.up(tight(all[1])), s.up(tight(all[0]))
		zero := make([]int16, 2*w/16*h/16)
		var want []int16
		for i := range repeats + 1 {
			s.set(s.vectors[s.turn], bytesOfSlice(zero))
			got := s.search(cur, ref, 42)
			if i == 0 {
				set, err := kernel.ByName("")
				s.must(err)
				want = motion.NewSearcher(shippedTables(), set, w, h, 8, 128).Search(all[1], all[0], nil, 42)
			}
			sameField(t, fmt.Sprintf("run %d", i), got, want, w/16)
		}
	})
}

// TestCut: the costs of a scene cut are those of codec/motion.
func TestCut(t *testing.T) {
	eachMotionMachine(t, func(t *testing.T, m *bench) {
		sizes := [][2]int{{64, 64}, {128, 64}, {64, 320}, {1088, 64}}
		if cases(m, 4, 8) == 8 {
			sizes = append(sizes, [2]int{1920, 1088}, [2]int{3840, 2176})
		}
		for _, size := range sizes {
			w, h := size[0], size[1]
			for k := range scenes {
				if w > 1920 && k > 1 {
					continue // what the host needs for such pictures
				}
				all := scenes[k].frames(w, h, 2)
				other := scenes[(k+1)%len(scenes)].frames(w, h, 1)[0]
				for i, c := range [][2]*yuv.Planes{{all[1], all[0]}, {all[0], other}, {other, all[1]}} {
					if i > 0 && i != 1+k%2 && cases(m, 4, 8) < 8 {
						continue
					}
					s := newSearchRig(t, m, shippedTables(), 64, 64, 0)
					cur, ref := s.up(tight(c[0])), s.up(tight(c[1]))
					scratch, err := m.alloc(cutBytes(w, h))
					s.must(err)
					s.held = append(s.held, scratch)
					inter, intra := motion.CutCosts(c[0], c[1])
					runAll(s.rig, fmt.Sprintf("%s %dx%d", scenes[k].name, w, h), []int64{inter, intra}, nil, func(dst pointer) []call {
						return cutCalls(s.tables, dst, cur, ref, scratch, w, h)
					})
					s.close()
				}
			}
		}
	})
}

// TestPad: padded pictures are those of yuv.
func TestPad(t *testing.T) {
	eachMotionMachine(t, func(t *testing.T, m *bench) {
		for seed := range cases(m, 40, 200) {
			r := rand.New(rand.NewPCG(seed, 8))
			w, h := 1+r.IntN(200), 1+r.IntN(140)
			if seed%4 == 0 {
				w = 64 * (1 + r.IntN(3))
			}
			src := yuv.New(w, h)
			b := fill(len(tight(src)), func() byte { return byte(r.Uint32()) })
			copy(src.Y, b)
			copy(src.U, b[len(src.Y):])
			copy(src.V, b[len(src.Y)+len(src.U):])
			pw, ph := (w+63)/64*64, (h+63)/64*64
			want := yuv.New(pw, ph)
			want.Pad(src)
			g := &rig{t: t, m: m}
			p := g.up(b)
			runAll(g, fmt.Sprintf("%dx%d", w, h), tight(want), nil, func(dst pointer) []call { return padCalls(dst, p, w, h, pw, ph) })
			g.free()
		}
	})
}

// BenchmarkSearch is the time that one frame's vectors take, one frame after the other, nothing else running; and that of
// each kind of launch and of a scene cut's costs.
func BenchmarkSearch(b *testing.B) {
	n, err := count()
	if err != nil {
		b.Skip(err)
	}
	for d := range n {
		for _, size := range benchSizes() {
			for k := range 2 {
				benchSearch(b, d, &scenes[k], size.W, size.H)
			}
		}
	}
}

func benchSearch(b *testing.B, device int, scene *scene, w, h int) {
	must := func(err error) {
		if err != nil {
			b.Fatal(err)
		}
	}
	back, err := New(device, "auto")
	must(err)
	defer back.Close()
	opened, err := back.open()
	must(err)
	m := &bench{machine: opened}
	defer m.finish()
	s := newSearchRig(new(testing.T), m, shippedTables(), w, h, 128)
	defer s.close()
	var pictures []pointer
	for _, p := range scene.frames(w, h, 3) {
		pictures = append(pictures, s.up(tight(p)))
	}
	cuts, err := m.alloc(cutBytes(w, h))
	must(err)
	s.held = append(s.held, cuts)
	s.search(pictures[1], pictures[0], 42)
	all := searchCalls(s.tables, s.vectors[1-s.turn], pictures[2], pictures[1], s.vectors[s.turn], s.frame, s.scratch, w, h, 128)
	parts := map[string][]call{"all": all, "cut": cutCalls(s.tables, s.scratch, pictures[2], pictures[1], cuts, w, h)}
	for _, c := range all {
		if c.kernel != "search_choose" { // which needs what the first clears
			parts[c.kernel] = append(parts[c.kernel], c)
		}
	}
	for _, part := range slices.Sorted(maps.Keys(parts)) {
		b.Run(fmt.Sprintf("part=%s/scene=%s/size=%dx%d/impl=cuda:%d", part, scene.name, w, h, device), func(b *testing.B) {
			var launches []launch
			for _, c := range parts[part] {
				l, err := m.prepare(c)
				must(err)
				launches = append(launches, l)
			}
			graph, err := m.capture(func() error {
				for _, l := range launches {
					if err := l.run(); err != nil {
						return err
					}
				}
				return nil
			})
			must(err)
			defer graph.close()
			must(graph.run())
			must(m.sync())
			frames, start := 0, time.Now()
			for b.Loop() {
				must(graph.run())
				if frames++; frames%16 == 0 {
					must(m.sync())
				}
			}
			must(m.sync())
			b.ReportMetric(float64(time.Since(start).Nanoseconds())/1000/float64(frames), "µs/frame")
		})
	}
}
