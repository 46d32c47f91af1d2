package codec

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nvcodec/nvcodec/inference"
	"github.com/nvcodec/nvcodec/yuv"
)

var (
	update    = flag.Bool("update", false, "rewrite the vectors in testdata/vectors and the worked example in docs/FORMAT.md, for new models or a new format; and as -encoded")
	anew      = flag.Bool("encoded", false, "rewrite testdata/encoded.txt, for an encoder that chooses otherwise")
	modelsDir = flag.String("models", "../models", "directory of the models that vectors are made with")
)

const vectorsDir = "../testdata/vectors"

// A recipe says how a vector's stream came about.
type recipe struct {
	name, model, comment string

	frames  []*yuv.Frame
	format  func(*yuv.Format)     // nil: formatOf's
	options func(*EncoderOptions) // nil: the defaults
	change  func(s []byte) []byte // what was done to the stream then; nil: nothing
	expect  string                // "": ok
	large   bool                  // spare the generic kernels
}

func recipes() []recipe {
	small := video(16, 16, 4, 0)
	shortGOPs := func(o *EncoderOptions) { o.IntraPeriod = 2 }
	second := func(s []byte) int { // place of the second GOP's chunk
		info, err := Scan(bytes.NewReader(s), int64(len(s)))
		if err != nil {
			panic(err)
		}
		return int(info.Footer.GOPs[1].Offset)
	}
	flip := func(s []byte, at int) []byte { s[at] ^= 0x10; return s }
	irregular := video(16, 16, 6, 0)
	for i, pts := range []int64{100, 133, 167, 200, 1000, 1033} {
		irregular[i].PTS = pts
	}
	return []recipe{
		{name: "worked-example", model: "nvc1-lite", comment: "the stream that docs/FORMAT.md takes apart", frames: ramps(16, 16, 2),
			options: func(o *EncoderOptions) { o.QPI, o.QPP = 0, 0 }},
		{name: "base", model: "nvc1-base", comment: "one GOP of the larger model", frames: video(64, 64, 5, 0)},
		{name: "odd-size", model: "nvc1-lite", comment: "67x35: chroma of 34x18, padding on both sides, four blocks of 64",
			frames: video(67, 35, 5, 0), options: func(o *EncoderOptions) { o.QPI, o.QPP = 30, 21 }},
		{name: "one-sample", model: "nvc1-lite", comment: "1x1", frames: video(1, 1, 2, 0)},
		{name: "scene-cut", model: "nvc1-lite", comment: "another scene from frame 3 on begins a GOP", frames: video(64, 64, 5, 3),
			options: func(o *EncoderOptions) { o.SceneCut = true }},
		{name: "resets", model: "nvc1-lite", comment: "a rebuilt memory at k = 1, 4 and 7, GOPs of 9 frames",
			frames: video(64, 64, 12, 0), options: func(o *EncoderOptions) { o.ResetInterval, o.IntraPeriod = 3, 9 }},
		{name: "low-delay", model: "nvc1-lite", comment: "a chunk for each frame", frames: video(64, 64, 4, 0),
			options: func(o *EncoderOptions) { o.LowDelay = true }},
		{name: "qp-0", model: "nvc1-lite", comment: "the lowest QP, which the pattern does not lower further", frames: video(64, 64, 4, 0),
			options: func(o *EncoderOptions) { o.QPI, o.QPP = 0, 0 }},
		{name: "qp-63", model: "nvc1-lite", comment: "the highest QP, nothing skipped", frames: video(128, 64, 4, 0),
			options: func(o *EncoderOptions) { o.QPI, o.QPP, o.Threshold = 63, 63, 0 }},
		{name: "many-lanes", model: "nvc1-lite", comment: "noise: escapes, and more lanes than one group has", frames: noise(256, 256, 1), large: true,
			options: func(o *EncoderOptions) { o.QPI, o.QPP, o.Threshold = 63, 63, 0 }},
		{name: "many-symbols", model: "nvc1-lite", comment: "few bytes for many symbols, which are given lanes nevertheless", frames: ramps(320, 256, 2), large: true,
			options: func(o *EncoderOptions) { o.QPI, o.QPP, o.Threshold = 21, 21, 0 }},
		{name: "nothing-coded", model: "nvc1-lite", comment: "a threshold of 64: no y symbol is coded", frames: small,
			options: func(o *EncoderOptions) { o.Threshold = 64 }},
		{name: "irregular-times", model: "nvc1-lite", comment: "milliseconds of 30 frames/s with a gap; header with every optional field", frames: irregular,
			format: func(f *yuv.Format) {
				f.TimeBase, f.SAR, f.Rotation = yuv.Rational{Num: 1, Den: 1000}, yuv.Rational{Num: 12, Den: 11}, 90
				f.Colour = yuv.Colour{Range: 1, Primaries: 1, Transfer: 1, Matrix: 1, ChromaLoc: 1}
			}},
		{name: "unknown-chunk", model: "nvc1-lite", comment: "a chunk of type 'z' before the second GOP is skipped", frames: small, options: shortGOPs,
			change: func(s []byte) []byte {
				return splice(s, int64(second(s)), appendChunk(nil, 'z', 0, []byte("later"))...)
			}},
		{name: "damaged-gop", model: "nvc1-lite", comment: "a wrong bit in the second GOP's payload; the first and the third decode", expect: "corrupt",
			frames: video(16, 16, 6, 0), options: shortGOPs, change: func(s []byte) []byte { return flip(s, second(s)+30) }},
		{name: "damaged-length", model: "nvc1-lite", comment: "a wrong bit in the length of the second GOP's chunk; the first and the third decode", expect: "corrupt",
			frames: video(16, 16, 6, 0), options: shortGOPs, change: func(s []byte) []byte { return flip(s, second(s)+1) }},
		{name: "damaged-header", model: "nvc1-lite", comment: "a wrong bit in the model identity", expect: "corrupt", frames: small,
			change: func(s []byte) []byte { return flip(s, 12) }},
		{name: "truncated", model: "nvc1-lite", comment: "cut within the second GOP's second frame; three frames decode", expect: "truncated",
			frames: small, options: shortGOPs, change: func(s []byte) []byte {
				info, _ := Scan(bytes.NewReader(s), int64(len(s)))
				return s[:info.Records[3].Offset+int64(info.Records[3].Bytes)-1]
			}},
		{name: "no-footer", model: "nvc1-lite", comment: "cut before the footer; all frames decode", expect: "truncated",
			frames: small, change: func(s []byte) []byte { return s[:len(s)-footerSize(s)] }},
		{name: "version-2", model: "nvc1-lite", comment: "another version", expect: "unsupported", frames: small[:1],
			change: func(s []byte) []byte { s[4] = 2; return s }},
		{name: "critical-chunk", model: "nvc1-lite", comment: "an unknown chunk of type 'Z' before the second GOP; the first decodes", expect: "unsupported",
			frames: small, options: shortGOPs,
			change: func(s []byte) []byte {
				return splice(s, int64(second(s)), appendChunk(nil, 'Z', 0, []byte("later"))...)
			}},
	}
}

