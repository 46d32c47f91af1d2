package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/nvcodec/nvcodec/codec"
	"github.com/nvcodec/nvcodec/inference"
	"github.com/nvcodec/nvcodec/models"
	"github.com/nvcodec/nvcodec/yuv"
)

// machine holds the options that choose how to compute; none of them changes a bit of any result.
type machine struct {
	kernels string
	threads int
}

func (m *machine) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&m.kernels, "kernels", "auto", "kernel family: auto, "+strings.Join(kernelNames(), ", ")+"; results are equal")
	cmd.Flags().IntVar(&m.threads, "threads", 0, "threads to use in all (0: one for each core); results are equal")
}

func kernelNames() []string {
	var out []string
	for _, b := range inference.Backends() {
		out = append(out, b.Kernels())
	}
	return out
}

func (m *machine) backend() (inference.Backend, error) {
	if m.threads < 0 {
		return nil, usagef("--threads %d: want 0 or more", m.threads)
	}
	if m.threads == 0 {
		m.threads = runtime.GOMAXPROCS(0)
	}
	b, err := inference.CPU(m.kernels)
	if err != nil {
		return nil, usagef("--kernels %s: %w", m.kernels, err)
	}
	return b, nil
}

// decoding makes a decoder's options; extra is the model file of --model, or nothing.
func (m *machine) decoding(extra string) (codec.DecoderOptions, error) {
	b, err := m.backend()
	if err != nil {
		return codec.DecoderOptions{}, err
	}
	find, err := modelsByID(extra)
	return codec.DecoderOptions{Models: find, Backend: b, Threads: m.threads}, err
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
