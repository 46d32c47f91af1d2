package batch

import (
	"context"
	"errors"
	"sync"
)

// ErrSkipped is what a job's function returns when the output is already there and as wanted.
var ErrSkipped = errors.New("already done")

// A Failure is a job that ended with an error.
type Failure struct {
	Job
	Err error
}

// A Summary counts how the jobs ended. Jobs that a cancelled context kept from starting are in none of the counts.
type Summary struct {
	Done, Skipped int
	Failed        []Failure
}

// Run calls do for every job, workers at a time in the order of the list; do gets its worker's share of threads.
// A failed job stops nothing else. Run returns the context's error when it was cancelled.
func Run(ctx context.Context, jobs []Job, workers, threads int, do func(ctx context.Context, j Job, threads int) error) (Summary, error) {
	workers = max(1, min(workers, len(jobs)))
	queue := make(chan int)
	errs := make([]error, len(jobs))
	started := make([]bool, len(jobs))
	var wg sync.WaitGroup
	for w := range workers {
		share := threads/workers + b2i(w < threads%workers)
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := range queue {
				errs[i] = do(ctx, jobs[i], max(1, share))
			}
		}()
	}
feed:
	for i := range jobs {
		if ctx.Err() != nil {
			break
		}
		select {
		case queue <- i:
			started[i] = true
		case <-ctx.Done():
			break feed
		}
	}
	close(queue)
	wg.Wait()
	var s Summary
	for i, err := range errs {
		switch {
		case !started[i]:
		case err == nil:
			s.Done++
		case errors.Is(err, ErrSkipped):
			s.Skipped++
		default:
			s.Failed = append(s.Failed, Failure{jobs[i], err})
		}
	}
	return s, ctx.Err()
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}
