//go:build cuda

package cuda

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/nvcodec/nvcodec/convert/tables"
	"github.com/nvcodec/nvcodec/entropy"
	"github.com/nvcodec/nvcodec/inference"
	"github.com/nvcodec/nvcodec/rans"
)

// modelTables are the shipped models' entropy tables; a symbol's cost is multiplied, so that few symbols make many
// lanes, or divided when costTimes is negative, so that symbols count rather than bytes.
func modelTables(t testing.TB, costTimes int32) *entropy.Tables {
	tensors := map[string]tables.Table{}
	for _, x := range tables.All() {
		tensors[x.Name] = x
	}
	made, err := entropy.NewTables(func(name string) (shape []int, data []int32, ok bool) {
		x, ok := tensors[name]
		for _, v := range x.Data {
			n := int32(v)
			if name == "entropy.cost" {
				if n = min(65535, n*costTimes); n < 0 {
					n = int32(v) / -costTimes
				}
			}
			data = append(data, n)
		}
		return x.Shape, data, ok
	})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// A coderCase is a frame's payload, made at random.
type coderCase struct {
	entropy.Payload
	hash  uint32
	limit int
}

// Kinds of random symbols.
const (
	realSymbols   = iota // as their tables expect, with some escapes
	skippedAll           // no y symbol is coded
	escapesAll           // every symbol is one
	extremeValues        // ends of tables and of int16
	zeroSymbols
	kindsOfSymbols
)

func randomCoderCase(r *rand.Rand, t *entropy.Tables, kind, nz, ny int) *coderCase {
	c := &coderCase{hash: r.Uint32(), limit: 32767}
	c.Threshold = r.IntN(20)
	switch {
	case kind == skippedAll:
		c.Threshold = 64
	case r.IntN(4) == 0:
		c.Threshold = 0
	}
	k := t.Flat().K
	section := func(n int, y bool) entropy.Section {
		s := entropy.Section{Symbols: make([]int16, n), Tables: make([]uint8, n), Skip: y}
		level := 10.0
		for i := range n {
			if r.IntN(12) == 0 {
				level = min(63, math.Abs(r.NormFloat64())*16)
			}
			s.Tables[i] = uint8(max(0, min(63, level+r.NormFloat64()*3)))
			if !y {
				s.Tables[i] = 64 + s.Tables[i]*3/4
			}
			if kind == extremeValues {
				s.Tables[i] = s.Tables[i]&64 + uint8([]int{0, 13, 14, 62, 63, r.IntN(64)}[r.IntN(6)])
			}
			x := int(s.Tables[i])
			if y && x < c.Threshold {
				continue
			}
			switch {
			case kind == escapesAll:
				s.Symbols[i] = int16(max(-32767, min(32767, (k[x]+1+r.IntN(1<<r.IntN(16)))*(1-2*r.IntN(2)))))
			case kind == extremeValues:
				s.Symbols[i] = int16([]int{k[x], k[x] + 1, k[x] + 2, -k[x], -k[x] - 1, -k[x] - 2, 32767, -32767, 0, 1}[r.IntN(10)])
			case kind == zeroSymbols:
			default:
				sigma := tables.Sigma(x & 63)
				s.Symbols[i] = int16(math.Floor(r.NormFloat64()*sigma + 0.5))
			}
		}
		return s
	}
	c.Levels = [][]entropy.Section{{section(nz, false)}}
	switch r.IntN(6) {
	case 0: // a level for each step
		for i := range 4 {
			c.Levels = append(c.Levels, []entropy.Section{section(ny*(i+1)/4-ny*i/4, true)})
		}
	case 1: // more sections than a launch has
		level := []entropy.Section{section(0, true), section(ny/2, true), section(0, true)}
		for i := range 3 {
			level = append(level, section((ny-ny/2)*(i+1)/3-(ny-ny/2)*i/3, true))
		}
		c.Levels = append(c.Levels, level)
	default:
		c.Levels = append(c.Levels, []entropy.Section{section(ny/2, true), section(ny-ny/2, true)})
	}
	if r.IntN(2) == 0 {
		c.HB, c.WB = 1+r.IntN(9), 1+r.IntN(9)
		field := func() []int16 {
			shift := r.IntN(12)
			return fill(2*c.HB*c.WB, func() int16 { return int16(r.IntN(4095)-2047) >> shift })
		}
		if c.Vectors = field(); r.IntN(2) == 0 {
			c.VectorsBefore = field()
		}
	}
	c.Tail = uint16(c.hash)
	return c
}

// A coderRig is a machine with a model's tables and page-locked memory, which cases share, and the memory of one case.
type coderRig struct {
	rig
	tables   *coderTables
	sections []codedSection
	locked   []byte
	used     int64
}

func newCoderRig(t testing.TB, m *bench, host *entropy.Tables) *coderRig {
	g := &coderRig{rig: rig{t: t, m: m}}
	var err error
	g.tables, err = loadCoderTables(m, host)
	g.must(err)
	return g
}

// host returns page-locked memory that is as another case left it.
func (g *coderRig) host(n int64) []byte {
	const room = 64 << 20
	if g.locked == nil {
		var err error
		g.locked, err = g.m.host(room)
		g.must(err)
	}
	if g.used+n > room {
		g.t.Fatalf("%d bytes of page-locked memory", g.used+n)
	}
	b := g.locked[g.used:][:n:n]
	g.used += aligned(n)
	return b
}

func (g *coderRig) alloc(n int64) pointer {
	p, err := g.m.alloc(n)
	g.must(err)
	g.held = append(g.held, p)
	return p
}

// next ends a case.
func (g *coderRig) next() {
	g.rig.free()
	g.used = 0
}

func (g *coderRig) free() {
	g.next()
	g.must(g.tables.release(g.m))
	if g.locked != nil {
		g.must(g.m.freeHost(g.locked))
	}
}

func addressOf(b []byte) uint64 { return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) }

