package backends

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nvcodec/nvcodec/inference"
)

// fake is a kind whose devices have so much free memory each.
type fake struct {
	free   []int64
	absent error
	open   int
}

type fakeBackend struct {
	inference.Backend
	f    *fake
	n    int
	name string
}

func (b *fakeBackend) Name() string         { return b.name }
func (b *fakeBackend) Kernels() string      { return "new" }
func (b *fakeBackend) Free() (int64, error) { return b.f.free[b.n], nil }
func (b *fakeBackend) Close() error         { b.f.open--; return nil }

// use registers the kind for one test. Jobs take W MiB, and 10 MiB once for a model.
func use(t *testing.T, f *fake) {
	before := kinds
	kinds = nil
	t.Cleanup(func() { kinds = before })
	Register(&Kind{
		Name: "toy", Kernels: []string{"old", "new"},
		Devices: func() ([]Device, error) {
			if f.absent != nil {
				return nil, f.absent
			}
			var all []Device
			for i := range f.free {
				all = append(all, Device{ID: fmt.Sprintf("toy:%d", i), Kernels: []string{"old", "new"}, Default: "new"})
			}
			return all, nil
		},
		Free: func(n int) (int64, error) { return f.free[n], nil },
		Open: func(n int, kernels string) (Backend, error) {
			f.open++
			return &fakeBackend{f: f, n: n, name: fmt.Sprintf("toy:%d", n)}, nil
		},
		Memory: func(j *Job) (Memory, error) { return Memory{Job: int64(j.W) << 20, Shared: 10 << 20}, nil },
	})
}

func TestChoose(t *testing.T) {
	use(t, &fake{free: []int64{1 << 30, 1 << 30}})
	for _, c := range []struct {
		device, kernels string
		devices         string // "" is the CPU alone
		option          string // of the ChoiceError
		unavailable     bool
	}{
		{device: "auto", kernels: "auto", devices: "toy:0 toy:1 cpu"},
		{device: "cpu", kernels: "auto", devices: "cpu"},
		{device: "auto", kernels: "generic", devices: "cpu"},
		{device: "auto", kernels: "old", devices: "toy:0 toy:1"},
		{device: "toy", kernels: "auto", devices: "toy:0 toy:1"},
		{device: "toy:1", kernels: "new", devices: "toy:1"},
		{device: "toy:1,toy:0", kernels: "auto", devices: "toy:1 toy:0"},
		{device: "toy:1,toy", kernels: "auto", option: "device"},
		{device: "toy:x", kernels: "auto", option: "device"},
		{device: "gpu", kernels: "auto", option: "device"},
		{device: "toy", kernels: "generic", option: "kernels"},
		{device: "cpu", kernels: "new", option: "kernels"},
		{device: "auto", kernels: "mmx", option: "kernels"},
		{device: "toy:2", kernels: "auto", unavailable: true},
	} {
		p, err := Choose(c.device, c.kernels)
		var choice *ChoiceError
		var unavailable *UnavailableError
		switch {
		case c.option != "":
			if !errors.As(err, &choice) || choice.Option != c.option {
				t.Errorf("%s %s: %v, want an error about --%s", c.device, c.kernels, err, c.option)
			}
			continue
		case c.unavailable:
			if !errors.As(err, &unavailable) {
				t.Errorf("%s %s: %v, want an UnavailableError", c.device, c.kernels, err)
			}
			continue
		case err != nil:
			t.Errorf("%s %s: %v", c.device, c.kernels, err)
			continue
		}
		var got []string
		for _, d := range p.devices {
			got = append(got, d.id)
		}
		if p.cpu != nil {
			got = append(got, "cpu")
		}
		if s := strings.Join(got, " "); s != c.devices {
			t.Errorf("%s %s: %s, want %s", c.device, c.kernels, s, c.devices)
		}
	}
}

