//go:build cuda

package cuda

import (
	"errors"
	"fmt"
	"sync"
	"unsafe"

	"github.com/nvcodec/nvcodec/inference/cuda/emu"
)

// An emulatedDevice is the memory that the machines of one backend share.
type emulatedDevice struct {
	mu     sync.Mutex
	memory map[pointer][]byte
	fails  int // the allocation that fails, device's and host's counted together from 1; 0 none
}

func (d *emulatedDevice) refuse() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fails > 0 {
		if d.fails--; d.fails == 0 {
			return errors.New("out of memory")
		}
	}
	return nil
}

func newEmulatedDevice() *emulatedDevice { return &emulatedDevice{memory: map[pointer][]byte{}} }

// emulated is a machine in software. What it is given waits until sync, so that host memory that changes too early
// shows, and every other launch runs its blocks and threads backwards.
type emulated struct {
	*emulatedDevice
	sm        int
	pinned    map[*byte]bool
	queue     []func() error
	recording *[]func() error
	flip      bool
	closed    bool
}

func newEmulated(d *emulatedDevice, sm int) *emulated {
	return &emulated{emulatedDevice: d, sm: sm, pinned: map[*byte]bool{}}
}

func (e *emulated) family() int     { return e.sm }
func (e *emulated) processors() int { return 1 } // blocks of threads have more than one block of channels

func (e *emulated) alloc(n int64) (pointer, error) {
	if err := e.refuse(); err != nil {
		return 0, err
	}
	b, err := emu.Alloc(int(n))
	if err != nil {
		return 0, err
	}
	for i := range b {
		b[i] = 0xa5 // what was there before must not matter
	}
	p := pointer(uintptr(unsafe.Pointer(unsafe.SliceData(b))))
	e.mu.Lock()
	defer e.mu.Unlock()
	e.memory[p] = b
	return p, nil
}

func (e *emulated) free(p pointer) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	b, ok := e.memory[p]
	if !ok {
		return fmt.Errorf("free of %#x, which is not allocated", p)
	}
	delete(e.memory, p)
	return emu.Free(b)
}

func (e *emulated) host(n int64) ([]byte, error) {
	if err := e.refuse(); err != nil {
		return nil, err
	}
	b := make([]byte, n+8)[:n:n]
	for i := range b {
		b[i] = 0x5a
	}
	e.pinned[unsafe.SliceData(b)] = true
	return b, nil
}

func (e *emulated) freeHost(b []byte) error {
	if !e.pinned[unsafe.SliceData(b)] {
		return fmt.Errorf("free of host memory that is not page-locked")
	}
	delete(e.pinned, unsafe.SliceData(b))
	return nil
}

func (e *emulated) available() (int64, error) { return 1 << 40, nil }

// at returns n bytes of device memory, all within one allocation.
func (e *emulated) at(p pointer, n int) ([]byte, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for base, b := range e.memory {
		if p >= base && p+pointer(n) <= base+pointer(len(b)) {
			return b[p-base:][:n], nil
		}
	}
	return nil, fmt.Errorf("copy of %d bytes at %#x leaves its memory", n, p)
}

func (e *emulated) do(f func() error) error {
	if e.recording != nil {
		*e.recording = append(*e.recording, f)
	} else {
		e.queue = append(e.queue, f)
	}
	return nil
}

func (e *emulated) upload(dst pointer, src []byte) error {
	return e.do(func() error {
		d, err := e.at(dst, len(src))
		copy(d, src)
		return err
	})
}

func (e *emulated) download(dst []byte, src pointer) error {
	return e.do(func() error {
		s, err := e.at(src, len(dst))
		copy(dst, s)
		return err
	})
}

type emulatedLaunch struct {
	e *emulated
	c call
}

func (l *emulatedLaunch) run() error {
	return l.e.do(func() error {
		l.e.flip = !l.e.flip
		return emu.Launch(l.e.sm, l.c.kernel, l.c.grid, l.c.block(), l.c.shared, l.c.args, l.e.flip)
	})
}

func (e *emulated) prepare(c call) (launch, error) { return &emulatedLaunch{e, c}, nil }

type emulatedGraph struct {
	e   *emulated
	all []func() error
}

func (g *emulatedGraph) run() error {
	g.e.queue = append(g.e.queue, g.all...)
	return nil
}
func (g *emulatedGraph) close() error { return nil }

func (e *emulated) capture(f func() error) (captured, error) {
	g := &emulatedGraph{e: e}
	e.recording = &g.all
	err := f()
	e.recording = nil
	return g, err
}

func (e *emulated) sync() error {
	queue := e.queue
	e.queue = nil
	for _, f := range queue {
		if err := f(); err != nil {
			return err
		}
	}
	return nil
}

func (e *emulated) close() error {
	if e.closed {
		return fmt.Errorf("closed twice")
	}
	e.closed = true
	if n := len(e.pinned); n > 0 {
		return fmt.Errorf("%d blocks of page-locked memory are left", n)
	}
	return nil
}
