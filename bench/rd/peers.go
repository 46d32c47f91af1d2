package main

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strconv"

	"github.com/nvcodec/nvcodec/yuv"
)

func itoa(x int) string { return strconv.Itoa(x) }

// A peer is another encoder, run through the ffmpeg program.
type peer struct {
	name     string
	args     []string
	format   string // of the elementary stream
	sei      string // NAL unit types of SEI
	settings []int  // CRFs
}

// One intra frame, as ours; CRFs that span the models' range of quality.
var peers = []peer{
	{"x264 medium", []string{"-c:v", "libx264", "-preset", "medium", "-x264-params", "keyint=infinite:scenecut=0"}, "h264", "6", []int{18, 23, 28, 33, 38, 43}},
	{"x264 veryfast zerolatency", []string{"-c:v", "libx264", "-preset", "veryfast", "-tune", "zerolatency", "-x264-params", "keyint=infinite:scenecut=0"}, "h264", "6", []int{18, 23, 28, 33, 38, 43}},
	{"x265 medium", []string{"-c:v", "libx265", "-preset", "medium", "-x265-params", "keyint=-1:scenecut=0:log-level=error"}, "hevc", "39-40", []int{18, 23, 28, 33, 38, 43}},
}

func (p *peer) encode(ctx context.Context, f yuv.Format, video []*yuv.Frame, crf, threads int) (point, error) {
	raw := make([]byte, 0, len(video)*f.W*f.H*2)
	for _, v := range video {
		raw = append(append(append(raw, v.Y...), v.U...), v.V...)
	}
	size := fmt.Sprintf("%dx%d", f.W, f.H)
	args := append([]string{"-v", "error", "-f", "rawvideo", "-pix_fmt", "yuv420p", "-s", size, "-r", "25", "-i", "-", "-threads", itoa(threads)}, p.args...)
	args = append(args, "-crf", itoa(crf), "-bsf:v", "filter_units=remove_types="+p.sei, "-f", p.format, "-")
	stream, err := ffmpeg(ctx, raw, args...)
	if err != nil {
		return point{}, err
	}
	back, err := ffmpeg(ctx, stream, "-v", "error", "-f", p.format, "-i", "-", "-vsync", "0", "-pix_fmt", "yuv420p", "-f", "rawvideo", "-")
	if err != nil {
		return point{}, err
	}
	frame := f.W*f.H + 2*((f.W+1)/2)*((f.H+1)/2)
	if len(back) != frame*len(video) {
		return point{}, fmt.Errorf("%d frames became %d bytes", len(video), len(back))
	}
	var decoded []*yuv.Frame
	for i := range video {
		d := &yuv.Frame{Planes: *yuv.New(f.W, f.H)}
		b := back[i*frame : (i+1)*frame]
		n := copy(d.Y, b)
		n += copy(d.U, b[n:])
		copy(d.V, b[n:])
		decoded = append(decoded, d)
	}
	y, err := meanY(video, decoded)
	return point{Setting: itoa(crf), Bytes: int64(len(stream)), PSNRY: y}, err
}

func ffmpeg(ctx context.Context, stdin []byte, args ...string) ([]byte, error) {
	return pipe(ctx, stdin, "ffmpeg", args...)
}

func pipe(ctx context.Context, stdin []byte, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	var out, msg bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(stdin), &out, &msg
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s %v: %w: %s", name, args, err, msg.String())
	}
	return out.Bytes(), nil
}
