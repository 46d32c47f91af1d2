package rans

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// TestHandover: a payload whose later part one encoder has made and whose earlier part another puts in front is the
// payload that one encoder makes of all; and what a decoder hands over of it behind the earlier part is the later part.
func TestHandover(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 30))
	tab, freqs, specs := randTables(r, 5)
	var whole, later, earlier Encoder
	var d Decoder
	var h Handover
	for lanes := 1; lanes <= MaxLanes; lanes *= 2 {
		for _, n := range []int{0, 1, 40, 3000} {
			values, tabs := draw(r, n, freqs, specs)
			tail := uint16(r.Uint32())
			ranges := make([][2]uint32, r.IntN(200))
			for i := range ranges {
				start := uint32(r.IntN(65535))
				ranges[i] = [2]uint32{start, 1 + uint32(r.IntN(int(min(65535, 65536-start))))}
			}
			whole.Reset(lanes, tail)
			whole.Encode(values, tabs, 0, tab)
			later.Reset(lanes, tail)
			later.Encode(values, tabs, 0, tab)
			h.States, h.Words = append([]uint32(nil), later.state[:lanes]...), nil
			for g := range groups(lanes) {
				s := &later.groups[g]
				w := make([]uint16, s.n)
				for i := range w {
					w[i] = s.w[s.n-1-i]
				}
				h.Words = append(h.Words, w)
			}
			earlier.Continue(&h)
			for _, x := range ranges {
				whole.Put(x[0], x[1])
				earlier.Put(x[0], x[1])
			}
			want := whole.Append(nil)
			if got := earlier.Append([]byte{9}); !bytes.Equal(got[1:], want) {
				t.Fatalf("lanes %d n %d: the payload in two parts differs", lanes, n)
			}
			if err := d.Reset(want, lanes); err != nil {
				t.Fatal(err)
			}
			for i := len(ranges) - 1; i >= 0; i-- {
				d.Advance(ranges[i][0], ranges[i][1])
			}
			var left Handover
			d.Handover(&left)
			if len(left.States) != len(h.States) || len(left.Words) != len(h.Words) {
				t.Fatalf("lanes %d: %d states and %d groups are handed over", lanes, len(left.States), len(left.Words))
			}
			for i, x := range h.States {
				if left.States[i] != x {
					t.Fatalf("lanes %d n %d: lane %d is handed over at %d, want %d", lanes, n, i, left.States[i], x)
				}
			}
			for g, w := range h.Words {
				if !bytes.Equal(bytesOf(left.Words[g]), bytesOf(w)) {
					t.Fatalf("lanes %d n %d: the words of group %d differ", lanes, n, g)
				}
			}
			// An encoder that has continued a payload makes the next one as any other does.
			earlier.Reset(lanes, tail)
			earlier.Encode(values, tabs, 0, tab)
			later.Reset(lanes, tail)
			later.Encode(values, tabs, 0, tab)
			if !bytes.Equal(earlier.Append(nil), later.Append(nil)) {
				t.Fatalf("lanes %d n %d: an encoder's history shows", lanes, n)
			}
		}
	}
}

func bytesOf(w []uint16) (b []byte) {
	for _, x := range w {
		b = append(b, byte(x), byte(x>>8))
	}
	return b
}
