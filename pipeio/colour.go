//go:build !noffmpeg

package pipeio

import (
	"context"
	"fmt"
	"io"
	"sync"

	"github.com/nvcodec/nvcodec/internal/av"
	"github.com/nvcodec/nvcodec/yuv"
)

// ConvertOptions adjust the converters.
type ConvertOptions struct {
	Resolution int // scale the smaller side to this, both sides even; 0 keeps the size
	Threads    int // of the deinterlacer
}

// A ColorConverter turns decoded pictures of any kind into 8-bit 4:2:0 planes of one size.
//
// Samples stay as they are where they can: range, primaries, transfer and matrix are kept and said in the format. RGB
// becomes BT.709 in limited range, gray gets neutral chroma, interlaced pictures go through bwdif, and if the size
// changes, later pictures are scaled to the first one's. Scaling and conversion are swscale's with accurate rounding
// in its bit-exact mode, so they do not depend on the processor.
type ColorConverter struct {
	c    converter
	mu   sync.Mutex
	free []*yuv.Frame
}

// NewColorConverter converts what in gives: d itself, or d behind a PrefetchStage. Close closes in.
func NewColorConverter(in Stage[*Picture], d *PacketDecoder, o ConvertOptions) *ColorConverter {
	return &ColorConverter{c: converter{in: in, video: d.video, notes: d.notes, o: o}}
}

// Format describes the pictures; it is known after the first Next.
func (c *ColorConverter) Format() yuv.Format { return c.c.format }

// Next gives the next picture.
func (c *ColorConverter) Next(ctx context.Context) (*yuv.Frame, error) {
	src, err := c.c.next(ctx)
	if err != nil {
		return nil, err
	}
	f := c.frame()
	f.PTS, f.Duration = src.meta.PTS, src.meta.Duration
	w, h := f.W, f.H
	src.frame.CopyPlane(f.Y, f.StrideY, 0, w, h)
	if src.gray {
		for i := range f.U {
			f.U[i], f.V[i] = 128, 128
		}
	} else {
		src.frame.CopyPlane(f.U, f.StrideC, 1, f.CW(), f.CH())
		src.frame.CopyPlane(f.V, f.StrideC, 2, f.CW(), f.CH())
	}
	c.c.done(src)
	return f, nil
}

func (c *ColorConverter) frame() *yuv.Frame {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.free); n > 0 {
		f := c.free[n-1]
		c.free = c.free[:n-1]
		return f
	}
	return &yuv.Frame{Planes: *yuv.New(c.c.format.W, c.c.format.H)}
}

// Release takes a picture back.
func (c *ColorConverter) Release(f *yuv.Frame) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.free = append(c.free, f)
}

// Close closes the stages before too.
func (c *ColorConverter) Close() error { return c.c.close() }

// RGB is a picture of packed 8-bit R, G, B samples, full range, rows without padding.
type RGB struct {
	W, H          int
	Pix           []byte
	PTS, Duration int64
}

// An RGBConverter turns decoded pictures of any kind into packed RGB of one size. Where a stream does not say its
// matrix, it is BT.709 for pictures of at least 720 lines or 1280 columns, else BT.601, as players do.
type RGBConverter struct {
	c    converter
	mu   sync.Mutex
	free []*RGB
}

// NewRGBConverter is NewColorConverter for RGB.
func NewRGBConverter(in Stage[*Picture], d *PacketDecoder, o ConvertOptions) *RGBConverter {
	return &RGBConverter{c: converter{in: in, video: d.video, notes: d.notes, o: o, rgb: true}}
}

// Format describes the video; it is known after the first Next.
func (c *RGBConverter) Format() yuv.Format { return c.c.format }

// Next gives the next picture.
func (c *RGBConverter) Next(ctx context.Context) (*RGB, error) {
	src, err := c.c.next(ctx)
	if err != nil {
		return nil, err
	}
	f := c.frame()
	f.PTS, f.Duration = src.meta.PTS, src.meta.Duration
	src.frame.CopyPlane(f.Pix, 3*f.W, 0, 3*f.W, f.H)
	c.c.done(src)
	return f, nil
}

