//go:build !noffmpeg

package pipeio

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/nvcodec/nvcodec/internal/av"
	"github.com/nvcodec/nvcodec/yuv"
)

// A Picture is a decoded picture in FFmpeg's memory, cropped as the stream asks, not turned.
type Picture struct {
	W, H        int
	PixelFormat string // FFmpeg's name
	PTS         int64  // in the video's time base; 0 for the first, then rising
	Duration    int64  // in the same; 0 unknown
	SAR         yuv.Rational
	Colour      yuv.Colour
	Interlaced  bool
	TopFirst    bool
	Key         bool
	Corrupt     bool // damaged data, concealed by the decoder
	frame       *av.Frame
}

// Plane is a view of plane i and its row length in bytes, valid until Release and not to be written; nil if there is
// none.
func (p *Picture) Plane(i int) ([]byte, int) { return p.frame.Plane(i) }

// DecodeOptions adjust NewPacketDecoder.
type DecodeOptions struct {
	Threads int
	Seek    time.Duration // pictures before this time from the video's start are left out; see also Demuxer.Seek
	Rate    yuv.Rational  // for times that are missing, if the container has no rate
}

// A PacketDecoder decodes a video's packets. Pictures get rising times from 0: missing ones are made from the rate,
// and jumps back, as in joined recordings, are taken out.
type PacketDecoder struct {
	in    Stage[*Packet]
	dec   *av.Decoder
	video StreamInfo
	notes *notebook
	time  timeline
	seek  int64 // in the time base
	sight bool  // the demuxer has sought, so the first picture must lie at or before seek

	decoded int64 // pictures, with those before seek
	zero    int64 // position that seek counts from: the first picture's, or the stated start after a jump
	given   int64
	base    int64 // position of the first picture given
	damaged int64
	cause   error // the last complaint of the decoder
	flushed bool
	err     error

	mu   sync.Mutex
	free []*Picture
}

// errOvershot: after a seek the first picture lay behind the wanted time.
var errOvershot = errors.New("pipeio: seek overshot")

// NewPacketDecoder decodes the packets that in gives: d itself, or d behind a PrefetchStage. Close closes in.
func NewPacketDecoder(in Stage[*Packet], d *Demuxer, o DecodeOptions) (*PacketDecoder, error) {
	v := d.Video()
	p := &PacketDecoder{in: in, video: v, notes: d.notes, seek: ticks(o.Seek, v.TimeBase), sight: d.sought}
	rate := v.FrameRate
	if rate.Num <= 0 {
		rate = o.Rate
	}
	p.time = newTimeline(v.TimeBase, rate, v.Start, d.in.TimesJump())
	var err error
	if p.dec, err = d.in.OpenDecoder(d.video, o.Threads); err != nil {
		return nil, fileError(d.path, err)
	}
	return p, nil
}

// Next gives the next picture in the order of display.
func (d *PacketDecoder) Next(ctx context.Context) (*Picture, error) {
	if d.err != nil {
		return nil, d.err
	}
	p, err := d.next(ctx)
	if err != nil {
		d.err = err
		return nil, err
	}
	return p, nil
}

func (d *PacketDecoder) next(ctx context.Context) (*Picture, error) {
	p := d.picture()
	for {
		if err := ctx.Err(); err != nil {
			d.Release(p)
			return nil, err
		}
		err := d.dec.Receive(p.frame)
		switch err {
		case nil:
			ok, err := d.describe(p)
			if err != nil {
				d.Release(p)
				return nil, err
			}
			if ok {
				return p, nil
			}
			p.frame.Unref()
			continue
		case io.EOF:
			d.Release(p)
			return nil, d.end()
		case av.ErrAgain:
		default:
			if err := d.damage(err); err != nil {
				d.Release(p)
				return nil, err
			}
		}
		if err := d.feed(ctx); err != nil {
			d.Release(p)
			return nil, err
		}
	}
}

// feed gives the decoder one packet, or tells it that there are no more.
func (d *PacketDecoder) feed(ctx context.Context) error {
	if d.flushed {
		return d.end() // a decoder that fails while it empties itself
	}
	pkt, err := d.in.Next(ctx)
	if err == io.EOF {
		d.flushed = true
		err = d.dec.Send(nil)
	} else if err != nil {
		return err
	} else {
		err = d.dec.Send(pkt)
		d.in.Release(pkt)
	}
	if err != nil && err != io.EOF {
		return d.damage(err)
	}
	return nil
}

// damage counts what the decoder complains of. The first place is noted at once, the number at the end.
func (d *PacketDecoder) damage(err error) error {
	d.damaged++
	d.cause = err
	if d.damaged > 1 {
		return nil
	}
	return d.notes.add(Note{"damaged", fmt.Sprintf("damaged at picture %d; what the decoder makes of damage may differ between runs", d.decoded), true})
}

