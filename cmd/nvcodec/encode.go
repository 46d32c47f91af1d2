package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/nvcodec/nvcodec/batch"
	"github.com/nvcodec/nvcodec/codec"
	"github.com/nvcodec/nvcodec/inference/backends"
	"github.com/nvcodec/nvcodec/internal/atomicfile"
	"github.com/nvcodec/nvcodec/metrics"
	"github.com/nvcodec/nvcodec/pipeio"
	"github.com/nvcodec/nvcodec/yuv"
)

type encodeOptions struct {
	machine
	input
	qp, qpI, qpP int
	model        string
	intraPeriod  int
	reset        int
	threshold    int
	reach        int
	noSceneCut   bool
	lowDelay     bool
	workers      int
	overwrite    bool
	psnr         bool
}

// encodeResult is what encode prints with --json, a line for each file; fields are only ever added.
type encodeResult struct {
	Input   string          `json:"input"`
	Output  string          `json:"output"`
	Frames  int64           `json:"frames"`
	Width   int             `json:"width"`
	Height  int             `json:"height"`
	Seconds float64         `json:"seconds"` // the video's own time
	Bytes   int64           `json:"bytes"`
	Payload int64           `json:"payload_bytes"`
	Kbps    float64         `json:"kbps"`
	PSNR    *metrics.Planes `json:"psnr,omitempty"` // not with --psnr=false
	FPS     float64         `json:"fps"`
	Model   string          `json:"model"`
	placing
	Notes    []string `json:"notes"`
	Duration float64  `json:"wall_seconds"`
}

func newEncode(e *env) *cobra.Command {
	var o encodeOptions
	cmd := &cobra.Command{
		Use:   "encode IN OUT",
		Short: "Compress a video, or a folder of videos, to .nvc",
		Long: `Compress IN to OUT. IN is a video file, a folder (read recursively; OUT mirrors it, a.mp4 becomes a.mp4.nvc), or - for
y4m on standard input; OUT - writes the stream to standard output. An output that is there already, whole and made with
the same settings, is skipped; any other needs --overwrite.`,
		Example: `  nvcodec encode in.mp4 out.nvc
  nvcodec encode --qp 20 --model nvc1-lite in.mkv small.nvc
  ffmpeg -i in.mp4 -f yuv4mpegpipe - | nvcodec encode - out.nvc
  nvcodec encode --input-res 1920x1080 --input-fps 25 raw.yuv out.nvc
  nvcodec encode --workers 2 videos/ archive/`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runEncode(cmd.Context(), e, &o, args[0], args[1])
		},
	}
	f := cmd.Flags()
	d := codec.DefaultOptions()
	f.IntVar(&o.qp, "qp", 42, "quality 0 (smallest) .. 63 (best)")
	f.IntVar(&o.qpI, "qp-i", -1, "quality of intra frames (default: --qp)")
	f.IntVar(&o.qpP, "qp-p", -1, "quality of inter frames (default: --qp)")
	f.StringVar(&o.model, "model", "nvc1-base", "name of a shipped model, or a .nvm file")
	f.IntVar(&o.intraPeriod, "intra-period", d.IntraPeriod, "frames from one intra frame to the next (1: intra only)")
	f.IntVar(&o.reset, "reset-interval", d.ResetInterval, "inter frames between resets of the memory (0: none)")
	f.IntVar(&o.threshold, "skip-threshold", -1, "do not code latents whose scale index is below this, 0..64 (default: the model's)")
	f.IntVar(&o.reach, "search-reach", d.Reach, "reach of the motion search in luma samples")
	f.BoolVar(&o.noSceneCut, "no-scene-cut", false, "do not start a GOP where the scene changes")
	f.BoolVar(&o.lowDelay, "low-delay", false, "write every frame at once, in a chunk of its own")
	f.IntVar(&o.workers, "workers", 0, "files of a folder coded at once, in turn on the devices; they share --threads (0: one for each device)")
	f.BoolVar(&o.overwrite, "overwrite", false, "replace outputs that are there already")
	f.BoolVar(&o.psnr, "psnr", true, "compare decoded pictures with the source's; without it fast devices do not wait for that")
	o.input.flags(cmd)
	o.machine.deviceFlags(cmd)
	return cmd
}

// coding checks the options and turns them into the encoder's.
func (o *encodeOptions) coding() (codec.EncoderOptions, error) {
	c := codec.DefaultOptions()
	pick := func(x int) int {
		if x == -1 {
			return o.qp
		}
		return x
	}
	c.QPI, c.QPP = pick(o.qpI), pick(o.qpP)
	c.IntraPeriod, c.ResetInterval, c.Threshold, c.Reach = o.intraPeriod, o.reset, o.threshold, o.reach
	c.SceneCut, c.LowDelay, c.InFlight, c.NoPictures = !o.noSceneCut, o.lowDelay, o.inFlight, !o.psnr
	for _, r := range []struct {
		flag      string
		v, lo, hi int
	}{
		{"qp", o.qp, 0, 63}, {"qp-i", c.QPI, 0, 63}, {"qp-p", c.QPP, 0, 63},
		{"intra-period", o.intraPeriod, 1, 1 << 20}, {"reset-interval", o.reset, 0, 1 << 20},
		{"skip-threshold", o.threshold, -1, 64}, {"search-reach", o.reach, 1, 508}, {"workers", o.workers, 0, 1024},
	} {
		if r.v < r.lo || r.v > r.hi {
			return c, usagef("--%s %d: want %d..%d", r.flag, r.v, r.lo, r.hi)
		}
	}
	m, err := findModel(o.model)
	if err != nil {
		return c, err
	}
	c.Model = m
	return c, nil
}

