package rans

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// randFreq draws m frequencies that sum to 65536, many of them 1 and some very large.
func randFreq(r *rand.Rand, m int) []int {
	w := make([]float64, m)
	sum := 0.0
	for i := range w {
		w[i] = math.Exp(r.NormFloat64() * 4)
		sum += w[i]
	}
	f := make([]int, m)
	left := 65536 - m
	for i := range f {
		n := int(w[i] / sum * float64(65536-m))
		f[i] = 1 + n
		left -= n
	}
	f[r.IntN(m)] += left
	return f
}

func randTables(r *rand.Rand, n int) (*Tables, [][]int, []Spec) {
	specs := make([]Spec, n)
	freqs := make([][]int, n)
	for i := range specs {
		log := 2 + r.IntN(MaxLog-1)
		m := 2 + r.IntN(1<<log-1)
		freqs[i] = randFreq(r, m)
		specs[i] = Spec{Log: log, Symbols: m, First: int16(r.IntN(200) - 100), Split: Split(freqs[i], log)}
	}
	t, err := NewTables(specs)
	if err != nil {
		panic(err)
	}
	return t, freqs, specs
}

// draw fills values and tabs with symbols that follow their tables' frequencies, extremes over-weighted.
func draw(r *rand.Rand, n int, freqs [][]int, specs []Spec) (values []int16, tabs []uint8) {
	values, tabs = make([]int16, n), make([]uint8, n)
	for i := range values {
		t := r.IntN(len(freqs))
		s := 0
		switch f := freqs[t]; r.IntN(8) {
		case 0:
			s = 0
		case 1:
			s = len(f) - 1
		default:
			for x := r.IntN(65536); x >= f[s]; s++ {
				x -= f[s]
			}
		}
		values[i], tabs[i] = int16(int(specs[t].First)+s), uint8(t)
	}
	return values, tabs
}

func TestSplitKeepsFrequencies(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 300 {
		_, freqs, specs := randTables(r, 4)
		for i := range specs {
			got, err := specs[i].Freqs()
			if err != nil {
				t.Fatal(err)
			}
			if fmt.Sprint(got) != fmt.Sprint(freqs[i]) {
				t.Fatalf("got %v, want %v", got, freqs[i])
			}
		}
	}
}

// TestSlots walks all 65536 slots of a table by the definition in words and compares both look-ups with it.
func TestSlots(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		tab, freqs, specs := randTables(r, 1)
		s, f := &specs[0], freqs[0]
		w := 1 << (16 - s.Log)
		owner := func(slot int) (sym int, left bool) {
			v := int(s.Split[slot/w])
			if slot%w < v%w {
				return slot / w, true
			}
			return v / w, false
		}
		offset := make([]int, 65536)
		next := make([]int, len(f))
		for _, pass := range []bool{true, false} {
			for slot := range 65536 {
				if sym, left := owner(slot); left == pass {
					offset[slot] = next[sym]
					next[sym]++
				}
			}
		}
		var e Encoder
		var d Decoder
		for slot := range 65536 {
			sym, _ := owner(slot)
			x := uint32(r.IntN(65535)+1)<<16 | uint32(slot)
			// One step of the decoder, by big integers.
			want := new(big.Int).Mul(big.NewInt(int64(f[sym])), big.NewInt(int64(x>>16)))
			want.Add(want, big.NewInt(int64(offset[slot])))
			word := uint16(r.Uint32())
			refill := want.Cmp(big.NewInt(Low)) < 0
			if refill {
				want.Lsh(want, 16).Add(want, big.NewInt(int64(word)))
			}
			for _, lanes := range []int{1, 2} {
				if d.Reset(make([]byte, []int{0, 0, 8}[lanes]), lanes) != nil && lanes == 1 {
					t.Fatal("reset")
				}
				d.lanes, d.err, d.n = lanes, nil, 0
				d.words = append(d.words[:0], make([]uint16, 2*pad)...)
				d.words[0], d.pos[0], d.end[0] = word, 0, 1
				d.state[0] = x
				v := []int16{0}
				first, err := d.Decode(v, []uint8{0}, tab)
				if err != nil || int(v[0]) != int(s.First)+sym || first != (sym == 0) || uint64(d.state[0]) != want.Uint64() || d.pos[0] == 1 != refill {
					t.Fatalf("lanes %d slot %d: value %d state %d words %d, want %d %v %v (%v)", lanes, slot, v[0], d.state[0], d.pos[0], int(s.First)+sym, want, refill, err)
				}
			}
			// The encoder undoes it.
			e.Reset(1, 0)
			e.state[0] = d.state[0]
			e.Encode([]int16{int16(int(s.First) + sym)}, []uint8{0}, 0, tab)
			if e.state[0] != x || e.groups[0].n == 1 != refill || refill && e.groups[0].w[0] != word {
				t.Fatalf("slot %d: encoder reaches %d, want %d", slot, e.state[0], x)
			}
		}
	}
}

