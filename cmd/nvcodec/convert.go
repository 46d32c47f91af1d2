package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nvcodec/nvcodec/batch"
	"github.com/nvcodec/nvcodec/codec"
	"github.com/nvcodec/nvcodec/convert"
	"github.com/nvcodec/nvcodec/inference"
	"github.com/nvcodec/nvcodec/pipeio"
)

type convertOptions struct {
	machine
	name      string
	calibrate []string
	loss      []string
	clips     []string
	frames    int
	qps       []int
	overwrite bool
}

// convertResult is what convert prints with --json.
type convertResult struct {
	Output string        `json:"output"`
	Name   string        `json:"name"`
	ID     string        `json:"id"`
	Bytes  int           `json:"bytes"`
	Layers []layerResult `json:"layers"`
	Loss   []lossResult  `json:"loss,omitempty"`
}

type layerResult struct {
	Node      string  `json:"node"`
	Range     float64 `json:"range"` // largest |x| seen in calibration
	F         int     `json:"fractional_bits"`
	Saturated int64   `json:"saturated"`
	Of        int64   `json:"of"`
	Bound     int64   `json:"bound"` // proved for every input
	Limit     int64   `json:"limit"`
}

type lossResult struct {
	Clip        string  `json:"clip"`
	QP          int     `json:"qp"`
	Frames      int     `json:"frames"`
	FloatBits   float64 `json:"float_bits"`
	IntegerBits float64 `json:"integer_bits"`
	FloatPSNR   float64 `json:"float_psnr_y"`
	IntegerPSNR float64 `json:"integer_psnr_y"`
}

func newConvert(e *env) *cobra.Command {
	var o convertOptions
	cmd := &cobra.Command{
		Use:   "convert CHECKPOINT.safetensors MODEL.nvm",
		Short: "Make an integer model from a float checkpoint",
		Long: `Convert a trained float network to an integer model. Ranges are calibrated on small clips that ship with nvcodec, or on
those given; every layer's accumulator bound is proved for all inputs, and a model that cannot be proved is refused. The
same checkpoint and options give the same bytes on every amd64 machine (docs/CONVERT.md).

--loss also measures what the integers cost: the integer model beside the float network (with the rounded weights and
the same vectors) on clips, PSNR-Y and ideal bits.`,
		Example: `  nvcodec convert models/src/nvc1-base.safetensors nvc1-base.nvm
  nvcodec convert --loss clips/ --frames 33 models/src/nvc1-lite.safetensors nvc1-lite.nvm
  nvcodec encode --model ./nvc1-lite.nvm in.mp4 out.nvc`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runConvert(cmd.Context(), e, &o, args[0], args[1])
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.name, "name", "", "the model's name (default: the output's)")
	f.StringSliceVar(&o.calibrate, "calibrate", nil, "videos to calibrate on (default: the clips that ship)")
	f.StringSliceVar(&o.loss, "loss", nil, "videos, or folders of them, to measure the loss on")
	f.StringSliceVar(&o.clips, "clips", nil, "with --loss: only files whose name holds one of these")
	f.IntVar(&o.frames, "frames", 33, "frames of each video of --loss and --calibrate")
	f.IntSliceVar(&o.qps, "qps", []int{0, 21, 42, 63}, "QPs of --loss")
	f.BoolVar(&o.overwrite, "overwrite", false, "replace the output when it is there already")
	o.machine.flags(cmd)
	return cmd
}

func runConvert(ctx context.Context, e *env, o *convertOptions, in, out string) error {
	if o.frames < 1 {
		return usagef("--frames %d: want 1 or more", o.frames)
	}
	for _, q := range o.qps {
		if q < 0 || q > 63 {
			return usagef("--qps %d: want 0..63", q)
		}
	}
	backend, err := o.cpu()
	if err != nil {
		return err
	}
	if o.name == "" {
		o.name = strings.TrimSuffix(filepath.Base(out), filepath.Ext(out))
	}
	c, err := convert.ReadCheckpoint(in)
	if err != nil {
		return err
	}
	clips, err := readClips(ctx, o.calibrate, o.frames)
	if err != nil {
		return err
	}
	r, err := convert.Run(ctx, c, convert.Options{Name: o.name, Clips: clips})
	if err != nil {
		return fmt.Errorf("%s: %w", in, err)
	}
	file, err := createFile(out, o.overwrite)
	if err != nil {
		return err
	}
	defer file.Abort()
	if _, err := file.Write(r.File); err != nil {
		return err
	}
	if err := file.Commit(); err != nil {
		return err
	}
	res := convertResult{Output: out, Name: o.name, ID: hex.EncodeToString(r.Model.ID[:]), Bytes: len(r.File)}
	for _, l := range r.Layers {
		res.Layers = append(res.Layers, layerResult{l.Graph + "/" + l.Node, l.Range, l.F, l.Saturated, l.Of, l.Bound, l.Limit})
	}
	if !e.json {
		if err := r.WriteReport(e.stdout); err != nil {
			return err
		}
		fmt.Fprintf(e.stdout, "%s: model %s, %d bytes, id %s\n", out, o.name, len(r.File), res.ID)
	}
	if len(o.loss) > 0 {
		if res.Loss, err = o.measure(ctx, e, c, r.Model, backend); err != nil {
			return err
		}
	}
	if e.json {
		return e.printJSON(res)
	}
	return nil
}

