//go:build !noffmpeg

package pipeio

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/nvcodec/nvcodec/internal/av"
	"github.com/nvcodec/nvcodec/yuv"
)

// A fileSource is what a stageSource knows besides its pictures.
type fileSource struct {
	demux  *Demuxer
	format yuv.Format
	frames int64
}

func (s *fileSource) Format() yuv.Format  { return s.format }
func (s *fileSource) Frames() int64       { return s.frames }
func (s *fileSource) Conversions() []Note { return s.demux.Conversions() }

func (s *fileSource) Next(context.Context) (*yuv.Frame, error) {
	panic("pipeio: a stageSource reads its stage")
}
func (s *fileSource) Close() error { panic("pipeio: a stageSource closes its stage") }

// openFFmpeg joins demuxer, decoder and converter and reads the first picture, which settles the format.
func openFFmpeg(ctx context.Context, path string, o OpenOptions) (Source, error) {
	src, err := openAt(ctx, path, o, o.Seek > 0)
	if errors.Is(err, errOvershot) { // some containers cannot be sought well; decoding from the start always finds the place
		o.logger().Debug("seek overshot, decoding from the start", "file", path)
		src, err = openAt(ctx, path, o, false)
	}
	return src, err
}

func openAt(ctx context.Context, path string, o OpenOptions, sought bool) (Source, error) {
	demux, err := OpenDemuxer(ctx, path, DemuxOptions{Strict: o.Strict, Logger: o.Logger})
	if err != nil {
		return nil, err
	}
	if sought {
		if err := demux.Seek(ctx, o.Seek); err != nil {
			demux.Close()
			if ctx.Err() != nil {
				return nil, err
			}
			return nil, errOvershot
		}
	}
	packets := prefetchOrNot[*Packet](demux, o.PrefetchPackets)
	dec, err := NewPacketDecoder(packets, demux, DecodeOptions{Threads: o.Threads, Seek: o.Seek, Rate: o.InputFPS})
	if err != nil {
		packets.Close()
		return nil, err
	}
	pictures := prefetchOrNot[*Picture](dec, o.PrefetchPictures)
	conv := NewColorConverter(pictures, dec, ConvertOptions{Resolution: o.Resolution, Threads: o.Threads})
	return prime(ctx, demux, conv, o)
}

// prime reads the first picture.
func prime(ctx context.Context, demux *Demuxer, conv *ColorConverter, o OpenOptions) (Source, error) {
	first, err := conv.Next(ctx)
	if err != nil {
		conv.Close()
		if err == io.EOF {
			err = fmt.Errorf("%s: has no pictures", demux.path)
		}
		return nil, err
	}
	s := &fileSource{demux: demux, format: conv.Format()}
	if r := s.format.FrameRate; r.Num <= 0 || r.Num/r.Den > 1000 { // beyond that it is a time base, not a rate
		s.format.FrameRate = yuv.Rational{Num: 0, Den: 1}
		if o.InputFPS.Num > 0 {
			s.format.FrameRate = o.InputFPS
		}
	}
	s.frames = s.count(o.Seek)
	return &stageSource{Source: s, stage: conv, first: first}, nil
}

// count estimates the number of pictures.
func (s *fileSource) count(seek time.Duration) int64 {
	v := s.demux.Video()
	rate := s.format.FrameRate
	if v.Frames > 0 {
		if seek == 0 || rate.Num == 0 {
			return v.Frames
		}
		return max(1, v.Frames-framesBefore(seek, rate))
	}
	if d, ok := s.demux.in.Duration(); ok && rate.Num > 0 {
		return max(1, framesBefore(d, rate)-framesBefore(seek, rate))
	}
	return -1
}

func prefetchOrNot[T any](s Stage[T], depth int) Stage[T] {
	if depth > 0 {
		return PrefetchStage(s, depth)
	}
	return s
}

// adapt scales and deinterlaces uncompressed pictures with FFmpeg's filters.
func adapt(ctx context.Context, s *planarSource, o OpenOptions) (Source, error) {
	if o.Resolution != 0 {
		if w, h := scaledSize(s.format.W, s.format.H, o.Resolution); w == s.format.W && h == s.format.H {
			o.Resolution = 0
		}
	}
	if o.Resolution == 0 && !s.interl {
		return s, nil
	}
	notes := &notebook{file: s.name, strict: o.Strict}
	up := &uploader{src: s, notes: notes}
	c := &ColorConverter{c: converter{in: up, notes: notes, o: ConvertOptions{Resolution: o.Resolution, Threads: o.Threads},
		video: StreamInfo{TimeBase: s.format.TimeBase, FrameRate: s.format.FrameRate}}}
	first, err := c.Next(ctx)
	if err != nil {
		c.Close()
		if err == io.EOF {
			err = fmt.Errorf("%s: has no pictures", s.name)
		}
		return nil, err
	}
	return &stageSource{Source: &filteredSource{planarSource: s, format: c.Format(), notes: notes}, stage: c, first: first}, nil
}

// A filteredSource is a planarSource behind filters.
type filteredSource struct {
	*planarSource
	format yuv.Format
	notes  *notebook
}

func (s *filteredSource) Format() yuv.Format  { return s.format }
func (s *filteredSource) Conversions() []Note { return s.notes.all() }

// An uploader makes Pictures of a planarSource's frames.
type uploader struct {
	src   *planarSource
	notes *notebook // gets the source's notes
	frame []*Picture
}

func (u *uploader) Next(ctx context.Context) (*Picture, error) {
	f, err := u.src.Next(ctx)
	for _, n := range u.src.Conversions() {
		if e := u.notes.add(n); e != nil {
			return nil, e
		}
	}
	if err != nil {
		return nil, err
	}
	var p *Picture
	if n := len(u.frame); n > 0 {
		p, u.frame = u.frame[n-1], u.frame[:n-1]
	} else {
		p = &Picture{frame: av.NewFrame()}
	}
	if err := p.frame.Alloc(f.W, f.H, av.YUV420P); err != nil {
		u.Release(p)
		return nil, fileError(u.src.name, err)
	}
	p.frame.FillPlane(f.Y, f.StrideY, 0, f.W, f.H)
	p.frame.FillPlane(f.U, f.StrideC, 1, f.CW(), f.CH())
	p.frame.FillPlane(f.V, f.StrideC, 2, f.CW(), f.CH())
	s := u.src
	p.W, p.H, p.PixelFormat, p.PTS, p.Duration, p.SAR, p.Colour = f.W, f.H, "yuv420p", f.PTS, f.Duration, s.format.SAR, s.format.Colour
	p.Interlaced, p.TopFirst = s.interl, s.topFst
	p.frame.SetInterlaced(p.Interlaced, p.TopFirst)
	return p, nil
}

func (u *uploader) Release(p *Picture) {
	p.frame.Unref()
	u.frame = append(u.frame, p)
}

func (u *uploader) Close() error {
	for _, p := range u.frame {
		p.frame.Free()
	}
	u.frame = nil
	return u.src.Close()
}
