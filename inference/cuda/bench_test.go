//go:build cuda

package cuda

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nvcodec/nvcodec/inference"
	"github.com/nvcodec/nvcodec/inference/inferencetest"
)

// software says that the device is the driver in software: timings mean nothing there and only show that they run.
var software = os.Getenv("NVCODEC_SOFTWARE_DRIVER") != ""

// NVCODEC_OVERLAP=0 has no launch begin while another ends.
func init() { overlap = os.Getenv("NVCODEC_OVERLAP") != "0" }

// benchModels are those of NVCODEC_MODELS, or a random one of the size of nvc1-base.
func benchModels(tb testing.TB) []*inference.Model {
	files := os.Getenv("NVCODEC_MODELS")
	switch {
	case software:
		return []*inference.Model{inferencetest.TinyModel(1)}
	case files == "":
		return []*inference.Model{inferencetest.New(1, inferencetest.Base)}
	}
	var all []*inference.Model
	for _, file := range strings.Split(files, ",") {
		text, err := os.ReadFile(file)
		if err != nil {
			tb.Fatal(err)
		}
		m, err := inference.Load(text)
		if err != nil {
			tb.Fatal(err)
		}
		all = append(all, m)
	}
	return all
}

// benchSizes are 720p, 1080p and 4K, padded; the second is profiled.
func benchSizes() []inference.Size {
	if software {
		return []inference.Size{{W: 64, H: 64}, {W: 128, H: 64}}
	}
	return []inference.Size{{W: 1280, H: 768}, {W: 1920, H: 1088}, {W: 3840, H: 2176}}
}

// warmUp is how many frames run ahead of those that are timed.
func warmUp() int {
	if software {
		return 2
	}
	return 30
}

// BenchmarkFrames is the network alone, with the copies of picture and symbols and without entropy coding: inter
// frames, one at a time.
func BenchmarkFrames(b *testing.B) {
	eachNetwork(b, func(name string, back *Backend, m *inference.Model, size inference.Size) {
		all := benchTakes(size)
		var given []coded
		b.Run("dir=encode/"+name, func(b *testing.B) { given = benchEncode(b, back, m, size, all) })
		b.Run("dir=decode/"+name, func(b *testing.B) { benchDecode(b, back, m, size, all, given) })
	})
}

// eachNetwork runs f for every model, device, family and size.
func eachNetwork(b *testing.B, f func(name string, back *Backend, m *inference.Model, size inference.Size)) {
	n, err := count()
	if err != nil {
		b.Skip(err)
	}
	for _, m := range benchModels(b) {
		for d := range n {
			for _, sm := range families {
				back, err := New(d, familyName(sm))
				if err != nil {
					continue
				}
				for _, size := range benchSizes() {
					f(fmt.Sprintf("model=%s/size=%dx%d/impl=cuda:%d,%s", m.Name, size.W, size.H, d, familyName(sm)), back, m, size)
				}
				if err := back.Close(); err != nil {
					b.Error(err)
				}
			}
		}
	}
}

// benchTakes are an intra frame, a reset and two inter frames at QP 42; without a threshold, since a repeated frame
// meets other tables than the one whose symbols it is given.
func benchTakes(size inference.Size) []take {
	all := takes(1, size, 4)
	for i := range all {
		all[i].frame.QP, all[i].frame.Threshold = 42, 0
	}
	return all
}

func benchEncode(b *testing.B, back *Backend, m *inference.Model, size inference.Size, all []take) []coded {
	s, err := back.Open(m, size, 0, true)
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	var given []coded
	frame := func(i int, keepIt bool) {
		sections, err := s.Encode(&all[i].frame, all[i].source)
		if err != nil {
			b.Fatal(err)
		}
		if keepIt {
			given = append(given, keep(sections, s.Picture()))
		}
	}
	for i := range all {
		frame(i, true)
	}
	for range warmUp() {
		frame(3, false)
	}
	for b.Loop() {
		frame(3, false)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "frames/s")
	return given
}