// place uploads the sections of a case, symbols too when an encoder has them.
func (g *coderRig) place(c *coderCase, symbols bool) {
	g.sections = nil
	for level, all := range c.Levels {
		for i := range all {
			s := &all[i]
			x := codedSection{name: fmt.Sprintf("s%d.%d", level, i), count: int64(len(s.Symbols)), skip: s.Skip, level: level, limit: c.limit}
			x.tables = g.up(s.Tables)
			if symbols {
				x.symbols = upload(&g.rig, s.Symbols)
			} else {
				x.symbols = g.alloc(max(16, 2*x.count))
			}
			g.sections = append(g.sections, x)
		}
	}
	g.must(checkSections(g.sections))
}

func (g *coderRig) launch(all []call) {
	for _, c := range all {
		l, err := g.m.prepare(c)
		g.must(err)
		g.must(l.run())
	}
}

func (g *coderRig) parameters(f frameParameters) pointer {
	return upload(&g.rig, []frameParameters{f})
}

// encode codes a case on the machine.
func (g *coderRig) encode(c *coderCase) (payload []byte, lanes int) {
	g.place(c, true)
	scratch, size := encodeLayout(g.sections)
	result := g.host(size)
	frame := g.parameters(frameParameters{Threshold: int32(c.Threshold), Result: addressOf(result)})
	at, hash := g.alloc(scratch), upload(&g.rig, []uint32{c.hash})
	g.launch(gatherCalls(g.tables, g.sections, frame, at))
	g.launch(encodeCalls(g.tables, g.sections, hash, at))
	g.must(g.m.sync())
	r := structure[encoderResult](result)
	if r.Hash != c.hash {
		g.t.Errorf("the result's hash is %#x, want %#x", r.Hash, c.hash)
	}
	payload, err := newPayloadWriter(g.tables).append(nil, result, &c.Payload)
	g.must(err)
	return payload, int(r.Lanes)
}

// decode decodes a payload on the machine into sections of c's shape.
func (g *coderRig) decode(b []byte, lanes int, c *coderCase) (*entropy.Payload, error) {
	g.place(c, false)
	q := &entropy.Payload{HB: c.HB, WB: c.WB}
	reader := newPayloadReader(g.tables)
	if err := reader.Start(b, lanes); err != nil {
		return nil, err
	}
	if c.Vectors != nil {
		q.Vectors = make([]int16, len(c.Vectors))
		if err := reader.Vectors(q.Vectors, c.VectorsBefore, c.HB, c.WB); err != nil {
			return nil, err
		}
	}
	symbols := int64(0)
	for _, s := range g.sections {
		symbols += s.count
	}
	scratch, size, most := decodeLayout(g.sections)
	result := g.host(size)
	f := frameParameters{Threshold: int32(c.Threshold), Result: addressOf(result)}
	n := reader.take(symbols)
	if int64(n) > most {
		g.t.Fatalf("an input of %d bytes, at most %d stated", n, most)
	}
	input := g.host(int64(n))
	reader.stage(&f, input, symbols)
	f.Input = addressOf(input)
	frame, at := g.parameters(f), g.alloc(scratch)
	for level := range c.Levels {
		g.launch(decodeCalls(g.tables, g.sections, level, frame, at))
	}
	g.must(g.m.sync())
	var err error
	if q.Tail, err = structure[decoderResult](result).check(g.sections); err != nil {
		return nil, err
	}
	i := 0
	for _, level := range c.Levels {
		var all []entropy.Section
		for range level {
			s := entropy.Section{Symbols: make([]int16, g.sections[i].count)}
			g.down(bytesOfSlice(s.Symbols), g.sections[i].symbols)
			all = append(all, s)
			i++
		}
		q.Levels = append(q.Levels, all)
	}
	return q, nil
}