// reference codes as the documentation says, one symbol at a time and one big integer a lane, with no tables.
func reference(values []int16, tabs []uint8, freqs [][]int, specs []Spec, lanes int, tail uint16) []byte {
	state := make([]*big.Int, lanes)
	for i := range state {
		state[i] = big.NewInt(Low)
	}
	state[0].Add(state[0], big.NewInt(int64(tail)))
	words := make([][]uint16, groups(lanes))
	for n := len(values) - 1; n >= 0; n-- {
		s := &specs[tabs[n]]
		sym := int(values[n]) - int(s.First)
		f := big.NewInt(int64(freqs[tabs[n]][sym]))
		x, g := state[n%lanes], n%lanes/GroupLanes
		if x.Cmp(new(big.Int).Lsh(f, 16)) >= 0 {
			words[g] = append([]uint16{uint16(x.Uint64())}, words[g]...)
			x.Rsh(x, 16)
		}
		q, o := new(big.Int).DivMod(x, f, new(big.Int))
		x.Lsh(q, 16).Add(x, big.NewInt(int64(slotOf(s, sym, int(o.Int64())))))
	}
	var out []byte
	if lanes == 1 {
		y := state[0].Uint64() - Low
		k := 0
		for y>>(8*k) != 0 {
			k++
		}
		if len(words[0]) > 0 {
			k = max(k, 3)
		}
		for i := range k {
			out = append(out, byte(y>>(8*i)))
		}
	} else {
		for g := range len(words) - 1 {
			n := len(words[g])
			for ; n >= 128; n >>= 7 {
				out = append(out, byte(n)|128)
			}
			out = append(out, byte(n))
		}
		for _, x := range state {
			v := x.Uint64()
			out = append(out, byte(v), byte(v>>8), byte(v>>16), byte(v>>24))
		}
	}
	for _, w := range words {
		for _, v := range w {
			out = append(out, byte(v), byte(v>>8))
		}
	}
	return out
}

func slotOf(s *Spec, sym, o int) int {
	w := 1 << (16 - s.Log)
	if cut := int(s.Split[sym]) % w; o < cut {
		return sym*w + o
	} else {
		o -= cut
	}
	for b, v := range s.Split {
		if int(v)/w == sym {
			if n := w - int(v)%w; o < n {
				return b*w + int(v)%w + o
			} else {
				o -= n
			}
		}
	}
	panic("offset beyond the frequency")
}

func TestRoundTripAgainstReference(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 3))
	var e Encoder
	var d Decoder
	for lanes := 1; lanes <= MaxLanes; lanes *= 2 {
		for _, n := range []int{0, 1, 2, lanes - 1, lanes, lanes + 1, 3*lanes + 7, 1000} {
			tab, freqs, specs := randTables(r, 1+r.IntN(9))
			values, tabs := draw(r, n, freqs, specs)
			tail := uint16(0)
			if r.IntN(2) == 0 {
				tail = uint16(r.Uint32())
			}
			want := reference(values, tabs, freqs, specs, lanes, tail)
			for _, cut := range []int{0, n / 3} { // one run of symbols, and two
				e.Reset(lanes, tail)
				e.Encode(values[cut:], tabs[cut:], cut, tab)
				e.Encode(values[:cut], tabs[:cut], 0, tab)
				if got := e.Append([]byte("x")); !bytes.Equal(got[1:], want) {
					t.Fatalf("lanes %d n %d: encoder differs from the reference", lanes, n)
				}
				if err := d.Reset(want, lanes); err != nil {
					t.Fatal(err)
				}
				got := make([]int16, n)
				if _, err := d.Decode(got[:cut], tabs[:cut], tab); err != nil {
					t.Fatal(err)
				}
				if _, err := d.Decode(got[cut:], tabs[cut:], tab); err != nil {
					t.Fatal(err)
				}
				for i := range got {
					if got[i] != values[i] {
						t.Fatalf("lanes %d n %d: symbol %d is %d, want %d", lanes, n, i, got[i], values[i])
					}
				}
				if v, err := d.Finish(); err != nil || v != tail {
					t.Fatalf("lanes %d n %d: tail %d, want %d: %v", lanes, n, v, tail, err)
				}
			}
		}
	}
}

