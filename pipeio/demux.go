//go:build !noffmpeg

package pipeio

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/bits"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/nvcodec/nvcodec/internal/av"
	"github.com/nvcodec/nvcodec/yuv"
)

// HasFFmpeg tells whether this build reads and writes other files than uncompressed ones.
const HasFFmpeg = true

// FFmpegVersions names FFmpeg's libraries.
func FFmpegVersions() string { return av.Versions() }

func ffmpegReads(ext string) bool { return av.Readable(ext) }

// A Packet is a piece of a compressed stream.
type Packet = av.Packet

// A StreamInfo is what a container says of one of its streams.
type StreamInfo = av.Stream

// A Demuxer gives the packets of a file's video, in the order of decoding. If the file has several videos it takes
// the one with the largest pictures; cover pictures are no videos.
type Demuxer struct {
	path  string
	in    *av.Input
	feed  *feeder // of a file that is not regular
	video int
	notes *notebook

	mu   sync.Mutex
	free []*Packet

	sought    bool
	missing   int64 // bytes that the file's structure says and the file has not
	packets   int64 // of the video so far
	corrupt   bool
	err       error
	damageErr error // why reading ended early
}

// DemuxOptions adjust OpenDemuxer.
type DemuxOptions struct {
	Strict bool         // a note of loss is an error, in this and all later stages
	Logger *slog.Logger // gets FFmpeg's messages at the level of debugging
}

// OpenDemuxer opens a file and finds its video.
func OpenDemuxer(ctx context.Context, path string, o DemuxOptions) (*Demuxer, error) {
	d := &Demuxer{path: path, notes: &notebook{file: path, strict: o.Strict, log: o.Logger}}
	err := d.open(ctx)
	if err == nil {
		err = d.choose()
	}
	if err != nil {
		d.Close()
		var loss *LossError
		if errors.As(err, &loss) || ctx.Err() != nil {
			return nil, err
		}
		return nil, fileError(path, err)
	}
	return d, nil
}

func (d *Demuxer) open(ctx context.Context) error {
	st, err := os.Stat(d.path)
	if err != nil {
		return err
	}
	url := "file:" + d.path
	switch {
	case st.IsDir():
		return errors.New("is a folder")
	case st.Mode().IsRegular() && st.Size() == 0:
		return errors.New("file is empty")
	case !st.Mode().IsRegular():
		if d.feed, url, err = newFeeder(ctx, d.path); err != nil {
			return err
		}
	}
	if st.Mode().IsRegular() {
		f, err := os.Open(d.path)
		if err != nil {
			return err
		}
		d.missing = statedSize(f, st.Size()) - st.Size()
		f.Close()
	}
	if d.in, err = av.OpenInput(ctx, url); err != nil && av.IsDamage(err) {
		err = fmt.Errorf("cannot be read as video: %w", err)
	}
	return err
}

// choose finds the video and notes everything that is left out.
func (d *Demuxer) choose() error {
	name := d.in.FormatName()
	first, _, _ := strings.Cut(name, ",")
	switch {
	case first == "tty" || first == "srt" || first == "ass" || first == "webvtt":
		return errors.New("is text, not video")
	case strings.HasSuffix(first, "_pipe") || first == "image2" || first == "ico":
		return fmt.Errorf("is a still picture (%s), not video", strings.TrimSuffix(first, "_pipe"))
	}
	d.video = -1
	kinds := map[string]int{}
	streams := d.in.Streams()
	for i, s := range streams {
		kinds[s.Kind]++
		if s.Kind == "video" && !s.Attached && (d.video < 0 || s.W*s.H > streams[d.video].W*streams[d.video].H) {
			d.video = i
		}
	}
	if d.video < 0 {
		if kinds["audio"] > 0 {
			return errors.New("has sound but no video")
		}
		return errors.New("has no video stream")
	}
	for i, s := range streams {
		if i == d.video {
			continue
		}
		n := Note{s.Kind, fmt.Sprintf("%s stream %d (%s) left out", s.Kind, i, s.Codec), true}
		switch {
		case s.Attached:
			n.Key, n.Text = "picture", fmt.Sprintf("cover picture, stream %d (%s), left out", i, s.Codec)
		case s.Kind == "attachment":
			n.Text = fmt.Sprintf("attached file, stream %d (%s), left out", i, s.Name)
		case s.Codec == "none":
			n.Text = fmt.Sprintf("%s stream %d left out", s.Kind, i)
		case s.Kind == "video":
			n.Text = fmt.Sprintf("second video, stream %d (%s, %dx%d), left out", i, s.Codec, s.W, s.H)
		}
		if err := d.notes.add(n); err != nil {
			return err
		}
	}
	if v := streams[d.video]; v.Alpha && (v.Codec == "vp8" || v.Codec == "vp9") { // other codecs have it in their pictures
		return d.notes.add(Note{"alpha", fmt.Sprintf("alpha of the video (%s) left out", v.Codec), true})
	}
	return nil
}