func runEncode(ctx context.Context, e *env, o *encodeOptions, in, out string) error {
	if err := o.input.check(in); err != nil {
		return err
	}
	c, err := o.coding()
	if err != nil {
		return err
	}
	closeAll, err := o.open()
	if err != nil {
		return err
	}
	defer closeAll()
	if in == "-" || out == "-" {
		if info, err := os.Stat(in); err == nil && info.IsDir() {
			return usagef("a folder cannot be written to standard output")
		}
		c.Threads = o.threads
		return encodeFile(ctx, e, o, c, in, out, true)
	}
	plan, err := batch.Make(in, out, batch.Rule{Accept: pipeio.Readable, Rename: func(n string) string { return n + ".nvc" }})
	if err != nil {
		return err
	}
	workers := o.machine.workers(o.workers)
	return runJobs(ctx, e, plan, workers, o.threads, func(ctx context.Context, j batch.Job, threads int) error {
		c := c
		c.Threads = threads
		return encodeFile(ctx, e, o, c, j.In, j.Out, !plan.Folder || workers == 1)
	})
}

func encodeFile(ctx context.Context, e *env, o *encodeOptions, c codec.EncoderOptions, in, out string, alone bool) (err error) {
	c.Extra = o.extra(in)
	if out != "-" && !o.overwrite {
		if done, err := alreadyEncoded(out, c); err != nil {
			return err
		} else if done {
			return batch.ErrSkipped
		}
	}
	src, err := pipeio.Open(ctx, in, o.input.options(c.Threads))
	if err != nil {
		return err
	}
	known := src.Conversions()
	src = pipeio.Prefetch(src, 3)
	defer src.Close()
	f := src.Format()
	place, err := o.place(ctx, e, &backends.Job{Name: in, Model: c.Model, W: f.W, H: f.H, Encode: true, InFlight: c.InFlight, Reach: c.Reach, Pictures: !c.NoPictures})
	if err != nil {
		return err
	}
	defer place.Release()
	c.Backend = place.Backend

	var w io.Writer = e.stdout
	if out != "-" {
		var file *atomicfile.File
		if file, err = createFile(out, o.overwrite); err != nil {
			return err
		}
		defer file.Abort()
		defer func() { // err is the function's result: nothing but a whole stream gets the name
			if err == nil {
				err = file.Commit()
			}
		}()
		w = file
	}
	total := src.Frames()
	if o.frames > 0 && (total < 0 || total > o.frames) {
		total = o.frames
	}
	bar := e.newProgress(filepath.Base(in), total, alone)
	defer bar.done()
	res, err := encodeStream(ctx, e, in, src, known, w, c, o.frames, bar)
	if err != nil {
		return err
	}
	res.Input, res.Output, res.placing = in, out, placed(place)
	return e.printEncoded(res, out == "-")
}

