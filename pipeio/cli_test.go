//go:build !noffmpeg

package pipeio

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/nvcodec/nvcodec/yuv"
)

// What we decode is what the ffmpeg program decodes, and what we write is what ffprobe reads. These need the
// programs, which are not needed otherwise.
func TestAgainstPrograms(t *testing.T) {
	for _, p := range []string{"ffmpeg", "ffprobe"} {
		if _, err := exec.LookPath(p); err != nil {
			t.Skip(err)
		}
	}
	path := filepath.Join(t.TempDir(), "a.mp4")
	f := testFormat(64, 48)
	f.SAR, f.Rotation = yuv.Rational{Num: 16, Den: 11}, 90
	f.Colour = yuv.Colour{Range: 2, Primaries: 9, Transfer: 14, Matrix: 9, ChromaLoc: 1}
	write(t, path, f, 12, CreateOptions{})

	src := open1(t, path, OpenOptions{})
	h := sha256.New()
	for range 12 {
		p, err := src.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		h.Write(appendPlanes(nil, &p.Planes))
	}
	// yuvj420p, since asking for yuv420p would convert the range
	out, err := exec.Command("ffmpeg", "-v", "error", "-noautorotate", "-i", path, "-vsync", "0", "-f", "rawvideo", "-pix_fmt", "yuvj420p", "-").Output()
	if err != nil {
		t.Fatal(err)
	}
	if fmt.Sprintf("%x", sha256.Sum256(out)) != fmt.Sprintf("%x", h.Sum(nil)) {
		t.Error("ffmpeg decodes other samples")
	}

	out, err = exec.Command("ffprobe", "-v", "error", "-count_packets", "-show_streams", "-of", "json", path).Output()
	if err != nil {
		t.Fatal(err)
	}
	var probe struct {
		Streams []struct {
			Width, Height                                                  int
			Nb_read_packets, Sample_aspect_ratio, Duration, Avg_frame_rate string
			Color_range, Color_space, Color_transfer, Color_primaries      string
			Chroma_location                                                string
			Side_data_list                                                 []struct{ Rotation float64 }
		}
	}
	if err := json.Unmarshal(out, &probe); err != nil || len(probe.Streams) != 1 {
		t.Fatal(err, string(out))
	}
	s := probe.Streams[0]
	got := fmt.Sprint(s.Width, s.Height, s.Nb_read_packets, s.Sample_aspect_ratio, s.Duration, s.Avg_frame_rate, s.Color_range, s.Color_space, s.Color_transfer, s.Color_primaries, s.Chroma_location, s.Side_data_list)
	if want := fmt.Sprint(64, 48, "12", "16:11", "0.480000", "25/1", "pc", "bt2020nc", "bt2020-10", "bt2020", "left", "[{-90}]"); got != want {
		t.Errorf("ffprobe reads %s\nwant %s", got, want)
	}

	// y4m for the programs and from them
	y := filepath.Join(t.TempDir(), "a.y4m")
	write(t, y, testFormat(33, 17), 4, CreateOptions{})
	z := filepath.Join(t.TempDir(), "b.y4m")
	if out, err := exec.Command("ffmpeg", "-v", "error", "-i", y, "-strict", "-1", z).CombinedOutput(); err != nil || len(out) != 0 {
		t.Fatalf("%v %s", err, out)
	}
	a, b := readAll(t, open1(t, y, OpenOptions{})), readAll(t, open1(t, z, OpenOptions{}))
	if fmt.Sprint(a) != fmt.Sprint(b) || len(a) != 4 {
		t.Error("y4m through ffmpeg differs")
	}
}