// Streams of the file.
func (d *Demuxer) Streams() []StreamInfo { return d.in.Streams() }

// Video is the stream whose packets Next gives.
func (d *Demuxer) Video() StreamInfo { return d.in.Streams()[d.video] }

// Conversions are the notes so far of this and all later stages.
func (d *Demuxer) Conversions() []Note { return d.notes.all() }

// Seek goes to the last key frame at or before t from the video's start, in containers that store the times at which
// pictures are shown. In others it is an error, and Next goes on where it was.
func (d *Demuxer) Seek(ctx context.Context, t time.Duration) error {
	v := d.Video()
	switch name, _, _ := strings.Cut(d.in.FormatName(), ","); name {
	case "mov", "matroska", "mpegts", "flv":
	default:
		return fmt.Errorf("%s: %s files cannot be sought", d.path, name)
	}
	if v.Start == av.NoPTS {
		return fmt.Errorf("%s: the video's start is not known", d.path)
	}
	if err := d.in.Seek(ctx, d.video, v.Start+ticks(t, v.TimeBase)); err != nil {
		return fileError(d.path, err)
	}
	d.sought = true
	return nil
}

// Next gives the next packet of the video.
func (d *Demuxer) Next(ctx context.Context) (*Packet, error) {
	if d.err != nil {
		return nil, d.err
	}
	p := d.packet()
	for {
		err := d.in.Read(ctx, p)
		switch {
		case err == nil:
		case ctx.Err() != nil:
			d.err = err
		case err == io.EOF:
			if d.err = d.end(); d.err == nil {
				d.err = io.EOF
			}
		default:
			d.damageErr = err
			if d.err = d.end(); d.err == nil {
				d.err = io.EOF
			}
		}
		if d.err != nil {
			d.Release(p)
			return nil, d.err
		}
		if p.Stream() != d.video {
			p.Unref()
			continue
		}
		d.packets++
		if p.Corrupt() && !d.corrupt {
			d.corrupt = true
			if d.err = d.notes.add(Note{"packets", fmt.Sprintf("damaged data from packet %d of the video on", d.packets), true}); d.err != nil {
				d.Release(p)
				return nil, d.err
			}
		}
		return p, nil
	}
}

// end looks for signs that the file should have been longer. libav itself ends such files like whole ones.
func (d *Demuxer) end() error {
	if err := d.in.ReadError(); err != nil {
		return fileError(d.path, err)
	}
	cause := ""
	for _, m := range d.notes.heard(d.in.Messages()) {
		for _, word := range []string{"prematurely", "partial file", "runcat"} {
			if m.Error && strings.Contains(m.Text, word) {
				cause = m.Text
			}
		}
	}
	if d.damageErr != nil && cause == "" {
		cause = d.damageErr.Error()
	}
	v := d.Video()
	// only in mp4 does the number count packets, those that an edit list hides too
	if cause == "" && !d.sought && strings.HasPrefix(d.in.FormatName(), "mov") && d.packets < v.Frames {
		cause = fmt.Sprintf("%d of %d packets", d.packets, v.Frames)
	}
	if cause == "" && d.missing > 0 {
		cause = plural(d.missing, "byte") + " are missing at the end"
	}
	if cause == "" {
		return nil
	}
	return d.notes.add(Note{"truncated", "the file is cut or damaged: " + cause, true})
}

