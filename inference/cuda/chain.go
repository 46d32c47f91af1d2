//go:build cuda

package cuda

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/nvcodec/nvcodec/inference/kernel"
)

// Chains of position-wise operators that run as one kernel, kernels/chain.cuh.

// A chainHead says how a chain comes by its x.
type chainHead int

const (
	chainLin       chainHead = iota // lin of src
	chainCopy                       // src
	chainDepthwise                  // res + lin of the depthwise convolution of src, which has been through its activation
	chainResidual                   // res + lin of src
)

// A chain is the layers of one kernel. All have int8 weights.
type chain struct {
	c        int
	head     chainHead
	lin      *kernel.Lin   // of the head, but for chainCopy
	conv     *kernel.DWAct // chainDepthwise
	up, down *kernel.Lin   // x + down(gated sum of up(x)), or nil
	tails    []*kernel.Lin // of x
}

// chainWidths are the channel counts that there are kernels for.
var chainWidths = []int{64, 96, 128, 192, 256, 288}

const (
	chainTails        = 3
	chainGroupBytes   = 1024 // weights of 32x32 channels
	chainNumberBytes  = 384  // bias of 32 channels, twice, and mul
	chainShift        = 33   // the least that the kernels know
	chainLag          = 2
	chainSlots        = 12 // more would not be filled earlier
	chainBarrierBytes = 16 // two for each slot
)

func chainGroups(c int) (whole, half int) { return c / 32, (c/2 + 31) / 32 }

// chainStage returns how many groups of weights a stage holds, and its bytes.
func chainStage(c int) (groups, bytes int) {
	whole, half := chainGroups(c)
	groups = max(whole, 2*half)
	return groups, groups*chainGroupBytes + 2*chainNumberBytes
}

// raised returns mul and shift of a layer with a shift of at least chainShift, or false where mul does not fit then.
func raised(mul []int32, shift uint) ([]int32, int, bool) {
	if shift >= chainShift {
		return mul, int(shift), true
	}
	out := slices.Clone(mul)
	for i, m := range mul {
		if int64(m)<<(chainShift-shift) > math.MaxInt32 {
			return nil, 0, false
		}
		out[i] = m << (chainShift - shift)
	}
	return out, chainShift, true
}

// pack returns the chain's stages in the order in which the kernel reads them, or false where a layer's numbers are
// not for it.
func (ch *chain) pack() ([]byte, bool) {
	groups, bytes := chainStage(ch.c)
	whole, half := chainGroups(ch.c)
	p := &chainPacker{groups: groups, bytes: bytes, ok: true}
	if ch.conv != nil {
		p.depthwise(ch.conv, half)
	}
	switch ch.head {
	case chainLin:
		for k := range whole {
			for first := 0; first < ch.lin.In; first += 32 * groups {
				p.stage()
				p.group(ch.lin, 0, 0, first, groups, natural(32*k, ch.lin.Out))
			}
		}
	case chainDepthwise, chainResidual:
		p.residual(ch.lin, whole, half)
	}
	if ch.up != nil {
		h := ch.c / 2
		for k := range 4 * half {
			p.stage()
			p.group(ch.up, 0, 0, 0, whole, func(j, t, i int) int {
				if c := k/4*32 + 8*t + 2*(k%4) + i; c < h {
					return j*h + c
				}
				return -1
			})
		}
		p.residual(ch.down, whole, half)
	}
	for _, l := range ch.tails {
		for c := 0; c < l.Out; c += 32 {
			p.stage()
			p.group(l, 0, 0, 0, whole, natural(c, l.Out))
		}
	}
	return p.out, p.ok
}

// natural returns the output channel of lane t, tile j, number i in a group of 32 from c on, or -1 past the last.
func natural(c, out int) func(j, t, i int) int {
	return func(j, t, i int) int {
		if o := c + 8*t + 2*j + i; o < out {
			return o
		}
		return -1
	}
}

type chainPacker struct {
	groups, bytes int
	out           []byte
	ok            bool
}

func (p *chainPacker) stage() { p.out = append(p.out, make([]byte, p.bytes)...) }