func (c *RGBConverter) frame() *RGB {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.free); n > 0 {
		f := c.free[n-1]
		c.free = c.free[:n-1]
		return f
	}
	w, h := c.c.format.W, c.c.format.H
	return &RGB{W: w, H: h, Pix: make([]byte, 3*w*h)}
}

// Release takes a picture back.
func (c *RGBConverter) Release(f *RGB) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.free = append(c.free, f)
}

// Close closes the stages before too.
func (c *RGBConverter) Close() error { return c.c.close() }

// converter is what the two share: pictures in, frames of one size and layout out, in order and one for one.
type converter struct {
	in     Stage[*Picture]
	video  StreamInfo
	notes  *notebook
	o      ConvertOptions
	rgb    bool
	format yuv.Format
	known  bool // format is

	graph       *av.Graph
	kind        kind   // of the pictures that the graph is for
	deinterlace bool   // once on it stays, since it leaves progressive pictures alone
	inside      []meta // pictures in the graph
	out         *av.Frame
	pending     *Picture // waits for the graph before it to empty
	ended       bool
	err         error
}

type meta struct{ PTS, Duration int64 }

// kind is what a graph depends on.
type kind struct {
	w, h   int
	format av.PixelFormat
	rng    uint8
	matrix uint8
	sar    yuv.Rational
}

// A converted picture: frame belongs to picture, or to the converter if that is nil.
type converted struct {
	frame   *av.Frame
	picture *Picture
	meta    meta
	gray    bool
}

func (c *converter) done(s converted) {
	if s.picture != nil {
		c.in.Release(s.picture)
	} else {
		s.frame.Unref()
	}
}

func (c *converter) next(ctx context.Context) (converted, error) {
	if c.err != nil {
		return converted{}, c.err
	}
	s, err := c.step(ctx)
	if err != nil {
		c.err = err
	}
	return s, err
}

func (c *converter) step(ctx context.Context) (converted, error) {
	if c.out == nil {
		c.out = av.NewFrame()
	}
	for {
		if c.graph != nil {
			s, err := c.receive()
			if err != av.ErrAgain && err != io.EOF {
				return s, err
			}
			if err == io.EOF { // emptied, for the end or for other pictures
				c.graph.Close()
				c.graph = nil
				if len(c.inside) != 0 {
					return s, fmt.Errorf("%s: filters kept %d pictures", c.notes.file, len(c.inside))
				}
			}
		}
		if c.graph == nil && c.ended {
			return converted{}, io.EOF
		}
		p := c.pending
		c.pending = nil
		if p == nil {
			var err error
			if p, err = c.in.Next(ctx); err == io.EOF {
				c.ended = true
				if c.graph != nil {
					if err := c.graph.Send(nil); err != nil && err != io.EOF {
						return converted{}, fileError(c.notes.file, err)
					}
				}
				continue
			} else if err != nil {
				return converted{}, err
			}
		}
		s, ok, err := c.take(p)
		if ok || err != nil {
			return s, err
		}
	}
}

func (c *converter) receive() (converted, error) {
	switch err := c.graph.Receive(c.out); err {
	case nil:
	case av.ErrAgain, io.EOF:
		return converted{}, err
	default:
		return converted{}, fileError(c.notes.file, err)
	}
	if len(c.inside) == 0 {
		c.out.Unref()
		return converted{}, fmt.Errorf("%s: filters gave more pictures than they got", c.notes.file)
	}
	m := c.inside[0]
	c.inside = c.inside[1:]
	return converted{frame: c.out, meta: m, gray: c.out.Format() == av.Gray8}, nil
}

