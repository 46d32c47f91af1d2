// Package yuv holds the pictures that every other package passes around: 8-bit 4:2:0 planes in memory and the
// description of the video that they belong to. It knows nothing of files or networks.
package yuv

// Planes is one 8-bit 4:2:0 picture. Luma is W x H samples; each chroma plane is CW x CH = ⌈W/2⌉ x ⌈H/2⌉.
// Row r of Y starts at r*StrideY, of U and V at r*StrideC.
type Planes struct {
	W, H             int
	Y, U, V          []byte
	StrideY, StrideC int
}

// New returns a picture of w x h samples with tight rows, all zero.
func New(w, h int) *Planes {
	cw, ch := (w+1)/2, (h+1)/2
	b := make([]byte, w*h+2*cw*ch)
	return &Planes{W: w, H: h, Y: b[: w*h : w*h], U: b[w*h : w*h+cw*ch : w*h+cw*ch], V: b[w*h+cw*ch:], StrideY: w, StrideC: cw}
}

// CW returns the width of a chroma plane.
func (p *Planes) CW() int { return (p.W + 1) / 2 }

// CH returns the height of a chroma plane.
func (p *Planes) CH() int { return (p.H + 1) / 2 }

// Rational is a fraction; Den is positive in a valid one.
type Rational struct{ Num, Den int64 }

// Colour holds the code points of ITU-T H.273 (2 = unspecified) and FFmpeg's numbering of chroma location and range.
type Colour struct {
	Range     uint8 // 0 unspecified, 1 limited (tv), 2 full (pc)
	Primaries uint8
	Transfer  uint8
	Matrix    uint8
	ChromaLoc uint8 // 0 unspecified, 1 left, 2 centre, 3 top left, 4 top, 5 bottom left, 6 bottom
}

// Format describes a video: what a demuxer learns, a stream's header carries and a muxer writes.
type Format struct {
	W, H      int      // the picture's size after cropping, before rotation
	TimeBase  Rational // seconds a tick of Frame.PTS
	FrameRate Rational // nominal; 0/1 when unknown or variable
	SAR       Rational // sample aspect ratio; 0/1 unknown
	Rotation  int      // clockwise degrees to turn the picture for display: 0, 90, 180, 270
	Colour    Colour
}

// Frame is a picture with its time.
type Frame struct {
	Planes
	PTS      int64 // in ticks of Format.TimeBase
	Duration int64 // in the same ticks; 0 unknown
}

// Pad copies src into the upper left corner of p, which is as large or larger, and repeats each plane's last column and
// row beyond it; chroma of an odd size is ⌈w/2⌉ samples wide before it is repeated. Of equal sizes it is a plain copy.
func (p *Planes) Pad(src *Planes) {
	padPlane(p.Y, p.StrideY, p.W, p.H, src.Y, src.StrideY, src.W, src.H)
	padPlane(p.U, p.StrideC, p.CW(), p.CH(), src.U, src.StrideC, src.CW(), src.CH())
	padPlane(p.V, p.StrideC, p.CW(), p.CH(), src.V, src.StrideC, src.CW(), src.CH())
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

// Clone returns a copy with tight rows.
func (p *Planes) Clone() *Planes {
	c := New(p.W, p.H)
	c.Pad(p)
	return c
}
