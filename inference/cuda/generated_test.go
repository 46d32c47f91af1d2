//go:build cuda

package cuda

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
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

// modules returns the names of kernels/*.cu and the families that each is compiled for.
func modules(t *testing.T) map[string][]string {
	t.Helper()
	files, err := filepath.Glob("kernels/*.cu")
	if err != nil || len(files) == 0 {
		t.Fatal("no sources: ", err)
	}
	all := map[string][]string{}
	for _, file := range files {
		m := regexp.MustCompile(`(?m)^// families: (.*)$`).FindSubmatch(read(t, file))
		if m == nil {
			t.Fatalf("%s does not say its families", file)
		}
		all[strings.TrimSuffix(filepath.Base(file), ".cu")] = strings.Fields(string(m[1]))
	}
	return all
}

// sourceHash covers the name and text of a module and of everything that it includes.
func sourceHash(t *testing.T, module string) string {
	t.Helper()
	names := []string{module + ".cu"}
	for i := 0; i < len(names); i++ {
		for _, m := range regexp.MustCompile(`(?m)^#include "([^"/]+)"$`).FindAllSubmatch(read(t, "kernels/"+names[i]), -1) {
			if !slices.Contains(names, string(m[1])) {
				names = append(names, string(m[1]))
			}
		}
	}
	slices.Sort(names)
	h := sha256.New()
	for _, name := range names {
		text := read(t, "kernels/"+name)
		fmt.Fprintf(h, "%s %d\n%s", name, len(text), text)
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}

// TestSource: the PTX and the emulation come from the kernels' sources as they are now. This needs no compiler.
func TestSource(t *testing.T) {
	for module, sms := range modules(t) {
		want := "// source sha256:" + sourceHash(t, module) + "\n"
		again := "run go run ptx.go kernels emu " + module
		if have := emu.Source(module); !strings.Contains(have, want) {
			t.Errorf("the emulation of %s was compiled from %q, now %s; %s", module, have, want, again)
		}
		for _, sm := range sms {
			name := fmt.Sprintf("kernels/%s_sm%s.ptx", module, sm)
			text, err := ptx.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Contains(text, []byte("\n"+want)) {
				t.Errorf("%s is not from sources %s; %s", name, want, again)
			}
			// The lowest version of PTX that has dp4a and shfl.sync, mma.m8n8k16, mma.m16n8k32 and waits for a phase, wgmma: drivers refuse an
			// instruction that is newer than the file says.
			version := map[string]string{"61": "6.0", "75": "6.5", "80": "7.1", "90a": "8.4"}[sm]
			if !bytes.Contains(text, fmt.Appendf(nil, "\n.version %s\n.target sm_%s\n", version, sm)) {
				t.Errorf("%s is for another target or version", name)
			}
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
	for module, sms := range modules(t) {
		for _, sm := range sms {
			name := fmt.Sprintf("%s_sm%s.ptx", module, sm)
			want := read(t, filepath.Join("kernels", name))
			if !bytes.Contains(want, fmt.Appendf(nil, "\n// compiler %s\n", first)) {
				absent(fmt.Sprintf("%s was compiled by another compiler than this %s", name, first))
			}
			if !bytes.Equal(read(t, filepath.Join(dir, name)), want) {
				t.Errorf("%s is not what clang-19 makes of the sources now; run go generate ./inference/cuda", name)
			}
		}
		name := "source_" + module + ".h"
		if !bytes.Equal(read(t, filepath.Join(dir, name)), read(t, "emu/"+name)) {
			t.Errorf("emu/%s is not current; run go generate ./inference/cuda", name)
		}
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
