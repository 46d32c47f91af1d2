//go:build cuda

package cuda

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
	"unsafe"

	"github.com/nvcodec/nvcodec/inference/cuda/emu"
)

// An order says in which order an emulated device does what several streams hold. A real one may choose any.
type order int

const (
	late   order = iota // only what the host waits for, in the end: work that nobody waits for does not happen
	early               // all else that can be done before what the host waits for, the streams made last first
	eager               // likewise, the streams made first first
	random              // now this, now that
)

// An emulatedDevice is what the machines of one backend share.
type emulatedDevice struct {
	mu     sync.Mutex
	memory map[pointer][]byte
	pinned map[*byte]bool
	fails  int // the allocation that fails, device's and host's counted together from 1; 0 none

	sched sync.Mutex // of all lanes
	lanes []*lane    // of the machines that are open
	order order
	pause time.Duration // of a host before it waits for an event: others give their streams more meanwhile
	rng   *rand.Rand
	flip  bool
}

func newEmulatedDevice() *emulatedDevice {
	return &emulatedDevice{memory: map[pointer][]byte{}, pinned: map[*byte]bool{}, rng: rand.New(rand.NewPCG(1, 2))}
}

// bytes is how much of its memory is taken.
func (d *emulatedDevice) bytes() (n int64) {
	for _, b := range d.memory {
		n += int64(len(b))
	}
	return n
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

// A lane is a queue of tasks, done one after the other: a stream's, or a branch of a captured graph's.
type lane struct {
	tasks       []task // not done yet
	given, done int    // tasks so far
	blocked     bool   // does nothing
}

// A task does something or waits for a lane to get so far.
type task struct {
	run  func() error
	wait point
}

// A point is a lane after so many tasks.
type point struct {
	l *lane
	n int
}

func (p point) passed() bool { return p.l == nil || p.l.done >= p.n }

func (l *lane) give(t task) {
	l.tasks = append(l.tasks, t)
	l.given++
}

// ready tells whether the lane can do its next task.
func (l *lane) ready() bool {
	return !l.blocked && len(l.tasks) > 0 && l.tasks[0].wait.passed()
}

func (l *lane) step() error {
	t := l.tasks[0]
	l.tasks = l.tasks[1:]
	l.done++
	if t.run == nil {
		return nil
	}
	return t.run()
}

// until does tasks of the lanes until p has passed.
func (d *emulatedDevice) until(all []*lane, p point) error {
	for !p.passed() {
		l := d.choose(all, p.l)
		if l == nil {
			if !slices.ContainsFunc(all, func(l *lane) bool { return l.blocked }) {
				return errors.New("streams wait for each other")
			}
			d.sched.Unlock() // for who unblocks it
			time.Sleep(200 * time.Microsecond)
			d.sched.Lock()
			continue
		}
		if err := l.step(); err != nil {
			return err
		}
	}
	return nil
}

func (d *emulatedDevice) choose(all []*lane, want *lane) *lane {
	var ready []*lane
	for _, l := range all {
		if l.ready() && l != want {
			ready = append(ready, l)
		}
	}
	switch {
	case d.order == late:
		for range all {
			if want.ready() || want.blocked || len(want.tasks) == 0 {
				break
			}
			want = want.tasks[0].wait.l
		}
	case d.order == early && len(ready) > 0:
		return ready[len(ready)-1]
	case d.order == eager && len(ready) > 0:
		return ready[0]
	case d.order == random:
		if want.ready() {
			ready = append(ready, want)
		}
		if len(ready) > 0 {
			return ready[d.rng.IntN(len(ready))]
		}
	}
	if want.ready() {
		return want
	}
	return nil
}

// emulated is a machine in software: a stream of its device. What it is given waits until the host does, so that host
// memory that changes too early shows, and every other launch runs its blocks and threads backwards.
type emulated struct {
	*emulatedDevice
	sm     int
	own    *lane
	into   *lane      // own, or while it is being captured a branch of the graph
	rec    *recording // the capture
	closed bool
}

func newEmulated(d *emulatedDevice, sm int) *emulated {
	e := &emulated{emulatedDevice: d, sm: sm, own: &lane{}}
	e.into = e.own
	d.sched.Lock()
	defer d.sched.Unlock()
	d.lanes = append(d.lanes, e.own)
	return e
}

func (e *emulated) family() int     { return e.sm }
func (e *emulated) processors() int { return 1 } // blocks of threads have more than one block of channels
func (e *emulated) shared() int     { return 99 << 10 }

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
	e.mu.Lock()
	defer e.mu.Unlock()
	e.pinned[unsafe.SliceData(b)] = true
	return b, nil
}