// measure runs the integer model and the float network side by side over the clips.
func (o *convertOptions) measure(ctx context.Context, e *env, c *convert.Checkpoint, m *inference.Model, b inference.Backend) ([]lossResult, error) {
	paths, err := listVideos(o.loss, o.clips)
	if err != nil {
		return nil, err
	}
	p, err := convert.NewParams(c)
	if err != nil {
		return nil, err
	}
	twin, err := convert.NewTwin(p, true)
	if err != nil {
		return nil, err
	}
	if !e.json { // lines as they come: a clip takes minutes
		fmt.Fprintf(e.stdout, "%-28s %6s %3s %12s %12s %9s %9s %10s %8s\n", "clip", "frames", "QP", "float bits", "integer bits", "change", "float dB", "integer dB", "loss")
	}
	var all []lossResult
	var bits, db float64
	worstBits, worstDB := math.Inf(-1), math.Inf(-1)
	for _, path := range paths {
		clips, err := readClips(ctx, []string{path}, o.frames)
		if err != nil {
			return nil, err
		}
		losses, err := convert.MeasureLoss(ctx, twin, m, &clips[0], convert.LossOptions{
			QPs: o.qps, ResetEvery: codec.DefaultOptions().ResetInterval, Backend: b, Threads: o.threads,
		})
		if err != nil {
			return nil, err
		}
		var clipBits, clipDB float64
		for _, l := range losses {
			all = append(all, lossResult{l.Clip, l.QP, l.Frames, l.FloatBits, l.IntegerBits, l.FloatPSNR, l.IntegerPSNR})
			clipBits += l.Bits() / float64(len(losses))
			clipDB += l.Decibel() / float64(len(losses))
			if !e.json {
				fmt.Fprintf(e.stdout, "%-28s %6d %3d %12.0f %12.0f %+7.2f %% %9.3f %10.3f %+8.3f\n", l.Clip, l.Frames, l.QP, l.FloatBits, l.IntegerBits, 100*l.Bits(), l.FloatPSNR, l.IntegerPSNR, l.Decibel())
			}
		}
		bits += clipBits / float64(len(paths))
		db += clipDB / float64(len(paths))
		worstBits, worstDB = max(worstBits, clipBits), max(worstDB, clipDB)
	}
	if !e.json {
		fmt.Fprintf(e.stdout, "mean: %+.3f %% bits, %+.4f dB; worst clip: %+.3f %% bits, %+.4f dB\n", 100*bits, db, 100*worstBits, worstDB)
	}
	return all, nil
}

// listVideos expands folders, and keeps the names that hold one of only (empty: all).
func listVideos(in, only []string) ([]string, error) {
	var out []string
	for _, path := range in {
		info, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		files := []string{path}
		if info.IsDir() {
			p, err := batch.List(path, pipeio.Readable)
			if err != nil {
				return nil, err
			}
			files = nil
			for _, j := range p.Jobs {
				files = append(files, j.In)
			}
		}
		for _, f := range files {
			keep := len(only) == 0
			for _, s := range only {
				keep = keep || strings.Contains(filepath.Base(f), s)
			}
			if keep {
				out = append(out, f)
			}
		}
	}
	if len(out) == 0 {
		return nil, errors.New("no videos to measure on")
	}
	return out, nil
}

// readClips loads the beginnings of videos; nil for none.
func readClips(ctx context.Context, paths []string, frames int) ([]convert.Clip, error) {
	var out []convert.Clip
	for _, path := range paths {
		src, err := pipeio.Open(ctx, path, pipeio.OpenOptions{})
		if err != nil {
			return nil, err
		}
		c := convert.Clip{Name: strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))}
		for len(c.Frames) < frames {
			f, err := src.Next(ctx)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				src.Close()
				return nil, err
			}
			c.Frames = append(c.Frames, f.Planes.Clone())
		}
		if err := src.Close(); err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
}
