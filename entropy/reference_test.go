package entropy

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"
)

// refDecoder decodes as the documentation says and no faster: every slot of a table spelled out, one symbol at a time.
type refDecoder struct {
	lanes int
	state []uint64
	words [][]uint16
}

func newRefDecoder(b []byte, lanes int) *refDecoder {
	d := &refDecoder{lanes: lanes, state: make([]uint64, lanes), words: make([][]uint16, (lanes+31)/32)}
	var counts []int
	for range len(d.words) - 1 {
		n, k := binary.Uvarint(b)
		counts, b = append(counts, int(n)), b[k:]
	}
	if lanes == 1 {
		k := len(b)
		if k >= 4 {
			k = 4 - k%2
		}
		var x [8]byte
		copy(x[:], b[:k])
		d.state[0], b = binary.LittleEndian.Uint64(x[:])+65536, b[k:]
	} else {
		for i := range d.state {
			d.state[i], b = uint64(binary.LittleEndian.Uint32(b)), b[4:]
		}
	}
	for g := range d.words {
		n := len(b) / 2
		if g < len(counts) {
			n = counts[g]
		}
		for range n {
			d.words[g], b = append(d.words[g], binary.LittleEndian.Uint16(b)), b[2:]
		}
	}
	return d
}

func (d *refDecoder) advance(lane int, freq, offset uint64) {
	x := freq*(d.state[lane]>>16) + offset
	if x < 65536 {
		w := &d.words[lane>>5]
		x = x<<16 | uint64((*w)[0])
		*w = (*w)[1:]
	}
	d.state[lane] = x
}

func (d *refDecoder) uniform(n int) int {
	slot := d.state[0] & 65535
	v := slot >> (16 - n)
	d.advance(0, 1<<(16-n), slot-v<<(16-n))
	return int(v)
}

type refTable struct {
	symbol, offset [65536]int
	freq           []int
	k              int
}

func refTables() []refTable {
	out := make([]refTable, TableCount)
	size, split := testTensors["entropy.size"].Data, testTensors["entropy.split"].Data
	for t := range out {
		n, k := int(size[2*t]), int(size[2*t+1])
		x := &out[t]
		x.k, x.freq = k, make([]int, 2*k+2)
		w := 1 << (16 - n)
		for _, right := range []bool{false, true} {
			for slot := range 65536 {
				v := int(split[slot/w])
				if slot%w >= v%w != right {
					continue
				}
				s := slot / w
				if right {
					s = v / w
				}
				x.symbol[slot], x.offset[slot] = s, x.freq[s]
				x.freq[s]++
			}
		}
		split = split[1<<n:]
	}
	return out
}

