package rans

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

func BenchmarkDecode(b *testing.B) { bench(b, true) }
func BenchmarkEncode(b *testing.B) { bench(b, false) }

func bench(b *testing.B, decode bool) {
	const n = 1 << 17
	r := rand.New(rand.NewPCG(1, 9))
	// Symbols of a few dozen two-sided tables from narrow to wide, the narrow ones most common.
	var specs []Spec
	var freqs [][]int
	for i := range 40 {
		m := 4 + i*i/12
		f := make([]int, m)
		left := 65536
		for k := range f {
			f[k] = max(1, (left-(m-k))*2/(m-k+3))
			left -= f[k]
		}
		f[0] += left
		log := 2
		for 1<<log < m {
			log++
		}
		specs, freqs = append(specs, Spec{Log: log, Symbols: m, Split: Split(f, log)}), append(freqs, f)
	}
	tab, err := NewTables(specs)
	if err != nil {
		b.Fatal(err)
	}
	values, tabs := make([]int16, n), make([]uint8, n)
	for i := range values {
		t := min(r.IntN(40), r.IntN(40))
		s := 0
		for x := r.IntN(65536); x >= freqs[t][s]; s++ {
			x -= freqs[t][s]
		}
		values[i], tabs[i] = int16(s), uint8(t)
	}
	for _, lanes := range []int{1, 32, 1024} {
		b.Run(fmt.Sprintf("lanes=%d", lanes), func(b *testing.B) {
			var e Encoder
			var d Decoder
			var buf []byte
			enc := func() {
				e.Reset(lanes, 0)
				e.Encode(values, tabs, 0, tab)
				buf = e.Append(buf[:0])
			}
			enc()
			out := make([]int16, n)
			for b.Loop() {
				if !decode {
					enc()
				} else if d.Reset(buf, lanes) != nil {
					b.Fatal()
				} else if _, err := d.Decode(out, tabs, tab); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Msymbols/s")
			b.ReportMetric(float64(len(buf))*8/n, "bits/symbol")
		})
	}
}
