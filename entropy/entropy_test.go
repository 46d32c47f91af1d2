package entropy

import (
	"bytes"
	"errors"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/nvcodec/nvcodec/convert/tables"
)

func testData() map[string]tables.Table {
	m := map[string]tables.Table{}
	for _, t := range tables.All() {
		m[t.Name] = t
	}
	return m
}

func get(m map[string]tables.Table) func(name string) ([]int, []int32, bool) {
	return func(name string) ([]int, []int32, bool) {
		t, ok := m[name]
		d := make([]int32, len(t.Data))
		for i, v := range t.Data {
			d[i] = int32(v)
		}
		return t.Shape, d, ok
	}
}

var (
	testTensors = testData()
	testTables  = func() *Tables {
		t, err := NewTables(get(testTensors))
		if err != nil {
			panic(err)
		}
		return t
	}()
)

func TestNewTablesRefuses(t *testing.T) {
	for name, edit := range map[string]func(m map[string]tables.Table){
		"no size":     func(m map[string]tables.Table) { delete(m, "entropy.size") },
		"no weight":   func(m map[string]tables.Table) { delete(m, "entropy.vector.weight") },
		"size log":    func(m map[string]tables.Table) { m["entropy.size"].Data[0] = 9 },
		"size k":      func(m map[string]tables.Table) { m["entropy.size"].Data[1] = 2 },
		"split value": func(m map[string]tables.Table) { m["entropy.split"].Data[5] = 65536 },
		"split sum":   func(m map[string]tables.Table) { clear(m["entropy.split"].Data) },
		"cost":        func(m map[string]tables.Table) { m["entropy.cost"].Data[3] = -1 },
		"prob":        func(m map[string]tables.Table) { m["entropy.vector.prob"].Data[3] = 3 },
		"weight":      func(m map[string]tables.Table) { m["entropy.vector.weight"].Data[3] = 61 },
		"shape": func(m map[string]tables.Table) {
			x := m["entropy.cost"]
			x.Shape = []int{64, 2}
			m["entropy.cost"] = x
		},
		"short": func(m map[string]tables.Table) {
			x := m["entropy.cost"]
			x.Data = x.Data[1:]
			m["entropy.cost"] = x
		},
	} {
		m := map[string]tables.Table{}
		for k, v := range testTensors {
			v.Data = slices.Clone(v.Data)
			m[k] = v
		}
		edit(m)
		if _, err := NewTables(get(m)); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// sample draws a symbol from the distribution that table x was made for, not from its frequencies.
func sample(r *rand.Rand, x int) int16 {
	v := 0.0
	if x < LogisticTables {
		v = r.NormFloat64() * tables.Sigma(x)
	} else {
		u := r.Float64()
		v = math.Log(u/(1-u)) * tables.ZScale(x-LogisticTables)
		v = max(-127, min(127, v))
	}
	return int16(math.Floor(v + 0.5))
}

// indices draws scale indices as a frame has them: most positions quiet, the rest of wide spread, runs of like ones.
func indices(r *rand.Rand, n int) []uint8 {
	t := make([]uint8, n)
	v := 10.0
	for i := range t {
		if r.IntN(12) == 0 {
			v = min(63, math.Abs(r.NormFloat64())*16)
		}
		t[i] = uint8(max(0, min(63, v+r.NormFloat64()*3)))
	}
	return t
}

// frame makes a payload like a real one: z, then two y sections.
func frame(r *rand.Rand, ny, T int) *Payload {
	section := func(tabs []uint8, skip bool) Section {
		s := Section{Symbols: make([]int16, len(tabs)), Tables: tabs, Skip: skip}
		for i, x := range tabs {
			if !skip || int(x) >= T {
				s.Symbols[i] = sample(r, int(x))
			}
		}
		return s
	}
	z := make([]uint8, ny/32)
	for i := range z {
		z[i] = LogisticTables + uint8(r.IntN(48))
	}
	return &Payload{Levels: [][]Section{{section(z, false)}, {section(indices(r, ny/2), true), section(indices(r, ny-ny/2), true)}}, Threshold: T}
}

// decode decodes b into a payload of p's shape.
func decode(d *Decoder, b []byte, p *Payload, lanes int) (*Payload, error) {
	q := &Payload{HB: p.HB, WB: p.WB, Threshold: p.Threshold}
	if err := d.Start(b, lanes); err != nil {
		return nil, err
	}
	if p.Vectors != nil {
		q.Vectors = make([]int16, len(p.Vectors))
		if err := d.Vectors(q.Vectors, p.VectorsBefore, p.HB, p.WB); err != nil {
			return nil, err
		}
	}
	for _, level := range p.Levels {
		var l []Section
		for _, s := range level {
			l = append(l, Section{Symbols: make([]int16, len(s.Symbols)), Tables: s.Tables, Skip: s.Skip})
		}
		if err := d.Level(l, p.Threshold); err != nil {
			return nil, err
		}
		q.Levels = append(q.Levels, l)
	}
	var err error
	q.Tail, err = d.Tail()
	return q, err
}

func same(p, q *Payload) bool {
	if !slices.Equal(p.Vectors, q.Vectors) || p.Tail != q.Tail {
		return false
	}
	for l := range p.Levels {
		for i := range p.Levels[l] {
			if !slices.Equal(p.Levels[l][i].Symbols, q.Levels[l][i].Symbols) {
				return false
			}
		}
	}
	return true
}

func TestRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 1))
	e, d := NewEncoder(testTables), NewDecoder(testTables)
	for lanes := 1; lanes <= 1024; lanes *= 2 {
		for _, n := range []int{0, 1, 2, 33, 2500} {
			p := frame(r, n, r.IntN(20))
			p.Tail = uint16(r.Uint32() >> (16 + r.IntN(17)))
			if r.IntN(2) == 0 {
				p.HB, p.WB = 1+r.IntN(12), 1+r.IntN(12)
				p.Vectors, p.VectorsBefore = wildField(r, p.HB, p.WB), wildField(r, p.HB, p.WB)
				if r.IntN(2) == 0 {
					p.VectorsBefore = nil
				}
			}
			// Escapes of every size, at both edges of the tables and of int16.
			for range r.IntN(40) {
				l := p.Levels[r.IntN(2)]
				s := &l[r.IntN(len(l))]
				if len(s.Symbols) == 0 {
					continue
				}
				i := r.IntN(len(s.Symbols))
				if x := s.Tables[i]; int(x) >= threshold(s, p.Threshold) {
					k := testTables.k[x]
					s.Symbols[i] = []int16{k, k + 1, k + 2, -k, -k - 1, -k - 2, 32767, -32767, -32768, int16(r.Uint32())}[r.IntN(10)]
				}
			}
			b, err := e.Append([]byte{7}, p, lanes)
			if err != nil {
				t.Fatal(err)
			}
			q, err := decode(d, b[1:], p, lanes)
			if err != nil {
				t.Fatalf("lanes %d n %d: %v", lanes, n, err)
			}
			if !same(p, q) {
				t.Fatalf("lanes %d n %d: decodes to something else", lanes, n)
			}
			// A new encoder makes the same bytes.
			if c, _ := NewEncoder(testTables).Append(nil, p, lanes); !bytes.Equal(b[1:], c) {
				t.Fatalf("lanes %d n %d: an encoder's history shows", lanes, n)
			}
		}
	}
}

