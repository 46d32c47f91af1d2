package pipeio

import (
	"context"
	"io"
	"sync"

	"github.com/nvcodec/nvcodec/yuv"
)

// A Stage is one step of a pipeline: it takes from the step before it and gives items in order.
//
// An item belongs to whoever got it from Next until that hands it to Release, which may be called from another
// goroutine than Next and in any order; an item that is never released costs memory until Close. Next returns io.EOF
// after the last item; any error is final. Close closes the stages before it too, after which no item may be used.
type Stage[T any] interface {
	Next(ctx context.Context) (T, error)
	Release(T)
	Close() error
}

// PrefetchStage runs s in a goroutine of its own, at most depth items ahead of its user. Items, their order and the
// error that ends them are those of s. When the ctx of a Next ends, s is stopped too, and the stage is done.
func PrefetchStage[T any](s Stage[T], depth int) Stage[T] {
	ctx, cancel := context.WithCancel(context.Background())
	p := &prefetch[T]{stage: s, cancel: cancel, queue: make(chan T, max(depth, 1)), stopped: make(chan struct{})}
	go p.run(ctx)
	return p
}

type prefetch[T any] struct {
	stage   Stage[T]
	cancel  context.CancelFunc
	queue   chan T
	stopped chan struct{} // closed when run has returned and the stage is the user's again
	err     error         // why run returned; read after queue is closed
	final   error         // what every later Next returns
	once    sync.Once
}

func (p *prefetch[T]) run(ctx context.Context) {
	defer close(p.stopped)
	defer close(p.queue)
	for {
		item, err := p.stage.Next(ctx)
		if err != nil {
			p.err = err
			return
		}
		select {
		case p.queue <- item:
		case <-ctx.Done():
			p.stage.Release(item)
			p.err = ctx.Err()
			return
		}
	}
}

func (p *prefetch[T]) Next(ctx context.Context) (item T, err error) {
	if p.final != nil {
		return item, p.final
	}
	if p.final = ctx.Err(); p.final == nil {
		select {
		case item, ok := <-p.queue:
			if ok {
				return item, nil
			}
			p.final = p.err
		case <-ctx.Done():
			p.final = ctx.Err()
		}
	}
	p.cancel()
	return item, p.final
}

func (p *prefetch[T]) Release(item T) { p.stage.Release(item) }

func (p *prefetch[T]) Close() error {
	var err error
	p.once.Do(func() {
		p.final = errClosed
		p.cancel()
		for item := range p.queue {
			p.stage.Release(item)
		}
		<-p.stopped
		err = p.stage.Close()
	})
	return err
}

// Prefetch reads src in a goroutine of its own, at most depth pictures ahead.
func Prefetch(src Source, depth int) Source {
	if s, ok := src.(*stageSource); ok && s.held == nil {
		s.stage = PrefetchStage(s.stage, depth)
		return s
	}
	copies := &copyStage{src: src, notes: src.Conversions()}
	return &stageSource{Source: copies, stage: PrefetchStage(copies, depth)}
}

// A stageSource is a Source around a Stage of frames: the frame it gave goes back on the following call.
type stageSource struct {
	Source // everything but Next and Close
	stage  Stage[*yuv.Frame]
	first  *yuv.Frame // read already, to know the format
	held   *yuv.Frame
}

func (s *stageSource) Next(ctx context.Context) (*yuv.Frame, error) {
	s.release()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	f, err := s.first, error(nil)
	if s.first = nil; f == nil {
		f, err = s.stage.Next(ctx)
	}
	s.held = f
	return f, err
}

func (s *stageSource) release() {
	if s.held != nil {
		s.stage.Release(s.held)
		s.held = nil
	}
}

func (s *stageSource) Close() error {
	s.release()
	if s.first != nil {
		s.stage.Release(s.first)
		s.first = nil
	}
	return s.stage.Close()
}

// A copyStage gives copies of a Source's frames, so that several can wait in a queue. Notes are copied with them, since
// the source may be at work while its user asks.
type copyStage struct {
	src   Source
	mu    sync.Mutex
	free  []*yuv.Frame
	notes []Note
}

func (c *copyStage) Format() yuv.Format { return c.src.Format() }
func (c *copyStage) Frames() int64      { return c.src.Frames() }
func (c *copyStage) Conversions() []Note {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]Note(nil), c.notes...)
}

func (c *copyStage) Next(ctx context.Context) (*yuv.Frame, error) {
	f, err := c.src.Next(ctx)
	notes := c.src.Conversions()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.notes = notes
	if err != nil {
		return nil, err
	}
	var to *yuv.Frame
	if n := len(c.free); n > 0 {
		to, c.free = c.free[n-1], c.free[:n-1]
	} else {
		to = &yuv.Frame{Planes: *yuv.New(f.W, f.H)}
	}
	copyFrame(to, f)
	return to, nil
}

func (c *copyStage) Release(f *yuv.Frame) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.free = append(c.free, f)
}

func (c *copyStage) Close() error { return c.src.Close() }

// copyFrame copies between frames of one size.
func copyFrame(dst, src *yuv.Frame) {
	dst.PTS, dst.Duration = src.PTS, src.Duration
	copyRows(dst.Y, dst.StrideY, src.Y, src.StrideY, src.W, src.H)
	copyRows(dst.U, dst.StrideC, src.U, src.StrideC, src.CW(), src.CH())
	copyRows(dst.V, dst.StrideC, src.V, src.StrideC, src.CW(), src.CH())
}

func copyRows(dst []byte, ds int, src []byte, ss, w, h int) {
	if ds == ss {
		copy(dst, src[:ss*(h-1)+w])
		return
	}
	for y := range h {
		copy(dst[y*ds:][:w], src[y*ss:][:w])
	}
}

var _ io.Closer = (*prefetch[int])(nil)
