package entropy

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/nvcodec/nvcodec/rans"
)

// TestHandover: the vectors put in front of what a decoder hands over behind them make the payload again.
func TestHandover(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 30))
	e, d := NewEncoder(testTables), NewDecoder(testTables)
	var h rans.Handover
	for lanes := 1; lanes <= 1024; lanes *= 2 {
		for _, n := range []int{0, 33, 2500} {
			p := frame(r, n, r.IntN(20))
			p.Tail = uint16(r.Uint32())
			p.HB, p.WB = 1+r.IntN(12), 1+r.IntN(12)
			if r.IntN(4) > 0 {
				p.Vectors, p.VectorsBefore = wildField(r, p.HB, p.WB), wildField(r, p.HB, p.WB)
			}
			want, err := e.Append(nil, p, lanes)
			if err != nil {
				t.Fatal(err)
			}
			if err := d.Start(want, lanes); err != nil {
				t.Fatal(err)
			}
			if p.Vectors != nil {
				if err := d.Vectors(make([]int16, len(p.Vectors)), p.VectorsBefore, p.HB, p.WB); err != nil {
					t.Fatal(err)
				}
			}
			d.Handover(&h)
			got, err := e.AppendBefore([]byte{3}, &Payload{Vectors: p.Vectors, VectorsBefore: p.VectorsBefore, HB: p.HB, WB: p.WB}, &h)
			if err != nil || !bytes.Equal(got[1:], want) {
				t.Fatalf("lanes %d n %d: another payload (%v)", lanes, n, err)
			}
		}
	}
}

// TestFlat: the numbers of Flat decode and encode by the rules of package rans.
func TestFlat(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 31))
	f := testTables.Flat()
	for range 20000 {
		x := r.IntN(TableCount)
		slot := r.IntN(65536)
		shift := f.Shift[x]
		bucket, pos := slot>>shift, slot&(1<<shift-1)
		e := f.Dec[f.Base[x]+bucket]
		symbol, freq, offset := bucket, int(e>>16)&0xffff, pos
		if cut := int(e) & (1<<shift - 1); pos >= cut {
			symbol, freq, offset = int(e)&0xffff>>shift, int(e>>32)&0xffff, (pos+int(e>>48))&0xffff
		}
		at := f.Base[x] + symbol
		if symbol > 2*f.K[x]+1 || freq != testTables.freq[x][symbol] || freq != int(f.Freq[at]) || f.Reciprocal[at] != (1<<48+uint64(freq)-1)/uint64(freq) {
			t.Fatalf("table %d slot %d: symbol %d of frequency %d", x, slot, symbol, freq)
		}
		j := f.Segment[at] + offset>>shift
		for offset >= int(f.Segments[j]&0xffff) {
			j++
		}
		if got := (offset + int(f.Segments[j]>>16)) & 0xffff; got != slot {
			t.Fatalf("table %d slot %d: symbol %d, offset %d leads to slot %d", x, slot, symbol, offset, got)
		}
	}
}
