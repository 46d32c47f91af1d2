//go:build cuda

package cuda

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nvcodec/nvcodec/inference/cuda/emu"
)

func read(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestSource: the PTX and the emulation come from the kernels' sources as they are now. This needs no compiler.
func TestSource(t *testing.T) {
	names, err := filepath.Glob("kernels/*.cu*")
	if err != nil || len(names) == 0 {
		t.Fatal("no sources: ", err)
	}
	slices.Sort(names)
	h := sha256.New()
	for _, name := range names {
		text := read(t, name)
		fmt.Fprintf(h, "%s %d\n%s", filepath.Base(name), len(text), text)
	}
	source := fmt.Sprintf("%x", h.Sum(nil))
	if emu.Source != source {
		t.Errorf("the emulation was compiled from sources %s, now %s; run go generate", emu.Source, source)
	}
	for _, sm := range families {
		name := fmt.Sprintf("kernels/kernels_sm%d.ptx", sm)
		text, err := ptx.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(text, []byte("\n// source sha256:"+source+"\n")) {
			t.Errorf("%s is not from sources %s; run go generate", name, source)
		}
		// The lowest version of PTX that has dp4a, mma.m8n8k16, mma.m16n8k32: drivers refuse an instruction that is
		// newer than the file says.
		version := map[int]string{61: "5.0", 75: "6.5", 80: "7.0"}[sm]
		if !bytes.Contains(text, fmt.Appendf(nil, "\n.version %s\n.target sm_%d\n", version, sm)) {
			t.Errorf("%s is for another target or version", name)
		}
	}
}

// TestGenerated compiles the kernels anew and compares, byte for byte when the compiler is the one that the header
// names. NVCODEC_REQUIRE=generate makes a missing compiler a failure.
func TestGenerated(t *testing.T) {
	absent := func(why string) {
		if required("generate") {
			t.Fatal(why)
		}
		t.Skip(why)
	}
	version, err := exec.Command("clang-19", "--version").Output()
	if err != nil {
		absent(fmt.Sprintf("clang-19: %v", err))
	}
	first, _, _ := bytes.Cut(version, []byte("\n"))
	dir := t.TempDir()
	goRun(t, "ptx.go", dir, dir)
	for _, name := range []string{"kernels_sm61.ptx", "kernels_sm75.ptx", "kernels_sm80.ptx"} {
		want := read(t, filepath.Join("kernels", name))
		if !bytes.Contains(want, fmt.Appendf(nil, "\n// compiler %s\n", first)) {
			absent(fmt.Sprintf("%s was compiled by another compiler than this %s", name, first))
		}
		if !bytes.Equal(read(t, filepath.Join(dir, name)), want) {
			t.Errorf("%s is not what clang-19 makes of the sources now; run go generate ./inference/cuda", name)
		}
	}
	if !bytes.Equal(read(t, filepath.Join(dir, "source.h")), read(t, "emu/source.h")) {
		t.Error("emu/source.h is not current; run go generate ./inference/cuda")
	}
}

func TestTrampolineGenerated(t *testing.T) {
	file := filepath.Join(t.TempDir(), "libcuda.c")
	goRun(t, "trampoline.go", file)
	if !bytes.Equal(read(t, file), read(t, "libcuda_linux_amd64.c")) {
		t.Error("libcuda_linux_amd64.c is not what trampoline.go makes of include/cuda.h; run go generate ./inference/cuda")
	}
}

func goRun(t *testing.T, args ...string) {
	t.Helper()
	cmd := exec.Command("go", append([]string{"run"}, args...)...)
	cmd.Env = append(os.Environ(), "GOFLAGS=", "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go run %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}