// A vector is a stream with its stated outcome.
type vector struct {
	name, model, expect, stream, frames, comment string
	count                                        int // frames that decode
}

func (v *vector) text() string {
	return fmt.Sprintf("name: %s\nmodel: %s\nexpect: %s\nstream: %s\ncount: %d\nframes: %s\ncomment: %s\n",
		v.name, v.model, v.expect, v.stream, v.count, v.frames, v.comment)
}

func parseVector(text string) (*vector, error) {
	v := &vector{}
	for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
		key, value, _ := strings.Cut(line, ": ")
		switch key {
		case "name":
			v.name = value
		case "model":
			v.model = value
		case "expect":
			v.expect = value
		case "stream":
			v.stream = value
		case "count":
			fmt.Sscan(value, &v.count)
		case "frames":
			v.frames = value
		case "comment":
			v.comment = value
		default:
			return nil, fmt.Errorf("unknown line %q", line)
		}
	}
	return v, nil
}

func sum(b []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(b)) }

// outcome decodes a stream: what happened first that is not a frame, and the frames that came, before and after it.
func outcome(stream []byte, o DecoderOptions) (expect string, count int, frames string) {
	h := sha256.New()
	expect = "ok"
	met := func(err error) (more bool) {
		var bad *CorruptError
		var hash *HashError
		name := err.Error()
		switch {
		case errors.As(err, &hash):
			name, more = "mismatch", true
		case errors.As(err, &bad):
			name, more = "corrupt", true
		case errors.Is(err, ErrTruncated):
			name = "truncated"
		case errors.Is(err, ErrUnsupported):
			name = "unsupported"
		}
		if expect == "ok" {
			expect = name
		}
		return more
	}
	d, err := NewDecoder(bytes.NewReader(stream), o)
	if err != nil {
		met(err)
		return expect, 0, fmt.Sprintf("sha256:%x", h.Sum(nil))
	}
	defer d.Close()
	for {
		f, _, err := d.Next(context.Background())
		if err == nil {
			p := *f.Planes.Clone()
			h.Write(p.Y)
			h.Write(p.U)
			h.Write(p.V)
			count++
		} else if err == io.EOF || !met(err) {
			return expect, count, fmt.Sprintf("sha256:%x", h.Sum(nil))
		}
	}
}

