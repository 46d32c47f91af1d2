//go:build cuda

package cuda

import (
	"testing"

	"github.com/nvcodec/nvcodec/codec"
)

// TestCopier: every row of every plane, whatever the number of bands, and nothing beside the picture.
func TestCopier(t *testing.T) {
	for threads := range 6 {
		c := newCopier(threads)
		for _, w := range []int{1, 2, 67} {
			for h := 1; h <= 20; h++ {
				src := &video(w+5, h+6, 1, 99)[0].Planes // with rows longer than the picture's
				src.W, src.H = w, h
				b := make([]byte, rawBytes(w, h)+16)
				for i := range b {
					b[i] = 0xc9
				}
				dst := tightPlanes(b, w, h)
				for range 3 {
					c.copy(dst, src)
				}
				if codec.PictureHash(dst) != codec.PictureHash(src) {
					t.Errorf("%d threads: %dx%d: another picture", threads, w, h)
				}
				for _, x := range b[len(b)-16:] {
					if x != 0xc9 {
						t.Fatalf("%d threads: %dx%d: written behind the picture", threads, w, h)
					}
				}
			}
		}
		c.close()
	}
}
