//go:build !purego

package kernel

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// benchSets runs f for generic and for avx2 where this machine has it.
func benchSets(b *testing.B, name string, f func(b *testing.B, s Set)) {
	for _, s := range Available() {
		b.Run(fmt.Sprintf("%s/impl=%s", name, s.Name), func(b *testing.B) { f(b, s) })
	}
}

// benchRows are the rows of 80 positions that one call covers: a thread's share of a frame.
const benchRows = 12

// BenchmarkLin runs the layers of the base model. copy is what moving the input alone costs, the roof of its memory.
func BenchmarkLin(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, shape := range [][2]int{{192, 96}, {96, 192}, {192, 384}, {480, 192}, {384, 192}} {
		in, out := shape[0], shape[1]
		l := &Lin{In: in, Out: out, Shift: 40, W: fill(make([]int8, in*out), func() int8 { return random8(r) }), Bias: make([]int32, out), Mul: make([]int32, out)}
		for i := range l.Mul {
			l.Mul[i] = 1<<30 + int32(i)
		}
		n := 80 * benchRows
		src, dst := fill16(r, n*in), make([]int16, n*out)
		name := fmt.Sprintf("k=%d/n=%d", in, out)
		benchSets(b, name, func(b *testing.B, s Set) {
			apply := s.Lin(l)
			b.SetBytes(int64(2 * len(src)))
			for b.Loop() {
				apply(dst, src, nil)
			}
			b.ReportMetric(float64(n*in*out)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GMAC/s")
		})
		b.Run(name+"/impl=copy", func(b *testing.B) {
			to := make([]int16, len(src))
			b.SetBytes(int64(2 * len(src)))
			for b.Loop() {
				copy(to, src)
			}
		})
	}
}