func benchDecode(b *testing.B, back *Backend, m *inference.Model, size inference.Size, all []take, given []coded) {
	s, err := back.Open(m, size, 0, false)
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	frame := func(i int) {
		at := 0
		err := s.Decode(&all[i].frame, func(level []inference.Section) error {
			for _, x := range level {
				copy(x.Symbols, given[i].sections[at].Symbols)
				at++
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	for i := range all {
		frame(i)
	}
	for range warmUp() {
		frame(3)
	}
	for b.Loop() {
		frame(3)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "frames/s")
}

// TestProfile prints, with NVCODEC_PROFILE set, how long each kernel of an inter frame takes at 1920x1088, the same
// kernels and shapes together: each launch repeated in a captured graph. Bytes are what a launch must read and write
// at least, products those of int8 by int8.
func TestProfile(t *testing.T) {
	if os.Getenv("NVCODEC_PROFILE") == "" {
		t.Skip("NVCODEC_PROFILE is not set")
	}
	size := benchSizes()[1]
	eachDevice(t, func(t *testing.T, b *backend) {
		ceilings(t, b)
		for _, m := range benchModels(t) {
			profile(t, b, m, size)
		}
	})
}

// ceilings measures what the lines below are held against: a copy far larger than any cache, by this package's own
// kernel, and a convolution that is nothing but products.
func ceilings(t *testing.T, b *backend) {
	opened, err := b.open()
	if err != nil {
		t.Fatal(err)
	}
	m := &bench{machine: opened}
	r := &rig{t: t, m: m}
	random := func(bytes int64) pointer {
		p, err := m.alloc(bytes)
		r.must(err)
		r.held = append(r.held, p)
		h, err := m.stage(1 << 22)
		r.must(err)
		rng := rand.New(rand.NewPCG(1, 1))
		for i := range h {
			h[i] = byte(rng.Uint32())
		}
		for at := int64(0); at < bytes; at += int64(len(h)) {
			r.must(m.upload(p+pointer(at), h[:min(int64(len(h)), bytes-at)]))
		}
		r.must(m.sync())
		return p
	}
	time := func(c call) float64 {
		step, err := m.prepare(c)
		r.must(err)
		return timed(t, m, step).Seconds()
	}
	positions, c, n, width := int64(1<<20), 256, int64(1<<16), 1024
	if software {
		positions, n, width = 1<<10, 1<<8, 256
	}
	bytes := positions * int64(c) * 2
	src, dst := random(max(bytes, 2*n*int64(width))), random(max(bytes, 2*n*int64(width)))
	seconds := time(callsGather(dst, 0, 0, 1, int(positions), whole(src, c))[0])
	t.Logf("copy of %d MiB: %.0f GB/s, read and written", bytes>>20, float64(2*bytes)/seconds/1e9)
	w, numbers := random(int64(width*width)), random(int64(4*width))
	seconds = time(callLin(dst, src, 0, w, numbers, numbers, n, width, width, 30, m.processors()))
	t.Logf("lin %d→%d at %d positions: %.1f Tproducts/s of int8", width, width, n, float64(2*n)*float64(width*width)/seconds/1e12)
	r.free()
	if err := m.finish(); err != nil {
		t.Error(err)
	}
}

type line struct {
	what            string
	count           int
	each, all       time.Duration
	bytes, products float64 // of one launch
}

func profile(t *testing.T, b *backend, m *inference.Model, size inference.Size) {
	opened, err := b.Open(m, size, 0, true)
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	all := takes(1, size, 4)
	for i := range all {
		if _, err := opened.Encode(&all[i].frame, all[i].source); err != nil {
			t.Fatal(err)
		}
	}
	s := opened.(*session)
	lines := map[string]*line{}
	var total time.Duration
	for _, v := range s.programs["inter"].plan.values {
		for _, c := range s.compile(v, s.parity) {
			step, err := s.m.prepare(c)
			if err != nil {
				t.Fatal(err)
			}
			each := timed(t, s.m, step)
			total += each
			l := describeCall(v, c)
			if lines[l.what] == nil {
				lines[l.what] = &l
			}
			have := lines[l.what]
			have.count++
			have.all += each
			have.each = have.all / time.Duration(have.count)
		}
	}
	sorted := make([]*line, 0, len(lines))
	for _, l := range lines {
		sorted = append(sorted, l)
	}
	slices.SortFunc(sorted, func(a, b *line) int { return cmp.Compare(b.all, a.all) })
	t.Logf("%s %dx%d, encoder of an inter frame: %v in kernels", m.Name, size.W, size.H, total)
	for _, l := range sorted {
		t.Logf("%9.1f us %3dx %8.1f us %7.0f GB/s %7.1f Tproducts/s  %s", micros(l.all), l.count, micros(l.each), l.bytes/l.each.Seconds()/1e9, l.products/l.each.Seconds()/1e12, l.what)
	}
}

func micros(d time.Duration) float64 { return float64(d) / 1e3 }

func timed(t *testing.T, m machine, step launch) time.Duration {
	repeats := 20
	if software {
		repeats = 1
	}
	g, err := m.capture(func() error {
		for range repeats {
			if err := step.run(); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	defer g.close()
	best := time.Hour
	for range min(5, repeats) {
		start := time.Now()
		if err := g.run(); err != nil {
			t.Fatal(err)
		}
		if err := m.sync(); err != nil {
			t.Fatal(err)
		}
		best = min(best, time.Since(start))
	}
	return best / time.Duration(repeats)
}

// describeCall names a launch by kernel and shape and counts its work.
func describeCall(v *value, c call) line {
	n := float64(v.positions())
	out := n * float64(v.node.C) * 2
	l := line{bytes: 2 * out}
	in := 0
	switch {
	case v.chain != nil:
		l.products = v.chain.products()
		l.what = fmt.Sprintf("%s %s from %d, %d tails at %dx%d", c.kernel, [...]string{"lin", "copy", "block", "block without convolution"}[v.chain.head], v.chain.src.node.C, len(v.chain.tails), v.w, v.h)
		l.bytes = 0
		for _, x := range append([]*value{v.chain.src, v.chain.res, v.chain.x}, v.chain.tails...) {
			if x != nil && x.place != nowhere {
				l.bytes += 2 * float64(x.count())
			}
		}
		return l
	case v.group != nil:
		g := v.group.layer
		in = g.in
		sums := float64(g.taps * g.in * g.out * g.outcome.parts())
		reads := n * float64(in) * 2
		if g.taps == 9 {
			r := float64(v.group.nodes[0].Ints["r"])
			reads *= r * r
		}
		reads += out * float64(len(v.lin().in)-1)
		if v.node.Op == "add" {
			reads += out
		}
		l.bytes = reads + out + float64(g.planes())*sums
		l.products = 2 * float64(g.planes()) * n * sums
	case c.kernel == "lin_8" || c.kernel == "lin_1":
		in = v.in[0].node.C
		l.bytes = n*float64(in)*2 + out*float64(len(v.in)) + float64(in*v.node.C)
		l.products = 2 * n * float64(in) * float64(v.node.C)
	case strings.HasPrefix(c.kernel, "lin_actsum4"):
		in = v.in[0].in[0].node.C
		l.bytes = n*float64(in)*2 + out + float64(4*in*v.node.C)
		l.products = 2 * n * float64(in) * float64(4*v.node.C)
	case strings.HasPrefix(c.kernel, "actsum4"):
		l.bytes = 5 * out
	}
	l.what = fmt.Sprintf("%s %d→%d at %dx%d", c.kernel, in, v.node.C, v.w, v.h)
	return l
}
