package main

import (
	"bufio"
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/nvcodec/nvcodec/inference/backends"
	"github.com/nvcodec/nvcodec/pipeio"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"nvcodec": func() { os.Exit(mainCode()) }})
}

// TestScripts runs the program as its users do, each command a process of its own.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			clip, err := filepath.Abs("../../testdata/monster.mp4")
			e.Setenv("CLIP", clip)
			return err
		},
		Condition: func(cond string) (bool, error) {
			switch cond {
			case "ffmpeg":
				return pipeio.HasFFmpeg, nil
			case "cuda": // the build has it
				return slices.Contains(backends.Kinds(), "cuda"), nil
			case "gpu": // the machine too
				all, _ := backends.Devices()
				return len(all) > 1, nil
			}
			return false, fmt.Errorf("unknown condition %s", cond)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"makevideo": makeVideo,
			"code":      exitWith,
			"cut":       cutFile,
			"flip":      flipByte,
			"interrupt": interruptEncode,
		},
	})
}

// makeVideo FILE W H FRAMES [SEED] writes a y4m clip: a textured plane that moves, with a brighter square on it.
func makeVideo(ts *testscript.TestScript, _ bool, args []string) {
	num := func(i int) int {
		n, err := strconv.Atoi(args[i])
		ts.Check(err)
		return n
	}
	w, h, frames, seed := num(1), num(2), num(3), 1
	if len(args) > 4 {
		seed = num(4)
	}
	rng := rand.New(rand.NewPCG(uint64(seed), 9))
	const period = 64
	var texture [period][period]byte
	for y := range texture {
		for x := range texture[y] {
			a, b := 2*math.Pi/period*float64(x), 2*math.Pi/period*float64(y)
			texture[y][x] = byte(110 + 30*math.Sin(3*a+float64(seed)) + 30*math.Sin(2*b+math.Sin(a)) + float64(rng.IntN(5)))
		}
	}
	f, err := os.Create(ts.MkAbs(args[0]))
	ts.Check(err)
	defer f.Close()
	b := bufio.NewWriter(f)
	fmt.Fprintf(b, "YUV4MPEG2 W%d H%d F25:1 Ip A1:1 C420mpeg2\n", w, h)
	for n := range frames {
		b.WriteString("FRAME\n")
		for y := range h {
			for x := range w {
				v := texture[(y+n)%period][(x+2*n)%period]
				if x > w/3 && x < w/2 && y > h/3 && y < h/2 {
					v += 90
				}
				b.WriteByte(v)
			}
		}
		for c := range 2 {
			for range (h + 1) / 2 * ((w + 1) / 2) {
				b.WriteByte(byte(120 + 8*c))
			}
		}
	}
	ts.Check(b.Flush())
}

// exitWith CODE COMMAND... runs a command and demands its exit code; stderr goes to the file "stderr.txt".
func exitWith(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	path, err := exec.LookPath(args[1])
	ts.Check(err)
	cmd := exec.Command(path, args[2:]...)
	cmd.Dir = ts.MkAbs(".")
	for _, v := range []string{"PATH", "HOME", "TMPDIR", "NVCODEC_MODELS", "LD_LIBRARY_PATH", "NVCODEC_SOFTWARE_FREE", "NVCODEC_SOFTWARE_DEVICES"} {
		cmd.Env = append(cmd.Env, v+"="+ts.Getenv(v))
	}
	var out, msg bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &msg
	cmd.Run()
	ts.Check(os.WriteFile(ts.MkAbs("stderr.txt"), msg.Bytes(), 0o666))
	ts.Check(os.WriteFile(ts.MkAbs("stdout.txt"), out.Bytes(), 0o666))
	if got := cmd.ProcessState.ExitCode(); got != want {
		ts.Fatalf("%v: exit code %d, want %d\n%s", args[1:], got, want, msg.String())
	}
}

// cutFile FROM TO BYTES copies the first BYTES bytes; a negative number leaves that many out.
func cutFile(ts *testscript.TestScript, _ bool, args []string) {
	b := []byte(ts.ReadFile(args[0]))
	n, err := strconv.Atoi(args[2])
	ts.Check(err)
	if n < 0 {
		n += len(b)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), b[:n], 0o666))
}

// flipByte FROM TO PERMILLE inverts the byte at that thousandth of the file.
func flipByte(ts *testscript.TestScript, _ bool, args []string) {
	b := []byte(ts.ReadFile(args[0]))
	n, err := strconv.Atoi(args[2])
	ts.Check(err)
	b[len(b)*n/1000] ^= 0xff
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), b, 0o666))
}

// interruptEncode IN OUT feeds an encoder half a video on a pipe, interrupts it, and demands exit code 130.
func interruptEncode(ts *testscript.TestScript, _ bool, args []string) {
	path, err := exec.LookPath("nvcodec")
	ts.Check(err)
	cmd := exec.Command(path, "encode", "--model", "nvc1-lite", "-", ts.MkAbs(args[1]))
	cmd.Env = append(os.Environ(), "PATH="+ts.Getenv("PATH"), "NVCODEC_MODELS="+ts.Getenv("NVCODEC_MODELS"))
	in, err := cmd.StdinPipe()
	ts.Check(err)
	var msg bytes.Buffer
	cmd.Stderr = &msg
	ts.Check(cmd.Start())
	b := []byte(ts.ReadFile(args[0]))
	_, err = in.Write(b[:len(b)/2])
	ts.Check(err)
	part := filepath.Join(filepath.Dir(ts.MkAbs(args[1])), "."+filepath.Base(args[1])+".part-*")
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if m, _ := filepath.Glob(part); len(m) > 0 {
			break // the output is being written
		}
		if time.Now().After(deadline) {
			cmd.Process.Kill()
			ts.Fatalf("no output begun: %s", msg.String())
		}
	}
	ts.Check(cmd.Process.Signal(os.Interrupt))
	cmd.Wait()
	if got := cmd.ProcessState.ExitCode(); got != codeInterrupted {
		ts.Fatalf("exit code %d, want %d\n%s", got, codeInterrupted, msg.String())
	}
}
