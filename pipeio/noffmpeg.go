//go:build noffmpeg

package pipeio

import (
	"context"
	"fmt"

	"github.com/nvcodec/nvcodec/yuv"
)

// HasFFmpeg tells whether this build reads and writes other files than uncompressed ones.
const HasFFmpeg = false

// FFmpegVersions names FFmpeg's libraries: none here.
func FFmpegVersions() string { return "" }

func openFFmpeg(_ context.Context, path string, _ OpenOptions) (Source, error) {
	return nil, fmt.Errorf("%s: %w", path, ErrNoFFmpeg)
}

func createFFmpeg(_ context.Context, path string, _ yuv.Format, _ CreateOptions) (Sink, error) {
	return nil, fmt.Errorf("%s: %w", path, ErrNoFFmpeg)
}

func ffmpegReads(string) bool { return false }

// adapt refuses to scale and says that interlaced pictures stay so: both need FFmpeg's filters.
func adapt(_ context.Context, s *planarSource, o OpenOptions) (Source, error) {
	if o.Resolution != 0 {
		s.Close()
		return nil, fmt.Errorf("%s: resolution: scaling is not in a build without FFmpeg", s.name)
	}
	if s.interl {
		s.notes = append(s.notes, Note{"interlaced", "interlaced pictures are taken as they are", false})
	}
	return s, nil
}
