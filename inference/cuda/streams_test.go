//go:build cuda

package cuda

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"gorgonia.org/cu"

	"github.com/nvcodec/nvcodec/inference"
	"github.com/nvcodec/nvcodec/inference/inferencetest"
)

// block has a stream do nothing from here on until release is called.
func block(t *testing.T, s *Stream) (release func()) {
	t.Helper()
	switch m := s.m.(type) {
	case *emulated:
		set := func(blocked bool) {
			m.sched.Lock()
			defer m.sched.Unlock()
			m.own.blocked = blocked
		}
		set(true)
		return func() { set(false) }
	case *gpu:
		flag, err := m.host(4)
		if err != nil {
			t.Fatal(err)
		}
		word := (*uint32)(unsafe.Pointer(unsafe.SliceData(flag)))
		atomic.StoreUint32(word, 0)
		const atLeast = 0
		if err := m.b.current(func() error {
			return m.stream.WaitOnValue32(cu.DevicePtr(uintptr(unsafe.Pointer(word))), 1, atLeast)
		}); err != nil {
			m.freeHost(flag)
			t.Skipf("the driver has no waits for values: %v", err)
		}
		return func() {
			atomic.StoreUint32(word, 1)
			if err := m.sync(); err != nil {
				t.Error(err)
			}
			if err := m.freeHost(flag); err != nil {
				t.Error(err)
			}
		}
	}
	panic("no way to block it")
}

// A session works on the stream that it was given, and on no other: it waits while that one is blocked, and does not
// when another is.
func TestCallersStream(t *testing.T) {
	m := inferencetest.TinyModel(12)
	size := inference.Size{W: 64, H: 64}
	all := takes(13, size, 4)
	want := encode(t, generic(t), m, size, all)
	eachBackend(t, func(t *testing.T, b *backend) {
		var streams [2]*Stream
		for i := range streams {
			var err error
			if streams[i], err = b.NewStream(); err != nil {
				t.Fatal(err)
			}
		}
		s, err := b.OpenOn(streams[0], m, size, 1, true)
		if err != nil {
			t.Fatal(err)
		}
		run := func() chan error {
			done := make(chan error, 1)
			go func() {
				for i := range all {
					sections, err := s.Encode(&all[i].frame, all[i].source)
					if err == nil {
						err = keep(sections, s.Picture()).same(want[i])
					}
					if err != nil {
						done <- fmt.Errorf("frame %d: %w", i, err)
						return
					}
				}
				done <- nil
			}()
			return done
		}
		release := block(t, streams[1])
		select {
		case err := <-run():
			if err != nil {
				t.Error(err)
			}
		case <-time.After(time.Minute):
			t.Error("work waits for a stream that has nothing to do with it")
		}
		release()

		release = block(t, streams[0])
		done := run()
		select {
		case err := <-done:
			t.Errorf("work was done while its stream was blocked: %v", err)
		case <-time.After(50 * time.Millisecond):
		}
		release()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		for _, s := range streams {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}

// Events order streams: a value that goes from one to the next and back arrives, in whatever order a device works.
func TestEvents(t *testing.T) {
	const rounds, bytes = 20, 1 << 16
	eachBackend(t, func(t *testing.T, b *backend) {
		orders := []order{late}
		if b.name == emulation {
			orders = append(orders, early, eager, random)
		}
		for _, procs := range []int{1, runtime.NumCPU()} {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
			for _, o := range orders {
				if err := pingPong(b, o, rounds, bytes); err != nil {
					t.Errorf("order %d, GOMAXPROCS %d: %v", o, procs, err)
				}
			}
		}
	})
}

func pingPong(b *backend, o order, rounds, bytes int) (err error) {
	keep := func(e error) {
		if err == nil {
			err = e
		}
	}
	var m [2]machine
	var passed [2]event
	for i := range m {
		if m[i], err = b.open(); err != nil {
			return err
		}
		defer func() { keep(m[i].close()) }()
		if e, ok := m[i].(*emulated); ok {
			e.order = o
		}
		if passed[i], err = m[i].event(); err != nil {
			return err
		}
		defer func() { keep(passed[i].close()) }()
	}
	device, err := m[0].alloc(int64(bytes))
	if err != nil {
		return err
	}
	defer func() { keep(m[0].free(device)) }()
	host, err := m[0].host(int64(rounds * bytes))
	if err != nil {
		return err
	}
	defer func() { keep(m[0].freeHost(host)) }()
	for i := range rounds {
		keep(m[0].wait(passed[1])) // of the round before; not yet recorded in the first
		keep(m[0].fill(device, byte(i), int64(bytes)))
		keep(m[0].record(passed[0]))
		keep(m[1].wait(passed[0]))
		keep(m[1].download(host[i*bytes:][:bytes], device))
		keep(m[1].record(passed[1]))
	}
	keep(passed[1].sync())
	for i, v := range host {
		if v != byte(i/bytes) && err == nil {
			err = fmt.Errorf("round %d read the value of round %d", i/bytes, v)
		}
	}
	keep(m[0].sync())
	return err
}

// A captured graph may fork and join: the second stream's part runs between the two, each time.
func TestForkedGraph(t *testing.T) {
	const bytes = 1 << 12
	eachBackend(t, func(t *testing.T, b *backend) {
		var m [2]machine
		var events [2]event
		for i := range m {
			var err error
			if m[i], err = b.open(); err != nil {
				t.Fatal(err)
			}
			defer func() { m[i].close() }()
			if events[i], err = m[i].event(); err != nil {
				t.Fatal(err)
			}
			defer events[i].close()
		}
		if e, ok := m[0].(*emulated); ok {
			e.order = random
		}
		device, err := m[0].alloc(2 * bytes)
		if err != nil {
			t.Fatal(err)
		}
		defer m[0].free(device)
		host, err := m[0].host(3 * bytes)
		if err != nil {
			t.Fatal(err)
		}
		defer m[0].freeHost(host)
		in, out := host[:bytes], host[bytes:]
		record := func(joined bool) (captured, error) {
			return m[0].capture(func() error {
				steps := []error{
					m[0].upload(device, in),
					m[0].record(events[0]),
					m[1].wait(events[0]),
					m[1].download(out[:bytes], device),
					m[0].fill(device+bytes, 9, bytes),
					m[1].record(events[1]),
				}
				if joined {
					steps = append(steps, m[0].wait(events[1]), m[0].fill(device, 7, bytes))
				}
				steps = append(steps, m[0].download(out[bytes:], device+bytes))
				for _, err := range steps {
					if err != nil {
						return err
					}
				}
				return nil
			})
		}
		if g, err := record(false); err == nil {
			g.close()
			t.Error("a branch that is not joined is captured")
		}
		// The second stream of a capture that failed is of no more use.
		m[1].close()
		if m[1], err = b.open(); err != nil {
			t.Fatal(err)
		}
		g, err := record(true)
		if err != nil {
			t.Fatal(err)
		}
		for round := range 5 {
			for i := range in {
				in[i] = byte(round)
			}
			if err := g.run(); err != nil {
				t.Fatal(err)
			}
			if err := m[0].sync(); err != nil {
				t.Fatal(err)
			}
			if out[0] != byte(round) || out[bytes-1] != byte(round) || out[bytes] != 9 {
				t.Fatalf("round %d: got %d, %d and %d", round, out[0], out[bytes-1], out[bytes])
			}
		}
		if err := g.close(); err != nil {
			t.Error(err)
		}
	})
}