// decodeOnHost is what decode must equal.
func decodeOnHost(t *entropy.Tables, b []byte, lanes int, c *coderCase) (*entropy.Payload, error) {
	q, d := &entropy.Payload{HB: c.HB, WB: c.WB}, entropy.NewDecoder(t)
	if err := d.Start(b, lanes); err != nil {
		return nil, err
	}
	if c.Vectors != nil {
		q.Vectors = make([]int16, len(c.Vectors))
		if err := d.Vectors(q.Vectors, c.VectorsBefore, c.HB, c.WB); err != nil {
			return nil, err
		}
	}
	for l, level := range c.Levels {
		var all []entropy.Section
		for _, s := range level {
			all = append(all, entropy.Section{Symbols: make([]int16, len(s.Symbols)), Tables: s.Tables, Skip: s.Skip})
		}
		if err := d.Level(all, c.Threshold); err != nil {
			return nil, err
		}
		for i, s := range all {
			for j, v := range s.Symbols {
				if int(v) > c.limit || int(v) < -c.limit {
					return nil, fmt.Errorf("cuda: section s%d.%d: symbol %d is %d, want -%d..%d: %w", l, i, j, v, c.limit, c.limit, inference.ErrSymbol)
				}
			}
		}
		q.Levels = append(q.Levels, all)
	}
	var err error
	q.Tail, err = d.Tail()
	return q, err
}

func samePayload(a, b *entropy.Payload) string {
	if !slices.Equal(a.Vectors, b.Vectors) {
		return "vectors"
	}
	if a.Tail != b.Tail {
		return "tail"
	}
	for l := range a.Levels {
		for i := range a.Levels[l] {
			x, y := a.Levels[l][i].Symbols, b.Levels[l][i].Symbols
			for j := range x {
				if x[j] != y[j] {
					return fmt.Sprintf("level %d section %d symbol %d: %d, %d", l, i, j, x[j], y[j])
				}
			}
		}
	}
	return ""
}

// eachCoder runs a test on the emulation once, since the coder's kernels are the same in every family, and on every device.
func eachCoder(t *testing.T, test func(t *testing.T, m *bench)) {
	eachMachine(t, func(t *testing.T, m *bench) {
		if m.family() != families[0] {
			if _, ok := m.machine.(*emulated); ok {
				t.Skip("as " + fmt.Sprint(families[0]))
			}
		}
		test(t, m)
	})
}

// sharedMemory is how much a block has: sometimes too little for one half of the tables, or for both.
func sharedMemory(r *rand.Rand) int64 {
	return []int64{unaskedShared, unaskedShared, 36 << 10, 10 << 10}[r.IntN(4)]
}

// TestCoderEncode: the same payload as entropy.Encoder's, byte for byte, with the lanes that the tables ask for.
func TestCoderEncode(t *testing.T) {
	hosts := []*entropy.Tables{modelTables(t, 1), modelTables(t, 0), modelTables(t, 30), modelTables(t, 65535), modelTables(t, -20), modelTables(t, -150)}
	eachCoder(t, func(t *testing.T, m *bench) {
		seen := map[int]bool{}
		rigs := map[*entropy.Tables]*coderRig{}
		for _, host := range hosts {
			rigs[host] = newCoderRig(t, m, host)
		}
		for seed := range cases(m, 120, 200) {
			r := rand.New(rand.NewPCG(seed, 20))
			kind := int(seed) % kindsOfSymbols
			host := hosts[r.IntN(len(hosts))]
			ny := []int{0, 1, 2, 33, 500, 4095, 4096, 8192, 12290, 40000, 140000}[r.IntN(11)]
			nz := []int{0, 1, 17, 300, 4097}[r.IntN(5)]
			if kind == escapesAll {
				ny = min(ny, 4100)
			}
			if seed <= 10 { // every number of lanes: 2^23 / 65535 symbols each
				host, nz, ny = hosts[3], 129<<seed, 33
			}
			c := randomCoderCase(r, host, kind, nz, ny)
			g := rigs[host]
			g.tables.shared = sharedMemory(r)
			got, lanes := g.encode(c)
			what := fmt.Sprintf("seed=%d kind=%d z=%d y=%d T=%d", seed, kind, nz, ny, c.Threshold)
			if want := host.Lanes(&c.Payload); lanes != want {
				t.Fatalf("%s: %d lanes, want %d", what, lanes, want)
			}
			seen[lanes] = true
			want, err := entropy.NewEncoder(host).Append(nil, &c.Payload, lanes)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Fatalf("%s: %d lanes: payload of %d bytes differs from the host's of %d", what, lanes, len(got), len(want))
			}
			g.next()
		}
		for _, g := range rigs {
			g.free()
		}
		for lanes := 1; lanes <= maxLanes; lanes *= 2 {
			if !seen[lanes] {
				t.Errorf("no case with %d lanes", lanes)
			}
		}
	})
}

