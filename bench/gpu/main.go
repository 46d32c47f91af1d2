// Gpu times whole frames on a device: encode and decode, one stream, own reconstruction and picture hash included, and
// prints a table for docs/BENCH.md.
//
//	gpu -device cuda:0 -models nvc1-base,nvc1-lite -sizes 1280x720,1920x1080 -qps 42,63 a.y4m b.y4m
//
// The clips are tiled with mirroring to each size; a run plays half of its frames from each, forwards and backwards.
// Every figure is the median of -runs runs of -frames frames behind -warm frames, in one go without a pause. run.sh
// beside this builds it, measures the ceilings and the kernels in the same run, and fills in the times of the network.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"

	"github.com/nvcodec/nvcodec/codec"
	"github.com/nvcodec/nvcodec/inference"
	"github.com/nvcodec/nvcodec/inference/backends"
	"github.com/nvcodec/nvcodec/internal/tile"
	"github.com/nvcodec/nvcodec/models"
	"github.com/nvcodec/nvcodec/pipeio"
	"github.com/nvcodec/nvcodec/yuv"
)

// options are the flags.
type options struct {
	device, kernels       string
	models, sizes, qps    string
	frames, warm, runs    int
	inFlight, intraPeriod int
	settings              string
	network               string
	threads               int
	describe, family      bool
}

func main() {
	var o options
	flag.StringVar(&o.device, "device", "cuda:0", "where to compute")
	flag.StringVar(&o.kernels, "kernels", "auto", "kernel family")
	flag.StringVar(&o.models, "models", "nvc1-base,nvc1-lite", "models")
	flag.StringVar(&o.sizes, "sizes", "1280x720,1920x1080,3840x2160", "sizes of the pictures")
	flag.StringVar(&o.qps, "qps", "42,63", "QPs")
	flag.IntVar(&o.frames, "frames", 300, "frames of a run")
	flag.IntVar(&o.warm, "warm", 30, "frames ahead of the first run")
	flag.IntVar(&o.runs, "runs", 5, "runs, of which the median counts")
	flag.IntVar(&o.inFlight, "in-flight", 0, "frames in flight (0: as the codec chooses)")
	flag.IntVar(&o.intraPeriod, "intra-period", codec.DefaultOptions().IntraPeriod, "frames from one intra frame to the next (0: only scene cuts)")
	flag.StringVar(&o.settings, "settings", "coding,stream", "coding: pictures and vectors to payloads and back; stream: pictures to stream bytes and back")
	flag.StringVar(&o.network, "network", "", "log of go test -bench Network, whose figures join the table")
	flag.IntVar(&o.threads, "threads", 0, "threads of the host (0: one for each core)")
	flag.BoolVar(&o.describe, "describe", false, "only describe the devices")
	flag.BoolVar(&o.family, "family", false, "only print the kernel family that auto takes on the device")
	flag.Parse()
	if o.describe || o.family {
		describe(&o)
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, &o, flag.Args(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "gpu:", err)
		os.Exit(1)
	}
}

func describe(o *options) {
	all, absent := backends.Devices()
	for _, d := range all {
		switch {
		case o.family && d.ID == o.device:
			fmt.Println(d.Default)
		case o.describe && d.ID != "cpu":
			fmt.Printf("%s: %s, capability %s, %d MiB (%d free), driver %s, kernels %s\n", d.ID, d.Name, d.Capability, d.Memory>>20, d.Free>>20, d.Driver, strings.Join(d.Kernels, " "))
		}
	}
	for kind, why := range absent {
		fmt.Printf("%s: none: %s\n", kind, why)
	}
}

func run(ctx context.Context, o *options, clips []string, out io.Writer) error {
	if len(clips) == 0 || o.frames < 2 || o.runs < 1 || o.warm < 1 {
		return errors.New("want clips, at least 2 frames, 1 run and 1 frame ahead of it")
	}
	pool, err := backends.Choose(o.device, o.kernels)
	if err != nil {
		return err
	}
	defer pool.Close()
	network, err := readNetwork(o.network)
	if err != nil {
		return err
	}
	var small [][]*yuv.Planes
	for _, name := range clips {
		c, err := readClip(ctx, name)
		if err != nil {
			return err
		}
		small = append(small, c)
	}
	t := &table{o: o, out: out}
	t.head()
	for _, size := range strings.Split(o.sizes, ",") {
		var w, h int
		if n, err := fmt.Sscanf(size, "%dx%d", &w, &h); n != 2 || err != nil {
			return fmt.Errorf("size %q, want WxH", size)
		}
		show := &reel{frames: o.frames, warm: o.warm}
		for _, c := range small {
			large := make([]*yuv.Planes, len(c))
			for i := range c {
				large[i] = yuv.New(w, h)
				if err := tile.Fill(large[i], c[i]); err != nil {
					return err
				}
			}
			show.clips = append(show.clips, large)
		}
		for _, name := range strings.Split(o.models, ",") {
			m, err := models.ByName(name)
			if err != nil {
				return err
			}
			for _, qp := range strings.Split(o.qps, ",") {
				q, err := strconv.Atoi(qp)
				if err != nil {
					return err
				}
				if err := measure(ctx, o, pool, m, w, h, q, show, network, t); err != nil {
					return fmt.Errorf("%s %dx%d QP %d: %w", name, w, h, q, err)
				}
			}
		}
	}
	return nil
}

// measure fills one line of the table.
func measure(ctx context.Context, o *options, pool *backends.Pool, m *inference.Model, w, h, qp int, show *reel, network map[string]float64, t *table) error {
	place, err := pool.Place(ctx, &backends.Job{Name: "bench", Model: m, W: w, H: h, Encode: true, InFlight: o.inFlight, Reach: codec.DefaultOptions().Reach})
	if err != nil {
		return err
	}
	defer place.Release()
	b := &bench{o: o, backend: place.Backend, model: m, w: w, h: h, qp: qp, show: show}
	l := line{model: m.Name, w: w, h: h, qp: qp, device: place.Device, kernels: place.Backend.Kernels(), memory: place.Need.Job + place.Need.Shared}
	size := inference.Padded(w, h)
	padded := fmt.Sprintf("%s %dx%d ", m.Name, size.W, size.H)
	l.network = pair{network["encode "+padded+l.kernels], network["decode "+padded+l.kernels]}
	if err := b.stream(ctx, &l); err != nil {
		return err
	}
	t.line(&l)
	return nil
}

func readClip(ctx context.Context, name string) ([]*yuv.Planes, error) {
	src, err := pipeio.Open(ctx, name, pipeio.OpenOptions{})
	if err != nil {
		return nil, err
	}
	defer src.Close()
	var all []*yuv.Planes
	for {
		f, err := src.Next(ctx)
		switch {
		case errors.Is(err, io.EOF) && len(all) > 0:
			return all, nil
		case err != nil:
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, f.Planes.Clone())
	}
}

// A reel is what is shown: some frames ahead, then runs that take their frames from each clip for an equal part.
type reel struct {
	clips        [][]*yuv.Planes
	frames, warm int
}

func (r *reel) at(n int) *yuv.Planes {
	which := 0
	if n >= r.warm {
		n = (n - r.warm) % r.frames
		which = n * len(r.clips) / r.frames
	}
	c := r.clips[which]
	return c[tile.Frame(n, len(c))]
}
