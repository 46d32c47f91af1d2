//go:build cuda

package cuda

// #include <cuda.h>
import "C"

import (
	"fmt"
	"unsafe"

	"gorgonia.org/cu"

	"github.com/nvcodec/nvcodec/inference"
)

// A Stream is a queue of work on one device: what it is given is done in order. Close it behind the sessions that use
// it.
type Stream struct {
	m machine
}

// NewStream makes a stream.
func (b *backend) NewStream() (*Stream, error) {
	m, err := b.open()
	if err != nil {
		return nil, err
	}
	return &Stream{m}, nil
}

// Sync waits until all is done that the stream has been given.
func (s *Stream) Sync() error {
	if err := s.m.sync(); err != nil {
		return fmt.Errorf("cuda: %w", err)
	}
	return nil
}

// Close waits for the stream and gives it back.
func (s *Stream) Close() error {
	err := s.m.sync()
	if e := s.m.close(); err == nil {
		err = e
	}
	if err != nil {
		return fmt.Errorf("cuda: close: %w", err)
	}
	return nil
}

// Handle is the driver's own name of the stream, a CUstream, for other libraries of the process to queue work on.
func (s *Stream) Handle() unsafe.Pointer {
	if g, ok := s.m.(*gpu); ok {
		return unsafe.Pointer(g.stream.C())
	}
	return nil
}

// OpenOn is Open with all the session's work on a stream of the caller's, in order with what else the caller gives it.
func (b *backend) OpenOn(on *Stream, m *inference.Model, size inference.Size, threads int, encode bool) (inference.Session, error) {
	return b.openOn(borrowed{on.m}, m, size, encode)
}

// A borrowed machine stays open.
type borrowed struct{ machine }

func (borrowed) close() error { return nil }

func (b *Backend) stream() (machine, error) { return b.streamAt(whenever) }

func (b *Backend) streamAt(u urgency) (machine, error) {
	g := &gpu{b: b, urgency: u}
	err := b.current(func() (err error) {
		least, greatest, err := cu.StreamPriorityRange() // the greatest is the lowest number
		if err != nil {
			return called("cuCtxGetStreamPriorityRange", err)
		}
		g.stream, err = cu.MakeStreamWithPriority(least+(greatest-least)*int(u)/int(atOnce), cu.NonBlocking)
		return called("cuStreamCreateWithPriority", err)
	})
	if err != nil {
		return nil, fmt.Errorf("cuda: %w", err)
	}
	live.streams.Add(1)
	return g, nil
}

func (g *gpu) beside() (machine, error) { return g.b.streamAt(g.urgency) }

// c is the stream as this package's own calls want it: cgo gives every package types of its own.
func (g *gpu) c() C.CUstream { return C.CUstream(unsafe.Pointer(g.stream.C())) }

func (g *gpu) sync() error {
	return g.b.current(func() error { return called("cuStreamSynchronize", g.stream.Synchronize()) })
}

func (g *gpu) close() error {
	live.streams.Add(-1)
	return g.b.current(func() error { return called("cuStreamDestroy", g.stream.Destroy()) })
}

type gpuEvent struct {
	b *Backend
	e cu.Event
}

func (g *gpu) event() (event, error) {
	e := &gpuEvent{b: g.b}
	err := g.b.current(func() (err error) {
		// A host that waits sleeps: its processor has other frames to work on.
		e.e, err = cu.MakeEvent(cu.DisableTiming | cu.BlockingSyncEvent)
		return called("cuEventCreate", err)
	})
	if err != nil {
		return nil, err
	}
	live.events.Add(1)
	return e, nil
}

func (g *gpu) record(e event) error {
	return g.b.current(func() error { return called("cuEventRecord", e.(*gpuEvent).e.Record(g.stream)) })
}

func (g *gpu) wait(e event) error {
	return g.b.current(func() error { return called("cuStreamWaitEvent", g.stream.Wait(e.(*gpuEvent).e, 0)) })
}

func (e *gpuEvent) sync() error {
	return e.b.current(func() error { return called("cuEventSynchronize", e.e.Synchronize()) })
}

func (e *gpuEvent) close() error {
	live.events.Add(-1)
	return e.b.current(func() error { return called("cuEventDestroy", cu.DestroyEvent(&e.e)) })
}
