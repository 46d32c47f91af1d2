//go:build !noffmpeg

package av

import (
	"fmt"

	"github.com/asticode/go-astiav"
	"github.com/nvcodec/nvcodec/yuv"
)

// NewGraph parses a chain of filters for pictures like f. The description is parsed text: make it of numbers and
// constants only.
func NewGraph(desc string, f *Frame, tb, sar yuv.Rational, threads int) (*Graph, error) {
	g := &Graph{g: astiav.AllocFilterGraph()}
	live[kindGraph].Add(1)
	g.g.SetThreadCount(threads)
	if err := g.build(desc, f, tb, sar); err != nil {
		g.Close()
		return nil, fmt.Errorf("filters %q: %w", desc, err)
	}
	return g, nil
}

func (g *Graph) connect(desc string, src, sink *astiav.FilterContext) error {
	out, in := astiav.AllocFilterInOut(), astiav.AllocFilterInOut()
	defer out.Free()
	defer in.Free()
	out.SetName("in")
	out.SetFilterContext(src)
	out.SetPadIdx(0)
	out.SetNext(nil)
	in.SetName("out")
	in.SetFilterContext(sink)
	in.SetPadIdx(0)
	in.SetNext(nil)
	if err := g.g.Parse(desc, in, out); err != nil {
		return err
	}
	return g.g.Configure()
}

// Close frees the graph and the pictures in it.
func (g *Graph) Close() {
	if g.g != nil {
		g.free()
		g.g = nil
		live[kindGraph].Add(-1)
	}
}