// TestEscapes codes every int16 by a narrow and a wide table.
func TestEscapes(t *testing.T) {
	e, d := NewEncoder(testTables), NewDecoder(testTables)
	s := Section{Symbols: make([]int16, 65536), Tables: make([]uint8, 65536)}
	for i := range s.Symbols {
		s.Symbols[i] = int16(i)
	}
	for x := range TableCount {
		if x%9 != 0 && x != 63 && x != 127 {
			continue
		}
		for i := range s.Tables {
			s.Tables[i] = uint8(x)
		}
		p := &Payload{Levels: [][]Section{{s}}}
		b, err := e.Append(nil, p, 32)
		if err != nil {
			t.Fatal(err)
		}
		if q, err := decode(d, b, p, 32); err != nil || !same(p, q) {
			t.Fatalf("table %d: %v", x, err)
		}
		_, z, _ := IdealBits(testTables, p)
		if got := float64(len(b) * 8); got > z*1.0005+32*32 {
			t.Errorf("table %d: %.0f bits, ideal %.0f", x, got, z)
		}
	}
}

// TestOverhead holds the coder to 0.5 % above the continuous distributions' own length plus the lanes' states, over
// symbols drawn from them. The bound of the states is 4 bytes a lane, 2.5 with one lane.
func TestOverhead(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	e := NewEncoder(testTables)
	mass := trainingMass()
	for _, n := range []int{2000, 20000, 400000} {
		p := frame(r, n, 8)
		ideal := 0.0
		for _, level := range p.Levels {
			for _, s := range level {
				for i, x := range s.Tables {
					if !s.Skip || int(x) >= p.Threshold {
						ideal -= math.Log2(mass(int(x), int(s.Symbols[i])))
					}
				}
			}
		}
		_, z, y := IdealBits(testTables, p)
		for _, lanes := range []int{1, 32, testTables.Lanes(p)} {
			b, err := e.Append(nil, p, lanes)
			if err != nil {
				t.Fatal(err)
			}
			got := float64(len(b) * 8)
			t.Logf("n %d lanes %d: %.0f bits, tables' own %.0f (%+.3f %%), continuous %.0f (%+.3f %%)", n, lanes, got, z+y, (got/(z+y)-1)*100, ideal, (got/ideal-1)*100)
			states := 32 * float64(lanes)
			if got > ideal*1.005+states {
				t.Errorf("n %d lanes %d: %.0f bits, want at most %.0f", n, lanes, got, ideal*1.005+states)
			}
		}
	}
}

