//go:build cuda

package cuda

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestSoftwareDriver runs this test program again where libcuda.so.1 is a driver in software over the emulation, so
// that the way through gorgonia.org/cu to the driver is tested on any machine with a C++ compiler: contexts on threads,
// the stream, page-locked memory, captured graphs, and that everything is given back.
func TestSoftwareDriver(t *testing.T) {
	if os.Getenv("NVCODEC_SOFTWARE_DRIVER") != "" {
		t.Skip("runs on it")
	}
	compiler, err := exec.LookPath("g++")
	if err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	lib := filepath.Join(dir, "libcuda.so.1")
	sources, err := filepath.Glob("emu/*.cpp")
	if err != nil {
		t.Fatal(err)
	}
	build := exec.Command(compiler, append([]string{"-std=c++17", "-O1", "-fPIC", "-shared", "-o", lib, "emu/driver/driver.cpp", "-Wl,-Bsymbolic"}, sources...)...)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", build, err, out)
	}
	run := "^Test(Absent|Errors|NoAllocation|Concurrent|Pictures|CallersStream|Events|ForkedGraph|CodersAllocateNothing|CodersStream|CodersConcurrently)$/impl=cuda:0/sm_80|^TestCoders$/64x64/impl=cuda:0/sm_80|^TestLatents$/impl=cuda:0"
	// The timings run too, at a size where they mean nothing: a device's time is not for finding their mistakes.
	run += "|^Test(Profile|Stages)$/impl=cuda:0/sm_80|^TestDCVCRTProfile$/wide=false/impl=cuda:0/sm_90a"
	run += "|^Test(CoderEncode|CoderDamage|PictureHash|CoderProfile)$/impl=cuda:0/sm_61"
	again := exec.Command(os.Args[0], "-test.run", run, "-test.v", "-test.short", "-test.bench", "Frames/dir/model/size=64x64/impl=cuda:0,sm_80|DCVCRT/dir/weights=w8/size=64x64/impl=cuda:0,sm_90a", "-test.benchtime", "1x")
	again.Env = append(os.Environ(), "LD_LIBRARY_PATH="+dir, "NVCODEC_REQUIRE=cuda", "NVCODEC_SOFTWARE_DRIVER=1", "NVCODEC_PROFILE=1")
	out, err := again.CombinedOutput()
	if err != nil || strings.Contains(string(out), "FAIL") {
		t.Fatalf("on the driver in software: %v\n%s", err, out)
	}
	for _, want := range []string{
		"--- PASS: TestErrors/impl=cuda:0/sm_80/capture=true", "--- PASS: TestErrors/impl=cuda:0/sm_80/capture=false",
		"--- PASS: TestNoAllocation/impl=cuda:0/sm_80", "--- PASS: TestConcurrent/impl=cuda:0/sm_80",
		"BenchmarkFrames/dir=decode/", "BenchmarkDCVCRT/dir=decode/weights=w8/size=64x64/impl=cuda:0,sm_90a", "--- PASS: TestDCVCRTProfile/wide=false/impl=cuda:0/sm_90a", "--- PASS: TestProfile/impl=cuda:0/sm_80",
		"--- PASS: TestLatents/impl=cuda:0/sm_61", "--- PASS: TestLatents/impl=cuda:0/sm_75",
		"--- PASS: TestCoderEncode/impl=cuda:0/sm_61", "--- PASS: TestCoderDamage/impl=cuda:0/sm_61", "--- PASS: TestPictureHash/impl=cuda:0/sm_61",
		"--- PASS: TestCoderProfile/impl=cuda:0/sm_61",
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if testing.Verbose() {
		t.Logf("%s", out)
	}
}
