//go:build cuda

package cuda

import (
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"testing"

	"github.com/nvcodec/nvcodec/inference"
)

// TestPictureHash: CRC-32C over the rows of the three planes within the crop.
func TestPictureHash(t *testing.T) {
	table := crc32.MakeTable(crc32.Castagnoli)
	eachCoder(t, func(t *testing.T, m *bench) {
		for seed := range cases(m, 40, 300) {
			r := rand.New(rand.NewPCG(seed, 23))
			w, h := 1+r.IntN(300), 1+r.IntN(100)
			switch r.IntN(8) {
			case 0:
				w = 1 + r.IntN(3)
			case 1:
				w, h = 500+r.IntN(2000), 1+r.IntN(9)
			}
			size := inference.Size{W: (w + 63) &^ 63, H: (h + 63) &^ 63}
			picture := fill(size.W*size.H*3/2, func() byte { return byte(r.Uint32()) })
			p := planes(picture, size)
			want := uint32(0)
			rows := func(plane []byte, stride, w, h int) {
				for y := range h {
					want = crc32.Update(want, table, plane[y*stride:][:w])
				}
			}
			rows(p.Y, p.StrideY, w, h)
			rows(p.U, p.StrideC, (w+1)/2, (h+1)/2)
			rows(p.V, p.StrideC, (w+1)/2, (h+1)/2)
			g := &rig{t: t, m: m}
			hash, err := newPictureHash(m, w, h, size.W, size.H)
			g.must(err)
			at, dst := upload(g, picture), upload(g, []uint32{0})
			result, err := m.host(256)
			g.must(err)
			frame := upload(g, []frameParameters{{Result: addressOf(result)}})
			for _, c := range hash.calls(dst, at, frame) {
				l, err := m.prepare(c)
				g.must(err)
				g.must(l.run())
			}
			got := []uint32{0}
			g.down(bytesOfSlice(got), dst)
			what := fmt.Sprintf("seed=%d %dx%d", seed, w, h)
			if got[0] != want {
				t.Fatalf("%s: hash %#x, want %#x", what, got[0], want)
			}
			if sent := structure[decoderResult](result).Hash; sent != want {
				t.Fatalf("%s: hash sent to the host %#x, want %#x", what, sent, want)
			}
			g.must(m.freeHost(result))
			g.must(hash.release(m))
			g.free()
		}
	})
}