func (e *emulated) freeHost(b []byte) error {
	e.mu.Lock()
	defer e.mu.Unlock()
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
	return nil, fmt.Errorf("%d bytes at %#x leave their memory", n, p)
}

func (e *emulated) do(f func() error) error {
	e.sched.Lock()
	defer e.sched.Unlock()
	e.into.give(task{run: f})
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

func (e *emulated) fill(dst pointer, value byte, n int64) error {
	return e.do(func() error {
		d, err := e.at(dst, int(n))
		for i := range d {
			d[i] = value
		}
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

// An emulatedEvent knows the point that it was recorded at last.
type emulatedEvent struct {
	d   *emulatedDevice
	at  point
	rec *recording
}

func (e *emulated) beside() (machine, error) { return newEmulated(e.emulatedDevice, e.sm), nil }

func (e *emulated) event() (event, error) { return &emulatedEvent{d: e.emulatedDevice}, nil }

func (e *emulated) record(x event) error {
	e.sched.Lock()
	defer e.sched.Unlock()
	v := x.(*emulatedEvent)
	v.at, v.rec = point{e.into, e.into.given}, e.rec
	return nil
}

func (e *emulated) wait(x event) error {
	e.sched.Lock()
	defer e.sched.Unlock()
	v := x.(*emulatedEvent)
	if v.rec != e.rec {
		switch {
		case v.rec == nil:
			return errors.New("a captured stream waits for an event from outside the capture")
		case v.rec.ended || e.rec != nil:
			return errors.New("wait for an event of another capture")
		}
		e.rec, e.into = v.rec, v.rec.branch()
		e.rec.joined = append(e.rec.joined, e)
	}
	e.into.give(task{wait: v.at})
	return nil
}

func (v *emulatedEvent) sync() error {
	time.Sleep(v.d.pause)
	v.d.sched.Lock()
	defer v.d.sched.Unlock()
	if v.rec != nil {
		return errors.New("the host waits for an event of a capture")
	}
	return v.d.until(v.d.lanes, v.at)
}

func (v *emulatedEvent) close() error { return nil }

// A recording is a captured graph: a lane of tasks for each stream that took part.
type recording struct {
	e      *emulated
	lanes  []*lane
	all    [][]task
	joined []*emulated
	ended  bool
}

func (r *recording) branch() *lane {
	r.lanes = append(r.lanes, &lane{})
	return r.lanes[len(r.lanes)-1]
}

func (e *emulated) capture(f func() error) (captured, error) {
	r := &recording{e: e}
	e.rec, e.into, r.joined = r, r.branch(), []*emulated{e}
	err := f()
	r.ended = true
	for _, s := range r.joined {
		s.rec, s.into = nil, s.own
	}
	for _, l := range r.lanes {
		r.all = append(r.all, l.tasks)
		l.tasks = nil
	}
	if err == nil {
		err = r.check()
	}
	return r, err
}

// check wants every branch to end in something that the first one waits for.
func (r *recording) check() error {
	reached := map[*lane]int{r.lanes[0]: r.lanes[0].given}
	for range r.lanes {
		for i, l := range r.lanes {
			for _, t := range r.all[i][:reached[l]] {
				if t.wait.l != nil {
					reached[t.wait.l] = max(reached[t.wait.l], t.wait.n)
				}
			}
		}
	}
	for _, l := range r.lanes {
		if reached[l] < l.given {
			return errors.New("a branch of the captured graph is not joined")
		}
	}
	return nil
}

func (r *recording) run() error {
	return r.e.do(func() error {
		for i, l := range r.lanes {
			l.tasks, l.done = r.all[i], 0
		}
		for _, l := range r.lanes {
			if err := r.e.until(r.lanes, point{l, l.given}); err != nil {
				return err
			}
		}
		return nil
	})
}

func (r *recording) close() error { return nil }

func (e *emulated) sync() error {
	e.sched.Lock()
	defer e.sched.Unlock()
	return e.until(e.lanes, point{e.own, e.own.given})
}

func (e *emulated) close() error {
	if e.closed {
		return fmt.Errorf("closed twice")
	}
	e.closed = true
	e.sched.Lock()
	defer e.sched.Unlock()
	e.lanes = slices.DeleteFunc(e.lanes, func(l *lane) bool { return l == e.own })
	return nil
}