// TestCoderDecode: what entropy.Encoder codes with any number of lanes comes back.
func TestCoderDecode(t *testing.T) {
	host := modelTables(t, 1)
	eachCoder(t, func(t *testing.T, m *bench) {
		g := newCoderRig(t, m, host)
		for seed := range cases(m, 130, 300) {
			r := rand.New(rand.NewPCG(seed, 21))
			kind, lanes := int(seed)%kindsOfSymbols, 1<<(seed%11)
			ny := []int{0, 1, 2, 33, 500, 4095, 4096, 8192, 12290, 140000}[r.IntN(10)]
			nz := []int{0, 1, 17, 300, 4097}[r.IntN(5)]
			if kind == escapesAll {
				ny = min(ny, 4100)
			}
			c := randomCoderCase(r, host, kind, nz, ny)
			b, err := entropy.NewEncoder(host).Append(nil, &c.Payload, lanes)
			if err != nil {
				t.Fatal(err)
			}
			g.tables.shared = sharedMemory(r)
			what := fmt.Sprintf("seed=%d kind=%d z=%d y=%d T=%d lanes=%d", seed, kind, nz, ny, c.Threshold, lanes)
			got, err := g.decode(b, lanes, c)
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			if diff := samePayload(got, &c.Payload); diff != "" {
				t.Fatalf("%s: %s differs", what, diff)
			}
			g.next()
		}
		g.free()
	})
}

// TestCoderDamage: whatever the bytes, the device gives the host's symbols or the host's error, in the same words.
func TestCoderDamage(t *testing.T) {
	host := modelTables(t, 1)
	eachCoder(t, func(t *testing.T, m *bench) {
		kinds := map[string]int{}
		g := newCoderRig(t, m, host)
		for seed := range cases(m, 600, 2000) {
			r := rand.New(rand.NewPCG(seed, 22))
			kind, lanes := r.IntN(kindsOfSymbols), 1<<r.IntN(11)
			c := randomCoderCase(r, host, kind, r.IntN(400), r.IntN(3000))
			b, err := entropy.NewEncoder(host).Append(nil, &c.Payload, lanes)
			if err != nil {
				t.Fatal(err)
			}
			c.limit = []int{32767, 255, 127, 3}[r.IntN(4)]
			switch r.IntN(8) {
			case 0: // as it is
			case 1:
				b = b[:r.IntN(len(b)+1)]
			case 2:
				b = append(b, fill(2*(1+r.IntN(200)), func() byte { return byte(r.Uint32()) })...)
			case 3:
				b = fill(len(b), func() byte { return byte(r.Uint32()) })
			case 4:
				lanes = 1 << r.IntN(11)
			case 5: // states that cannot hold the tail alone
				if len(b) > 0 {
					b[r.IntN(min(len(b), 4*lanes+4))] ^= byte(1 << r.IntN(8))
				}
			default:
				for range 1 + r.IntN(4) {
					if len(b) > 0 {
						b[r.IntN(len(b))] ^= byte(1 << r.IntN(8))
					}
				}
			}
			g.tables.shared = sharedMemory(r)
			want, wantErr := decodeOnHost(host, b, lanes, c)
			got, err := g.decode(b, lanes, c)
			what := fmt.Sprintf("seed=%d kind=%d lanes=%d", seed, kind, lanes)
			switch {
			case (err == nil) != (wantErr == nil) || err != nil && err.Error() != wantErr.Error():
				t.Fatalf("%s: the device says %v, the host %v", what, err, wantErr)
			case err == nil:
				kinds["none"]++
				if diff := samePayload(got, want); diff != "" {
					t.Fatalf("%s: %s differs", what, diff)
				}
			default:
				var a, b *rans.CorruptError
				if errors.As(err, &a) != errors.As(wantErr, &b) || a != nil && *a != *b || errors.Is(err, inference.ErrSymbol) != errors.Is(wantErr, inference.ErrSymbol) {
					t.Fatalf("%s: the device's error is %#v, the host's %#v", what, err, wantErr)
				}
				name := "symbol"
				if a != nil {
					name = a.Field
				}
				kinds[name]++
			}
			g.next()
		}
		g.free()
		for _, name := range []string{"none", "symbol", "words", "escape", "states", "group_words", "vectors"} {
			if kinds[name] == 0 && !testing.Short() {
				t.Errorf("no case ends with %s: %v", name, kinds)
			}
		}
	})
}
