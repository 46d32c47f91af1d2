package codec

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nvcodec/nvcodec/inference"
)

const decodeEnv = "NVCODEC_TEST_DECODE"

// TestDecodeChild is not a test: run by TestSeparateProcesses in a process of its own, it prints a line for each frame
// of the stream named by the environment.
func TestDecodeChild(t *testing.T) {
	path := os.Getenv(decodeEnv)
	if path == "" {
		t.Skip("only a child of TestSeparateProcesses")
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	backend, err := inference.CPU("auto") // NVCODEC_KERNELS lowers it
	if err != nil {
		t.Fatal(err)
	}
	o := DecoderOptions{Models: onlyModel(processModel(t)), Backend: backend, NoVerify: true}
	frames, errs := decodeAll(file, o)
	for i := range frames {
		fmt.Printf("frame %d %08x\n", frames[i].info.Number, PictureHash(&frames[i].picture))
	}
	if len(errs) > 0 {
		t.Fatal(errs)
	}
}

// processModel is a shipped model where there is one, as training left it.
func processModel(t *testing.T) *inference.Model {
	if testing.Short() {
		return testModel()
	}
	if b, err := os.ReadFile(filepath.Join(*modelsDir, "nvc1-lite.nvm")); err == nil {
		if m, err := inference.Load(b); err == nil {
			return m
		}
	}
	return testModel()
}

// The encoder's reconstruction is what other processes decode, with every kernel set: nothing but the stream's bytes
// and the model file passes between them.
func TestSeparateProcesses(t *testing.T) {
	o := testOptions()
	o.Model, o.Backend = processModel(t), fastest()
	o.ResetInterval, o.IntraPeriod = 3, 6
	frames := video(80, 64, 8, 0)
	stream, pictures, _ := encode(t, o, frames, formatOf(frames))
	var want []string
	for i := range pictures {
		want = append(want, fmt.Sprintf("frame %d %08x", i, PictureHash(&pictures[i])))
	}
	path := filepath.Join(t.TempDir(), "a.nvc")
	if err := os.WriteFile(path, stream, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, b := range inference.Backends() {
		dir, err := filepath.Abs(*modelsDir)
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(os.Args[0], "-test.run=^TestDecodeChild$", "-models="+dir, fmt.Sprint("-test.short=", testing.Short()))
		cmd.Env = append(os.Environ(), decodeEnv+"="+path, "NVCODEC_KERNELS="+b.Kernels())
		var errOut bytes.Buffer
		cmd.Stderr = &errOut
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s: %v\n%s%s", b.Kernels(), err, out, errOut.Bytes())
		}
		var got []string
		for _, line := range strings.Split(string(out), "\n") {
			if strings.HasPrefix(line, "frame ") {
				got = append(got, line)
			}
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("%s: decoded %v, the encoder had %v", b.Kernels(), got, want)
		}
	}
}
