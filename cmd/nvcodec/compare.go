package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"image/png"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/nvcodec/nvcodec/codec"
	"github.com/nvcodec/nvcodec/inference/backends"
	"github.com/nvcodec/nvcodec/metrics"
	"github.com/nvcodec/nvcodec/pipeio"
	"github.com/nvcodec/nvcodec/yuv"
)

type compareOptions struct {
	machine
	input
	model     string
	picture   string
	at        int64
	overwrite bool
}

// compareResult is what compare prints with --json.
type compareResult struct {
	Source string         `json:"source"`
	Test   string         `json:"test"`
	Frames int64          `json:"frames"`
	PSNR   metrics.Planes `json:"psnr"` // means over frames, dB
	SSIM   metrics.Planes `json:"ssim"` // means over frames
	MinY   float64        `json:"min_psnr_y"`
	MinAt  int64          `json:"min_psnr_y_frame"`
	Equal  bool           `json:"equal"` // every sample of every frame
	PNG    string         `json:"png,omitempty"`
}

func newCompare(e *env) *cobra.Command {
	var o compareOptions
	cmd := &cobra.Command{
		Use:   "compare SOURCE TEST",
		Short: "PSNR and SSIM of a stream or video against its source",
		Long: `Compare TEST (.nvc or any video) with SOURCE, frame by frame in order: PSNR and SSIM of every plane, means over frames.
--png draws one frame of both side by side. Videos of two sizes or lengths end with exit code 12.`,
		Example: `  nvcodec compare in.mp4 out.nvc
  nvcodec compare --png side.png --png-frame 30 in.mp4 out.nvc`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runCompare(cmd.Context(), e, &o, args[0], args[1])
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.model, "model", "", "a .nvm file to use for streams that name it")
	f.StringVar(&o.picture, "png", "", "write this PNG: source left, test right")
	f.Int64Var(&o.at, "png-frame", 0, "the frame to draw, from 0")
	f.BoolVar(&o.overwrite, "overwrite", false, "replace the PNG when it is there already")
	o.input.flags(cmd)
	o.machine.deviceFlags(cmd)
	return cmd
}

// streamSource lets a .nvc stream be read as any other video.
type streamSource struct {
	dec   *codec.Decoder
	file  io.Closer
	place *backends.Placement
}

func (s *streamSource) Format() yuv.Format         { return s.dec.Header().Format }
func (s *streamSource) Frames() int64              { return -1 }
func (s *streamSource) Conversions() []pipeio.Note { return nil }
func (s *streamSource) Next(ctx context.Context) (*yuv.Frame, error) {
	f, _, err := s.dec.Next(ctx)
	return f, err
}
func (s *streamSource) Close() error {
	defer s.place.Release()
	return errors.Join(s.dec.Close(), s.file.Close())
}

// openAny opens a video or a stream, by its name.
func (o *compareOptions) openAny(ctx context.Context, e *env, path string) (pipeio.Source, error) {
	if !isStream(path) {
		return pipeio.Open(ctx, path, o.input.options(o.threads))
	}
	d, err := o.decoding(o.model)
	if err != nil {
		return nil, err
	}
	r, _, err := openStream(e, path)
	if err != nil {
		return nil, err
	}
	in := bufio.NewReaderSize(r, 1<<16)
	place, err := o.placeStream(ctx, e, path, in, &d, false)
	if err != nil {
		r.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	dec, err := codec.NewDecoder(in, d)
	if err != nil {
		place.Release()
		r.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &streamSource{dec, r, place}, nil
}

func runCompare(ctx context.Context, e *env, o *compareOptions, source, test string) error {
	if err := o.input.check(source, test); err != nil {
		return err
	}
	closeAll, err := o.open()
	if err != nil {
		return err
	}
	defer closeAll()
	a, err := o.openAny(ctx, e, source)
	if err != nil {
		return err
	}
	defer a.Close()
	b, err := o.openAny(ctx, e, test)
	if err != nil {
		return err
	}
	defer b.Close()
	r := &compareResult{Source: source, Test: test, Equal: true, MinY: metrics.MaxPSNR}
	bar := e.newProgress(filepath.Base(test), a.Frames(), true)
	var psnr, ssim metrics.Mean
	for o.frames == 0 || r.Frames < o.frames {
		fa, errA := a.Next(ctx)
		fb, errB := b.Next(ctx)
		if errors.Is(errA, io.EOF) && errors.Is(errB, io.EOF) {
			break
		}
		if errors.Is(errA, io.EOF) || errors.Is(errB, io.EOF) {
			return fmt.Errorf("%w: %s and %s differ in length after %d frames", errMismatch, source, test, r.Frames)
		}
		if err := errors.Join(errA, errB); err != nil {
			return err
		}
		p, err := metrics.Compare(&fa.Planes, &fb.Planes)
		if err != nil {
			return fmt.Errorf("%w: %s and %s: %v", errMismatch, source, test, err)
		}
		psnr.Add(p)
		ssim.Add(metrics.SSIM(&fa.Planes, &fb.Planes))
		r.Equal = r.Equal && metrics.Equal(&fa.Planes, &fb.Planes)
		if p.Y < r.MinY {
			r.MinY, r.MinAt = p.Y, r.Frames
		}
		if o.picture != "" && r.Frames == o.at {
			if err := o.drawPNG(a.Format().Colour, &fa.Planes, &fb.Planes); err != nil {
				return err
			}
			r.PNG = o.picture
		}
		r.Frames++
		bar.add(fmt.Sprintf("%.2f dB", psnr.Value().Y))
	}
	bar.done()
	if r.Frames == 0 {
		return fmt.Errorf("%s: no frames to compare", source)
	}
	if o.picture != "" && r.PNG == "" {
		return usagef("--png-frame %d: the videos have %d frames", o.at, r.Frames)
	}
	r.PSNR, r.SSIM = psnr.Value(), ssim.Value()
	if e.json {
		return e.printJSON(r)
	}
	fmt.Fprintf(e.stdout, "%d frames\nPSNR  Y %.2f  U %.2f  V %.2f dB (lowest Y %.2f at frame %d)\nSSIM  Y %.4f  U %.4f  V %.4f\n",
		r.Frames, r.PSNR.Y, r.PSNR.U, r.PSNR.V, r.MinY, r.MinAt, r.SSIM.Y, r.SSIM.U, r.SSIM.V)
	if r.Equal {
		fmt.Fprintln(e.stdout, "every sample is equal")
	}
	if r.PNG != "" {
		fmt.Fprintln(e.stdout, "side by side:", r.PNG)
	}
	return nil
}

func (o *compareOptions) drawPNG(c yuv.Colour, a, b *yuv.Planes) error {
	f, err := createFile(o.picture, o.overwrite)
	if err != nil {
		return err
	}
	defer f.Abort()
	if err := png.Encode(f, metrics.SideBySide(a, b, c)); err != nil {
		return err
	}
	return f.Commit()
}
