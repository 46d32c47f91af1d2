package kernel

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
)

// benchSets runs f for every set of this machine.
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

// benchSamples runs an operator over one thread's share of a frame; samples are those of its output.
func benchSamples(b *testing.B, name string, bytes, samples int, f func(s Set)) {
	benchSets(b, name, func(b *testing.B, s Set) {
		b.SetBytes(int64(bytes))
		for b.Loop() {
			f(s)
		}
		b.ReportMetric(float64(samples)*float64(b.N)/b.Elapsed().Seconds()/1e9, "Gsamples/s")
	})
}

func BenchmarkDWAct(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	const c, h, w = 96, 48, 80
	d := &DWAct{C: c, F: 11, Shift: 38, W: fill(make([]int8, 9*c), func() int8 { return random8(r) }), Bias: make([]int32, c), Mul: fill(make([]int32, c), func() int32 { return 1 << 30 })}
	src, dst := fill16(r, h*w*c), make([]int16, h*w*c)
	for _, s := range Available() {
		apply := s.DWAct(d)
		b.Run("c=96/impl="+s.Name, func(b *testing.B) {
			b.SetBytes(int64(2 * w * c * benchRows))
			for b.Loop() {
				apply(dst, src, h, w, 12, 12+benchRows)
			}
			b.ReportMetric(float64(9*w*c*benchRows)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GMAC/s")
		})
	}
}

func BenchmarkPointwise(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 3))
	const c, n = 96, 80 * benchRows
	src, dst := fill16(r, 4*n*c), make([]int16, n*c)
	m := fill(make([]int32, c), func() int32 { return 1<<30 + int32(r.IntN(1<<30)) })
	benchSamples(b, "op=actsum4", 10*n*c, n*c, func(s Set) { s.ActSum4(dst, src, c, 11) })
	src = src[:n*c]
	benchSamples(b, "op=scale", 4*n*c, n*c, func(s Set) { s.Scale(dst, src, m, 36) })
	benchSamples(b, "op=requant", 4*n*c, n*c, func(s Set) { s.Requant(dst, src, 2) })
	benchSamples(b, "op=clamp", 4*n*c, n*c, func(s Set) { s.Clamp(dst, src, -4096, 4095) })
}

func BenchmarkPicture(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 4))
	const w, h = 640, 384
	y, u, v := fill(make([]byte, w*h), func() byte { return byte(r.Uint32()) }), make([]byte, w*h/4), make([]byte, w*h/4)
	packed, pred, table := fill16(r, w*h*3/2), fill16(r, w*h*3/2), fill16(r, 256)
	to := make([]byte, w*h)
	vectors := fill(make([]int16, 2*w*h/256), func() int16 { return int16(r.IntN(128) - 64) })
	benchSamples(b, "op=compensate/plane=luma", 2*w*h, w*h, func(s Set) { s.Compensate(to, y, w, h, 0, h, vectors, w/16, true) })
	benchSamples(b, "op=compensate/plane=chroma", w*h/2, w*h/4, func(s Set) { s.Compensate(v, u, w/2, h/2, 0, h/2, vectors, w/16, false) })
	benchSamples(b, "op=pack", w*h*9/2, w*h*3/2, func(s Set) { s.Pack(packed, y, u, v, w, h, 0, h/8, table) })
	benchSamples(b, "op=unpack", w*h*15/2, w*h*3/2, func(s Set) { s.Unpack(to, u, v, packed, pred, w, h, 0, h/8, 13) })
	benchSamples(b, "op=satd16", 512, 256, func(s Set) { s.SATD16(y[5:], w, y[w:], w) })
	benchSets(b, "op=copy/plane=luma", func(b *testing.B, _ Set) {
		b.SetBytes(2 * w * h)
		for b.Loop() {
			copy(to, y)
		}
	})
}

// BenchmarkBlock runs a whole block of the base model over a 640x384 frame, its operators shared by rows.
func BenchmarkBlock(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 5))
	const c, h, w = 192, 48, 80
	lin := func(in, out int) *Lin {
		return &Lin{In: in, Out: out, Shift: 40, W: fill(make([]int8, in*out), func() int8 { return random8(r) }), Bias: make([]int32, out), Mul: fill(make([]int32, out), func() int32 { return 1 << 30 })}
	}
	x, half, half2, wide := fill16(r, h*w*c), make([]int16, h*w*c/2), make([]int16, h*w*c/2), make([]int16, h*w*2*c)
	for _, s := range Available() {
		pw1, pw2, ff1, ff2 := s.Lin(lin(c, c/2)), s.Lin(lin(c/2, c)), s.Lin(lin(c, 2*c)), s.Lin(lin(c/2, c))
		dw := s.DWAct(&DWAct{C: c / 2, F: 11, Shift: 38, W: fill(make([]int8, 9*c/2), func() int8 { return random8(r) }), Bias: make([]int32, c/2), Mul: fill(make([]int32, c/2), func() int32 { return 1 << 30 })})
		for _, threads := range []int{1, 2} {
			share := func(f func(y0, y1 int)) {
				var wg sync.WaitGroup
				for i := range threads {
					wg.Add(1)
					go func() {
						defer wg.Done()
						f(h*i/threads, h*(i+1)/threads)
					}()
				}
				wg.Wait()
			}
			rows := func(t []int16, c, y0, y1 int) []int16 { return t[y0*w*c : y1*w*c] }
			b.Run(fmt.Sprintf("c=192/n=80x48/threads=%d/impl=%s", threads, s.Name), func(b *testing.B) {
				for b.Loop() {
					share(func(y0, y1 int) { pw1(rows(half, c/2, y0, y1), rows(x, c, y0, y1), nil) })
					share(func(y0, y1 int) { dw(half2, half, h, w, y0, y1) })
					share(func(y0, y1 int) {
						xs := rows(x, c, y0, y1)
						pw2(xs, rows(half2, c/2, y0, y1), xs)
						ff1(rows(wide, 2*c, y0, y1), xs, nil)
						s.ActSum4(rows(half, c/2, y0, y1), rows(wide, 2*c, y0, y1), c/2, 11)
						ff2(xs, rows(half, c/2, y0, y1), xs)
					})
				}
				macs := h * w * (7*c*c/2 + 9*c/2)
				b.ReportMetric(float64(macs)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GMAC/s")
			})
		}
	}
}
