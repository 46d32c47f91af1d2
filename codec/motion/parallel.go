package motion

import (
	"sync"
	"sync/atomic"
)

// each calls f for 0..n-1 on threads goroutines, each with its own number.
func each(threads, n int, f func(i, thread int)) {
	if threads = min(threads, n); threads <= 1 {
		for i := range n {
			f(i, 0)
		}
		return
	}
	var next atomic.Int32
	var wg sync.WaitGroup
	for t := range threads {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				f(i, t)
			}
		}()
	}
	wg.Wait()
}

// bands shares rows 0..n evenly among the threads.
func bands(threads, n int, f func(lo, hi, thread int)) {
	size := (n + threads - 1) / threads
	each(threads, (n+size-1)/size, func(i, thread int) { f(size*i, min(size*i+size, n), thread) })
}

// A wavefront visits a grid so that a block comes after the one to its left and after those of the row above up to
// ahead columns further right. Rows tell the next one of their progress in groups of columns.
type wavefront struct {
	rows, columns int
	progress      []chan struct{} // of each row but the last; empty between runs
}

const (
	ahead = 2
	group = 4
)

func newWavefront(rows, columns int) *wavefront {
	w := &wavefront{rows: rows, columns: columns}
	for range rows - 1 {
		w.progress = append(w.progress, make(chan struct{}, columns/group+1))
	}
	return w
}

func (w *wavefront) run(threads int, f func(i, j int)) {
	if threads <= 1 {
		for i := range w.rows {
			for j := range w.columns {
				f(i, j)
			}
		}
		return
	}
	each(threads, w.rows, func(i, _ int) { // rows are taken in order, so the one waited for is on its way
		above := 0 // columns of the row above that are known to be done
		for j := range w.columns {
			for i > 0 && above < min(j+ahead+1, w.columns) {
				<-w.progress[i-1]
				above = min(above+group, w.columns)
			}
			f(i, j)
			if i < w.rows-1 && ((j+1)%group == 0 || j+1 == w.columns) {
				w.progress[i] <- struct{}{}
			}
		}
	})
}
