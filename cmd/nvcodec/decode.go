package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/nvcodec/nvcodec/batch"
	"github.com/nvcodec/nvcodec/codec"
	"github.com/nvcodec/nvcodec/inference"
	"github.com/nvcodec/nvcodec/pipeio"
	"github.com/nvcodec/nvcodec/yuv"
)

type decodeOptions struct {
	machine
	model     string
	frames    int64
	encoder   string
	options   map[string]string
	format    string
	workers   int
	overwrite bool
	keep      bool
}

// decodeResult is what decode and verify print with --json.
type decodeResult struct {
	Input        string  `json:"input"`
	Output       string  `json:"output,omitempty"`
	Frames       int64   `json:"frames"`
	Width        int     `json:"width"`
	Height       int     `json:"height"`
	Seconds      float64 `json:"seconds"`
	Bytes        int64   `json:"bytes"`
	Kbps         float64 `json:"kbps"`
	FramesSHA256 string  `json:"frames_sha256"` // planes Y, U, V of every frame in order, rows without padding
	FPS          float64 `json:"fps"`
	Model        string  `json:"model"`
	placing
	Damage string `json:"damage,omitempty"`
}

func newDecode(e *env) *cobra.Command {
	var o decodeOptions
	cmd := &cobra.Command{
		Use:   "decode IN OUT",
		Short: "Decode a stream, or a folder of streams, to video files",
		Long: `Decode IN (.nvc, a folder, or - for standard input) to OUT: ` + strings.Join(outputExtensions(), ", ") + `, or - for
y4m on standard output. Every picture is checked against the hash in the stream. A damaged or cut stream makes no
output, unless --keep-damaged asks for the frames that could be decoded; the exit code tells either way.`,
		Example: `  nvcodec decode in.nvc out.mp4
  nvcodec decode --encoder ffv1 in.nvc lossless.mkv
  nvcodec decode in.nvc - | ffplay -
  nvcodec decode archive/ back/`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runDecode(cmd.Context(), e, &o, args[0], args[1])
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.model, "model", "", "a .nvm file to use for streams that name it")
	f.Int64Var(&o.frames, "frames", 0, "decode at most this many frames (0: all)")
	f.StringVar(&o.encoder, "encoder", "", "FFmpeg encoder of .mp4, .mkv and .mov (default libx264; ffv1 is lossless)")
	f.StringToStringVar(&o.options, "encoder-options", nil, "options of that encoder, e.g. crf=12,preset=fast")
	f.StringVar(&o.format, "format", "", "extension of the outputs of a folder (default: the source's where it can be written, else "+defaultExtension()+")")
	f.IntVar(&o.workers, "workers", 0, "files of a folder decoded at once, in turn on the devices; they share --threads (0: one for each device)")
	f.BoolVar(&o.overwrite, "overwrite", false, "replace outputs that are there already")
	f.BoolVar(&o.keep, "keep-damaged", false, "keep what could be decoded of a damaged or cut stream")
	o.machine.deviceFlags(cmd)
	return cmd
}

// outputExtensions are the names that decode writes.
func outputExtensions() []string {
	if pipeio.HasFFmpeg {
		return []string{".mp4", ".mkv", ".mov", ".y4m", ".yuv"}
	}
	return []string{".y4m", ".yuv"}
}

// defaultExtension is for sources whose own container cannot be written.
func defaultExtension() string {
	if pipeio.HasFFmpeg {
		return ".mkv"
	}
	return ".y4m"
}

func isStream(name string) bool { return strings.EqualFold(filepath.Ext(name), ".nvc") }

// decodedName undoes encode's naming: a.mp4.nvc becomes a.mp4 again, a.avi.nvc becomes a.avi.mkv.
func (o *decodeOptions) decodedName(name string) string {
	base := name[:len(name)-len(filepath.Ext(name))]
	ext := strings.ToLower(filepath.Ext(base))
	switch {
	case o.format != "":
		if ext != "" && (pipeio.Readable(base) || ext == o.format) {
			base = base[:len(base)-len(ext)]
		}
		return base + o.format
	case slices.Contains(outputExtensions(), ext):
		return base
	}
	return base + defaultExtension()
}

func runDecode(ctx context.Context, e *env, o *decodeOptions, in, out string) error {
	if o.frames < 0 || o.workers < 0 {
		return usagef("--frames and --workers must not be negative")
	}
	if o.format != "" && !strings.HasPrefix(o.format, ".") {
		o.format = "." + o.format
	}
	if o.format != "" && !slices.Contains(outputExtensions(), o.format) {
		return usagef("--format %s: want one of %s", o.format, strings.Join(outputExtensions(), ", "))
	}
	closeAll, err := o.open()
	if err != nil {
		return err
	}
	defer closeAll()
	d, err := o.decoding(o.model)
	if err != nil {
		return err
	}
	if in == "-" || out == "-" {
		if info, err := os.Stat(in); err == nil && info.IsDir() {
			return usagef("a folder cannot be written to standard output")
		}
		return decodeFile(ctx, e, o, d, in, out, true)
	}
	plan, err := batch.Make(in, out, batch.Rule{Accept: isStream, Rename: o.decodedName})
	if err != nil {
		return err
	}
	workers := o.machine.workers(o.workers)
	return runJobs(ctx, e, plan, workers, o.threads, func(ctx context.Context, j batch.Job, threads int) error {
		d := d
		d.Threads = threads
		if plan.Folder && !o.overwrite {
			if _, err := os.Lstat(j.Out); err == nil { // outputs appear only when whole, so it is done
				return batch.ErrSkipped
			}
		}
		return decodeFile(ctx, e, o, d, j.In, j.Out, !plan.Folder || workers == 1)
	})
}

