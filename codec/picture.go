package codec

import (
	"hash/crc32"

	"github.com/nvcodec/nvcodec/yuv"
)

// PictureHash is the CRC-32C over the rows of Y, then U, then V, without padding.
func PictureHash(p *yuv.Planes) uint32 {
	sum := hashRows(0, p.Y, p.StrideY, p.W, p.H)
	sum = hashRows(sum, p.U, p.StrideC, p.CW(), p.CH())
	return hashRows(sum, p.V, p.StrideC, p.CW(), p.CH())
}

func hashRows(sum uint32, plane []byte, stride, w, h int) uint32 {
	for y := range h {
		sum = crc32.Update(sum, castagnoli, plane[y*stride:y*stride+w])
	}
	return sum
}

// pad writes src into dst, which is larger, repeating each plane's last column and row; chroma of an odd size is
// ⌈w/2⌉ samples wide before it is repeated.
func pad(dst, src *yuv.Planes) {
	padPlane(dst.Y, dst.StrideY, dst.W, dst.H, src.Y, src.StrideY, src.W, src.H)
	padPlane(dst.U, dst.StrideC, dst.CW(), dst.CH(), src.U, src.StrideC, src.CW(), src.CH())
	padPlane(dst.V, dst.StrideC, dst.CW(), dst.CH(), src.V, src.StrideC, src.CW(), src.CH())
}

func padPlane(dst []byte, dstStride, dw, dh int, src []byte, srcStride, w, h int) {
	for y := range h {
		row := dst[y*dstStride : y*dstStride+dw]
		copy(row, src[y*srcStride:y*srcStride+w])
		last := row[w-1]
		for x := w; x < dw; x++ {
			row[x] = last
		}
	}
	last := dst[(h-1)*dstStride : (h-1)*dstStride+dw]
	for y := h; y < dh; y++ {
		copy(dst[y*dstStride:y*dstStride+dw], last)
	}
}

// crop is the w x h picture in p's upper left corner, without copying.
func crop(p *yuv.Planes, w, h int) *yuv.Planes {
	c := *p
	c.W, c.H = w, h
	return &c
}

// copyPlanes copies src into a new picture with tight rows.
func copyPlanes(src *yuv.Planes) yuv.Planes {
	dst := yuv.New(src.W, src.H)
	pad(dst, src)
	return *dst
}
