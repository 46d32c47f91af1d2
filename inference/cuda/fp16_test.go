//go:build cuda

package cuda

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/nvcodec/nvcodec/inference/kernel"
)

// matrixMachines runs a test for the families that have kernels on FP16 units.
func matrixMachines(t *testing.T, test func(t *testing.T, m *bench)) {
	eachMachine(t, func(t *testing.T, m *bench) {
		if m.family() < 75 {
			t.Skip("no matrix units")
		}
		test(t, m)
	})
}

func TestFP16(t *testing.T) {
	matrixMachines(t, func(t *testing.T, m *bench) {
		for seed := range cases(m, 15, 1000) {
			r := rand.New(rand.NewPCG(seed, 11))
			size := linSizes[int(seed)%len(linSizes)]
			in, out, n := size[0], size[1], 1+r.IntN(200)
			l := randLin(r, in, out)
			src, want := fill16(r, n*in), make([]int16, n*out)
			var res []int16
			if r.IntN(3) > 0 {
				res = fill16(r, n*out)
			}
			kernel.Generic().Lin(l)(want, src, res)
			g := &rig{t: t, m: m}
			p := packLin(l, m.family(), false)
			s, w, bias, mul := upload(g, src), upload(g, p.w), upload(g, p.bias), upload(g, p.mul)
			run(g, fmt.Sprintf("seed=%d lin %d to %d, n=%d, shift %d", seed, in, out, n, l.Shift), want, res, func(dst pointer) call {
				from := dst // in place
				if res == nil {
					from = 0
				}
				return onFP16(callLin(dst, s, from, w, bias, mul, int64(n), in, out, int(l.Shift), 1+r.IntN(4)))
			})

			c, f := min(out, 96), 1+r.IntN(14)
			l = randLin(r, in, 4*c)
			wide, sum := make([]int16, n*4*c), make([]int16, n*c)
			kernel.Generic().Lin(l)(wide, src, nil)
			kernel.Generic().ActSum4(sum, wide, c, uint(f))
			p = packLin(l, m.family(), true)
			w, bias, mul = upload(g, p.w), upload(g, p.bias), upload(g, p.mul)
			run(g, fmt.Sprintf("seed=%d lin %d to 4*%d, n=%d, shift %d, F %d", seed, in, c, n, l.Shift, f), sum, nil, func(dst pointer) call {
				return onFP16(callLinActSum4(dst, s, w, bias, mul, int64(n), in, c, int(l.Shift), f, 1+r.IntN(4)))
			})
			g.free()
		}
	})
}

// TestFP16Bounds drives the sums of floats to the edge of what they hold: both bytes and the weights at their ends over
// whole runs of 512 input channels, with odd numbers among them so that a lost bit shows. The bias takes the sum away, so
// that the output is its last bits.
func TestFP16Bounds(t *testing.T) {
	ends := []int16{255, -1, -32513, 32767, -32768, -256} // (hi, lo) = (0, 255), (-1, 255), (-128, 255), (127, 255), (-128, 0), (-1, 0)
	matrixMachines(t, func(t *testing.T, m *bench) {
		for seed := range cases(m, 18, 500) {
			r := rand.New(rand.NewPCG(seed, 12))
			in := []int{96, 504, 512, 520, 1023, 1024, 1536, 4096, 8192}[int(seed)%9]
			const out, n = 8, 20
			src := make([]int16, n*in)
			end := ends[r.IntN(len(ends))]
			for i := range src {
				src[i] = end
				if i >= in && r.IntN(100) == 0 { // the first position has only ends
					src[i] ^= int16(1 << r.IntN(2))
				}
			}
			l := &kernel.Lin{In: in, Out: out, W: make([]int8, in*out)}
			largest := 0
			for o := range out {
				sums := make([]int64, n)
				for i := range in {
					w := []int8{-128, 127, 127, -128}[(o+i/512*(o/4))%4] // one sign, or another for every 512
					trial := make([]int64, n)
					fits := true
					for p := range n {
						trial[p] = sums[p] + int64(w)*int64(src[p*in+i])
						fits = fits && trial[p] < math.MaxInt32-1<<17 && trial[p] > -math.MaxInt32+1<<17
					}
					if fits {
						l.W[o*in+i] = w
						copy(sums, trial)
					}
				}
				l.Bias = append(l.Bias, int32(-sums[0])+int32(r.IntN(3)))
				l.Mul = append(l.Mul, 1)
				for first := 0; first < in; first += 512 {
					low := 0
					for i := first; i < min(first+512, in); i++ {
						low += int(l.W[o*in+i]) * int(uint8(src[i]))
					}
					largest = max(largest, low, -low)
				}
			}
			if in >= 512 && end&255 == 255 && end > -256 && end < 256 && largest != 512*128*255 {
				t.Fatalf("seed=%d: the largest sum of low bytes is %d", seed, largest)
			}
			want := make([]int16, n*out)
			kernel.Generic().Lin(l)(want, src, nil)
			g := &rig{t: t, m: m}
			p := packLin(l, m.family(), false)
			s, w, bias, mul := upload(g, src), upload(g, p.w), upload(g, p.bias), upload(g, p.mul)
			run(g, fmt.Sprintf("seed=%d %d inputs, all %d", seed, in, end), want, nil, func(dst pointer) call {
				return onFP16(callLin(dst, s, 0, w, bias, mul, n, in, out, 0, 1))
			})
			g.free()
		}
	})
}
