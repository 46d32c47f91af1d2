package inference

import (
	"sync"
	"sync/atomic"
)

// A tile is the part of a step that one thread works on: positions or rows [lo,hi), and the thread's own scratch for
// the values that a fused group never writes to the arena.
type tile struct {
	lo, hi  int
	scratch []int16
}

// A step is a piece of work over units positions or rows, shared among threads in pieces of grain.
type step struct {
	units, grain int
	ops          []func(*tile) // run in this order on every piece
}

// A pool is a fixed set of threads that run one step after another. The caller is the first of them.
type pool struct {
	tiles []tile
	start []chan struct{}
	done  sync.WaitGroup
	job   *step
	next  atomic.Int64
}

func newPool(threads, scratch int) *pool {
	p := &pool{tiles: make([]tile, threads), start: make([]chan struct{}, threads)}
	for i := range p.tiles {
		p.tiles[i].scratch = make([]int16, scratch)
		if i == 0 {
			continue
		}
		p.start[i] = make(chan struct{}, 1)
		go func() {
			for range p.start[i] {
				p.work(&p.tiles[i])
				p.done.Done()
			}
		}()
	}
	return p
}

// run returns when the whole step is done.
func (p *pool) run(s *step) {
	p.job = s
	p.next.Store(0)
	helpers := min(len(p.tiles), (s.units+s.grain-1)/s.grain) - 1
	p.done.Add(max(helpers, 0))
	for i := 1; i <= helpers; i++ {
		p.start[i] <- struct{}{}
	}
	p.work(&p.tiles[0])
	p.done.Wait()
}

func (p *pool) work(t *tile) {
	s := p.job
	for {
		t.lo = int(p.next.Add(int64(s.grain))) - s.grain
		if t.lo >= s.units {
			return
		}
		t.hi = min(t.lo+s.grain, s.units)
		for _, op := range s.ops {
			op(t)
		}
	}
}

func (p *pool) close() {
	for _, c := range p.start[1:] {
		close(c)
	}
}
