//go:build cuda

package cuda

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// A view is a way to lay out the 64 columns of 32 bytes that a product reads, and how a descriptor says so.
type view struct {
	name            string
	bytes           int // of shared memory, no less than what the descriptor reaches
	at              func(column, k int) int
	leading, stride int
	mode            int
	needed          bool // the kernels rely on it
}

func swizzled(width int) func(column, k int) int {
	return func(column, k int) int {
		at := column*width + k
		return at ^ at>>7&(width/16-1)<<4
	}
}

var views = []view{
	{"cores along k side by side", 2048, func(n, k int) int { return n/8*256 + k/16*128 + n%8*16 + k%16 }, 128, 256, 0, true},
	{"the same, leading and stride exchanged", 2048, func(n, k int) int { return n/8*256 + k/16*128 + n%8*16 + k%16 }, 256, 128, 0, false},
	{"cores along columns side by side", 2048, func(n, k int) int { return k/16*1024 + n/8*128 + n%8*16 + k%16 }, 1024, 128, 0, false},
	{"the same, leading and stride exchanged", 8192, func(n, k int) int { return k/16*1024 + n/8*128 + n%8*16 + k%16 }, 128, 1024, 0, false},
	{"swizzle of 32 bytes", 2048, swizzled(32), 16, 256, 3, false},
	{"swizzle of 64 bytes", 4096, swizzled(64), 16, 512, 2, false},
	{"swizzle of 128 bytes", 8192, swizzled(128), 16, 1024, 1, false},
}

// TestProbe: a product of a warpgroup is what the kernels take it for. On a device it says of every way to lay out the
// second matrix whether the product reads it so, and where not, which of its sides is wrong.
func TestProbe(t *testing.T) {
	eachGroupMachine(t, func(t *testing.T, m *bench) {
		_, emulation := m.machine.(*emulated)
		for _, v := range views {
			var wrong []string
			for kinds := range 4 {
				for _, what := range []string{"random", "ones by random", "random by ones"} {
					r := rand.New(rand.NewPCG(uint64(kinds), 1))
					a, b := fill(64*32, func() byte { return byte(r.Uint32()) }), fill(64*32, func() byte { return byte(r.Uint32()) })
					switch what {
					case "ones by random":
						a = fill(64*32, func() byte { return 1 })
					case "random by ones":
						b = fill(64*32, func() byte { return 1 })
					}
					image := make([]byte, v.bytes)
					for i, x := range b {
						image[v.at(i/32, i%32)] = x
					}
					value := func(x byte, signed int) int32 {
						if kinds&signed != 0 {
							return int32(int8(x))
						}
						return int32(x)
					}
					want := make([]int32, 64*64)
					for i := range want {
						for k := range 32 {
							want[i] += value(a[i/64*32+k], 1) * value(b[i%64*32+k], 2)
						}
					}
					if n := probe(t, m, v, a, image, kinds, want); n > 0 {
						wrong = append(wrong, fmt.Sprintf("kinds %d %s: %d of %d", kinds, what, n, len(want)))
					}
				}
			}
			verdict := "right"
			if wrong != nil {
				verdict = "WRONG: " + strings.Join(wrong, "; ")
			}
			t.Logf("%s (leading %d, stride %d, mode %d): %s", v.name, v.leading, v.stride, v.mode, verdict)
			if wrong != nil && v.needed || emulation && (wrong != nil) != strings.Contains(v.name, "exchanged") {
				t.Errorf("%s: %s", v.name, verdict)
			}
		}
	})
}

// probe returns how many sums are not what they should be.
func probe(t *testing.T, m *bench, v view, a, image []byte, kinds int, want []int32) (wrong int) {
	t.Helper()
	g := &rig{t: t, m: m}
	defer g.free()
	dst, x, b := upload(g, make([]int32, len(want))), g.up(a), g.up(image)
	descriptor := int64(v.leading>>4)<<16 | int64(v.stride>>4)<<32 | int64(v.mode)<<62
	l, err := m.prepare(call{kernel: "group_probe", grid: 1, threads: 128, shared: v.bytes + 16, args: arg(dst, x, b, v.bytes, descriptor, kinds)})
	g.must(err)
	g.must(l.run())
	got := make([]byte, 4*len(want))
	g.down(got, dst)
	for i, w := range want {
		if int32(got[4*i])|int32(got[4*i+1])<<8|int32(got[4*i+2])<<16|int32(got[4*i+3])<<24 != w {
			wrong++
		}
	}
	return wrong
}
