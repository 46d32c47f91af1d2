package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/nvcodec/nvcodec/internal/atomicfile"
	"github.com/nvcodec/nvcodec/yuv"
)

// printing is one line at a time, whichever worker prints.
var printing sync.Mutex

func (e *env) printJSON(v any) error {
	printing.Lock()
	defer printing.Unlock()
	return json.NewEncoder(e.stdout).Encode(v)
}

func (e *env) warn(format string, args ...any) {
	printing.Lock()
	defer printing.Unlock()
	fmt.Fprintf(e.stderr, "nvcodec: "+format+"\n", args...)
}

func (e *env) note(format string, args ...any) {
	if !e.quiet && !e.json {
		e.warn(format, args...)
	}
}

// detail is for --verbose; results in JSON hold the same.
func (e *env) detail(format string, args ...any) {
	if e.verbose {
		e.warn(format, args...)
	}
}

// createFile begins an output that gets its name when it is whole.
func createFile(path string, overwrite bool) (*atomicfile.File, error) {
	f, err := atomicfile.Create(path, overwrite)
	if errors.Is(err, os.ErrExist) {
		return nil, fmt.Errorf("%w; use --overwrite to replace it", err)
	}
	return f, err
}

// progress draws frames done, frames a second, bitrate and time left on a terminal; elsewhere it does nothing.
type progress struct {
	bar *progressbar.ProgressBar // nil: draws nothing
}

// newProgress makes a bar over total frames (-1 unknown). Bars of several workers would overwrite each other, so
// folders with more than one worker show none.
func (e *env) newProgress(name string, total int64, alone bool) *progress {
	p := &progress{}
	if e.tty && alone && !e.quiet && !e.json {
		p.bar = progressbar.NewOptions64(total,
			progressbar.OptionSetWriter(e.stderr),
			progressbar.OptionSetDescription(name),
			progressbar.OptionSetItsString("frames"),
			progressbar.OptionShowIts(),
			progressbar.OptionShowCount(),
			progressbar.OptionSetPredictTime(total > 0),
			progressbar.OptionThrottle(100*time.Millisecond),
			progressbar.OptionClearOnFinish(),
			progressbar.OptionFullWidth(),
		)
	}
	return p
}

func (p *progress) add(describe string) {
	if p.bar != nil {
		p.bar.Describe(describe)
		p.bar.Add(1)
	}
}

func (p *progress) done() {
	if p.bar != nil {
		p.bar.Finish()
	}
}

// clock measures a video's own time: the span from the first frame's start to the last one's end.
type clock struct {
	base        yuv.Rational
	rate        yuv.Rational
	first, last int64
	lastLen     int64
	n           int64
}

func newClock(f yuv.Format) *clock { return &clock{base: f.TimeBase, rate: f.FrameRate} }

func (c *clock) add(pts, duration int64) {
	if c.n == 0 || pts < c.first {
		c.first = pts
	}
	if c.n == 0 || pts > c.last {
		if duration <= 0 && c.n > 0 {
			duration = pts - c.last
		}
		c.last, c.lastLen = pts, duration
	}
	c.n++
}

// seconds returns the span; a frame without any timing counts by the nominal rate.
func (c *clock) seconds() float64 {
	if c.n == 0 {
		return 0
	}
	s := 0.0
	if c.base.Den > 0 {
		s = float64(c.last-c.first+c.lastLen) * float64(c.base.Num) / float64(c.base.Den)
	}
	if s <= 0 && c.rate.Num > 0 {
		s = float64(c.n) * float64(c.rate.Den) / float64(c.rate.Num)
	}
	return s
}

// kbps is bytes over the video's own time in kbit/s, 0 when the time is unknown.
func (c *clock) kbps(bytes int64) float64 {
	if s := c.seconds(); s > 0 {
		return float64(bytes) * 8 / 1000 / s
	}
	return 0
}

// report prints one file's result: JSON or, for people, the line that text makes. Data on standard output sends JSON to
// standard error too.
func (e *env) report(result any, dataOnStdout bool, text func() string) error {
	switch {
	case e.json && dataOnStdout:
		sub := *e
		sub.stdout = e.stderr
		return sub.printJSON(result)
	case e.json:
		return e.printJSON(result)
	case e.quiet:
		return nil
	}
	printing.Lock()
	defer printing.Unlock()
	_, err := fmt.Fprintln(e.stderr, text())
	return err
}
