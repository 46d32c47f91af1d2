package train

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nvcodec/nvcodec/convert"
	"github.com/nvcodec/nvcodec/yuv"
)

// clip writes a clip of drifting texture to train on.
const clip = `
import sys, numpy as np
r = np.random.default_rng(3)
big = np.kron(r.integers(0, 256, (50, 60)), np.ones((8, 8))).astype(np.uint8)
y = np.stack([big[k:k + 272, 2 * k:2 * k + 288] for k in range(61)])
np.savez(sys.argv[1], y=y, uv=np.stack([y[:, ::2, ::2], 255 - y[:, ::2, ::2]], 1))
`

// TestSmoke goes the whole way with a network of few channels: two steps in floats and two in fixed point, stopped after
// the first and gone on with, export, conversion that keeps the fractional bits which training chose, and a model that Python and Go compute alike.
func TestSmoke(t *testing.T) {
	interpreter := python(t, "numpy, torch")
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := os.Mkdir(at("data"), 0o777); err != nil {
		t.Fatal(err)
	}
	run(t, interpreter, "-c", clip, at("data/clip.npz"))
	train := func(phases string, more ...string) state {
		run(t, interpreter, append([]string{"train.py", "--data", at("data"), "--out", at("t.pt"), "--ci", "32", "--cp", "32",
			"--state", at("t"), "--phases", phases}, more...)...)
		return readState(t, at("t.json"))
	}
	stopped := train(`[["1 steps", [2, 4], 2, 128, 1e-4, 1e-5]]`)
	if string(stopped["steps"]) != "1" || string(stopped["phase"]) != "1" {
		t.Fatalf("after the first step: %s", stopped)
	}
	stopped["phase"], stopped["k"], stopped["passed"] = []byte("0"), []byte("1"), []byte("0.5")
	stopped.write(t, at("t.json"))
	done := train(`[["2 steps", [2, 4], 2, 128, 1e-4, 1e-5], ["2 steps", 2, 1, 128, 1e-5, 1e-6, "int16"]]`, "--resume", at("t"))
	if string(done["steps"]) != "4" || string(done["phase"]) != "2" {
		t.Errorf("after a step of two, three more were due: %s steps, phase %s", done["steps"], done["phase"])
	}
	run(t, interpreter, "export.py", at("t.pt"), at("t.safetensors"))
	refusesAlign(t, interpreter, dir)
	c, err := convert.ReadCheckpoint(at("t.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	result, err := convert.Run(context.Background(), c, convert.Options{Name: "tiny"})
	if err != nil {
		t.Fatal(err)
	}
	chosen := convert.Fractions{}
	if err := json.Unmarshal([]byte(c.Meta["fractions"]), &chosen); err != nil {
		t.Fatal(err)
	}
	for group, f := range result.Fractions {
		if chosen[group] != f {
			t.Errorf("group %s has %d fractional bits, training chose %d", group, f, chosen[group])
		}
	}
	r := rand.New(rand.NewPCG(1, 1))
	var frames []frame
	for k, graph := range []string{"intra", "reset", "inter"} {
		f := frame{Graph: graph, QP: 30, planes: yuv.New(128, 64), vectors: make([]int16, 64)}
		for _, plane := range [][]byte{f.planes.Y, f.planes.U, f.planes.V} {
			for i := range plane {
				plane[i] = byte(i/5*(k+1)) + byte(r.IntN(20))
			}
		}
		if graph == "intra" {
			f.vectors = nil
		}
		frames = append(frames, f)
	}
	agree(t, result.Model, result.File, frames)
}

// refusesAlign goes on from t.pt with motion between positions: checkpoints say so, a run that begins with them keeps it, and export refuses.
func refusesAlign(t *testing.T, interpreter, dir string) {
	t.Helper()
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, step := range [][]string{{"t.pt", "a.pt", "--align", "4"}, {"a.pt", "b.pt"}} {
		run(t, interpreter, append([]string{"train.py", "--data", at("data"), "--init", at(step[0]), "--out", at(step[1]), "--ci", "32", "--cp", "32",
			"--phases", `[["1 steps", 2, 1, 128, 1e-5, 1e-6, "int16"]]`}, step[2:]...)...)
		out, err := exec.Command(interpreter, "export.py", at(step[1]), at("no.safetensors")).CombinedOutput()
		if err == nil || !strings.Contains(string(out), "1/4 of a position") {
			t.Errorf("export of a network that moves by 1/4 of a position: %v\n%s", err, out)
		}
	}
}

// A state is the position that a run resumes from.
type state map[string]json.RawMessage // the random numbers' state needs 128 bits

func readState(t *testing.T, path string) state {
	b, err := os.ReadFile(path)
	s := state{}
	if err == nil {
		err = json.Unmarshal(b, &s)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (s state) write(t *testing.T, path string) {
	b, err := json.Marshal(s)
	if err == nil {
		err = os.WriteFile(path, b, 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// What training simulates is what the integer network computes.
func TestPython(t *testing.T) {
	interpreter := python(t, "numpy, torch")
	for _, script := range []string{"test_kernels.py", "test_fast.py", "test_fixed.py", "test_align.py", "test_qps.py"} {
		t.Run(script, func(t *testing.T) { run(t, interpreter, script) })
	}
}
