//go:build cuda && cgo && linux && amd64

package main

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestSoftwareGPU runs the program where libcuda.so.1 is a driver in software: choosing a device, streams equal to the
// CPU's, and what results say of the device.
func TestSoftwareGPU(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles the emulation of every kernel")
	}
	compiler, err := exec.LookPath("g++")
	if err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	emu := "../../inference/cuda/emu"
	sources, err := filepath.Glob(emu + "/*.cpp")
	if err != nil {
		t.Fatal(err)
	}
	build := exec.Command(compiler, append([]string{"-std=c++17", "-O1", "-fPIC", "-shared", "-o", filepath.Join(dir, "libcuda.so.1"),
		emu + "/driver/driver.cpp", "-Wl,-Bsymbolic"}, sources...)...)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", build, err, out)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/gpu",
		RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("LD_LIBRARY_PATH", dir)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"makevideo": makeVideo, "code": exitWith},
	})
}