func place(t *testing.T, p *Pool, m *inference.Model, mib int) *Placement {
	t.Helper()
	got, err := p.Place(t.Context(), &Job{Name: "x", Model: m, W: mib, H: 64})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// TestInTurn: jobs go to the devices in turn, and to the one with fewer of them.
func TestInTurn(t *testing.T) {
	f := &fake{free: []int64{1 << 30, 1 << 30, 1 << 30}}
	use(t, f)
	p, err := Choose("toy", "auto")
	if err != nil {
		t.Fatal(err)
	}
	m := &inference.Model{}
	var all []*Placement
	for i := range 6 {
		all = append(all, place(t, p, m, 64))
		if want := fmt.Sprintf("toy:%d", i%3); all[i].Device != want || all[i].Backend.Name() != want {
			t.Errorf("job %d runs on %s, want %s", i, all[i].Device, want)
		}
	}
	all[1].Release()
	all[1].Release() // once counts
	if got := place(t, p, m, 64); got.Device != "toy:1" {
		t.Errorf("the job behind one that ended runs on %s", got.Device)
	}
	if f.open != 3 {
		t.Errorf("%d devices open, want each once", f.open)
	}
	if p.Close(); f.open != 0 {
		t.Errorf("%d devices open behind Close", f.open)
	}
}

// TestAdmission: a job waits for memory that another job holds, and fails where none could ever do.
func TestAdmission(t *testing.T) {
	f := &fake{free: []int64{300 << 20}}
	use(t, f)
	p, err := Choose("toy:0", "auto")
	if err != nil {
		t.Fatal(err)
	}
	m := &inference.Model{}
	_, err = p.Place(t.Context(), &Job{Name: "big.mp4", Model: m, W: 256, H: 64})
	var full *MemoryError
	if !errors.As(err, &full) || full.Need != (256+10+64)<<20 || full.Free != 300<<20 {
		t.Fatalf("a job of 256 MiB: %v", err)
	}
	for _, want := range []string{"big.mp4", "256x64", "330 MiB", "300 MiB", "toy:0", "--device cpu"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
	a := place(t, p, m, 100) // and 10 for the model
	b := place(t, p, m, 100)
	if b.Free != 190<<20 {
		t.Errorf("%d MiB free before the second job, want 190", b.Free>>20)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	if _, err := p.Place(ctx, &Job{Model: m, W: 64, H: 64}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a third job: %v, want it to wait", err)
	}
	cancel()
	if _, err := p.Place(t.Context(), &Job{Model: m, W: 64, H: 64, NoWait: true}); !errors.As(err, &full) || full.Free != 90<<20 {
		t.Errorf("a third job that cannot wait: %v", err)
	}
	done := make(chan *Placement)
	go func() {
		c, err := p.Place(t.Context(), &Job{Model: m, W: 64, H: 64})
		if err != nil {
			t.Error(err)
		}
		done <- c
	}()
	a.Release()
	c := <-done
	b.Release()
	c.Release()
	if d := p.devices[0]; d.taken != 0 || d.jobs != 0 {
		t.Errorf("%d bytes and %d jobs left", d.taken, d.jobs)
	}
	p.Close()
}

// TestAutomatic takes the first device that a job fits on, then the CPU, and says why.
func TestAutomatic(t *testing.T) {
	f := &fake{free: []int64{200 << 20, 400 << 20}}
	use(t, f)
	p, err := Choose("auto", "auto")
	if err != nil {
		t.Fatal(err)
	}
	m := &inference.Model{}
	for mib, want := range map[int]string{64: "toy:0", 256: "toy:1", 512: "cpu"} {
		got := place(t, p, m, mib)
		if got.Device != want || (got.Reason != "") != (want == "cpu") {
			t.Errorf("%d MiB: on %s (%s), want %s", mib, got.Device, got.Reason, want)
		}
		if want == "cpu" && (!strings.Contains(got.Reason, "toy:0") || !strings.Contains(got.Reason, "toy:1")) {
			t.Errorf("reason %q does not name both devices", got.Reason)
		}
		got.Release()
	}
	p.Close()

	f.absent = errors.New("no driver")
	if p, err = Choose("auto", "auto"); err != nil {
		t.Fatal(err)
	}
	if got := place(t, p, m, 64); got.Device != "cpu" || got.Reason != "no driver" {
		t.Errorf("without a device: on %s (%s)", got.Device, got.Reason)
	}
	var unavailable *UnavailableError
	if _, err := Choose("toy:0", "auto"); !errors.As(err, &unavailable) || !strings.Contains(err.Error(), "no driver") {
		t.Errorf("toy:0 without a device: %v", err)
	}
}

func TestDevices(t *testing.T) {
	f := &fake{free: []int64{1}}
	use(t, f)
	all, absent := Devices()
	if len(all) != 2 || all[0].ID != "cpu" || len(all[0].Kernels) == 0 || all[1].ID != "toy:0" || all[1].Free != 1 || len(absent) != 0 {
		t.Errorf("%v, absent %v", all, absent)
	}
	f.absent = errors.New("no driver")
	if all, absent = Devices(); len(all) != 1 || absent["toy"] != "no driver" {
		t.Errorf("%v, absent %v", all, absent)
	}
}