func loadModel(t testing.TB, name string) *inference.Model {
	b, err := os.ReadFile(filepath.Join(*modelsDir, name+".nvm"))
	if err != nil {
		t.Skipf("no model: %v", err)
	}
	m, err := inference.Load(b)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func (r *recipe) make(t testing.TB, m *inference.Model, b inference.Backend, threads int) []byte {
	o := DefaultOptions()
	o.Model, o.Backend, o.Threads, o.SceneCut = m, b, threads, false
	if r.options != nil {
		r.options(&o)
	}
	format := formatOf(r.frames)
	if r.format != nil {
		r.format(&format)
	}
	stream, _, _ := encode(t, o, r.frames, format)
	if r.change != nil {
		stream = r.change(bytes.Clone(stream))
	}
	return stream
}

// Every vector has its stated outcome, and of its recipe the encoder makes the stated bytes, with every kernel set and any
// number of threads. -update and -encoded write what the first set makes, which the others must then reproduce.
func TestVectors(t *testing.T) {
	if testing.Short() {
		t.Skip("decodes and encodes every vector several times")
	}
	if _, err := os.Stat(vectorsDir); err != nil && !*update {
		t.Skip(err)
	}
	models := map[string]*inference.Model{}
	for _, name := range []string{"nvc1-base", "nvc1-lite"} {
		models[name] = loadModel(t, name)
	}
	byName := map[string]recipe{}
	var made [][2]string
	for _, r := range recipes() {
		byName[r.name] = r
		if *update || *anew {
			stream := r.make(t, models[r.model], fastest(), 2)
			made = append(made, [2]string{r.name, sum(stream)})
			if *update {
				writeVector(t, &r, models[r.model], stream)
			}
		}
	}
	if *update {
		updateExample(t)
	}
	if made != nil {
		writeEncoded(t, made)
	}
	encoded := readEncoded(t)
	if len(encoded) != len(byName) {
		t.Errorf("%s states %d streams, there are %d recipes", encodedFile, len(encoded), len(byName))
	}
	files, err := filepath.Glob(filepath.Join(vectorsDir, "*.txt"))
	if err != nil || len(files) < len(byName) {
		t.Fatalf("%d vectors in %s, %d recipes, %v: run go test ./codec -run TestVectors -update", len(files), vectorsDir, len(byName), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			v, err := parseVector(string(text))
			if err != nil {
				t.Fatal(err)
			}
			stream, err := os.ReadFile(strings.TrimSuffix(file, ".txt") + ".nvc")
			if err != nil {
				t.Fatal(err)
			}
			if sum(stream) != v.stream {
				t.Fatalf("the file has %s, stated is %s", sum(stream), v.stream)
			}
			r, made := byName[v.name]
			brief := r.large || r.change != nil // what was changed came from a stream like another vector's
			for _, b := range inference.Backends() {
				for _, threads := range []int{1, 3} {
					if brief && threads > 1 {
						continue
					}
					o := DecoderOptions{Models: onlyModel(models[v.model]), Backend: b, Threads: threads}
					if expect, count, frames := outcome(stream, o); expect != v.expect || count != v.count || frames != v.frames {
						t.Errorf("%s, %d threads: %s, %d frames, %s; stated %s, %d, %s", b.Kernels(), threads, expect, count, frames, v.expect, v.count, v.frames)
					}
					if !made || brief && b.Kernels() != fastest().Kernels() || threads > 1 && b.Kernels() == "generic" {
						continue
					}
					if got := r.make(t, models[v.model], b, threads); sum(got) != encoded[v.name] {
						os.WriteFile(filepath.Join(vectorsDir, v.name+".nvc.got"), got, 0o644)
						t.Errorf("%s, %d threads: encoded anew, %d bytes (see .got) have %s, stated is %s", b.Kernels(), threads, len(got), sum(got), encoded[v.name])
					}
				}
			}
		})
	}
}

func writeVector(t *testing.T, r *recipe, m *inference.Model, stream []byte) {
	v := &vector{name: r.name, model: r.model, comment: r.comment, stream: sum(stream)}
	v.expect, v.count, v.frames = outcome(stream, DecoderOptions{Models: onlyModel(m), Backend: fastest()})
	want := r.expect
	if want == "" {
		want = "ok"
	}
	if v.expect != want {
		t.Errorf("%s: %s, the recipe wants %s", r.name, v.expect, want)
	}
	if err := os.MkdirAll(vectorsDir, 0o755); err != nil {
		t.Fatal(err)
	}
	for ext, data := range map[string][]byte{".txt": []byte(v.text()), ".nvc": stream} {
		if err := os.WriteFile(filepath.Join(vectorsDir, r.name+ext), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