// TestAgainstReference decodes payloads of all kinds of parts with the reference: a pan's vectors, z, two y sections,
// escapes in both levels, rounds broken off in the middle.
func TestAgainstReference(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 1))
	ref := refTables()
	e := NewEncoder(testTables)
	for lanes := 1; lanes <= 1024; lanes *= 4 {
		for _, n := range []int{90, 3333} {
			p := frame(r, n, 6)
			p.HB, p.WB, p.Tail = 2, 3, 0xBEEF
			p.Vectors = constant(2, 3, -5, 1234)
			for _, level := range p.Levels {
				for i := range level {
					s := &level[i]
					for j, x := range s.Tables {
						if int(x) >= threshold(s, p.Threshold) && r.IntN(20) == 0 {
							s.Symbols[j] = int16(r.IntN(65536) - 32768)
						}
					}
				}
			}
			b, err := e.Append(nil, p, lanes)
			if err != nil {
				t.Fatal(err)
			}
			d := newRefDecoder(b, lanes)
			prob := uint64(testTensors["entropy.vector.prob"].Data[0])
			if slot := d.state[0] & 65535; slot >= prob {
				t.Fatal("not the range of a uniform field")
			} else {
				d.advance(0, prob, slot)
			}
			if y, x := d.uniform(12)-2047, d.uniform(12)-2047; y != -5 || x != 1234 {
				t.Fatalf("vector (%d, %d)", y, x)
			}
			count := 0
			for l, level := range p.Levels {
				var got, want []int
				var escapes, ks []int
				for i := range level {
					s := &level[i]
					for j, x := range s.Tables {
						if int(x) < threshold(s, p.Threshold) {
							continue
						}
						lane := count % lanes
						slot := d.state[lane] & 65535
						c := &ref[x]
						symbol := c.symbol[slot]
						d.advance(lane, uint64(c.freq[symbol]), uint64(c.offset[slot]))
						if symbol == 0 {
							escapes, ks = append(escapes, len(got)), append(ks, c.k)
						}
						got, want = append(got, symbol-1-c.k), append(want, int(s.Symbols[j]))
						count++
					}
				}
				for i, at := range escapes {
					slot := d.state[0] & 65535
					c := bits.LeadingZeros16(uint16(slot))
					d.advance(0, 1<<(15-c), slot-1<<(15-c))
					m := d.uniform(c + 1)
					v := ks[i] + 1<<c + m&(1<<c-1)
					if m>>c == 1 {
						v = -v
					}
					got[at] = v
				}
				if !slices.Equal(got, want) {
					t.Fatalf("lanes %d: level %d differs", lanes, l)
				}
			}
			for i, x := range d.state {
				if want := uint64(65536); i > 0 && x != want || i == 0 && x != want+0xBEEF {
					t.Fatalf("lane %d ends at %#x", i, x)
				}
			}
			for g, w := range d.words {
				if len(w) != 0 {
					t.Fatalf("group %d: %d words left", g, len(w))
				}
			}
		}
	}
}

// TestGolden holds the bitstream still: a tiny payload in full, larger ones by hash.
func TestGolden(t *testing.T) {
	e := NewEncoder(testTables)
	tiny := &Payload{
		HB: 1, WB: 2, Vectors: []int16{0, 0, 3, -9},
		Levels: [][]Section{
			{{Symbols: []int16{0, 1}, Tables: []uint8{80, 90}}},
			{{Symbols: []int16{0, 0, -2}, Tables: []uint8{4, 20, 30}, Skip: true}, {Symbols: []int16{300, 1}, Tables: []uint8{9, 40}, Skip: true}},
		},
		Threshold: 8, Tail: 0x1234,
	}
	b, err := e.Append(nil, tiny, 1)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprintf("% x", b); got != goldenTiny {
		t.Errorf("tiny payload % x, want %s", b, goldenTiny)
	}
	if q, err := decode(NewDecoder(testTables), b, tiny, 1); err != nil || !same(q, tiny) {
		t.Errorf("tiny payload: %v", err)
	}
	r := rand.New(rand.NewPCG(5, 2))
	h := sha256.New()
	for lanes := 1; lanes <= 1024; lanes *= 2 {
		// Integers alone, so that no machine's floats can move the input.
		p := &Payload{HB: 9, WB: 11, Vectors: wildField(r, 9, 11), Threshold: 10, Tail: uint16(lanes), Levels: [][]Section{{{}}, {{Skip: true}, {Skip: true}}}}
		for l := range p.Levels {
			for i := range p.Levels[l] {
				s := &p.Levels[l][i]
				for range 700 {
					x := uint8(r.IntN(64) + 64*(1-l))
					v := int16(bits.TrailingZeros32(r.Uint32())) * int16(1-2*r.IntN(2))
					if s.Skip && int(x) < p.Threshold {
						v = 0
					}
					s.Tables, s.Symbols = append(s.Tables, x), append(s.Symbols, v)
				}
			}
		}
		if b, err = e.Append(nil, p, lanes); err != nil {
			t.Fatal(err)
		}
		h.Write(b)
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != goldenHash {
		t.Errorf("payloads hash to %s, want %s", got, goldenHash)
	}
}

const (
	goldenTiny = "33 18 0f 0b 33 46 2d dd b4 15"
	goldenHash = "854248315dc65d23b521602a81b2ddefe140dd695995b751eb5c4cd372d352b4"
)
