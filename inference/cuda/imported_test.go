//go:build cuda

package cuda

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/nvcodec/nvcodec/inference/kernel"
)

func TestImportedPointwise(t *testing.T) {
	eachMachine(t, func(t *testing.T, m *bench) {
		for seed := range cases(m, 20, 200) {
			r := rand.New(rand.NewPCG(seed, 31))
			c, n := []int{1, 5, 8, 12, 64}[r.IntN(5)], 1+r.IntN(200)
			a, b, table := fill16(r, n*c), fill16(r, n*c), fill16(r, 1<<16)
			want, sum := make([]int16, n*c), make([]int16, n*c)
			g := &rig{t: t, m: m}
			da, db, dt := upload(g, a), upload(g, b), upload(g, table)
			what := fmt.Sprintf("seed=%d n=%d c=%d", seed, n, c)
			kernel.Lookup(want, a, table)
			run(g, what, want, nil, func(dst pointer) call { return callLookup(dst, da, dt, int64(n), c) })
			kernel.Add(sum, a, b)
			run(g, what, sum, nil, func(dst pointer) call { return callAdd(dst, da, db, int64(n), c) })
			wide := fill16(r, 2*n*c)
			kernel.Sum2(sum, wide, c)
			dw := upload(g, wide)
			run(g, what, sum, nil, func(dst pointer) call { return callSum2(dst, dw, int64(n), c) })
			g.free()
		}
	})
}

func TestImportedPictures(t *testing.T) {
	eachMachine(t, func(t *testing.T, m *bench) {
		for seed := range cases(m, 20, 200) {
			r := rand.New(rand.NewPCG(seed, 32))
			w, h, f := 16*(1+r.IntN(8)), 8*(1+r.IntN(8)), 1+r.IntN(15)
			picture, table := fill(w*h*3/2, func() byte { return byte(r.Uint32()) }), fill16(r, 256)
			y, u, v := picture[:w*h], picture[w*h:w*h*5/4], picture[w*h*5/4:]
			packed := make([]int16, w/8*(h/8)*kernel.PackedFull)
			kernel.PackFull(packed, y, u, v, w, h, 0, h/8, table)
			g := &rig{t: t, m: m}
			dp, dt := upload(g, picture), upload(g, table)
			what := fmt.Sprintf("seed=%d %dx%d F=%d", seed, w, h, f)
			run(g, what, packed, nil, func(dst pointer) call { return callPackFull(dst, dp, dt, w, h) })
			head := fill16(r, len(packed))
			var pred []int16
			var dpred pointer
			if seed%2 == 0 {
				pred = fill16(r, len(packed))
				dpred = upload(g, pred)
			}
			dh, want := upload(g, head), make([]byte, len(picture))
			kernel.UnpackFull(want[:w*h], want[w*h:w*h*5/4], want[w*h*5/4:], head, pred, w, h, 0, h/8, uint(f))
			run(g, what, want, nil, func(dst pointer) call { return callUnpackFull(dst, dh, dpred, w, h, f) })
			g.free()
		}
	})
}

func TestImportedConvolutions(t *testing.T) {
	eachMachine(t, func(t *testing.T, m *bench) {
		for seed := range cases(m, 40, 300) {
			r := rand.New(rand.NewPCG(seed, 33))
			in, out, stride := 1+r.IntN(20), 1+r.IntN(20), 1+r.IntN(2)
			h, w := stride*(1+r.IntN(9)), stride*(1+r.IntN(9))
			l := randLin(r, 9*in, out)
			if seed%2 == 1 {
				l = randLin16(r, 9*in, out)
			}
			c := kernel.Conv3{In: in, Out: out, R: stride, W: l.W, W16: l.W16, Bias: l.Bias, Mul: l.Mul, Shift: l.Shift}
			src := fill16(r, h*w*in)
			want := make([]int16, h/stride*(w/stride)*out)
			c.Apply(want, src, h, w, 0, h/stride)
			g := &rig{t: t, m: m}
			weights := upload(g, c.W)
			if c.W16 != nil {
				weights = upload(g, c.W16)
			}
			s, bias, mul := upload(g, src), upload(g, c.Bias), upload(g, c.Mul)
			run(g, fmt.Sprintf("seed=%d %d to %d at %dx%d, stride %d", seed, in, out, w, h, stride), want, nil, func(dst pointer) call {
				return callConv3(dst, s, weights, bias, mul, h, w, in, out, stride, int(c.Shift), c.W16 != nil)
			})

			channels := []int{1, 12, 8, 32, 40}[r.IntN(5)]
			h, w = 1+r.IntN(20), 1+r.IntN(40)
			one := randLin(r, 9, channels)
			d := kernel.DW{C: channels, W: make([]int8, 9*channels), Bias: one.Bias, Mul: one.Mul, Shift: one.Shift}
			for i := range d.W {
				d.W[i] = one.W[i%channels*9+i/channels]
			}
			src = fill16(r, h*w*channels)
			want = make([]int16, len(src))
			d.Apply(want, src, h, w, 0, h)
			s, weights, bias, mul = upload(g, src), upload(g, d.W), upload(g, d.Bias), upload(g, d.Mul)
			run(g, fmt.Sprintf("seed=%d dw %d at %dx%d", seed, channels, w, h), want, nil, func(dst pointer) call {
				return callDWAct(dst, s, weights, bias, mul, h, w, channels, 0, int(d.Shift), []int{0, 1 << 20}[seed%2])
			})
			g.free()
		}
	})
}
