package pipeio

import "github.com/nvcodec/nvcodec/yuv"

// uprightFormat is the format after the pictures are turned by f.Rotation.
func uprightFormat(f yuv.Format) yuv.Format {
	g := turnedFormat(f, f.Rotation)
	g.Rotation = 0
	return g
}

// turnedFormat swaps what a quarter turn swaps.
func turnedFormat(f yuv.Format, degrees int) yuv.Format {
	if degrees%180 != 0 {
		f.W, f.H = f.H, f.W
		if f.SAR.Num > 0 {
			f.SAR.Num, f.SAR.Den = f.SAR.Den, f.SAR.Num
		}
	}
	if degrees != 0 && f.Colour.ChromaLoc != 2 {
		f.Colour.ChromaLoc = 0 // off-centre samples land on another side, which mostly has no name
	}
	return f
}

// rotate turns src clockwise by 90, 180 or 270 degrees into dst, whose buffers are reused when they are long enough.
func rotate(dst, src *yuv.Planes, degrees int) {
	w, h := src.W, src.H
	if degrees != 180 {
		w, h = h, w
	}
	if dst.W != w || dst.H != h {
		*dst = *yuv.New(w, h)
	}
	rotatePlane(dst.Y, dst.StrideY, src.Y, src.StrideY, src.W, src.H, degrees)
	rotatePlane(dst.U, dst.StrideC, src.U, src.StrideC, src.CW(), src.CH(), degrees)
	rotatePlane(dst.V, dst.StrideC, src.V, src.StrideC, src.CW(), src.CH(), degrees)
}

// rotatePlane walks src row by row: w and h are its size.
func rotatePlane(dst []byte, ds int, src []byte, ss, w, h, degrees int) {
	var origin, stepX, stepY int // dst index of src (x, y) = origin + x*stepX + y*stepY
	switch degrees {
	case 90:
		origin, stepX, stepY = h-1, ds, -1
	case 180:
		origin, stepX, stepY = (h-1)*ds+w-1, -1, -ds
	case 270:
		origin, stepX, stepY = (w-1)*ds, -ds, 1
	default:
		panic("pipeio: rotate by other than 90, 180, 270")
	}
	for y := range h {
		i := origin + y*stepY
		for _, v := range src[y*ss:][:w] {
			dst[i] = v
			i += stepX
		}
	}
}