// describe fills in p from its frame; ok is false for pictures before the wanted time.
func (d *PacketDecoder) describe(p *Picture) (ok bool, err error) {
	props := p.frame.Props()
	if w, h := p.frame.Size(); checkSize(w, h) != nil {
		return false, fmt.Errorf("%s: %w", d.notes.file, checkSize(w, h))
	}
	if d.sight && d.decoded == 0 && (props.PTS == av.NoPTS || d.time.position(props.PTS) > d.seek) {
		return false, errOvershot
	}
	d.decoded++
	at, made := d.time.next(props.PTS, props.Duration)
	if made {
		if err := d.notes.add(Note{"times", "missing or falling times replaced from the frame rate", false}); err != nil {
			return false, err
		}
	}
	if d.decoded == 1 && !d.sight {
		d.zero = at
	}
	if at-d.zero < d.seek {
		return false, nil
	}
	if d.given == 0 {
		d.base = at
	}
	d.given++
	if props.Corrupt {
		if err := d.damage(errors.New("damaged pictures")); err != nil {
			return false, err
		}
	}
	p.frame.Relabel()
	p.W, p.H = p.frame.Size()
	info, known := p.frame.Format().Info()
	if !known || info.HW {
		return false, fmt.Errorf("%s: pixel format %q is not supported", d.notes.file, info.Name)
	}
	c := p.frame.Props().Colour // Relabel may have set the range
	p.PixelFormat = info.Name
	p.PTS, p.Duration = at-d.base, max(props.Duration, 0)
	if p.SAR = p.frame.SAR(); p.SAR.Num <= 0 {
		p.SAR = d.video.SAR
	}
	p.Colour = fillColour(c, d.video.Colour)
	p.Interlaced, p.TopFirst, p.Key, p.Corrupt = props.Interlaced, props.TopFirst, props.Key, props.Corrupt
	return true, nil
}

// fillColour takes from the container what the stream leaves open.
func fillColour(c, container yuv.Colour) yuv.Colour {
	if c.Range == 0 {
		c.Range = container.Range
	}
	for _, f := range [][2]*uint8{{&c.Primaries, &container.Primaries}, {&c.Transfer, &container.Transfer}, {&c.Matrix, &container.Matrix}} {
		if *f[0] == 2 {
			*f[0] = *f[1]
		}
	}
	if c.ChromaLoc == 0 {
		c.ChromaLoc = container.ChromaLoc
	}
	return c
}

// end is io.EOF if there were pictures.
func (d *PacketDecoder) end() error {
	said := d.notes.heard(d.dec.Messages())
	switch {
	case d.given > 0:
		if d.damaged > 1 {
			d.notes.add(Note{"damaged", plural(d.damaged, "place") + " damaged in all", true})
		}
		return io.EOF
	case d.sight:
		return errOvershot
	case d.decoded > 0:
		return fmt.Errorf("%s: seek is past the end", d.notes.file)
	}
	cause := d.cause
	for _, m := range said {
		if m.Error {
			cause = errors.New(m.Text)
		}
	}
	if cause != nil {
		return fmt.Errorf("%s: no picture of the video (%s) can be decoded: %w", d.notes.file, d.video.Codec, cause)
	}
	return fmt.Errorf("%s: the video (%s) has no pictures", d.notes.file, d.video.Codec)
}

func (d *PacketDecoder) picture() *Picture {
	d.mu.Lock()
	defer d.mu.Unlock()
	if n := len(d.free); n > 0 {
		p := d.free[n-1]
		d.free = d.free[:n-1]
		return p
	}
	return &Picture{frame: av.NewFrame()}
}

// Release takes a picture back.
func (d *PacketDecoder) Release(p *Picture) {
	p.frame.Unref()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.free = append(d.free, p)
}

// Close closes the stages before too.
func (d *PacketDecoder) Close() error {
	for _, p := range d.free {
		p.frame.Free()
	}
	d.free = nil
	d.dec.Close()
	d.err = errClosed
	return d.in.Close()
}

// A timeline makes rising positions out of what containers give as times.
type timeline struct {
	tb      yuv.Rational
	step    int64 // ticks of a picture at the nominal rate, at least 1
	jumps   bool  // jumps forward mean nothing
	origin  int64 // the time of position 0; NoPTS until the first
	offset  int64 // added after jumps
	last    int64
	lastDur int64
	any     bool
}

func newTimeline(tb, rate yuv.Rational, start int64, jumps bool) timeline {
	t := timeline{tb: tb, step: 1, jumps: jumps, origin: start}
	if rate.Num > 0 && rate.Den > 0 {
		s := float64(rate.Den) / float64(rate.Num) * float64(tb.Den) / float64(tb.Num)
		t.step = max(1, int64(min(s, 1<<40)+0.5))
	}
	return t
}

// position of a time without regard to jumps; before the first picture it is 0.
func (t *timeline) position(pts int64) int64 {
	if t.origin == av.NoPTS {
		return 0
	}
	return pts - t.origin
}

// next gives the position of the next picture; made tells that its time was not used.
func (t *timeline) next(pts, dur int64) (at int64, made bool) {
	step := t.step
	if t.lastDur > 0 {
		step = t.lastDur
	}
	t.lastDur = dur
	defer func() { t.last, t.any = at, true }()
	if pts == av.NoPTS {
		if !t.any {
			return 0, true
		}
		return t.last + step, true
	}
	if t.origin == av.NoPTS {
		t.origin = pts
		if t.any { // the first ones had no time
			t.origin -= t.last + step
		}
	}
	at = pts - t.origin + t.offset
	if !t.any {
		return at, false
	}
	second := int64(float64(t.tb.Den)/float64(t.tb.Num) + 0.5)
	switch {
	case at > t.last && !(t.jumps && at-t.last > 10*second):
		return at, false
	case at <= t.last && t.last-at < max(second/2, 1):
		return t.last + 1, true // a small disorder, over when the times have caught up
	}
	t.offset += t.last + step - at
	return t.last + step, true
}
