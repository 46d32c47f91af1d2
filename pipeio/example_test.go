//go:build !noffmpeg

package pipeio_test

import (
	"context"
	"fmt"
	"io"
	"log"

	"github.com/nvcodec/nvcodec/pipeio"
)

// The stages by themselves: demuxing and decoding in one goroutine, conversion to RGB in this one.
func Example_stages() {
	ctx := context.Background()
	demuxer, err := pipeio.OpenDemuxer(ctx, "../testdata/monster.mp4", pipeio.DemuxOptions{})
	if err != nil {
		log.Fatal(err)
	}
	decoder, err := pipeio.NewPacketDecoder(demuxer, demuxer, pipeio.DecodeOptions{})
	if err != nil {
		log.Fatal(err)
	}
	pictures := pipeio.PrefetchStage(decoder, 3)
	rgb := pipeio.NewRGBConverter(pictures, decoder, pipeio.ConvertOptions{Resolution: 128})
	defer rgb.Close() // and everything before it

	n := 0
	for {
		p, err := rgb.Next(ctx)
		if err == io.EOF {
			break
		}
		if err != nil {
			log.Fatal(err)
		}
		if n == 0 {
			fmt.Println(demuxer.Video().Codec, p.W, p.H, len(p.Pix))
		}
		n++
		rgb.Release(p)
	}
	fmt.Println(n, "pictures")
	// Output:
	// h264 192 128 73728
	// 90 pictures
}

// A whole conversion: any file to a lossless one, with what could not be kept.
func Example() {
	ctx := context.Background()
	src, err := pipeio.Open(ctx, "large.mov", pipeio.OpenOptions{Resolution: 480})
	if err != nil {
		log.Fatal(err)
	}
	src = pipeio.Prefetch(src, 3)
	defer src.Close()
	dst, err := pipeio.Create(ctx, "small.mkv", src.Format(), pipeio.CreateOptions{Encoder: "ffv1"})
	if err != nil {
		log.Fatal(err)
	}
	defer dst.Abort()
	for {
		f, err := src.Next(ctx)
		if err == io.EOF {
			break
		}
		if err != nil {
			log.Fatal(err)
		}
		if err := dst.Write(ctx, f); err != nil {
			log.Fatal(err)
		}
	}
	if err := dst.Close(); err != nil {
		log.Fatal(err)
	}
	for _, n := range src.Conversions() {
		fmt.Println(n.Text)
	}
}