// trainingMass is the training's rate estimate, P + 1e-5·exp(-|k|/8), with the standard library's functions.
func trainingMass() func(x, k int) float64 {
	type key struct{ x, k int }
	seen := map[key]float64{}
	return func(x, k int) float64 {
		k = max(k, -k)
		if m, ok := seen[key{x, k}]; ok {
			return m
		}
		tail := func(v float64) float64 { // mass above v
			if x < LogisticTables {
				return math.Erfc(v/tables.Sigma(x)/math.Sqrt2) / 2
			}
			return 1 / (1 + math.Exp(v/tables.ZScale(x-LogisticTables)))
		}
		m := tail(float64(k)-0.5) - tail(float64(k)+0.5) + 1e-5*math.Exp(-float64(k)/8)
		seen[key{x, k}] = m
		return m
	}
}

func TestLanes(t *testing.T) {
	for _, c := range []struct {
		sum, coded int64
		want       int
	}{
		{0, 0, 1}, {1<<24 - 1, 0, 1}, {1 << 24, 0, 2}, {1<<25 - 1, 0, 2}, {1 << 25, 0, 4}, {1<<33 - 1, 0, 512}, {1 << 33, 0, 1024}, {1 << 40, 1 << 40, 1024},
		{1<<24 - 1, 1<<14 - 1, 1}, {1<<24 - 1, 1 << 14, 2}, {1<<22 - 1, 1 << 20, 1}, {1 << 22, 1 << 20, 2}, // symbols count where there are bytes for them
		{1 << 25, 1<<16 - 1, 4}, {1 << 25, 1 << 16, 8}, {1 << 25, 1 << 20, 16}, {1 << 31, 1 << 24, 1024}, {1 << 33, 1, 1024},
	} {
		if got := lanesFor(c.sum, c.coded); got != c.want {
			t.Errorf("%d, %d symbols: %d lanes, want %d", c.sum, c.coded, got, c.want)
		}
	}
	p := frame(rand.New(rand.NewPCG(2, 3)), 100000, 8)
	_, z, y := IdealBits(testTables, p)
	l := testTables.Lanes(p)
	if per := (z + y) / 8 / float64(l); per < 240 || per > 530 {
		t.Errorf("%d lanes of %.0f bytes", l, per)
	}
}

