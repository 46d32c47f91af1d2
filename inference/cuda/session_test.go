//go:build cuda

package cuda

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/nvcodec/nvcodec/inference"
	"github.com/nvcodec/nvcodec/inference/inferencetest"
	"github.com/nvcodec/nvcodec/yuv"
)

// A take is one frame of a test: what the encoder is given.
type take struct {
	frame  inference.Frame
	source *yuv.Planes
}

// takes returns frames that use every graph, with any vectors, QPs and thresholds. Sources are rough gradients with
// noise, so that trained networks see something to code; every third one has rows that are not tight.
func takes(seed uint64, s inference.Size, count int) []take {
	rng := rand.New(rand.NewPCG(seed, 1))
	var all []take
	for i := range count {
		t := take{source: yuv.New(s.W, s.H)}
		if i%3 == 2 {
			pad := 16
			t.source = &yuv.Planes{W: s.W, H: s.H, StrideY: s.W + pad, StrideC: s.W/2 + pad,
				Y: make([]byte, (s.W+pad)*s.H), U: make([]byte, (s.W/2+pad)*s.H/2), V: make([]byte, (s.W/2+pad)*s.H/2)}
		}
		noise := 1 + rng.IntN(1<<rng.IntN(9))
		for p, plane := range [][]byte{t.source.Y, t.source.U, t.source.V} {
			for j := range plane {
				plane[j] = byte(j/(7+p)+i*5) ^ byte(rng.IntN(noise))
			}
		}
		t.frame = inference.Frame{Graph: []string{"intra", "reset", "inter", "inter"}[i%4], QP: rng.IntN(64), Threshold: rng.IntN(24)}
		if i%4 > 0 {
			for range s.W / 16 * s.H / 16 * 2 {
				t.frame.Vectors = append(t.frame.Vectors, int16(rng.IntN(2*inference.MaxVector+1)-inference.MaxVector)>>rng.IntN(12))
			}
		}
		all = append(all, t)
	}
	return all
}

// A coded frame is all that a session says about one.
type coded struct {
	sections []inference.Section
	picture  *yuv.Planes
}

func (c coded) same(o coded) error {
	if len(c.sections) != len(o.sections) {
		return fmt.Errorf("%d sections, want %d", len(c.sections), len(o.sections))
	}
	for i, s := range c.sections {
		t := o.sections[i]
		if s.Name != t.Name || s.Skip != t.Skip || s.Level != t.Level || len(s.Symbols) != len(t.Symbols) || len(s.Tables) != len(t.Tables) {
			return fmt.Errorf("section %s of %d symbols, want %s of %d", s.Name, len(s.Symbols), t.Name, len(t.Symbols))
		}
		for j := range s.Symbols {
			if s.Symbols[j] != t.Symbols[j] || s.Tables[j] != t.Tables[j] {
				return fmt.Errorf("section %s, symbol %d: %d by table %d, want %d by %d", s.Name, j, s.Symbols[j], s.Tables[j], t.Symbols[j], t.Tables[j])
			}
		}
	}
	for i, p := range [][2][]byte{{c.picture.Y, o.picture.Y}, {c.picture.U, o.picture.U}, {c.picture.V, o.picture.V}} {
		if !bytes.Equal(p[0], p[1]) {
			return fmt.Errorf("plane %c differs", "YUV"[i])
		}
	}
	return nil
}

func keep(sections []inference.Section, p *yuv.Planes) coded {
	c := coded{picture: &yuv.Planes{W: p.W, H: p.H, Y: slices.Clone(p.Y), U: slices.Clone(p.U), V: slices.Clone(p.V), StrideY: p.StrideY, StrideC: p.StrideC}}
	for _, s := range sections {
		s.Symbols, s.Tables = slices.Clone(s.Symbols), slices.Clone(s.Tables)
		c.sections = append(c.sections, s)
	}
	return c
}

func encode(t *testing.T, b inference.Backend, m *inference.Model, s inference.Size, all []take) []coded {
	t.Helper()
	session, err := b.Open(m, s, 2, true)
	if err != nil {
		t.Fatal(err)
	}
	var out []coded
	for i := range all {
		sections, err := session.Encode(&all[i].frame, all[i].source)
		if err != nil {
			t.Fatalf("frame %d: %v", i, err)
		}
		out = append(out, keep(sections, session.Picture()))
	}
	if err := session.Close(); err != nil {
		t.Error(err)
	}
	return out
}

