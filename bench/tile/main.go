// Tile makes a clip of any size and length of a small one: mirrored at its edges, played forwards and backwards.
//
//	go run ./bench/tile -size 1920x1080 -frames 300 small.y4m large.y4m
//
// IN is whatever this build reads (.y4m always, "-" a y4m on standard input), OUT a .y4m or .yuv, or "-".
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/nvcodec/nvcodec/internal/tile"
	"github.com/nvcodec/nvcodec/pipeio"
	"github.com/nvcodec/nvcodec/yuv"
)

func main() {
	size := flag.String("size", "", "WxH of the output (default: the input's)")
	frames := flag.Int("frames", 0, "frames of the output (default: the input's)")
	from := flag.Int("from", 0, "first frame of the input to use")
	use := flag.Int("use", 0, "frames of the input to use (default: all)")
	flag.Parse()
	if flag.NArg() != 2 {
		fmt.Fprintln(os.Stderr, "usage: tile [flags] IN OUT")
		flag.PrintDefaults()
		os.Exit(3)
	}
	if err := run(context.Background(), flag.Arg(0), flag.Arg(1), *size, *frames, *from, *use); err != nil {
		fmt.Fprintln(os.Stderr, "tile:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, in, out, size string, frames, from, use int) error {
	src, err := pipeio.Open(ctx, in, pipeio.OpenOptions{})
	if err != nil {
		return err
	}
	defer src.Close()
	f := src.Format()
	if size != "" {
		if n, err := fmt.Sscanf(size, "%dx%d", &f.W, &f.H); n != 2 || err != nil || f.W < 1 || f.H < 1 {
			return fmt.Errorf("-size %s: want WxH", size)
		}
	}
	var clip []*yuv.Planes
	for n := 0; use == 0 || len(clip) < use; n++ {
		frame, err := src.Next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if n < from {
			continue
		}
		large := yuv.New(f.W, f.H)
		if err := tile.Fill(large, &frame.Planes); err != nil {
			return err
		}
		clip = append(clip, large)
	}
	if len(clip) == 0 {
		return fmt.Errorf("%s: no frames", in)
	}
	if frames == 0 {
		frames = len(clip)
	}
	f.TimeBase = yuv.Rational{Num: f.FrameRate.Den, Den: f.FrameRate.Num}
	sink, err := pipeio.Create(ctx, out, f, pipeio.CreateOptions{Overwrite: true, Inputs: []string{in}})
	if err != nil {
		return err
	}
	defer sink.Abort()
	for n := range frames {
		if err := sink.Write(ctx, &yuv.Frame{Planes: *clip[tile.Frame(n, len(clip))], PTS: int64(n), Duration: 1}); err != nil {
			return err
		}
	}
	return sink.Close()
}
