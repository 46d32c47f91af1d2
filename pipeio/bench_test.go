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

// BenchmarkPrefetch reads a 720p clip with each placement of the thread boundary and reports frames a second for
// each: one run to warm up, then at least five, in turns so that all see the same load; the median counts. The
// consumer sleeps per picture, as one that waits for a device does, or not at all. filter=none only copies,
// filter=scale also scales; threads are the decoder's own.
func BenchmarkPrefetch(b *testing.B) {
	path := filepath.Join(b.TempDir(), "a.mp4")
	const n = 60
	write(b, path, testFormat(1280, 720), n, CreateOptions{EncoderOptions: map[string]string{"preset": "veryfast", "crf": "30"}})
	type placement struct {
		name                      string
		packets, pictures, frames int
	}
	placements := []placement{{"nowhere", 0, 0, 0}, {"demuxer", 8, 0, 0}, {"decoder", 0, 3, 0}, {"converter", 0, 0, 3}, {"decoder+converter", 0, 3, 3}}
	run := func(b *testing.B, p placement, o OpenOptions, sleep time.Duration) float64 {
		o.PrefetchPackets, o.PrefetchPictures = p.packets, p.pictures
		start := time.Now()
		src, err := Open(context.Background(), path, o)
		if err != nil {
			b.Fatal(err)
		}
		defer src.Close()
		if p.frames > 0 {
			src = Prefetch(src, p.frames)
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
	for _, filter := range []string{"none", "scale"} {
		for _, threads := range []int{1, 0} {
			for _, sleep := range []time.Duration{0, 5 * time.Millisecond} {
				b.Run(fmt.Sprintf("filter=%s/threads=%d/consumer=%v", filter, threads, sleep), func(b *testing.B) {
					o := OpenOptions{Threads: threads}
					if filter == "scale" {
						o.Resolution = 480
					}
					fps := make([][]float64, len(placements))
					round := func() {
						for i, p := range placements {
							fps[i] = append(fps[i], run(b, p, o, sleep))
						}
					}
					round()
					clear(fps) // that was to warm up
					for b.Loop() {
						round()
					}
					for len(fps[0]) < 5 {
						round()
					}
					for i, p := range placements {
						slices.Sort(fps[i])
						b.ReportMetric(fps[i][len(fps[i])/2], p.name+"-frames/s")
					}
					b.ReportMetric(0, "ns/op")
				})
			}
		}
	}
}
