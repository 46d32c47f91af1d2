package codec

import (
	"errors"

	"github.com/nvcodec/nvcodec/yuv"
)

// announced is a frame whose preparation has begun.
type announced struct {
	pts      int64
	done     chan struct{}
	prepared prepared // once done is closed
}

func (a *announced) wait() { <-a.done }

// Ahead announces a frame before its Write, and begins its motion search: called with frame n+1 before Write of frame
// n, the search runs while the network works on frame n. Frames are announced in order, every one of them from some
// frame on, at most one ahead of the frame that Write comes to. The picture is copied. The stream is the same with it
// and without.
func (e *Encoder) Ahead(f *yuv.Frame) error {
	if err := e.ready(f); err != nil {
		return err
	}
	if len(e.announced) == 2 {
		return errors.New("codec: two frames are announced already")
	}
	for _, a := range e.announced {
		a.wait() // its search reads the picture that f's replaces
	}
	e.front.take(&f.Planes)
	a := &announced{pts: f.PTS, done: make(chan struct{})}
	e.announced = append(e.announced, a)
	go func() {
		defer close(a.done)
		a.prepared = e.front.prepare()
	}()
	return nil
}