// group writes to the last stage 32 output channels' weights of so many groups of input channels from one on, at group
// number at, and what goes with them at number which.
func (p *chainPacker) group(l *kernel.Lin, at, which, first, count int, output func(j, t, i int) int) {
	mul, _, ok := raised(l.Mul, l.Shift)
	if !ok {
		p.ok = false
		return
	}
	stage := p.out[len(p.out)-p.bytes:]
	numbers := stage[p.groups*chainGroupBytes+which*chainNumberBytes:]
	for j := range 4 {
		for t := range 4 {
			for i := range 2 {
				o := output(j, t, i)
				if o < 0 {
					continue
				}
				c := 8*t + 2*j + i
				for r := range 2 {
					binary.LittleEndian.PutUint32(numbers[16*(4*t+j)+8*r+4*i:], uint32(l.Bias[o]))
				}
				binary.LittleEndian.PutUint32(numbers[256+4*c:], uint32(mul[o]))
				for k, w := range l.W[o*l.In:][first:min(l.In, first+32*count)] {
					lane := 4*(2*t+i) + k%32/8
					word := (j/2*32+lane)*4 + j%2*2 + k%8/4
					stage[(at+k/32)*chainGroupBytes+4*word+k%4] = byte(w)
				}
			}
		}
	}
}

// residual packs a layer of half the channels, two groups of outputs a stage.
func (p *chainPacker) residual(l *kernel.Lin, whole, half int) {
	for k := range whole {
		if k%2 == 0 {
			p.stage()
		}
		p.group(l, k%2*half, k%2, 0, half, natural(32*k, l.Out))
	}
}

func (p *chainPacker) depthwise(d *kernel.DWAct, half int) {
	p.stage()
	mul, _, ok := raised(d.Mul, d.Shift)
	if !ok {
		p.ok = false
		return
	}
	stage := p.out[len(p.out)-p.bytes:]
	for c := range d.C {
		for tap := range 9 {
			stage[(tap*16*half+c/2)*4+c%2*3] = byte(d.W[tap*d.C+c])
		}
		binary.LittleEndian.PutUint32(stage[9*64*half+4*c:], uint32(d.Bias[c]))
		binary.LittleEndian.PutUint32(stage[9*64*half+128*half+4*c:], uint32(mul[c]))
	}
}

// A chainRun is one launch of a chain: where its values lie, and what varies between runs of the same weights.
type chainRun struct {
	c             int
	head          chainHead
	in            int // channels of src with chainLin
	dst, src, res pointer
	weights       pointer
	stages        int
	n, h, w       int
	conv, lin     int // shifts
	f, up, down   int // of the body; f is 0 without one
	table, frame  pointer
	tableShift    int
	tails         [chainTails]chainTail
}

// A chainTail is a lin that is stored in dst, if that is not null: through the activation for f if that is not 0.
type chainTail struct {
	dst         pointer
	n, shift, f int
}

// chainThreads is the most threads of a block.
func chainThreads(c int) int {
	if c > 192 {
		return 256
	}
	return 512
}

// callChain returns the launch for a device with so many multiprocessors, whose blocks may have so many bytes of shared
// memory. Every multiprocessor gets its share of positions at once, if a block can hold it.
func callChain(r *chainRun, processors, shared int) call {
	whole, half := chainGroups(r.c)
	_, stage := chainStage(r.c)
	const positions = 16 // of a warp
	units := (r.n + positions - 1) / positions
	perWarp := (whole + half) * 2 * 512
	fit := (shared - (chainLag+1)*(stage+chainBarrierBytes)) / perWarp
	warps := max(1, min((units+processors-1)/processors, chainThreads(r.c)/32, fit))
	slots := min(r.stages, (shared-warps*perWarp)/(stage+chainBarrierBytes), chainSlots)
	c := call{
		kernel: fmt.Sprintf("chain_%d", r.c), grid: (units + warps - 1) / warps, threads: 32 * warps,
		shared: warps*perWarp + slots*(stage+chainBarrierBytes),
		args: arg(r.dst, r.src, r.res, warps, int(r.head), r.in, r.n, r.h, r.w, r.weights, r.stages, slots,
			above(r.conv), above(r.lin), r.f, above(r.up), above(r.down), r.table, r.frame, r.tableShift),
	}
	for _, t := range r.tails {
		c.args = append(c.args, arg(t.dst, t.n, above(t.shift), t.f)...)
	}
	return c
}

// above is what a kernel takes for a shift; a layer that there is not has none.
func above(shift int) int { return max(0, shift-chainShift) }
