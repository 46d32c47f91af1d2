package pipeio

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nvcodec/nvcodec/yuv"
)

// A counter gives 0..n-1 and then err, and counts what is out.
type counter struct {
	n, next int
	err     error
	delay   time.Duration
	block   bool // after n items wait for the context
	out     atomic.Int64
	closed  atomic.Int64
	running atomic.Bool
	mu      sync.Mutex
	most    int64
}

func (c *counter) Next(ctx context.Context) (int, error) {
	if !c.running.CompareAndSwap(false, true) {
		panic("two Nexts at once")
	}
	defer c.running.Store(false)
	if c.next == c.n {
		if c.block {
			<-ctx.Done()
			return 0, ctx.Err()
		}
		return 0, c.err
	}
	time.Sleep(c.delay)
	c.next++
	c.mu.Lock()
	c.most = max(c.most, c.out.Add(1))
	c.mu.Unlock()
	return c.next - 1, nil
}
func (c *counter) Release(int)  { c.out.Add(-1) }
func (c *counter) Close() error { c.closed.Add(1); return nil }

func TestPrefetchStage(t *testing.T) {
	ctx := context.Background()
	goroutines := runtime.NumGoroutine()
	broken := errors.New("broken")
	for _, depth := range []int{0, 1, 2, 7, 200} {
		for _, end := range []error{io.EOF, broken} {
			c := &counter{n: 100, err: end}
			var s Stage[int] = PrefetchStage(c, depth)
			if depth == 7 {
				s = PrefetchStage(s, 3) // of each other
			}
			for i := range c.n {
				got, err := s.Next(ctx)
				if err != nil || got != i {
					t.Fatalf("depth %d: item %d is %d, %v", depth, i, got, err)
				}
				s.Release(got)
			}
			for range 3 {
				if _, err := s.Next(ctx); err != end {
					t.Fatalf("depth %d: got %v, want %v", depth, err, end)
				}
			}
			if err := s.Close(); err != nil || c.closed.Load() != 1 || c.out.Load() != 0 {
				t.Fatalf("depth %d: close %v, %d times, %d items out", depth, err, c.closed.Load(), c.out.Load())
			}
			s.Close()
			if _, err := s.Next(ctx); err == nil || c.closed.Load() != 1 {
				t.Fatal("lives after Close")
			}
			// one is with the user, depth in the queue, one waits to enter
			if bound := int64(max(depth, 1) + 2); depth != 7 && c.most > bound {
				t.Errorf("depth %d: %d items at once, want at most %d", depth, c.most, bound)
			}
		}
	}
	// closed before the end, in any state
	for _, taken := range []int{0, 1, 5} {
		c := &counter{n: 100, err: io.EOF, delay: time.Millisecond}
		s := PrefetchStage(c, 2)
		for range taken {
			i, _ := s.Next(ctx)
			s.Release(i)
		}
		s.Close()
		if c.out.Load() != 0 || c.closed.Load() != 1 {
			t.Fatalf("taken %d: %d items lost", taken, c.out.Load())
		}
	}
	waitGoroutines(t, goroutines)
}

func TestPrefetchCancel(t *testing.T) {
	goroutines := runtime.NumGoroutine()
	c := &counter{n: 3, block: true}
	s := PrefetchStage(c, 2)
	for range 3 {
		i, err := s.Next(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		s.Release(i)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	start := time.Now()
	_, err := s.Next(ctx)
	wantErr(t, err, context.DeadlineExceeded)
	_, err = s.Next(context.Background()) // the stage is done
	wantErr(t, err, context.DeadlineExceeded)
	if err := s.Close(); err != nil || time.Since(start) > prompt {
		t.Fatalf("close: %v after %v", err, time.Since(start))
	}
	waitGoroutines(t, goroutines)
}

func waitGoroutines(t *testing.T, want int) {
	t.Helper()
	for range 100 {
		if runtime.NumGoroutine() <= want {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Errorf("%d goroutines, %d before", runtime.NumGoroutine(), want)
}

// Frames, formats, notes and errors of a prefetched Source are those of the Source itself.
func TestPrefetchSource(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.y4m")
	write(t, path, testFormat(33, 17), 20, CreateOptions{})
	want := readAll(t, open1(t, path, OpenOptions{}))
	for _, depth := range []int{1, 4, 50} {
		src := Prefetch(Prefetch(open1(t, path, OpenOptions{}), depth), 1)
		if got := readAll(t, src); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("depth %d: other pictures", depth)
		}
		if src.Format() != testFormatY4M(33, 17) || src.Frames() != 20 {
			t.Errorf("depth %d: %+v, %d", depth, src.Format(), src.Frames())
		}
		if err := src.Close(); err != nil {
			t.Error(err)
		}
	}
	// a note that comes late
	cut := writeFile(t, "b.y4m", append(y4mBytes("YUV4MPEG2 W2 H2 F25:1", "FRAME\nxxxxxx"), "FRAME\nxx"...))
	src := Prefetch(open1(t, cut, OpenOptions{}), 4)
	defer src.Close()
	if n := len(readAll(t, src)); n != 1 || !hasNote(src.Conversions(), "truncated") {
		t.Errorf("%d pictures, notes %v", n, src.Conversions())
	}
}

// testFormatY4M is testFormat as y4m keeps it.
func testFormatY4M(w, h int) yuv.Format {
	f := testFormat(w, h)
	f.Colour.Primaries, f.Colour.Transfer, f.Colour.Matrix = 2, 2, 2
	return f
}
