// Command frames cuts the frames that convert calibrates on out of video files, through the ffmpeg command:
//
//	go run ./convert/internal/frames OUT.safetensors LICENCE name=FILE[@X,Y] …
//
// Of each file it takes 3 frames, 3 apart, from frame 5 on: the 128x128 crop at (X, Y), or the middle one. A clip is
// a tensor U8 [3][192][128]: rows of Y, then of U and V side by side.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/nvcodec/nvcodec/inference/safetensors"
)

const (
	size   = 128
	frames = 3
)

func main() {
	if len(os.Args) < 4 {
		fmt.Fprintln(os.Stderr, "usage: frames OUT.safetensors LICENCE name=FILE[@X,Y] …")
		os.Exit(3)
	}
	if err := run(os.Args[1], os.Args[2], os.Args[3:]); err != nil {
		fmt.Fprintln(os.Stderr, "frames:", err)
		os.Exit(1)
	}
}

func run(out, licence string, specs []string) error {
	f := &safetensors.File{Metadata: map[string]string{"licence": licence, "layout": "frames, rows of Y then of U beside V, columns"}}
	for _, spec := range specs {
		name, file, ok := strings.Cut(spec, "=")
		if !ok {
			return fmt.Errorf("%q is not name=FILE", spec)
		}
		crop := fmt.Sprintf("crop=%d:%d", size, size)
		if path, at, ok := strings.Cut(file, "@"); ok {
			x, y, _ := strings.Cut(at, ",")
			file, crop = path, crop+":"+x+":"+y
		}
		filter := "select='gte(n,5)*not(mod(n-5,3))'," + crop
		raw, err := exec.Command("ffmpeg", "-v", "error", "-i", file, "-vf", filter, "-fps_mode", "passthrough",
			"-frames:v", fmt.Sprint(frames), "-pix_fmt", "yuv420p", "-f", "rawvideo", "-").Output()
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if len(raw) != frames*size*size*3/2 {
			return fmt.Errorf("%s: %d bytes of frames", file, len(raw))
		}
		f.Tensors = append(f.Tensors, safetensors.Tensor{Name: name, Type: "U8", Shape: []int{frames, size * 3 / 2, size}, Data: sideBySide(raw)})
	}
	b, err := safetensors.Marshal(f)
	if err != nil {
		return err
	}
	return os.WriteFile(out, b, 0o666)
}

// sideBySide puts each row of U beside the same row of V.
func sideBySide(raw []byte) []byte {
	out := make([]byte, 0, len(raw))
	const luma, chroma = size * size, size * size / 4
	for ; len(raw) > 0; raw = raw[luma+2*chroma:] {
		out = append(out, raw[:luma]...)
		for r := range size / 2 {
			out = append(out, raw[luma+r*size/2:luma+(r+1)*size/2]...)
			out = append(out, raw[luma+chroma+r*size/2:luma+chroma+(r+1)*size/2]...)
		}
	}
	return out
}