func TestEncoderRefuses(t *testing.T) {
	e := NewEncoder(testTables)
	ok := Section{Symbols: []int16{0}, Tables: []uint8{3}, Skip: true}
	for name, p := range map[string]*Payload{
		"lengths":         {Levels: [][]Section{{{Symbols: []int16{0}, Tables: nil}}}},
		"table":           {Levels: [][]Section{{{Symbols: []int16{0}, Tables: []uint8{128}}}}},
		"skipped nonzero": {Threshold: 4, Levels: [][]Section{{{Symbols: []int16{1}, Tables: []uint8{3}, Skip: true}}}},
		"vector range":    {HB: 1, WB: 1, Vectors: []int16{0, 2048}, Levels: [][]Section{{ok}}},
		"vector count":    {HB: 1, WB: 2, Vectors: []int16{0, 1}},
		"before count":    {HB: 1, WB: 1, Vectors: []int16{0, 1}, VectorsBefore: []int16{0}},
	} {
		if _, err := e.Append(nil, p, 1); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if _, err := e.Append(nil, &Payload{}, 3); err == nil {
		t.Error("3 lanes accepted")
	}
	if b, err := e.Append(nil, &Payload{Levels: [][]Section{{ok}}, Threshold: 4}, 1); err != nil || len(b) != 0 {
		t.Errorf("nothing coded takes %d bytes (%v), want 0", len(b), err)
	}
}

// TestDamage: no payload panics, and whatever fails says so by a CorruptError.
func TestDamage(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 4))
	e, d := NewEncoder(testTables), NewDecoder(testTables)
	for _, lanes := range []int{1, 2, 32, 128} {
		p := frame(r, 2000, 5)
		p.HB, p.WB = 6, 7
		p.Vectors = wildField(r, 6, 7)
		b, err := e.Append(nil, p, lanes)
		if err != nil {
			t.Fatal(err)
		}
		noticed, all := 0, 0
		for i := range 400 {
			c := bytes.Clone(b)
			switch i % 3 {
			case 0:
				c = c[:r.IntN(len(c))]
			case 1:
				c[r.IntN(len(c))] ^= byte(1 + r.IntN(255))
			case 2:
				for j := range c {
					c[j] = byte(r.Uint32())
				}
			}
			q, err := decode(d, c, p, lanes)
			all++
			var ce *CorruptError
			if err != nil && !errors.As(err, &ce) {
				t.Fatalf("not a CorruptError: %v", err)
			}
			if err != nil || q.Tail != 0 {
				noticed++
			}
		}
		if noticed < all*98/100 {
			t.Errorf("lanes %d: %d of %d noticed", lanes, noticed, all)
		}
	}
}

func FuzzDecode(f *testing.F) {
	p := frame(rand.New(rand.NewPCG(2, 5)), 300, 5)
	p.HB, p.WB, p.Vectors = 3, 4, make([]int16, 24)
	e := NewEncoder(testTables)
	for log := range 7 {
		b, _ := e.Append(nil, p, 1<<log)
		f.Add(b, uint8(log))
	}
	f.Fuzz(func(t *testing.T, b []byte, log uint8) {
		lanes := 1 << (log % 11)
		q, err := decode(NewDecoder(testTables), b, p, lanes)
		var ce *CorruptError
		if err != nil {
			if !errors.As(err, &ce) {
				t.Fatal(err)
			}
			return
		}
		// What decodes can be coded, and decodes to itself. (The bytes may differ: a uniform field has two codes.)
		q.VectorsBefore = p.VectorsBefore
		c, err := NewEncoder(testTables).Append(nil, q, lanes)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := decode(NewDecoder(testTables), c, q, lanes); err != nil || !same(q, again) {
			t.Fatalf("second decode differs: %v", err)
		}
	})
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 6))
	p := frame(r, 20000, 6)
	p.HB, p.WB, p.Vectors = 12, 12, smoothField(r, 12, 12, nil)
	e, d := NewEncoder(testTables), NewDecoder(testTables)
	buf, _ := e.Append(nil, p, 32)
	v := make([]int16, len(p.Vectors))
	if n := testing.AllocsPerRun(10, func() {
		buf, _ = e.Append(buf[:0], p, 32)
		d.Start(buf, 32)
		d.Vectors(v, nil, 12, 12)
		for _, l := range p.Levels {
			d.Level(l, p.Threshold)
		}
		if d.Finish() != nil {
			t.Fatal("finish")
		}
	}); n != 0 {
		t.Errorf("%v allocations a frame", n)
	}
}

func TestCandidatesOfTheDocumentation(t *testing.T) {
	if contexts != 615 || bits.Len32(4094) != maxClass {
		t.Fatal("the documentation's numbers of contexts and classes")
	}
}