// take gives a picture to the graph, which it makes if need be, or gives it as it is (ok).
func (c *converter) take(p *Picture) (s converted, ok bool, err error) {
	format := p.frame.Format()
	info, _ := format.Info()
	if !c.known {
		err = c.begin(p, info)
	} else if err = c.compare(p); err == nil {
		err = c.describe(p, info)
	}
	if err != nil {
		c.in.Release(p)
		return s, false, err
	}
	if p.Interlaced && !c.deinterlace && p.W >= 4 && p.H >= 4 {
		c.deinterlace = true
		if err := c.notes.add(Note{"interlaced", "interlaced pictures deinterlaced (bwdif)", true}); err != nil {
			c.in.Release(p)
			return s, false, err
		}
		c.kind = kind{}
	}
	k := kind{p.W, p.H, format, p.Colour.Range, p.Colour.Matrix, p.SAR}
	if c.graph != nil && k != c.kind {
		c.pending = p
		if err := c.graph.Send(nil); err != nil && err != io.EOF {
			return s, false, fileError(c.notes.file, err)
		}
		return s, false, nil
	}
	plain := format == av.YUV420P || format == av.YUVA420P || format == av.Gray8
	if plain && !c.rgb && !c.deinterlace && !c.video.Flip && p.W == c.format.W && p.H == c.format.H && rangeOf(p, info) == c.format.Colour.Range {
		return converted{frame: p.frame, picture: p, meta: meta{p.PTS, p.Duration}, gray: format == av.Gray8}, true, nil
	}
	defer c.in.Release(p)
	if c.graph == nil {
		threads := 1
		if c.deinterlace {
			threads = c.o.Threads
		}
		p.frame.Tag(p.PTS, p.Duration, p.Colour, p.SAR)
		if c.graph, err = av.NewGraph(c.filters(p, info), p.frame, c.format.TimeBase, p.SAR, threads); err != nil {
			return s, false, fileError(c.notes.file, err)
		}
		c.kind = k
	}
	p.frame.Tag(p.PTS, p.Duration, p.Colour, p.SAR)
	c.inside = append(c.inside, meta{p.PTS, p.Duration})
	if err := c.graph.Send(p.frame); err != nil {
		return s, false, fileError(c.notes.file, err)
	}
	return s, false, nil
}

// begin settles the format of the output by the first picture.
func (c *converter) begin(p *Picture, info av.PixelInfo) error {
	v := c.video
	f := yuv.Format{W: p.W, H: p.H, TimeBase: v.TimeBase, FrameRate: v.FrameRate, SAR: p.SAR, Rotation: v.Rotation, Colour: p.Colour}
	if c.o.Resolution > 0 {
		f.W, f.H = scaledSize(p.W, p.H, c.o.Resolution)
		if f.W != p.W || f.H != p.H {
			if err := c.notes.add(Note{"scaled", fmt.Sprintf("scaled from %dx%d to %dx%d", p.W, p.H, f.W, f.H), false}); err != nil {
				return err
			}
		}
	}
	if err := checkSize(f.W, f.H); err != nil {
		return fileError(c.notes.file, err)
	}
	f.Colour.Range = rangeOf(p, info)
	switch {
	case info.RGB:
		f.Colour.Matrix, f.Colour.ChromaLoc = 1, 1
	case info.Gray:
		f.Colour.ChromaLoc = 0
		if f.Colour.Matrix == 0 {
			f.Colour.Matrix = 2
		}
	case info.Log2W != 1 || info.Log2H != 1:
		f.Colour.ChromaLoc = 1
	}
	if f.Colour.Matrix == 0 && !info.RGB {
		f.Colour.Matrix = 2 // "RGB" on planes of luma and chroma is a mistake of the file
	}
	c.format, c.known = f, true
	if v.Flip {
		if err := c.notes.add(Note{"mirrored", "pictures mirrored, as the container asks", false}); err != nil {
			return err
		}
	}
	if v.Skewed {
		if err := c.notes.add(Note{"rotation", fmt.Sprintf("the container asks for a turn that is no quarter turn; taken as %d degrees", v.Rotation), true}); err != nil {
			return err
		}
	}
	return c.describe(p, info)
}