func decode(t *testing.T, b inference.Backend, m *inference.Model, s inference.Size, all []take, given []coded) []coded {
	t.Helper()
	session, err := b.Open(m, s, 2, false)
	if err != nil {
		t.Fatal(err)
	}
	var out []coded
	for i := range all {
		var sections []inference.Section
		err := session.Decode(&all[i].frame, func(level []inference.Section) error {
			for _, s := range level {
				copy(s.Symbols, given[i].sections[len(sections)].Symbols)
				sections = append(sections, s)
			}
			return nil
		})
		if err != nil {
			t.Fatalf("frame %d: %v", i, err)
		}
		out = append(out, keep(sections, session.Picture()))
	}
	if err := session.Close(); err != nil {
		t.Error(err)
	}
	return out
}

func compare(t *testing.T, what string, got, want []coded) {
	t.Helper()
	for i := range want {
		if err := got[i].same(want[i]); err != nil {
			t.Fatalf("%s: frame %d: %v", what, i, err)
		}
	}
}

func generic(t *testing.T) inference.Backend {
	t.Helper()
	b, err := inference.CPU("generic")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

const emulation = "emulation"

// eachBackend runs a test for every family in emulation, and on each device with and without captured graphs.
func eachBackend(t *testing.T, test func(t *testing.T, b *backend)) {
	for _, name := range kernelNames(0) {
		t.Run("impl=emulated/"+name, func(t *testing.T) {
			d := newEmulatedDevice()
			b := &backend{name: emulation, sm: fp16Family, fp16: name == fp16}
			for _, sm := range families {
				if familyName(sm) == name {
					b.sm = sm
				}
			}
			b.capture = b.sm == 80
			b.open = func() (machine, error) { return newEmulated(d, b.sm), nil }
			test(t, b)
			if n := len(d.memory); n > 0 && !t.Failed() {
				t.Errorf("%d blocks of device memory are left", n)
			}
		})
	}
	eachDeviceWith(t, kernelNames(0), func(t *testing.T, b *backend) {
		for _, b.capture = range []bool{false, true} {
			t.Run(fmt.Sprintf("capture=%v", b.capture), func(t *testing.T) {
				before := Live()
				test(t, b)
				if n := Live(); n != before {
					t.Errorf("%d of the driver's things are held, want %d as before", n, before)
				}
			})
		}
	})
}

// Both directions give what the generic kernels give, frame after frame.
func TestSessionsAgree(t *testing.T) {
	m := inferencetest.TinyModel(1)
	size := inference.Size{W: 128, H: 64}
	all := takes(2, size, 9)
	want := encode(t, generic(t), m, size, all)
	eachBackend(t, func(t *testing.T, b *backend) {
		compare(t, "encode", encode(t, b, m, size, all), want)
		compare(t, "decode", decode(t, b, m, size, all, want), want)
	})
}

// Random networks of other widths: channel counts that are multiples of 8 in one place and not in another.
func TestWidths(t *testing.T) {
	size := inference.Size{W: 64, H: 64}
	for _, c := range []inferencetest.Config{{C: 8, YIntra: 4, YInter: 8, Z: 4}, {C: 40, YIntra: 20, YInter: 12, Z: 12}, {C: 64, YIntra: 32, YInter: 48, Z: 64}} {
		t.Run(fmt.Sprintf("c=%d", c.C), func(t *testing.T) {
			m := inferencetest.New(uint64(c.C), c)
			all := takes(uint64(c.C), size, 4)
			want := encode(t, generic(t), m, size, all)
			eachBackend(t, func(t *testing.T, b *backend) {
				compare(t, "encode", encode(t, b, m, size, all), want)
				compare(t, "decode", decode(t, b, m, size, all, want), want)
			})
		})
	}
}

// NVCODEC_MODELS lists model files to compare at 128x64 (devices: also 640x384) with the CPU, the fastest kernels.
func TestModels(t *testing.T) {
	files := os.Getenv("NVCODEC_MODELS")
	if files == "" {
		t.Skip("NVCODEC_MODELS names no model files")
	}
	for _, file := range strings.Split(files, ",") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		m, err := inference.Load(text)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(m.Name, func(t *testing.T) {
			cpu, err := inference.CPU("auto")
			if err != nil {
				t.Fatal(err)
			}
			size := inference.Size{W: 128, H: 64}
			all := takes(3, size, 5)
			want := encode(t, cpu, m, size, all)
			large := inference.Size{W: 640, H: 384}
			var allLarge []take
			var wantLarge []coded
			eachBackend(t, func(t *testing.T, b *backend) {
				compare(t, "encode", encode(t, b, m, size, all), want)
				compare(t, "decode", decode(t, b, m, size, all, want), want)
				if b.name == emulation {
					return
				}
				if allLarge == nil {
					allLarge = takes(4, large, 12)
					wantLarge = encode(t, cpu, m, large, allLarge)
				}
				compare(t, "encode", encode(t, b, m, large, allLarge), wantLarge)
				compare(t, "decode", decode(t, b, m, large, allLarge, wantLarge), wantLarge)
			})
		})
	}
}

