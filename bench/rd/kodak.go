package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/nvcodec/nvcodec/metrics"
	"github.com/nvcodec/nvcodec/yuv"
)

var (
	jpeg      = peer{name: "libjpeg-turbo 4:2:0", settings: []int{5, 10, 20, 35, 55, 75, 90}} // qualities
	x265Intra = peer{"x265 medium intra", peers[2].args, peers[2].format, peers[2].sei, []int{18, 23, 28, 33, 38, 43, 48}}
)

// pictures codes every .png of a folder as a single intra frame. All encoders get, and are measured on, luma as JPEG
// has it (BT.601, full range); cjpeg makes it from RGB by itself.
func (s *settings) pictures(ctx context.Context, folder string) ([]*clipResult, error) {
	paths, err := filepath.Glob(filepath.Join(folder, "*.png"))
	if err != nil || len(paths) == 0 {
		return nil, fmt.Errorf("-kodak %s: no .png there (%v)", folder, err)
	}
	var results []*clipResult
	for _, path := range paths {
		rgb, err := ffmpeg(ctx, nil, "-v", "error", "-i", path, "-f", "image2pipe", "-c:v", "ppm", "-pix_fmt", "rgb24", "-")
		if err != nil {
			return nil, err
		}
		p, err := planes(ctx, rgb)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		format := yuv.Format{W: p.W, H: p.H, TimeBase: yuv.Rational{Num: 1, Den: 25}, FrameRate: yuv.Rational{Num: 25, Den: 1}, SAR: yuv.Rational{Num: 0, Den: 1}}
		video := []*yuv.Frame{{Planes: *p, Duration: 1}}
		r := newResult(path, format, 1)
		if err := s.curves(ctx, r, format, video); err != nil {
			return nil, err
		}
		if s.peers {
			if err := s.peer(r, jpeg, func(q int) (point, error) { return encodeJPEG(ctx, rgb, p, q) }); err != nil {
				return nil, err
			}
			if err := s.peer(r, x265Intra, func(crf int) (point, error) { return x265Intra.encode(ctx, format, video, crf, s.threads) }); err != nil {
				return nil, err
			}
		}
		results = append(results, r)
	}
	return results, nil
}

// netpbm splits a binary PPM or PGM without comments.
func netpbm(b []byte) (w, h int, samples []byte, err error) {
	var kind string
	var top int
	if _, err := fmt.Sscan(string(b[:min(len(b), 64)]), &kind, &w, &h, &top); err != nil {
		return 0, 0, nil, fmt.Errorf("netpbm: %w", err)
	}
	n := w * h * map[string]int{"P5": 1, "P6": 3}[kind]
	if n <= 0 || n > len(b) || top != 255 {
		return 0, 0, nil, fmt.Errorf("netpbm: %d bytes of %s, %dx%d", len(b), kind, w, h)
	}
	return w, h, b[len(b)-n:], nil
}

func planes(ctx context.Context, rgb []byte) (*yuv.Planes, error) {
	w, h, _, err := netpbm(rgb)
	if err != nil {
		return nil, err
	}
	raw, err := ffmpeg(ctx, rgb, "-v", "error", "-f", "image2pipe", "-c:v", "ppm", "-i", "-", "-sws_flags", "accurate_rnd+full_chroma_int", "-pix_fmt", "yuvj420p", "-f", "rawvideo", "-")
	if err != nil {
		return nil, err
	}
	p := yuv.New(w, h)
	if len(raw) != len(p.Y)+len(p.U)+len(p.V) {
		return nil, fmt.Errorf("%d bytes for %dx%d", len(raw), w, h)
	}
	n := copy(p.Y, raw)
	n += copy(p.U, raw[n:])
	copy(p.V, raw[n:])
	return p, nil
}

func encodeJPEG(ctx context.Context, rgb []byte, p *yuv.Planes, quality int) (point, error) {
	file, err := pipe(ctx, rgb, "cjpeg", "-quality", itoa(quality), "-sample", "2x2", "-optimize")
	if err != nil {
		return point{}, err
	}
	grey, err := pipe(ctx, file, "djpeg", "-grayscale", "-pnm")
	if err != nil {
		return point{}, err
	}
	w, h, y, err := netpbm(grey)
	if err != nil || w != p.W || h != p.H {
		return point{}, fmt.Errorf("djpeg: %dx%d (%v)", w, h, err)
	}
	return point{Setting: itoa(quality), Bytes: int64(len(file)), PSNRY: metrics.PSNR(metrics.SSE(p.Y, p.StrideY, y, w, w, h), w*h)}, nil
}

// reportPictures is a line for each model and QP, then mean BD-rates.
func reportPictures(rs []*clipResult) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n### Intra frames: %d pictures, means\n\n| model | QP | bits a pixel, whole file | PSNR-Y |\n|---|---|---|---|\n", len(rs))
	names := ourNames(rs)
	for _, name := range names {
		for i, p := range rs[0].Curves[name] {
			bits, psnr := 0.0, 0.0
			for _, r := range rs {
				bits += float64(r.Curves[name][i].Bytes) * 8 / float64(r.Width*r.Height*len(rs))
				psnr += r.Curves[name][i].PSNRY / float64(len(rs))
			}
			fmt.Fprintf(&b, "| %s | %s | %.3f | %.2f dB |\n", name, p.Setting, bits, psnr)
		}
	}
	fmt.Fprint(&b, "\n| BD-rate (PCHIP), whole file / payload alone |")
	for _, enc := range []peer{jpeg, x265Intra} {
		fmt.Fprintf(&b, " %s |", enc.name)
	}
	fmt.Fprint(&b, "\n|---|---|---|\n")
	for _, name := range names {
		fmt.Fprintf(&b, "| %s |", name)
		for _, enc := range []peer{jpeg, x265Intra} {
			whole, failed := meanBD(rs, enc.name, name, false)
			payload, _ := meanBD(rs, enc.name, name, true)
			fmt.Fprintf(&b, " %+.1f / %+.1f %%", whole, payload)
			if failed > 0 {
				fmt.Fprintf(&b, " (without %d pictures whose curves do not meet)", failed)
			}
			fmt.Fprint(&b, " |")
		}
		fmt.Fprintln(&b)
	}
	return b.String()
}

func meanBD(rs []*clipResult, anchor, name string, payload bool) (percent float64, failed int) {
	for _, r := range rs {
		x, err := metrics.BDRate(curve(r.Curves[anchor], false), curve(r.Curves[name], payload), metrics.PCHIP)
		if err != nil {
			failed++
			continue
		}
		percent += x
	}
	return percent / float64(max(1, len(rs)-failed)), failed
}
