//go:build cuda

package cuda

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/nvcodec/nvcodec/inference/kernel"
)

// The layers that kernels/group.cuh computes, on compute capability 9.0.

// An outcome says what becomes of a layer's sums.
type outcome int

const (
	plain     outcome = iota // requantised, with or without a residual
	gated                    // and the gated sum of four activations
	looked                   // and looked up in a table
	lookedSum                // and the sum of two that are looked up
)

// parts returns how many sums an output channel is made of.
func (o outcome) parts() int {
	switch o {
	case gated:
		return 4
	case lookedSum:
		return 2
	}
	return 1
}

// A groupLayer is a lin or, with taps 9, a 3x3 convolution, in the kernels' order.
type groupLayer struct {
	name    string // of its kernels
	kernel  groupKernel
	in, out int // channels; out counts what the outcome leaves
	blocks  int
	steps   int // of 32 input channels
	shift   int
	taps    int
	bytes   int // of a block's weights and constants
	looks   looks
	outcome outcome
	wide    bool
}

// groupMemory is how much shared memory a block of threads can have.
const groupMemory = 227 << 10

// looks is a table as it lies in shared memory: so many copies of it that lanes seldom meet in a bank.
type looks struct{ entries, copies int }

const looksMemory = 80 << 10

func newLooks(entries int) looks {
	t := looks{entries, 32}
	for t.bytes() > looksMemory {
		t.copies /= 2
	}
	return t
}

// inRow is how many entries a row of 128 bytes has of each copy.
func (t looks) inRow() int { return 128 / t.copies }
func (t looks) bytes() int { return (t.entries + t.inRow() - 1) / t.inRow() * 128 }

// newGroupLayer returns how these kernels compute a layer of weights [out][taps*in], or nil if they cannot. table is that
// of looked and lookedSum, see foldTable.
func newGroupLayer(l *kernel.Lin, taps int, o outcome, table []byte) *groupLayer {
	g := &groupLayer{in: l.In / taps, out: l.Out / o.parts(), steps: (l.In + 31) / 32, taps: taps, looks: newLooks(len(table)), outcome: o, wide: l.W16 != nil}
	_, shift, ok := g.normalise(l)
	if !ok || g.in%8 != 0 || g.out%8 != 0 || taps == 9 && g.in%128 != 0 || g.wide && o == gated || !g.choose() {
		return nil
	}
	if g.shift = shift; !g.wide {
		g.shift -= 32 // the kernels begin with the product's upper word
	}
	return g
}

// planes returns how many bytes a weight has.
func (g *groupLayer) planes() int {
	if g.wide {
		return 2
	}
	return 1
}

// pack arranges weights and constants.
func (g *groupLayer) pack(l *kernel.Lin) []byte {
	mul, _, _ := g.normalise(l)
	planes, perBlock := g.planes(), g.kernel.n/g.outcome.parts()
	weights := g.kernel.n * 32 * planes * g.steps
	packed := make([]byte, g.blocks*g.bytes)
	for place := range g.blocks * g.kernel.n {
		block, column := place/g.kernel.n, place%g.kernel.n
		c, part := groupChannel(column, g.kernel.n, g.outcome.parts())
		if block*perBlock+c >= g.out {
			continue
		}
		row := part*g.out + block*perBlock + c
		at := packed[block*g.bytes:]
		for i := range l.In {
			step, k := i/32, groupInput(i%32)
			from := step*planes*g.kernel.n*32 + column/8*256 + k/16*128 + column%8*16 + k%16
			if g.wide {
				w := l.W16[row*l.In+i]
				at[from], at[from+g.kernel.n*32] = byte(w>>8), byte(w)
			} else {
				at[from] = byte(l.W[row*l.In+i])
			}
		}
		binary.LittleEndian.PutUint32(at[weights+8*column:], uint32(mul[row]))
		binary.LittleEndian.PutUint32(at[weights+8*column+4:], uint32(l.Bias[row]))
	}
	return packed
}

// normalise returns multipliers and a shift that give the same as the layer's. With int8 weights the shift is at least
// 32, so that a product's upper word is all that counts: both are scaled by a power of two, which |acc| < 2^31 and
// mul < 2^31 leave room for. ok is false where the multipliers are too large for that.
func (g *groupLayer) normalise(l *kernel.Lin) (mul []int32, shift int, ok bool) {
	shift = int(l.Shift)
	if g.wide || shift >= 32 {
		return l.Mul, shift, true
	}
	up := 32 - shift
	for _, m := range l.Mul {
		if int64(m)<<up > math.MaxInt32 {
			return nil, 0, false
		}
		mul = append(mul, m<<up)
	}
	return mul, 32, shift > 0
}

// A groupKernel computes blocks of n sums. Of so many steps all activations stay in registers from block to block; 0 is for
// any number.
type groupKernel struct{ n, steps int }

func (k groupKernel) name(name string) string {
	if k.steps != 0 {
		return fmt.Sprintf("%s_%dx%d", name, k.n, 32*k.steps)
	}
	return fmt.Sprintf("%s_%d", name, k.n)
}

// groupKernels are those that there are, by name, in order of preference.
var groupKernels = map[string][]groupKernel{
	"group_lin":         {{64, 8}, {64, 10}, {64, 12}, {64, 16}, {32, 20}, {96, 0}, {64, 0}},
	"group_joined":      {{64, 16}, {64, 0}},
	"group_gated":       {{128, 0}},
	"group_looked":      {{128, 8}, {64, 10}, {64, 12}, {64, 0}},
	"group_lookedsum":   {{128, 8}, {128, 10}, {64, 12}, {64, 0}},
	"group_conv3":       {{128, 0}, {64, 0}},
	"group_lin16":       {{64, 0}},
	"group_looked16":    {{64, 0}},
	"group_lookedsum16": {{64, 0}},
	"group_conv316":     {{64, 0}, {32, 0}},
}

