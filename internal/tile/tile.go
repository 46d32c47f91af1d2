// Package tile makes large and long clips of small and short ones: pictures are mirrored at their edges as often as it
// takes, and frames are played forwards and backwards. Motion and texture stay those of the small clip.
package tile

import (
	"fmt"

	"github.com/nvcodec/nvcodec/yuv"
)

// Fill fills dst with mirrored copies of src, whose sides must be even so that luma and chroma stay together.
func Fill(dst, src *yuv.Planes) error {
	if src.W%2 != 0 || src.H%2 != 0 || src.W < 2 || src.H < 2 {
		return fmt.Errorf("tile: picture of %dx%d, want even sides", src.W, src.H)
	}
	fill(dst.Y, dst.StrideY, dst.W, dst.H, src.Y, src.StrideY, src.W, src.H)
	fill(dst.U, dst.StrideC, dst.CW(), dst.CH(), src.U, src.StrideC, src.CW(), src.CH())
	fill(dst.V, dst.StrideC, dst.CW(), dst.CH(), src.V, src.StrideC, src.CW(), src.CH())
	return nil
}

func fill(dst []byte, dstStride, dw, dh int, src []byte, srcStride, w, h int) {
	columns := make([]int, dw)
	for x := range columns {
		columns[x] = mirror(x, w)
	}
	for y := range dh {
		to, from := dst[y*dstStride:][:dw], src[mirror(y, h)*srcStride:][:w]
		for x, c := range columns {
			to[x] = from[c]
		}
	}
}

// mirror is where sample x of an endless row of mirrored copies lies in a row of n.
func mirror(x, n int) int {
	if x %= 2 * n; x >= n {
		return 2*n - 1 - x
	}
	return x
}

// Frame is which of count frames stands at place n when they are played forwards and backwards without end; the first
// and the last one are not shown twice in a row.
func Frame(n, count int) int {
	if count == 1 {
		return 0
	}
	if n %= 2*count - 2; n >= count {
		return 2*count - 2 - n
	}
	return n
}