// describe notes what is lost of a picture.
func (c *converter) describe(p *Picture, info av.PixelInfo) error {
	var notes []Note
	if info.Depth > 8 {
		notes = append(notes, Note{"bit_depth", fmt.Sprintf("%d-bit samples (%s) rounded to 8 bits", info.Depth, info.Name), true})
	}
	if !c.rgb {
		switch {
		case info.RGB:
			notes = append(notes, Note{"rgb", fmt.Sprintf("RGB (%s) turned into 4:2:0, BT.709, limited range", info.Name), true})
		case info.Gray:
			notes = append(notes, Note{"gray", "gray: stored with neutral chroma planes", false})
		case info.Log2W != 1 || info.Log2H != 1:
			notes = append(notes, Note{"chroma", fmt.Sprintf("chroma of %s reduced to 4:2:0", info.Name), true})
		}
	}
	if info.Alpha && !info.Palette {
		notes = append(notes, Note{"alpha", fmt.Sprintf("alpha (%s) left out", info.Name), true})
	}
	if t := p.Colour.Transfer; t == 16 || t == 18 {
		notes = append(notes, Note{"hdr", fmt.Sprintf("HDR (%s) kept as it is tagged, without tone mapping", map[uint8]string{16: "PQ", 18: "HLG"}[t]), false})
	}
	for _, n := range notes {
		if err := c.notes.add(n); err != nil {
			return err
		}
	}
	return nil
}

// compare notes what changes within a video.
func (c *converter) compare(p *Picture) error {
	if c.o.Resolution == 0 && (p.W != c.format.W || p.H != c.format.H) {
		if err := c.notes.add(Note{"size", fmt.Sprintf("the size changes to %dx%d: scaled to the first, %dx%d", p.W, p.H, c.format.W, c.format.H), true}); err != nil {
			return err
		}
	}
	return nil
}

// rangeOf is the range that the output has: that of the picture, which for gray FFmpeg takes as full unless it says
// otherwise.
func rangeOf(p *Picture, info av.PixelInfo) uint8 {
	switch {
	case info.RGB:
		return 1
	case info.Gray && p.Colour.Range == 0:
		return 2
	}
	return p.Colour.Range
}

// scaledSize makes the smaller side n, rounded up to even, and the other the nearest even number to what keeps the
// aspect.
func scaledSize(w, h, n int) (int, int) {
	n = (n + 1) / 2 * 2
	other := func(long, short int) int { return max(2, (long*n+short)/(2*short)*2) }
	if w <= h {
		return n, other(h, w)
	}
	return other(w, h), n
}

// filters is the chain for pictures like p.
func (c *converter) filters(p *Picture, info av.PixelInfo) string {
	chain := ""
	if c.deinterlace {
		chain = "bwdif=mode=send_frame:parity=auto:deint=interlaced,"
	}
	if c.video.Flip {
		chain += "hflip,"
	}
	rng := func(r uint8) string {
		if r == 2 {
			return "pc"
		}
		return "tv"
	}
	chain += fmt.Sprintf("scale=w=%d:h=%d:flags=bicubic+accurate_rnd+bitexact+full_chroma_int+full_chroma_inp", c.format.W, c.format.H)
	switch {
	case c.rgb && info.RGB:
		return chain + ",format=rgb24"
	case c.rgb:
		return chain + fmt.Sprintf(":in_color_matrix=%s:in_range=%s:out_range=pc,format=rgb24", matrixName(p), rng(rangeOf(p, info)))
	case info.RGB:
		return chain + ":out_color_matrix=bt709:out_range=tv,format=yuv420p"
	case info.Gray:
		return chain + ",format=gray" // swscale takes gray as full range on both sides, so values stay
	}
	return chain + fmt.Sprintf(":in_range=%s:out_range=%s,format=yuv420p", rng(p.Colour.Range), rng(c.format.Colour.Range))
}

func matrixName(p *Picture) string {
	switch p.Colour.Matrix {
	case 1:
		return "bt709"
	case 4:
		return "fcc"
	case 5, 6:
		return "bt601"
	case 7:
		return "smpte240m"
	case 9, 10:
		return "bt2020"
	}
	if p.H >= 720 || p.W >= 1280 {
		return "bt709"
	}
	return "bt601"
}

func (c *converter) close() error {
	if c.pending != nil {
		c.in.Release(c.pending)
		c.pending = nil
	}
	if c.graph != nil {
		c.graph.Close()
		c.graph = nil
	}
	if c.out != nil {
		c.out.Free()
		c.out = nil
	}
	c.err = errClosed
	return c.in.Close()
}
