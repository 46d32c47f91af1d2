package main

import (
	"context"
	"fmt"

	"github.com/nvcodec/nvcodec/yuv"
)

// drift prints for each clip, played to and fro, how the PSNR of the last 50 frames stands against that of frames 50 to
// 99. These show other pictures of the clip; "same pictures" compares each of the last 50 frames with the first
// coding of the same picture instead.
func (s *settings) drift(ctx context.Context, paths []string, n int) error {
	if n < 150 {
		return fmt.Errorf("-drift %d: want 150 frames or more", n)
	}
	fmt.Print("\n| model | clip | QP | reset interval | bits a pixel | PSNR-Y, frames 50–99 | last 50 | difference | same pictures |\n|---|---|---|---|---|---|---|---|---|\n")
	for _, path := range paths {
		format, clip, err := s.load(ctx, path)
		if err != nil {
			return err
		}
		video, at := longer(&format, clip, n)
		r := newResult(path, format, n)
		for _, m := range s.nets {
			for _, qp := range s.qps {
				for _, reset := range []int{-1, 0} {
					psnr := make([]float64, 0, n)
					p, err := s.ours(ctx, m.Model, format, video, qp, qp, reset, func(y float64) { psnr = append(psnr, y) })
					if err != nil {
						return fmt.Errorf("%s, %s, qp %d: %w", path, m.label, qp, err)
					}
					early, late, again := mean(psnr[50:100]), mean(psnr[n-50:]), 0.0
					for k := n - 50; k < n; k++ {
						again += (psnr[k] - psnr[at[k]]) / 50
					}
					fmt.Printf("| %s | %s %s | %d | %s | %.4f | %.2f dB | %.2f dB | %+.2f dB | %+.2f dB |\n", m.label, r.Name, r.Size, qp,
						map[int]string{-1: "default", 0: "none"}[reset], float64(p.Bytes)*8/float64(r.Width*r.Height*n), early, late, late-early, again)
				}
			}
		}
	}
	return nil
}

func mean(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}

// longer is n frames of a clip that is played to and fro, at 25 frames a second, and the place of each in the clip.
func longer(format *yuv.Format, clip []*yuv.Frame, n int) (video []*yuv.Frame, at []int) {
	for k := range n {
		at = append(at, toAndFro(len(clip), k))
		video = append(video, &yuv.Frame{Planes: clip[at[k]].Planes, PTS: int64(k), Duration: 1})
	}
	format.TimeBase, format.FrameRate = yuv.Rational{Num: 1, Den: 25}, yuv.Rational{Num: 25, Den: 1}
	return video, at
}

// toAndFro is the place at time k of a walk over n places forwards, backwards and so on.
func toAndFro(n, k int) int {
	if n == 1 {
		return 0
	}
	k %= 2*n - 2
	return min(k, 2*n-2-k)
}