func TestRanges(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 4))
	var e Encoder
	var d Decoder
	type op struct{ start, freq uint32 }
	for _, lanes := range []int{1, 2, 64} {
		for n := range 60 {
			ops := make([]op, n)
			e.Reset(lanes, 0)
			for i := range ops {
				f := 1 + uint32(r.IntN(65535))
				if r.IntN(3) == 0 {
					f = []uint32{1, 65535}[r.IntN(2)]
				}
				ops[i] = op{uint32(r.IntN(int(65537 - f))), f}
			}
			v := uint32(r.IntN(1 << 15))
			e.PutBits(v, 15)
			for i := n - 1; i >= 0; i-- {
				e.Put(ops[i].start, ops[i].freq)
			}
			b := e.Append(nil)
			if err := d.Reset(b, lanes); err != nil {
				t.Fatal(err)
			}
			for i, o := range ops {
				if s := d.Slot(); s < o.start || s >= o.start+o.freq {
					t.Fatalf("op %d: slot %d outside [%d, +%d)", i, s, o.start, o.freq)
				}
				d.Advance(o.start, o.freq)
			}
			if got := d.Bits(15); got != v {
				t.Fatalf("bits %d, want %d", got, v)
			}
			if _, err := d.Finish(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestWorked is the worked example of the package documentation: the states there are the ones here.
func TestWorked(t *testing.T) {
	freq := []int{5000, 50000, 10536}
	s := Spec{Log: 2, Symbols: 3, First: -1, Split: Split(freq, 2)}
	if got := fmt.Sprint(s.Split); got != "[21384 16384 26920 16384]" {
		t.Fatalf("splits %v", got)
	}
	tab, err := NewTables([]Spec{s})
	if err != nil {
		t.Fatal(err)
	}
	var e Encoder
	e.Reset(1, 0)
	var states []uint32
	values := []int16{-1, -1, -1, 0, 1, -1, 0, 0}
	for i := len(values) - 1; i >= 0; i-- {
		e.Encode(values[i:i+1], []uint8{0}, i, tab)
		states = append(states, e.state[0])
	}
	payload := e.Append(nil)
	var d Decoder
	if err := d.Reset(payload, 1); err != nil {
		t.Fatal(err)
	}
	for i, v := range values {
		// The decoder passes the same states the other way round.
		if x := states[len(states)-1-i]; d.state[0] != x {
			t.Fatalf("before symbol %d: state %d, want %d", i, d.state[0], x)
		}
		got := []int16{0}
		if _, err := d.Decode(got, []uint8{0}, tab); err != nil || got[0] != v {
			t.Fatalf("symbol %d: %d (%v), want %d", i, got[0], err, v)
		}
	}
	if _, err := d.Finish(); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprintf("%v % x", states, payload); got != worked {
		t.Fatalf("got %s, want %s", got, worked)
	}
}

const worked = "[86072 117144 1509472 9407240 12333008 161614784 2118259376 395538] 12 09 05 b0 12"

func TestBadTables(t *testing.T) {
	good := func() Spec { return Spec{Log: 2, Symbols: 3, Split: []uint16{21384, 16384, 26920, 16384}} }
	for name, edit := range map[string]func(*Spec){
		"log":            func(s *Spec) { s.Log = 1 },
		"log high":       func(s *Spec) { s.Log = 9 },
		"one symbol":     func(s *Spec) { s.Symbols = 1 },
		"many symbols":   func(s *Spec) { s.Symbols = 5 },
		"value range":    func(s *Spec) { s.First = 32766 },
		"splits":         func(s *Spec) { s.Split = s.Split[:3] },
		"right":          func(s *Spec) { s.Split[0] = 3 << 14 },
		"cut past m":     func(s *Spec) { s.Split[3]++ },
		"cut of own":     func(s *Spec) { s.Split[1]++ },
		"unused symbol":  func(s *Spec) { s.Split[2] = 1 << 14 },
		"all one symbol": func(s *Spec) { s.Split = []uint16{1 << 14, 1 << 14, 1 << 14, 1 << 14} },
	} {
		s := good()
		edit(&s)
		if _, err := NewTables([]Spec{s}); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if _, err := NewTables([]Spec{good()}); err != nil {
		t.Error(err)
	}
}

func TestBadPayloads(t *testing.T) {
	var d Decoder
	for _, c := range []struct {
		lanes   int
		payload []byte
	}{
		{0, nil}, {3, make([]byte, 99)}, {2048, make([]byte, 9999)},
		{1, []byte{0}}, {1, []byte{1, 0}}, {1, []byte{1, 2, 0}}, {1, []byte{1, 2, 3, 0}},
		{1, []byte{0, 0, 255, 255}}, {1, []byte{1, 2, 3, 0, 5, 6}}, // states past 2^32, not shortest
		{2, make([]byte, 7)}, {2, make([]byte, 8)}, {2, bytes.Repeat([]byte{1}, 9)},
		{64, nil}, {64, bytes.Repeat([]byte{255}, 300)}, {64, append([]byte{128, 0}, bytes.Repeat([]byte{1}, 256)...)},
		{64, append([]byte{1}, bytes.Repeat([]byte{1}, 256)...)},
	} {
		err := d.Reset(c.payload, c.lanes)
		var ce *CorruptError
		if !errors.As(err, &ce) {
			t.Errorf("lanes %d payload % x: %v", c.lanes, c.payload[:min(8, len(c.payload))], err)
		}
	}
}

// TestDamage cuts and changes payloads: never a panic, never a read beyond the words, and mostly noticed.
func TestDamage(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 5))
	var e Encoder
	var d Decoder
	noticed, all := 0, 0
	for _, lanes := range []int{1, 4, 32, 128} {
		tab, freqs, specs := randTables(r, 5)
		values, tabs := draw(r, 700, freqs, specs)
		e.Reset(lanes, 0)
		e.Encode(values, tabs, 0, tab)
		b := e.Append(nil)
		out := make([]int16, len(values))
		for range 300 {
			c := bytes.Clone(b)
			if r.IntN(2) == 0 {
				c = c[:r.IntN(len(c))]
			} else {
				c[r.IntN(len(c))] ^= byte(1 + r.IntN(255))
			}
			all++
			err := d.Reset(c, lanes)
			if err == nil {
				_, err = d.Decode(out, tabs, tab)
			}
			if err == nil {
				var tail uint16
				if tail, err = d.Finish(); err == nil && tail == 0 {
					continue
				}
			}
			noticed++
		}
	}
	if noticed < all*99/100 {
		t.Errorf("%d of %d damaged payloads noticed", noticed, all)
	}
}

func FuzzDecode(f *testing.F) {
	tab, _, _ := randTables(rand.New(rand.NewPCG(1, 6)), 7)
	f.Add([]byte{}, uint8(0), uint16(5))
	f.Add(bytes.Repeat([]byte{0, 1}, 200), uint8(6), uint16(500))
	f.Fuzz(func(t *testing.T, b []byte, log uint8, n uint16) {
		lanes := 1 << (log % 11)
		var d Decoder
		if d.Reset(b, lanes) != nil {
			return
		}
		values, tabs := make([]int16, n), make([]uint8, n)
		for i := range tabs {
			tabs[i] = uint8(i % 7)
		}
		d.Advance(0, d.Slot()+1)
		if _, err := d.Decode(values, tabs, tab); err != nil {
			return
		}
		tail, err := d.Finish()
		if err != nil {
			return
		}
		// What decodes to the end is exactly what the encoder makes of it.
		var first Decoder
		if first.Reset(b, lanes) != nil {
			t.Fatal("second reset fails")
		}
		slot := first.Slot()
		var e Encoder
		e.Reset(lanes, tail)
		e.Encode(values, tabs, 0, tab)
		e.Put(0, slot+1)
		if got := e.Append(nil); !bytes.Equal(got, b) {
			t.Fatalf("% x codes as % x", b, got)
		}
	})
}
