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

// crop is the w x h picture in p's upper left corner, without copying.
func crop(p *yuv.Planes, w, h int) *yuv.Planes {
	c := *p
	c.W, c.H = w, h
	return &c
}
