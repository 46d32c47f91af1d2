package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/nvcodec/nvcodec/codec"
	"github.com/nvcodec/nvcodec/inference"
	"github.com/nvcodec/nvcodec/inference/backends"
	"github.com/nvcodec/nvcodec/models"
	"github.com/nvcodec/nvcodec/yuv"
)

// machine holds the options that choose how to compute; none of them changes a bit of any result.
type machine struct {
	device   string
	kernels  string
	threads  int
	inFlight int

	pool *backends.Pool // what --device and --kernels chose, from open on
}

func (m *machine) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&m.kernels, "kernels", "auto", "kernel family: auto, "+strings.Join(backends.Kernels(), ", ")+"; results are equal")
	cmd.Flags().IntVar(&m.threads, "threads", 0, "threads to use in all (0: one for each core); results are equal")
}

// deviceFlags adds the choice of a device, which commands without it make for the CPU.
func (m *machine) deviceFlags(cmd *cobra.Command) {
	m.flags(cmd)
	cmd.Flags().StringVar(&m.device, "device", "auto", "where to compute: auto, cpu, cuda:0, cuda:0,cuda:1 or cuda for all; results are equal")
	cmd.Flags().IntVar(&m.inFlight, "in-flight", 0, "frames in flight, 1..16 (0: as the device wants); results are equal")
}

// open reads the choice; what it returns closes the devices that jobs have opened.
func (m *machine) open() (closeAll func(), err error) {
	if m.threads < 0 {
		return nil, usagef("--threads %d: want 0 or more", m.threads)
	}
	if m.inFlight < 0 || m.inFlight > inference.MaxInFlight {
		return nil, usagef("--in-flight %d: want 0..%d", m.inFlight, inference.MaxInFlight)
	}
	if m.threads == 0 {
		m.threads = runtime.GOMAXPROCS(0)
	}
	if m.pool, err = backends.Choose(m.device, m.kernels); err != nil {
		return nil, err
	}
	return func() { m.pool.Close() }, nil
}

// workers is how many jobs run at once: n, or by default one on each device.
func (m *machine) workers(n int) int {
	if n == 0 {
		return m.pool.Devices()
	}
	return n
}

// cpu returns the CPU's backend, for commands that use no other.
func (m *machine) cpu() (inference.Backend, error) {
	m.device = "cpu"
	if _, err := m.open(); err != nil {
		return nil, err
	}
	p, err := m.pool.Place(context.Background(), &backends.Job{})
	if err != nil {
		return nil, err
	}
	return p.Backend, nil
}

// place finds the job a device, waiting for memory if it must, and says which.
func (m *machine) place(ctx context.Context, e *env, j *backends.Job) (*backends.Placement, error) {
	p, err := m.pool.Place(ctx, j)
	if err != nil {
		return nil, err
	}
	p.Reason = strings.ReplaceAll(p.Reason, "\n", " ")
	switch {
	case p.Need.Job > 0:
		e.detail("%s: %dx%d on %s, kernels %s: %d MiB of its memory and %d for the model, %d free; %d MiB of page-locked memory", j.Name, j.W, j.H, p.Device,
			p.Backend.Kernels(), mib(p.Need.Job), mib(p.Need.Shared), mib(p.Free), mib(p.Need.Host))
	case p.Reason != "":
		e.detail("%s: %dx%d on the cpu, kernels %s: %s", j.Name, j.W, j.H, p.Backend.Kernels(), p.Reason)
	default:
		e.detail("%s: %dx%d on the cpu, kernels %s", j.Name, j.W, j.H, p.Backend.Kernels())
	}
	return p, nil
}

func mib(bytes int64) int64 { return (bytes + 1<<20 - 1) >> 20 }

// placing is what results say about where a job ran; fields are only ever added.
type placing struct {
	Device       string `json:"device"`
	Kernels      string `json:"kernels"`
	DeviceMemory int64  `json:"device_memory_bytes,omitempty"` // its own and the model's, which jobs share
	DeviceFree   int64  `json:"device_free_bytes,omitempty"`   // before it
	Reason       string `json:"device_reason,omitempty"`       // why the cpu, when the choice was automatic
}

func placed(p *backends.Placement) placing {
	return placing{p.Device, p.Backend.Kernels(), p.Need.Job + p.Need.Shared, p.Free, p.Reason}
}