// Memory says what a session takes with the family of kernels that takes most.
func TestMemory(t *testing.T) {
	m := inferencetest.TinyModel(10)
	size := inference.Size{W: 192, H: 64}
	for _, encode := range []bool{false, true} {
		var device, host int64
		for _, sm := range families {
			d := newEmulatedDevice()
			b := &backend{name: emulation, sm: sm, open: func() (machine, error) { return newEmulated(d, sm), nil }}
			s, err := b.Open(m, size, 1, encode)
			if err != nil {
				t.Fatal(err)
			}
			device, host = max(device, d.bytes()), max(host, int64(len(s.(*session).host)))
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
		wantDevice, wantHost, shared, err := Memory(m, size, encode)
		if err != nil || device != wantDevice+shared || host != wantHost {
			t.Errorf("encode=%v: %d bytes of device memory, %d of host's; Memory says %d and %d shared, %d; %v", encode, device, host, wantDevice, shared, wantHost, err)
		}
	}
	for _, m := range benchModels(t) {
		device, host, shared, err := Memory(m, inference.Size{W: 1920, H: 1088}, true)
		t.Logf("%s at 1920x1088, encoder: %d MiB, page-locked %d MiB, weights %d MiB, %v", m.Name, device>>20, host>>20, shared>>20, err)
	}
}

// An Open that fails, whichever allocation it is that fails, gives back what it had.
func TestOpenFails(t *testing.T) {
	m := inferencetest.TinyModel(11)
	for fails := 1; ; fails++ {
		d := newEmulatedDevice()
		d.fails = fails
		e := newEmulated(d, 80)
		b := &backend{name: emulation, sm: 80, open: func() (machine, error) { return e, nil }}
		s, err := b.Open(m, inference.Size{W: 64, H: 64}, 1, true)
		if err == nil {
			if fails < 5 {
				t.Errorf("only %d allocations", fails-1)
			}
			s.Close()
			return
		}
		if len(d.memory) > 0 || len(e.pinned) > 0 || !e.closed || len(b.models) > 0 {
			t.Fatalf("allocation %d fails: %d blocks of the device's, %d of the host's are left, machine closed: %v", fails, len(d.memory), len(e.pinned), e.closed)
		}
	}
}

// A call that fails leaves the state as it was, and says what is wrong.
func TestErrors(t *testing.T) {
	m := inferencetest.TinyModel(4)
	size := inference.Size{W: 64, H: 64}
	all := takes(5, size, 3)
	want := encode(t, generic(t), m, size, all)
	eachBackend(t, func(t *testing.T, b *backend) {
		for _, bad := range []inference.Size{{W: 0, H: 64}, {W: 65, H: 64}, {W: 1 << 16, H: 1 << 16}} {
			if _, err := b.Open(m, bad, 1, true); err == nil {
				t.Errorf("%v: no error", bad)
			}
		}
		enc, err := b.Open(m, size, 1, true)
		if err != nil {
			t.Fatal(err)
		}
		if enc.Picture() != nil {
			t.Error("a picture before the first frame")
		}
		for what, f := range map[string]inference.Frame{
			"graph":     {Graph: "none"},
			"picture":   {Graph: "reset", Vectors: all[1].frame.Vectors},
			"QP":        {Graph: "intra", QP: 64},
			"threshold": {Graph: "intra", Threshold: 65},
		} {
			if _, err := enc.Encode(&f, all[0].source); err == nil {
				t.Errorf("%s: no error", what)
			}
		}
		if _, err := enc.Encode(&all[0].frame, yuv.New(128, 64)); err == nil {
			t.Error("source of another size: no error")
		}
		if err := enc.Decode(&all[0].frame, nil); err == nil {
			t.Error("decode in an encoder: no error")
		}
		dec, err := b.Open(m, size, 1, false)
		if err != nil {
			t.Fatal(err)
		}
		stop := errors.New("stop")
		for i := range all {
			far := inference.Frame{Graph: "reset", Vectors: slices.Repeat([]int16{inference.MaxVector + 1}, 32)}
			if _, err := enc.Encode(&far, all[i].source); err == nil {
				t.Error("vectors too far: no error")
			}
			sections, err := enc.Encode(&all[i].frame, all[i].source)
			if err != nil {
				t.Fatal(err)
			}
			if err := keep(sections, enc.Picture()).same(want[i]); err != nil {
				t.Fatalf("frame %d: %v", i, err)
			}
			if err := dec.Decode(&all[i].frame, func([]inference.Section) error { return stop }); !errors.Is(err, stop) {
				t.Errorf("fill's error became %v", err)
			}
			level := 0
			if err := dec.Decode(&all[i].frame, func(s []inference.Section) error {
				for _, s := range s {
					clear(s.Symbols)
				}
				if level++; level == 2 {
					s[0].Symbols[0] = 32767
				}
				return nil
			}); !errors.Is(err, inference.ErrSymbol) {
				t.Errorf("a symbol that no encoder makes: %v", err)
			}
			got := 0
			if err := dec.Decode(&all[i].frame, func(level []inference.Section) error {
				for _, s := range level {
					copy(s.Symbols, want[i].sections[got].Symbols)
					got++
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			if err := keep(want[i].sections, dec.Picture()).same(want[i]); err != nil {
				t.Fatalf("frame %d after failures: %v", i, err)
			}
		}
		for _, s := range []inference.Session{enc, dec} {
			for range 2 {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			}
		}
		if _, err := enc.Encode(&all[0].frame, all[0].source); err == nil {
			t.Error("encode after close: no error")
		}
		if len(b.models) != 0 {
			t.Errorf("weights of %d models are left", len(b.models))
		}
	})
}

// Sessions of one model on one device at a time, each from goroutines that change threads.
func TestConcurrent(t *testing.T) {
	m := inferencetest.TinyModel(8)
	size := inference.Size{W: 64, H: 64}
	all := takes(9, size, 3)
	want := encode(t, generic(t), m, size, all)
	eachDevice(t, func(t *testing.T, b *backend) {
		before := Live()
		errs := make(chan error)
		sessions, rounds := 3, 30
		if testing.Short() {
			sessions, rounds = 2, 2
		}
		for range sessions {
			go func() {
				errs <- func() error {
					s, err := b.Open(m, size, 1, true)
					if err != nil {
						return err
					}
					defer s.Close()
					for range rounds {
						for i := range all {
							sections, err := s.Encode(&all[i].frame, all[i].source)
							if err != nil {
								return fmt.Errorf("frame %d: %w", i, err)
							}
							if err := keep(sections, s.Picture()).same(want[i]); err != nil {
								return fmt.Errorf("frame %d: %w", i, err)
							}
							runtime.Gosched()
						}
					}
					return nil
				}()
			}()
		}
		for range sessions {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
		if n := Live(); n != before {
			t.Errorf("%d of the driver's things are held, want %d as before", n, before)
		}
	})
}

// In steady state a frame takes no memory.
func TestNoAllocation(t *testing.T) {
	m := inferencetest.TinyModel(6)
	size := inference.Size{W: 64, H: 64}
	all := takes(7, size, 3) // an odd number, so that every graph meets both parities
	eachDevice(t, func(t *testing.T, b *backend) {
		s, err := b.Open(m, size, 1, true)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		round := func() {
			for i := range all {
				if _, err := s.Encode(&all[i].frame, all[i].source); err != nil {
					t.Fatal(err)
				}
			}
		}
		for range 4 { // both parities of every graph, run and captured
			round()
		}
		before, measured := Live(), 20
		if testing.Short() {
			measured = 2
		}
		if n := testing.AllocsPerRun(measured, round); n > 0 {
			t.Errorf("%.1f allocations in %d frames", n, len(all))
		}
		if n := Live() - before; n != 0 {
			t.Errorf("%d things of the driver were taken in steady state", n)
		}
	})
}
