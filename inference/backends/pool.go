package backends

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/nvcodec/nvcodec/inference"
)

// headroom is device memory that estimates leave alone: what a driver takes for streams and captured graphs.
const headroom = 64 << 20

// A MemoryError is a job that a device is too small for, with nothing else of ours on it or nothing that ends.
type MemoryError struct {
	Job        string
	W, H       int
	Device     string
	Need, Free int64
}

func (e *MemoryError) Error() string {
	return fmt.Sprintf("%s: %dx%d needs %d MiB of memory on %s, %d MiB are free; --device cpu codes it on the processor",
		e.Job, e.W, e.H, mib(e.Need), e.Device, mib(e.Free))
}

func mib(bytes int64) int64 { return (bytes + 1<<20 - 1) >> 20 }

// A Pool is the devices that a user chose, shared out between jobs.
type Pool struct {
	kernels string
	first   bool              // jobs go to the first device that they fit on, and not to all in turn
	cpu     inference.Backend // behind the devices; nil when the CPU was not chosen
	why     []string          // kinds and devices that are left out, with reasons

	mu      sync.Mutex
	devices []*device
	next    int           // whose turn it is
	changed chan struct{} // closed and replaced when a job gives memory back
}

type device struct {
	id      string
	kind    *Kind
	ordinal int

	backend Backend
	failed  error
	jobs    int
	free    int64 // before the first of the jobs that run
	taken   int64
	models  map[*inference.Model]int
}

// Devices returns how many devices take jobs at the same time.
func (p *Pool) Devices() int {
	if p.first {
		return 1
	}
	return max(1, len(p.devices))
}

// A Placement is a job's place on a device until Release.
type Placement struct {
	Backend inference.Backend
	Device  string // "cpu", "cuda:0"
	Need    Memory // nothing on the CPU
	Free    int64  // bytes of device memory before the job
	Reason  string // why the CPU, when the choice was automatic

	release func()
}

// Release gives back the place; the job's coder must have been closed.
func (p *Placement) Release() {
	if p.release != nil {
		p.release()
		p.release = nil
	}
}

// Place finds a device for a job and opens it if it is the first one there. A job that fits on none of the devices
// just now waits until others end.
func (p *Pool) Place(ctx context.Context, j *Job) (*Placement, error) {
	for {
		p.mu.Lock()
		place, err := p.try(j)
		changed := p.changed
		p.mu.Unlock()
		if place != nil || err != nil {
			return place, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// try returns neither a placement nor an error when the job has to wait.
func (p *Pool) try(j *Job) (*Placement, error) {
	var best *device
	var need Memory
	var first error
	wait := false
	why := p.why
	for i := range p.devices {
		d := p.devices[(p.next+i)%len(p.devices)]
		if p.first {
			d = p.devices[i]
		}
		m, fits, err := d.fits(j, p.kernels)
		switch {
		case err != nil:
			if first == nil {
				first = err
			}
			why = append(why[:len(why):len(why)], err.Error())
		case !fits:
			wait = true
		case best == nil || d.jobs < best.jobs:
			best, need = d, m
		}
		if p.first && (best != nil || wait) {
			break
		}
	}
	switch {
	case best != nil:
		return p.take(best, j, need), nil
	case wait:
		return nil, nil
	case p.cpu != nil:
		return &Placement{Backend: p.cpu, Device: "cpu", Reason: strings.Join(why, "; ")}, nil
	}
	return nil, first
}

func (p *Pool) take(d *device, j *Job, need Memory) *Placement {
	place := &Placement{Backend: d.backend, Device: d.id, Need: need, Free: d.free - d.taken}
	d.jobs++
	d.taken += need.Job
	if d.models[j.Model]++; d.models[j.Model] == 1 {
		d.taken += need.Shared
	}
	for i := range p.devices {
		if p.devices[i] == d {
			p.next = i + 1
		}
	}
	place.release = func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		d.jobs--
		d.taken -= need.Job
		if d.models[j.Model]--; d.models[j.Model] == 0 {
			d.taken -= need.Shared
		}
		close(p.changed)
		p.changed = make(chan struct{})
	}
	return place
}

// fits opens the device at its first job. An error says that the job will not fit here later either.
func (d *device) fits(j *Job, kernels string) (Memory, bool, error) {
	if d.backend == nil && d.failed == nil {
		if d.backend, d.failed = d.kind.Open(d.ordinal, kernels); d.failed != nil {
			d.backend = nil
		}
		d.models = map[*inference.Model]int{}
	}
	if d.failed != nil {
		return Memory{}, false, &UnavailableError{d.id, d.failed}
	}
	m, err := d.kind.Memory(j)
	if err != nil {
		return m, false, fmt.Errorf("%s: %w", j.Name, err)
	}
	if d.jobs == 0 {
		if d.free, err = d.backend.Free(); err != nil {
			return m, false, &UnavailableError{d.id, err}
		}
	}
	need := m.Job + headroom
	if d.models[j.Model] == 0 {
		need += m.Shared
	}
	if need <= d.free-d.taken {
		return m, true, nil
	}
	if d.jobs == 0 || j.NoWait {
		return m, false, &MemoryError{j.Name, j.W, j.H, d.id, need, d.free - d.taken}
	}
	return m, false, nil
}

// Close closes the devices that were opened. No placement may be left.
func (p *Pool) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var first error
	for _, d := range p.devices {
		if d.backend != nil {
			if err := d.backend.Close(); first == nil {
				first = err
			}
			d.backend = nil
		}
	}
	return first
}
