//go:build !noffmpeg

package av

// #include "shim.h"
import "C"

import (
	"unsafe"

	"github.com/asticode/go-astiav"
	"github.com/nvcodec/nvcodec/yuv"
)

// A Frame is a decoded picture in C memory.
type Frame struct{ f *astiav.Frame }

// NewFrame makes an empty frame; Free it.
func NewFrame() *Frame {
	live[kindFrame].Add(1)
	return &Frame{f: astiav.AllocFrame()}
}

// Free releases the frame; its planes must not be used any more.
func (f *Frame) Free() {
	if f.f != nil {
		f.f.Free()
		f.f = nil
		live[kindFrame].Add(-1)
	}
}

// Unref drops the picture and keeps the frame for another.
func (f *Frame) Unref() { f.f.Unref() }

// MoveTo moves the picture to another frame, which is empty.
func (f *Frame) MoveTo(to *Frame) { to.f.MoveRef(f.f) }

// Alloc gives an empty frame a picture of this size and format, not initialised.
func (f *Frame) Alloc(w, h int, format PixelFormat) error {
	f.f.SetWidth(w)
	f.f.SetHeight(h)
	f.f.SetPixelFormat(astiav.PixelFormat(format))
	return f.f.AllocBuffer(0)
}

// Size of the picture.
func (f *Frame) Size() (w, h int) { return f.f.Width(), f.f.Height() }

// Format of its samples.
func (f *Frame) Format() PixelFormat { return PixelFormat(f.f.PixelFormat()) }

// SAR is its sample aspect ratio, 0/1 if unknown.
func (f *Frame) SAR() yuv.Rational { return rational(f.f.SampleAspectRatio()) }

// Props are the fields of a frame beside its picture.
type Props struct {
	Colour                             yuv.Colour
	PTS, Duration                      int64 // the best guess at the time; NoPTS if there is none. Duration 0 is unknown
	Interlaced, TopFirst, Key, Corrupt bool
}

// Props reads them.
func (f *Frame) Props() Props {
	var p C.nvc_props
	C.nvc_frame_props(framePtr(f.f), &p)
	pts := int64(p.best)
	if pts == NoPTS {
		pts = f.f.Pts()
	}
	return Props{
		Colour: yuv.Colour{Range: uint8(p.range_), Primaries: uint8(p.primaries), Transfer: uint8(p.transfer), Matrix: uint8(p.matrix), ChromaLoc: uint8(p.location)},
		PTS:    pts, Duration: int64(p.duration),
		Interlaced: p.interlaced != 0, TopFirst: p.top_first != 0, Key: p.key != 0, Corrupt: p.corrupt != 0,
	}
}

// Tag sets what an encoder or filter reads from a frame.
func (f *Frame) Tag(pts, duration int64, c yuv.Colour, sar yuv.Rational) {
	f.f.SetPts(pts)
	f.f.SetSampleAspectRatio(toRational(sar))
	f.f.SetPictureType(astiav.PictureTypeNone)
	C.nvc_frame_tag(framePtr(f.f), C.int(c.Range), C.int(c.Primaries), C.int(c.Transfer), C.int(c.Matrix), C.int(c.ChromaLoc), C.int64_t(duration))
}

// SetInterlaced sets the field order, which the deinterlacer reads.
func (f *Frame) SetInterlaced(interlaced, topFirst bool) {
	C.nvc_frame_interlaced(framePtr(f.f), cbool(interlaced), cbool(topFirst))
}

// Relabel turns the yuvj formats into the yuv ones with full range, which they are.
func (f *Frame) Relabel() { C.nvc_frame_relabel(framePtr(f.f)) }

// Plane is a view of plane i and its row length in bytes: valid until Unref or Free, and not to be written, since the
// decoder may still read it. It is nil if the format has fewer planes, or rows from bottom to top.
func (f *Frame) Plane(i int) ([]byte, int) {
	c := framePtr(f.f)
	rows, stride := int(C.nvc_plane_rows(c, C.int(i))), 0
	if rows == 0 {
		return nil, 0
	}
	if stride = int(c.linesize[i]); stride <= 0 || c.data[i] == nil {
		return nil, 0
	}
	// the last row is only as long as its samples
	return unsafe.Slice((*byte)(unsafe.Pointer(c.data[i])), stride*(rows-1)+int(C.nvc_plane_bytes(c, C.int(i)))), stride
}

// CopyPlane copies rows of plane i out: width in bytes. It panics if the plane is smaller or dst is short.
func (f *Frame) CopyPlane(dst []byte, stride, i, width, rows int) {
	c := framePtr(f.f)
	if int(C.nvc_plane_rows(c, C.int(i))) < rows || int(C.nvc_plane_bytes(c, C.int(i))) < width || len(dst) < stride*(rows-1)+width || stride < width {
		panic("av: CopyPlane beyond the plane")
	}
	C.nvc_copy_plane((*C.uint8_t)(unsafe.SliceData(dst)), C.int(stride), c, C.int(i), C.int(width), C.int(rows))
}

// FillPlane copies rows into plane i of an allocated frame, the mirror of CopyPlane.
func (f *Frame) FillPlane(src []byte, stride, i, width, rows int) {
	c := framePtr(f.f)
	if int(C.nvc_plane_rows(c, C.int(i))) < rows || int(C.nvc_plane_bytes(c, C.int(i))) < width || len(src) < stride*(rows-1)+width || stride < width {
		panic("av: FillPlane beyond the plane")
	}
	C.nvc_fill_plane(c, C.int(i), (*C.uint8_t)(unsafe.SliceData(src)), C.int(stride), C.int(width), C.int(rows))
}

// A PixelFormat is libav's number of one; the numbers differ between versions.
type PixelFormat int

// The formats that the code names.
const (
	YUV420P  = PixelFormat(astiav.PixelFormatYuv420P)
	YUVJ420P = PixelFormat(astiav.PixelFormatYuvj420P)
	YUVA420P = PixelFormat(astiav.PixelFormatYuva420P)
	YUV422P  = PixelFormat(astiav.PixelFormatYuv422P)
	YUV444P  = PixelFormat(astiav.PixelFormatYuv444P)
	Gray8    = PixelFormat(astiav.PixelFormatGray8)
	RGB24    = PixelFormat(astiav.PixelFormatRgb24)
)

// PixelInfo says what a format is made of.
type PixelInfo struct {
	Name                          string
	Depth                         int // bits of the deepest component
	Log2W, Log2H                  int // chroma subsampling
	Gray, RGB, Alpha, Palette, HW bool
}

// Info looks it up; ok is false for numbers that are no format.
func (p PixelFormat) Info() (info PixelInfo, ok bool) {
	var c C.nvc_pixfmt
	if C.nvc_pixfmt_info(C.int(p), &c) == 0 {
		return info, false
	}
	components := int(c.components)
	if c.alpha != 0 {
		components--
	}
	return PixelInfo{
		Name: C.GoString(c.name), Depth: int(c.depth), Log2W: int(c.log2_w), Log2H: int(c.log2_h),
		Gray: components == 1 && c.rgb == 0 && c.palette == 0, RGB: c.rgb != 0 || c.palette != 0, Alpha: c.alpha != 0, Palette: c.palette != 0, HW: c.hardware != 0,
	}, true
}

func cbool(b bool) C.int {
	if b {
		return 1
	}
	return 0
}

// FindPixelFormat looks a format up by libav's name.
func FindPixelFormat(name string) (PixelFormat, bool) {
	p := astiav.FindPixelFormatByName(name)
	return PixelFormat(p), p >= 0
}