func decodeFile(ctx context.Context, e *env, o *decodeOptions, d codec.DecoderOptions, in, out string, alone bool) error {
	r, total, err := openStream(e, in)
	if err != nil {
		return err
	}
	defer r.Close()
	if o.frames > 0 && (total < 0 || total > o.frames) {
		total = o.frames
	}
	bar := e.newProgress(filepath.Base(in), total, alone)
	defer bar.done()
	var sink pipeio.Sink
	defer func() {
		if sink != nil {
			sink.Abort()
		}
	}()
	make := func(f yuv.Format) (func(*yuv.Frame) error, error) {
		var err error
		sink, err = pipeio.Create(ctx, out, f, pipeio.CreateOptions{
			Encoder: o.encoder, EncoderOptions: o.options, Overwrite: o.overwrite, Inputs: []string{in}, Threads: d.Threads,
		})
		if err != nil {
			return nil, err
		}
		return func(fr *yuv.Frame) error { return sink.Write(ctx, fr) }, nil
	}
	res, err := decodeStream(ctx, e, &o.machine, in, r, d, o.frames, make, bar)
	res.Input, res.Output = in, out
	if err != nil {
		err = fmt.Errorf("%s: %w", in, err)
		if !o.keep || ctx.Err() != nil || res.Frames == 0 || !isDamage(err) {
			return err
		}
		res.Damage = err.Error()
	}
	if cerr := sink.Close(); cerr != nil {
		return errors.Join(cerr, err)
	}
	sink = nil
	if perr := e.printDecoded(res, out == "-"); perr != nil {
		return perr
	}
	return err
}

func isDamage(err error) bool {
	code := exitCode(err)
	return code == codeCorrupt || code == codeMismatch
}

// openStream opens a stream and, where it can seek, learns its number of frames from the footer (-1 otherwise).
func openStream(e *env, in string) (io.ReadCloser, int64, error) {
	if in == "-" {
		return io.NopCloser(e.stdin), -1, nil
	}
	f, err := os.Open(in)
	if err != nil {
		return nil, 0, err
	}
	st, err := f.Stat()
	if err != nil || st.IsDir() {
		f.Close()
		return nil, 0, errors.Join(err, fmt.Errorf("%s is not a file", in))
	}
	total := int64(-1)
	if st.Mode().IsRegular() {
		if info, err := codec.Peek(f, st.Size()); err == nil && info.Complete {
			total = info.Frames
		}
	}
	return f, total, nil
}

// counter counts the bytes read of a stream.
type counter struct {
	io.Reader
	n int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n += int64(n)
	return n, err
}

// decodeStream decodes to the end, hands every frame to the writer that begin makes (nil: none), and returns what was
// done even with an error. Damage does not stop it: later GOPs still decode, and the first error is returned at the end.
func decodeStream(ctx context.Context, e *env, m *machine, name string, r io.Reader, d codec.DecoderOptions, limit int64, begin func(yuv.Format) (func(*yuv.Frame) error, error), bar *progress) (*decodeResult, error) {
	start := time.Now()
	res := &decodeResult{}
	find := d.Models
	d.Models = func(id [32]byte) (*inference.Model, error) {
		m, err := find(id)
		if err == nil {
			res.Model = m.Name
		}
		return m, err
	}
	buffered := bufio.NewReaderSize(r, 1<<16)
	place, err := m.placeStream(ctx, e, name, buffered, &d, true)
	if err != nil {
		return res, err
	}
	defer place.Release()
	res.placing = placed(place)
	in := &counter{Reader: buffered}
	dec, err := codec.NewDecoder(in, d)
	if err != nil {
		return res, err
	}
	defer dec.Close()
	f := dec.Header().Format
	res.Width, res.Height = f.W, f.H
	write := func(*yuv.Frame) error { return nil }
	if begin != nil {
		if write, err = begin(f); err != nil {
			return res, err
		}
	}
	sum := sha256.New()
	span := newClock(f)
	var damage error
	for limit == 0 || res.Frames < limit {
		frame, _, err := dec.Next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			if damage == nil {
				damage = err
			} else {
				e.warn("%v", err)
			}
			if isDamage(err) && !errors.Is(err, codec.ErrTruncated) {
				continue
			}
			break
		}
		hashFrame(sum, &frame.Planes)
		if err := write(frame); err != nil {
			return res, err
		}
		span.add(frame.PTS, frame.Duration)
		res.Frames++
		bar.add(fmt.Sprintf("%.0f kbit/s", span.kbps(in.n)))
	}
	res.FramesSHA256 = hex.EncodeToString(sum.Sum(nil))
	res.Bytes, res.Seconds, res.Kbps = in.n, span.seconds(), span.kbps(in.n)
	res.FPS = float64(res.Frames) / time.Since(start).Seconds()
	return res, damage
}

func hashFrame(h hash.Hash, p *yuv.Planes) {
	plane := func(b []byte, stride, w, rows int) {
		for y := range rows {
			h.Write(b[y*stride : y*stride+w])
		}
	}
	plane(p.Y, p.StrideY, p.W, p.H)
	plane(p.U, p.StrideC, p.CW(), p.CH())
	plane(p.V, p.StrideC, p.CW(), p.CH())
}

func (e *env) printDecoded(r *decodeResult, dataOnStdout bool) error {
	name := r.Output
	if name == "" {
		name = r.Input
	}
	return e.report(r, dataOnStdout, func() string {
		return fmt.Sprintf("%s: %d frames, %dx%d, %.1f kbit/s, %.2f frames/s, sha256 %s",
			name, r.Frames, r.Width, r.Height, r.Kbps, r.FPS, r.FramesSHA256)
	})
}