// encodeStream is the whole path from a source to a stream: frames go straight from one to the other. Errors name the
// source. known are the source's notes before its first frame was asked for: they stand at the stream's beginning, later
// ones at its end, so that the stream does not depend on how far the source runs ahead.
func encodeStream(ctx context.Context, e *env, name string, src pipeio.Source, known []pipeio.Note, w io.Writer, c codec.EncoderOptions, limit int64, bar *progress) (*encodeResult, error) {
	start := time.Now()
	f := src.Format()
	named := func(err error) error { return fmt.Errorf("%s: %w", name, err) }
	enc, err := codec.NewEncoder(w, f, c)
	if err != nil {
		return nil, named(err)
	}
	defer enc.Abort()
	res := &encodeResult{Width: f.W, Height: f.H, Model: c.Model.Name, Notes: []string{}}
	tell := func(notes []pipeio.Note) error {
		for _, n := range notes[len(res.Notes):] {
			e.note("%s: %s", name, n.Text)
			res.Notes = append(res.Notes, n.Text)
			if err := enc.Metadata("note", n.Text); err != nil {
				return named(err)
			}
		}
		return nil
	}
	if err := tell(known); err != nil {
		return nil, err
	}
	span := newClock(f)
	var psnr metrics.Mean
	_, most := enc.InFlight()
	if c.LowDelay {
		most = 1
	}
	in := &lookahead{src: src, limit: limit, bufs: make([]yuv.Frame, most)}
	receive := func(frame *yuv.Frame) error {
		info, err := enc.Receive(ctx)
		if err != nil {
			return named(err)
		}
		describe := ""
		if !c.NoPictures {
			p, err := metrics.Compare(&frame.Planes, info.Decoded)
			if err != nil {
				return named(err)
			}
			psnr.Add(p)
			describe = fmt.Sprintf(" %.2f dB", psnr.Value().Y)
		}
		span.add(frame.PTS, frame.Duration)
		res.Frames++
		res.Payload += int64(info.PayloadBytes)
		bar.add(fmt.Sprintf("%.0f kbit/s%s", span.kbps(res.Payload), describe))
		return nil
	}
	for {
		frame, err := in.next(ctx)
		if err != nil {
			return nil, err
		}
		if frame == nil {
			break
		}
		if err := enc.Submit(ctx, frame); err != nil {
			return nil, named(err)
		}
		if now, _ := enc.InFlight(); now == most {
			if err := receive(in.before(most - 1)); err != nil {
				return nil, err
			}
		}
	}
	for now, _ := enc.InFlight(); now > 0; now-- {
		if err := receive(in.before(now - 1)); err != nil {
			return nil, err
		}
	}
	if res.Frames == 0 {
		return nil, named(errors.New("no frames to encode"))
	}
	if err := tell(src.Conversions()); err != nil { // what the source learned on the way
		return nil, err
	}
	sum, err := enc.Close()
	if err != nil {
		return nil, named(err)
	}
	res.Bytes = sum.Bytes
	res.Seconds, res.Kbps = span.seconds(), span.kbps(sum.Bytes)
	if mean := psnr.Value(); !c.NoPictures {
		res.PSNR = &mean
	}
	res.Duration = time.Since(start).Seconds()
	res.FPS = float64(res.Frames) / res.Duration
	return res, nil
}

// lookahead reads frames into its buffers in turn: a frame stays valid while those in flight behind it are read.
type lookahead struct {
	src   pipeio.Source
	limit int64 // frames to read; 0 all
	count int64
	bufs  []yuv.Frame
}

// before returns the frame that was read n frames before the latest.
func (l *lookahead) before(n int) *yuv.Frame {
	return &l.bufs[(l.count-1-int64(n))%int64(len(l.bufs))]
}

// next returns nil after the last frame.
func (l *lookahead) next(ctx context.Context) (*yuv.Frame, error) {
	if l.limit > 0 && l.count == l.limit {
		return nil, nil
	}
	f, err := l.src.Next(ctx)
	if errors.Is(err, io.EOF) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	b := &l.bufs[l.count%int64(len(l.bufs))]
	l.count++
	if b.W != f.W || b.H != f.H {
		b.Planes = *yuv.New(f.W, f.H)
	}
	b.Pad(&f.Planes)
	b.PTS, b.Duration = f.PTS, f.Duration
	return b, nil
}

// extra is what, beside the encoder's own settings, decides the stream's content: part of the settings text, so that a
// later run can tell whether an existing output is the one it would make.
func (o *encodeOptions) extra(in string) string {
	var s []string
	if info, err := os.Stat(in); err == nil && info.Mode().IsRegular() {
		s = append(s, fmt.Sprintf("source=%d", info.Size()))
	}
	if o.seek > 0 {
		s = append(s, "seek="+o.seek.String())
	}
	if o.frames > 0 {
		s = append(s, fmt.Sprintf("frames=%d", o.frames))
	}
	if o.resolution > 0 {
		s = append(s, fmt.Sprintf("resolution=%d", o.resolution))
	}
	return strings.Join(s, " ")
}

// alreadyEncoded reports whether out is a whole stream of this source made with these settings. Any other existing
// file is an error: it is not ours to replace.
func alreadyEncoded(out string, c codec.EncoderOptions) (bool, error) {
	file, err := os.Open(out)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer file.Close()
	st, err := file.Stat()
	if err != nil {
		return false, err
	}
	const hint = "; use --overwrite to replace it"
	switch info, err := codec.Peek(file, st.Size()); {
	case err != nil:
		return false, fmt.Errorf("%s is there already and is not a whole stream (%w)%s", out, err, hint)
	case !info.Complete:
		return false, fmt.Errorf("%s is there already and is not a whole stream%s", out, hint)
	case info.Header.Model != c.Model.ID || info.Settings() != c.Settings():
		return false, fmt.Errorf("%s is there already, made from another source or with other settings%s", out, hint)
	}
	return true, nil
}

func (e *env) printEncoded(r *encodeResult, dataOnStdout bool) error {
	return e.report(r, dataOnStdout, func() string {
		quality := ""
		if p := r.PSNR; p != nil {
			quality = fmt.Sprintf("PSNR Y %.2f U %.2f V %.2f dB, ", p.Y, p.U, p.V)
		}
		return fmt.Sprintf("%s: %d frames, %dx%d, %d bytes, %.1f kbit/s, %s%.2f frames/s", r.Output, r.Frames, r.Width, r.Height, r.Bytes, r.Kbps, quality, r.FPS)
	})
}
