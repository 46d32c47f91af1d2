//go:build !noffmpeg

package pipeio

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// BenchmarkPrefetch reads a clip with each placement of the thread boundary: one run to warm up, then at least five, of which it reports the
// median in frames a second. The consumer sleeps per picture, as one that waits for a device does, or not at all. filter=none only copies,
// filter=scale also scales, and threads are the decoder's own.
func BenchmarkPrefetch(b *testing.B) {
	path := filepath.Join(b.TempDir(), "a.mp4")
	const n = 60
	write(b, path, testFormat(1280, 720), n, CreateOptions{EncoderOptions: map[string]string{"preset": "veryfast", "crf": "30"}})
	for _, filter := range []string{"none", "scale"} {
		for _, threads := range []int{1, 0} {
			for _, sleep := range []time.Duration{0, 5 * time.Millisecond} {
				for _, at := range []string{"nowhere", "demuxer", "decoder", "converter", "decoder+converter"} {
					b.Run(fmt.Sprintf("filter=%s/threads=%d/consumer=%v/at=%s", filter, threads, sleep, at), func(b *testing.B) {
						once := func() float64 {
							o := OpenOptions{Threads: threads}
							if filter == "scale" {
								o.Resolution = 480
							}
							switch at {
							case "demuxer":
								o.PrefetchPackets = 8
							case "decoder", "decoder+converter":
								o.PrefetchPictures = 3
							}
							start := time.Now()
							src, err := Open(context.Background(), path, o)
							if err != nil {
								b.Fatal(err)
							}
							defer src.Close()
							if at == "converter" || at == "decoder+converter" {
								src = Prefetch(src, 3)
							}
							for {
								if _, err := src.Next(context.Background()); err == io.EOF {
									return n / time.Since(start).Seconds()
								} else if err != nil {
									b.Fatal(err)
								}
								time.Sleep(sleep)
							}
						}
						once()
						var fps []float64
						for b.Loop() {
							fps = append(fps, once())
						}
						for len(fps) < 5 {
							fps = append(fps, once())
						}
						slices.Sort(fps)
						b.ReportMetric(fps[len(fps)/2], "frames/s")
						b.ReportMetric(0, "ns/op")
					})
				}
			}
		}
	}
}