func (d *Demuxer) packet() *Packet {
	d.mu.Lock()
	defer d.mu.Unlock()
	if n := len(d.free); n > 0 {
		p := d.free[n-1]
		d.free = d.free[:n-1]
		return p
	}
	return av.NewPacket()
}

// Release takes a packet back.
func (d *Demuxer) Release(p *Packet) {
	p.Unref()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.free = append(d.free, p)
}

// Close closes the file. Decoders that were made from it must be closed before, as a PacketDecoder's Close does.
func (d *Demuxer) Close() error {
	for _, p := range d.free {
		p.Free()
	}
	d.free = nil
	if d.in != nil {
		d.in.Close()
		d.in = nil
	}
	if d.feed != nil {
		d.feed.close()
		d.feed = nil
	}
	d.err = errClosed
	return nil
}

// ticks is t in a time base, rounded up and saturating.
func ticks(t time.Duration, tb yuv.Rational) int64 {
	if t <= 0 || tb.Num <= 0 || tb.Den <= 0 {
		return 0
	}
	hi, lo := bits.Mul64(uint64(t), uint64(tb.Den))
	den := uint64(tb.Num) * uint64(time.Second)
	if hi >= den {
		return 1<<63 - 1
	}
	q, r := bits.Div64(hi, lo, den)
	if r > 0 {
		q++
	}
	return int64(min(q, 1<<62))
}

// duration is the other way, to the nearest nanosecond or so: for comparing and showing.
func duration(t int64, tb yuv.Rational) time.Duration {
	return time.Duration(float64(t) * float64(tb.Num) / float64(tb.Den) * float64(time.Second))
}

// heard passes FFmpeg's messages to the log.
func (b *notebook) heard(lines []av.Line) []av.Line {
	if b.log != nil {
		for _, l := range lines {
			b.log.Debug("FFmpeg", "file", b.file, "says", l.Text, "error", l.Error)
		}
	}
	return lines
}

// A feeder copies a FIFO or device into a pipe that libav reads without blocking, so that it can be interrupted.
type feeder struct {
	file *os.File
	r, w *os.File
	done chan struct{}
}

func newFeeder(ctx context.Context, path string) (*feeder, string, error) {
	f := &feeder{done: make(chan struct{})}
	// opening a FIFO waits for a writer; if ctx ends meanwhile, the file is closed when one comes
	opened := make(chan *os.File, 1)
	err := interruptible(ctx, func() error {
		defer close(opened)
		file, err := os.Open(filepath.Clean(path))
		if err == nil {
			opened <- file
		}
		return err
	})
	if err != nil {
		if ctx.Err() != nil {
			go func() {
				if file, ok := <-opened; ok {
					file.Close()
				}
			}()
		}
		return nil, "", err
	}
	f.file = <-opened
	if f.r, f.w, err = os.Pipe(); err != nil {
		f.file.Close()
		return nil, "", err
	}
	go func() {
		defer close(f.done)
		io.Copy(f.w, f.file)
		f.w.Close()
	}()
	// Go's pipes do not block, so libav waits by asking again, and asks the interrupter too. Fd would make it block.
	fd := -1
	raw, err := f.r.SyscallConn()
	if err == nil {
		err = raw.Control(func(n uintptr) { fd = int(n) })
	}
	if err != nil {
		f.close()
		return nil, "", err
	}
	return f, fmt.Sprintf("pipe:%d", fd), nil
}

func (f *feeder) close() {
	f.file.Close()
	f.r.Close() // a blocked write to the pipe ends with an error
	<-f.done
}