// decoding makes a decoder's options; extra is the model file of --model, or nothing.
func (m *machine) decoding(extra string) (codec.DecoderOptions, error) {
	find, err := modelsByID(extra)
	return codec.DecoderOptions{Models: find, Threads: m.threads, InFlight: m.inFlight}, err
}

// placeStream places the decoding of the stream that r begins, and completes d. It takes nothing from r.
func (m *machine) placeStream(ctx context.Context, e *env, name string, r *bufio.Reader, d *codec.DecoderOptions, wait bool) (*backends.Placement, error) {
	const mostHeader = 255
	head, err := r.Peek(mostHeader)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	h, err := codec.ReadHeader(bytes.NewReader(head))
	if err != nil {
		return nil, err
	}
	model, err := d.Models(h.Model)
	if err != nil {
		return nil, &codec.ModelError{Want: h.Model, Err: err}
	}
	p, err := m.place(ctx, e, &backends.Job{Name: name, Model: model, W: h.W, H: h.H, InFlight: m.inFlight, NoWait: !wait})
	if err != nil {
		return nil, err
	}
	d.Backend = p.Backend
	return p, nil
}

// findModel takes the name of a shipped model or the path of a model file.
func findModel(name string) (*inference.Model, error) {
	if strings.ContainsAny(name, "/\\.") {
		b, err := os.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("model: %w", err)
		}
		m, err := inference.Load(b)
		if err != nil {
			return nil, fmt.Errorf("model %s: %w", name, err)
		}
		return m, nil
	}
	m, err := models.ByName(name)
	if err != nil {
		return nil, usagef("--model %s: %w (shipped: %s)", name, err, strings.Join(models.Names(), ", "))
	}
	return m, nil
}

// modelsByID resolves the model that a stream names: the file given with --model first, then the shipped ones.
func modelsByID(extra string) (func([32]byte) (*inference.Model, error), error) {
	if extra == "" {
		return models.ByID, nil
	}
	m, err := findModel(extra)
	if err != nil {
		return nil, err
	}
	return func(id [32]byte) (*inference.Model, error) {
		if m.ID == id {
			return m, nil
		}
		return models.ByID(id)
	}, nil
}

// timeFlag is a position in a video: seconds (12.5), a Go duration (1m30s) or [hh:]mm:ss[.s].
type timeFlag time.Duration

func (t *timeFlag) String() string { return time.Duration(*t).String() }
func (t *timeFlag) Type() string   { return "time" }
func (t *timeFlag) Set(s string) error {
	parts := strings.Split(s, ":")
	if d, err := time.ParseDuration(s); err == nil && len(parts) == 1 {
		return t.set(d.Seconds(), s)
	}
	if len(parts) > 3 {
		return fmt.Errorf("%q is not a time", s)
	}
	sum := 0.0
	for _, p := range parts {
		x, err := strconv.ParseFloat(p, 64)
		if err != nil || x < 0 {
			return fmt.Errorf("%q is not a time", s)
		}
		sum = sum*60 + x
	}
	return t.set(sum, s)
}

func (t *timeFlag) set(seconds float64, s string) error {
	if !(seconds >= 0 && seconds < 1e9) {
		return fmt.Errorf("%q is out of range", s)
	}
	*t = timeFlag(seconds * float64(time.Second))
	return nil
}

// rateFlag is a frame rate: 25, 29.97 or 30000/1001.
type rateFlag yuv.Rational

func (r *rateFlag) String() string {
	if r.Den == 0 || r.Num == 0 {
		return ""
	}
	return fmt.Sprintf("%d/%d", r.Num, r.Den)
}
func (r *rateFlag) Type() string { return "fps" }
func (r *rateFlag) Set(s string) error {
	bad := fmt.Errorf("%q is not a frame rate (25, 29.97 or 30000/1001)", s)
	num, den, fraction := strings.Cut(s, "/")
	if !fraction {
		x, err := strconv.ParseFloat(s, 64)
		if err != nil || !(x > 0 && x <= 1000) {
			return bad
		}
		*r = rateFlag{Num: int64(x*1000 + 0.5), Den: 1000}
		return nil
	}
	n, err1 := strconv.ParseInt(num, 10, 32)
	d, err2 := strconv.ParseInt(den, 10, 32)
	if err1 != nil || err2 != nil || n <= 0 || d <= 0 {
		return bad
	}
	*r = rateFlag{Num: n, Den: d}
	return nil
}
