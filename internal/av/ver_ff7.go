//go:build !noffmpeg && ffmpeg7

package av

// #include "shim.h"
import "C"

import (
	"encoding/binary"

	"github.com/asticode/go-astiav"
	"github.com/nvcodec/nvcodec/yuv"
)

// A Graph is a chain of filters.
type Graph struct {
	g    *astiav.FilterGraph
	src  *astiav.BuffersrcFilterContext
	sink *astiav.BuffersinkFilterContext
}

// build makes the buffer source for pictures like f, the sink, and the filters between them.
func (g *Graph) build(desc string, f *Frame, tb, sar yuv.Rational) (err error) {
	if g.src, err = g.g.NewBuffersrcFilterContext(astiav.FindFilterByName("buffer"), "in"); err != nil {
		return err
	}
	if g.sink, err = g.g.NewBuffersinkFilterContext(astiav.FindFilterByName("buffersink"), "out"); err != nil {
		return err
	}
	p := astiav.AllocBuffersrcFilterContextParameters()
	defer p.Free()
	p.SetWidth(f.f.Width())
	p.SetHeight(f.f.Height())
	p.SetPixelFormat(f.f.PixelFormat())
	p.SetTimeBase(toRational(tb))
	p.SetSampleAspectRatio(toRational(sar))
	p.SetColorRange(f.f.ColorRange())
	p.SetColorSpace(f.f.ColorSpace())
	if err = g.src.SetParameters(p); err != nil {
		return err
	}
	if err = g.src.Initialize(nil); err != nil {
		return err
	}
	return g.connect(desc, g.src.FilterContext(), g.sink.FilterContext())
}

func (g *Graph) free() { g.g.Free() }

// Send gives the graph a picture, which stays the caller's; nil after the last.
func (g *Graph) Send(f *Frame) error {
	flags := astiav.NewBuffersrcFlags(astiav.BuffersrcFlagKeepRef)
	if f == nil {
		return translate(g.src.AddFrame(nil, flags))
	}
	return translate(g.src.AddFrame(f.f, flags))
}

// Receive gives the next picture, ErrAgain or io.EOF.
func (g *Graph) Receive(f *Frame) error {
	return translate(g.sink.GetFrame(f.f, astiav.NewBuffersinkFlags()))
}

// displayMatrix of a stream, if it has one.
func displayMatrix(s *astiav.Stream) (m [9]int32, ok bool) {
	d, ok := s.CodecParameters().SideData().DisplayMatrix().Get()
	if !ok {
		return m, false
	}
	for i := range m {
		m[i] = int32(d[i])
	}
	return m, true
}

func setDisplayMatrix(s *astiav.Stream, clockwise int) error {
	var d astiav.DisplayMatrix
	for i, b := 0, rotationMatrix(clockwise); i < len(d); i++ {
		d[i] = binary.NativeEndian.Uint32(b[4*i:])
	}
	return s.CodecParameters().SideData().DisplayMatrix().Add(&d)
}

func openOut(url string) (*astiav.IOContext, error) {
	return astiav.OpenIOContext(url, astiav.NewIOContextFlags(astiav.IOContextFlagWrite), nil, nil)
}