// choose takes the kernel whose blocks of channels fit and leave the least unused; it reports whether there is one.
func (g *groupLayer) choose() bool {
	o, planes := g.outcome, g.planes()
	name := [...]string{"group_lin", "group_gated", "group_looked", "group_lookedsum"}[o]
	if g.taps == 9 {
		name = "group_conv3"
	}
	if planes == 2 {
		name += "16"
	}
	least := math.MaxInt
	for _, k := range groupKernels[name] {
		each, bytes := k.n/o.parts(), k.n*(32*planes*g.steps+8)
		blocks := (g.out + each - 1) / each
		if k.steps != 0 && (k.steps != g.steps || g.in%32 != 0) || bytes+g.memory() > groupMemory || blocks*each >= least {
			continue
		}
		least = blocks * each
		g.name, g.kernel, g.blocks, g.bytes = name, k, blocks, bytes
	}
	return g.kernel.n != 0
}

// memory is what a block of threads has in shared memory beside blocks of channels, with the first one's barrier.
func (g *groupLayer) memory() int {
	if g.outcome == looked || g.outcome == lookedSum {
		return g.looks.bytes() + 8
	}
	return 8
}

// groupChannel returns which channel of which part of a block stands in a column of the product: a lane's two columns of
// four neighbouring tiles are eight channels in a row.
func groupChannel(column, n, parts int) (channel, part int) {
	tiles := n / 8 / parts
	tile, lane, e := column/8, column%8/2, column%2
	return tile%tiles/4*32 + lane*8 + tile%4*2 + e, tile / tiles
}

// groupInput returns where input channel i of a step stands along k: lane t's eight are the first four bytes of both halves.
func groupInput(i int) int {
	t, r := i/8, i%8
	if r < 4 {
		return 4*t + r
	}
	return 16 + 4*t + r - 4
}

// foldTable returns the bytes by |x| that a table of lookup takes off max(x, 0), if it can be had that way, the last
// for all that are larger: x·sigmoid(x) and its relatives are even but for that.
func foldTable(table []int16) []byte {
	const most = 8192
	take := func(x int) int { return max(x, 0) - int(table[x+1<<15]) }
	last := take(-1 << 15)
	n := 0
	for size := range 1<<15 + 1 {
		d := take(-size)
		if size < 1<<15 && take(size) != d || d < 0 || d > 255 {
			return nil
		}
		if d != last {
			n = size + 1
		}
	}
	if n+1 > most {
		return nil
	}
	folded := make([]byte, n+1)
	for size := range folded {
		folded[size] = byte(take(-size))
	}
	return folded
}

// tableBytes is how the kernels read a folded table, as whole rows of one copy.
func tableBytes(folded []byte) []byte {
	b := make([]byte, (len(folded)+127)/128*128)
	copy(b, folded)
	return b
}

// share divides the blocks of channels among groups of blocks of threads, and the positions among those of a group, so
// that the last of them ends soonest; fetching a block's weights takes about two fifths of the time of computing 128
// positions with them, and activations that stay in registers are worth half of it.
func (g *groupLayer) share(n int64, processors int) (groups, each, share int) {
	tiles := int((n + 63) / 64)
	best := math.Inf(1)
	for k := 1; k <= g.blocks; k++ {
		s := (g.blocks + k - 1) / k
		if (s-1)*(g.bytes+8)+g.bytes+g.memory() > groupMemory || (k-1)*s >= g.blocks {
			continue
		}
		e := min(max(1, processors/k), (tiles+1)/2)
		waves := (k*e + processors - 1) / processors
		rounds, blocks := float64((tiles+2*e-1)/(2*e)), float64(s)
		if g.kernel.steps != 0 {
			blocks += 0.5
		}
		cost := float64(waves) * (blocks*rounds + 0.4*float64(s))
		if cost < best {
			best, groups, each, share = cost, k, e, s
		}
	}
	return groups, each, share
}

// joins reports whether the layer can read two tensors, of which the first has so many channels, in the place of one.
func (g *groupLayer) joins(first int) bool {
	return g.outcome == plain && !g.wide && g.taps == 1 && g.in%32 == 0 && first%32 == 0 && slices.Contains(groupKernels["group_joined"], g.kernel)
}

// A groupRun is one launch of a layer.
type groupRun struct {
	dst, src, res, outer, packed, table pointer // outer is a second residual
	n                                   int64   // positions, of a convolution those that its input's h x w leave at stride r
	f, h, w, r                          int

	frame pointer // of a scale by table's row, or 0
	scale int     // its shift

	second pointer // where a second tensor's channels follow src's, which are split; src is d2s by r of h x w
	split  int
}

func callGroup(g *groupLayer, run groupRun, processors int) call {
	groups, each, share := g.share(run.n, processors)
	name := g.name
	if run.second != 0 {
		name = "group_joined"
	}
	return call{
		kernel: g.kernel.name(name), grid: groups * each, shared: (share-1)*(g.bytes+8) + g.bytes + g.memory(),
		args: arg(run.dst, run.src, run.res, run.outer, run.packed, run.table, run.n, g.in, g.out, g.shift, run.f, g.blocks, groups, each, run.h, run.w, run.r,
			g.looks.entries-1, g.looks.copies, run.frame, run.scale, run.second, run.split),
	}
}
