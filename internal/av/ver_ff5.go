//go:build !noffmpeg && !ffmpeg7

package av

// #include "shim.h"
import "C"

import (
	"encoding/binary"
	"fmt"

	"github.com/asticode/go-astiav"
	"github.com/nvcodec/nvcodec/yuv"
)

// A Graph is a chain of filters.
type Graph struct {
	g         *astiav.FilterGraph
	src, sink *astiav.FilterContext
}

// build makes the buffer source for pictures like f, the sink, and the filters between them.
func (g *Graph) build(desc string, f *Frame, tb, sar yuv.Rational) (err error) {
	defer func() {
		if err != nil {
			g.src, g.sink = nil, nil // a failed parse has freed them
		}
	}()
	w, h := f.Size()
	args := astiav.FilterArgs{
		"video_size":   fmt.Sprintf("%dx%d", w, h),
		"pix_fmt":      fmt.Sprint(int(f.Format())),
		"time_base":    fmt.Sprintf("%d/%d", tb.Num, tb.Den),
		"pixel_aspect": fmt.Sprintf("%d/%d", sar.Num, max(1, sar.Den)),
	}
	if g.src, err = g.g.NewFilterContext(astiav.FindFilterByName("buffer"), "in", args); err != nil {
		return err
	}
	if g.sink, err = g.g.NewFilterContext(astiav.FindFilterByName("buffersink"), "out", nil); err != nil {
		return err
	}
	return g.connect(desc, g.src, g.sink)
}

// free drops the ends by themselves, since this astiav would keep an entry for each in a map of its own.
func (g *Graph) free() {
	if g.src != nil {
		g.src.Free()
	}
	if g.sink != nil {
		g.sink.Free()
	}
	g.g.Free()
}

// Send gives the graph a picture, which stays the caller's; nil after the last.
func (g *Graph) Send(f *Frame) error {
	flags := astiav.NewBuffersrcFlags(astiav.BuffersrcFlagKeepRef)
	if f == nil {
		return translate(g.src.BuffersrcAddFrame(nil, flags))
	}
	return translate(g.src.BuffersrcAddFrame(f.f, flags))
}

// Receive gives the next picture, ErrAgain or io.EOF.
func (g *Graph) Receive(f *Frame) error {
	return translate(g.sink.BuffersinkGetFrame(f.f, astiav.NewBuffersinkFlags()))
}

// displayMatrix of a stream, if it has one.
func displayMatrix(s *astiav.Stream) (m [9]int32, ok bool) {
	b := s.SideData(astiav.PacketSideDataTypeDisplaymatrix)
	if len(b) < 36 {
		return m, false
	}
	for i := range m {
		m[i] = int32(binary.NativeEndian.Uint32(b[4*i:]))
	}
	return m, true
}

func setDisplayMatrix(s *astiav.Stream, clockwise int) error {
	return s.AddSideData(astiav.PacketSideDataTypeDisplaymatrix, rotationMatrix(clockwise))
}

func openOut(url string) (*astiav.IOContext, error) {
	return astiav.OpenIOContext(url, astiav.NewIOContextFlags(astiav.IOContextFlagWrite))
}
