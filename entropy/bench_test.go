package entropy

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

func BenchmarkEncode(b *testing.B) { benchmark(b, false) }
func BenchmarkDecode(b *testing.B) { benchmark(b, true) }

// benchmark runs over the symbols of a frame of 1280x720: 460800 y symbols, about half of them skipped. It reports
// coded and all symbols a second and how far the payload is above the tables' ideal length, states and all.
func benchmark(b *testing.B, dec bool) {
	p := frame(rand.New(rand.NewPCG(4, 1)), 460800, 8)
	coded, all := 0, 0
	for _, level := range p.Levels {
		for i := range level {
			for _, x := range level[i].Tables {
				if all++; int(x) >= threshold(&level[i], p.Threshold) {
					coded++
				}
			}
		}
	}
	_, z, y := IdealBits(testTables, p)
	for _, lanes := range []int{1, 32, 1024} {
		b.Run(fmt.Sprintf("lanes=%d", lanes), func(b *testing.B) {
			e, d := NewEncoder(testTables), NewDecoder(testTables)
			buf, err := e.Append(nil, p, lanes)
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if !dec {
					buf, _ = e.Append(buf[:0], p, lanes)
					continue
				}
				if err := d.Start(buf, lanes); err != nil {
					b.Fatal(err)
				}
				for _, level := range p.Levels {
					if err := d.Level(level, p.Threshold); err != nil {
						b.Fatal(err)
					}
				}
				if err := d.Finish(); err != nil {
					b.Fatal(err)
				}
			}
			s := b.Elapsed().Seconds() / float64(b.N) * 1e6
			b.ReportMetric(float64(coded)/s, "Mcoded/s")
			b.ReportMetric(float64(all)/s, "Msymbols/s")
			b.ReportMetric((float64(len(buf)*8)/(z+y)-1)*100, "%over-ideal")
		})
	}
}

func BenchmarkVectors(b *testing.B) {
	const hb, wb = 68, 120
	r := rand.New(rand.NewPCG(4, 2))
	before := smoothField(r, hb, wb, nil)
	p := &Payload{Vectors: smoothField(r, hb, wb, before), VectorsBefore: before, HB: hb, WB: wb}
	e, d := NewEncoder(testTables), NewDecoder(testTables)
	buf, _ := e.Append(nil, p, 1)
	out := make([]int16, len(p.Vectors))
	b.Run("encode", func(b *testing.B) {
		for b.Loop() {
			buf, _ = e.Append(buf[:0], p, 1)
		}
		b.ReportMetric(hb*wb*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mblocks/s")
	})
	b.Run("decode", func(b *testing.B) {
		for b.Loop() {
			if d.Start(buf, 1) != nil || d.Vectors(out, before, hb, wb) != nil {
				b.Fatal()
			}
		}
		b.ReportMetric(hb*wb*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mblocks/s")
	})
}
