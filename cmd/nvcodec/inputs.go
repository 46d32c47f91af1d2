package main

import (
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/nvcodec/nvcodec/pipeio"
	"github.com/nvcodec/nvcodec/yuv"
)

// input holds the options that say how a source is read.
type input struct {
	res        string
	fps        rateFlag
	resolution int
	seek       timeFlag
	frames     int64
	strict     bool
}

func (in *input) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&in.res, "input-res", "", "size of raw .yuv input, e.g. 1920x1080")
	f.Var(&in.fps, "input-fps", "frame rate of raw .yuv input")
	f.IntVar(&in.resolution, "resolution", 0, "scale the smaller side to this many samples, keeping the aspect (0: as it is)")
	f.Var(&in.seek, "seek", "start at this time: 12.5, 1m30s or 00:01:30")
	f.Int64Var(&in.frames, "frames", 0, "code at most this many frames (0: all)")
	f.BoolVar(&in.strict, "strict", false, "fail instead of converting or leaving out anything of the input")
}

func (in *input) check(paths ...string) error {
	for _, p := range paths {
		if strings.EqualFold(filepath.Ext(p), ".yuv") && (in.res == "" || in.fps.Num == 0) {
			return usagef("%s: raw video has no header: give its size (--input-res WxH) and rate (--input-fps)", p)
		}
	}
	if in.frames < 0 {
		return usagef("--frames %d: want 0 or more", in.frames)
	}
	if in.resolution < 0 || in.resolution > 16384 {
		return usagef("--resolution %d: want 0..16384", in.resolution)
	}
	return nil
}

func (in *input) options(threads int) pipeio.OpenOptions {
	return pipeio.OpenOptions{
		InputRes: in.res, InputFPS: yuv.Rational(in.fps), Resolution: in.resolution,
		Seek: time.Duration(in.seek), Strict: in.strict, Threads: threads,
	}
}
