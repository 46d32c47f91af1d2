//go:build cuda

package cuda

// #cgo LDFLAGS: -ldl
// #include <cuda.h>
// extern char nvcodec_cuda_absent[256];
//
// static CUresult nvcodec_end_capture(CUstream s, CUgraphExec *exec) {
//   CUgraph graph = NULL;
//   CUresult r = cuStreamEndCapture(s, &graph);
//   if (r == CUDA_SUCCESS) r = cuGraphInstantiateWithFlags(exec, graph, 0);
//   if (graph) cuGraphDestroy(graph);
//   return r;
// }
//
// // Parameters have eight bytes each.
// static CUresult nvcodec_launch(CUfunction f, unsigned grid, unsigned threads, unsigned shared, CUstream s, uint64_t *args, int count, int early) {
//   void *params[count];
//   for (int i = 0; i < count; i++) params[i] = args + i;
//   if (!early) return cuLaunchKernel(f, grid, 1, 1, threads, 1, 1, shared, s, params, NULL);
//   CUlaunchAttribute overlap = {CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION};
//   overlap.value.programmaticStreamSerializationAllowed = 1;
//   CUlaunchConfig config = {grid, 1, 1, threads, 1, 1, shared, s, &overlap, 1};
//   return cuLaunchKernelEx(&config, f, params, NULL);
// }
import "C"

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"

	"gorgonia.org/cu"

	"github.com/nvcodec/nvcodec/inference"
)

// ptx holds each module of kernels for the families that it names: <module>_sm<family>.ptx.
//
//go:embed kernels/*.ptx
var ptx embed.FS

// modulesOf returns the file of every module for a family: of those that a module has, the highest up to it. The code
// of a family like 90a runs on that compute capability alone.
func modulesOf(sm int) ([]string, error) {
	files, err := ptx.ReadDir("kernels")
	if err != nil {
		return nil, err
	}
	best, families := map[string]string{}, map[string]int{}
	for _, f := range files {
		module, family, _ := strings.Cut(strings.TrimSuffix(f.Name(), ".ptx"), "_sm")
		n, err := strconv.Atoi(strings.TrimSuffix(family, "a"))
		if err != nil {
			return nil, err
		}
		if n == sm || n < sm && !strings.HasSuffix(family, "a") && n > families[module] {
			best[module], families[module] = "kernels/"+f.Name(), n
		}
	}
	return slices.Sorted(maps.Values(best)), nil
}

// families are those that have kernels, in rising order; each runs on its compute capability and all higher ones,
// through the driver's compiler, but 90, which is 9.0's alone.
var families = []int{61, 75, 80, 90}

// familyName is what people call a family.
func familyName(sm int) string {
	if sm == 90 {
		return "sm_90a"
	}
	return fmt.Sprintf("sm_%d", sm)
}

// runsOn reports whether a device of a compute capability runs the kernels of a family.
func runsOn(sm, capability int) bool { return sm <= capability && (sm != 90 || capability == 90) }

// An AbsentError says why this machine has no CUDA device to compute on.
type AbsentError struct{ Reason string }

func (e *AbsentError) Error() string { return "cuda: no device: " + e.Reason }

// An UnfitError reports a device that cannot run what was asked.
type UnfitError struct {
	Device     int
	Capability int    // 61 for 6.1
	Kernels    string // "auto" or a family
}

func (e *UnfitError) Error() string {
	return fmt.Sprintf("cuda: device %d has compute capability %d.%d, not one for kernels %s", e.Device, e.Capability/10, e.Capability%10, e.Kernels)
}

// A callError names the driver function that failed.
type callError struct {
	call string
	err  error
}

func (e *callError) Error() string { return e.call + ": " + e.err.Error() }
func (e *callError) Unwrap() error { return e.err }

func called(call string, err error) error {
	if err == nil {
		return nil
	}
	return &callError{call, err}
}

// result makes an error of an answer to this package's own calls; gorgonia.org/cu has its own.
func result(call string, r C.CUresult) error {
	if r == C.CUDA_SUCCESS {
		return nil
	}
	var name *C.char
	if C.cuGetErrorName(r, &name) == C.CUDA_SUCCESS && name != nil {
		return called(call, errors.New(C.GoString(name)))
	}
	return called(call, fmt.Errorf("CUDA error %d", int(r)))
}

// count returns how many devices there are, or an AbsentError when there are none.
func count() (int, error) {
	if reason := C.GoString(&C.nvcodec_cuda_absent[0]); reason != "" {
		return 0, &AbsentError{reason}
	}
	n, err := cu.NumDevices()
	if err != nil {
		return 0, &AbsentError{fmt.Sprintf("the driver says: %v", err)}
	}
	if n == 0 {
		return 0, &AbsentError{"the driver knows none"}
	}
	return n, nil
}

// A Device is what there is to compute on.
type Device struct {
	Ordinal    int    // counts from 0: "cuda:0"
	Name       string // "NVIDIA H200"
	Capability int    // compute capability, 90 for 9.0
	Processors int    // multiprocessors
	Memory     int64  // bytes
	Driver     int    // version of the CUDA interface that the driver has, 12040 for 12.4
	Kernels    string // the family that runs by default; "" when none can

	shared int // bytes of shared memory that a block may have
}

// Devices lists the devices, or returns an AbsentError.
func Devices() ([]Device, error) {
	n, err := count()
	if err != nil {
		return nil, err
	}
	var all []Device
	for i := range n {
		d, err := describe(i)
		if err != nil {
			return nil, fmt.Errorf("cuda: device %d: %w", i, err)
		}
		all = append(all, d)
	}
	return all, nil
}

func describe(ordinal int) (Device, error) {
	d := Device{Ordinal: ordinal, Driver: cu.Version()}
	dev, err := cu.GetDevice(ordinal)
	if err != nil {
		return d, called("cuDeviceGet", err)
	}
	if d.Name, err = dev.Name(); err != nil {
		return d, called("cuDeviceGetName", err)
	}
	if d.Memory, err = dev.TotalMem(); err != nil {
		return d, called("cuDeviceTotalMem", err)
	}
	major, err := dev.Attribute(cu.ComputeCapabilityMajor)
	if err != nil {
		return d, called("cuDeviceGetAttribute", err)
	}
	minor, err := dev.Attribute(cu.ComputeCapabilityMinor)
	if err != nil {
		return d, called("cuDeviceGetAttribute", err)
	}
	d.Capability = 10*major + minor
	if d.Processors, err = dev.Attribute(cu.MultiprocessorCount); err != nil {
		return d, called("cuDeviceGetAttribute", err)
	}
	const optIn = 97 // CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
	if d.shared, err = dev.Attribute(cu.DeviceAttribute(optIn)); err != nil {
		return d, called("cuDeviceGetAttribute", err)
	}
	for _, sm := range families {
		if runsOn(sm, d.Capability) {
			d.Kernels = familyName(sm)
		}
	}
	return d, nil
}

// A Backend computes on one device; Close it behind its sessions.
type Backend struct {
	*backend
	Device  Device
	dev     cu.Device
	context cu.CUContext
	modules []cu.Module
	mu      sync.Mutex
	kernels map[string]*entry
}

var _ inference.Backend = (*Backend)(nil)

// New returns the backend of a device with the kernels of a family ("sm_61", "sm_75", "sm_80", "sm_90a"; "fp16": FP16 units; "auto":
// the highest family that the device can run).
func New(ordinal int, kernels string) (*Backend, error) {
	n, err := count()
	if err != nil {
		return nil, err
	}
	if ordinal < 0 || ordinal >= n {
		return nil, fmt.Errorf("cuda: no device %d, there are %d", ordinal, n)
	}
	d, err := describe(ordinal)
	if err != nil {
		return nil, fmt.Errorf("cuda: device %d: %w", ordinal, err)
	}
	sm := 0
	for _, f := range families {
		if kernels == familyName(f) || (kernels == "auto" || kernels == "") && runsOn(f, d.Capability) {
			sm = f
		}
	}
	if kernels == fp16 {
		sm = fp16Family
	}
	switch {
	case sm == 0 && kernels != "auto" && kernels != "":
		return nil, fmt.Errorf("cuda: no kernels %q (have sm_61, sm_75, sm_80, sm_90a, fp16)", kernels)
	case sm == 0 || !runsOn(sm, d.Capability):
		return nil, &UnfitError{ordinal, d.Capability, kernels}
	}
	b := &Backend{Device: d}
	if err := b.start(sm); err != nil {
		return nil, fmt.Errorf("cuda: device %d: %w", ordinal, err)
	}
	b.backend = &backend{name: fmt.Sprintf("cuda:%d", ordinal), sm: sm, fp16: kernels == fp16, capture: true, open: b.stream, openAt: b.streamAt}
	return b, nil
}

func (b *Backend) start(sm int) (err error) {
	if b.dev, err = cu.GetDevice(b.Device.Ordinal); err != nil {
		return called("cuDeviceGet", err)
	}
	// The primary context is the one that other libraries of the process use too.
	if b.context, err = b.dev.RetainPrimaryCtx(); err != nil {
		return called("cuDevicePrimaryCtxRetain", err)
	}
	live.contexts.Add(1)
	if err = b.load(sm); err != nil {
		b.unload()
		live.contexts.Add(-1)
		b.dev.ReleasePrimaryCtx()
	}
	return err
}

// entries finds the kernels of a module.
var entries = regexp.MustCompile(`(?m)^\.visible \.entry (\w+)\(`)

// An entry is what all streams of a device share of a kernel.
type entry struct {
	f      cu.Function
	shared int  // bytes of dynamic shared memory that launches may have: the most that any of them wants
	waits  bool // for launches before its own, see awaitLaunches
}

// unasked is how much dynamic shared memory every kernel may have, in bytes.
const unasked = 48 << 10

func (b *Backend) load(sm int) error {
	b.kernels = map[string]*entry{}
	files, err := modulesOf(sm)
	if err != nil {
		return err
	}
	for _, file := range files {
		text, err := ptx.ReadFile(file)
		if err != nil {
			return err
		}
		err = b.current(func() error {
			m, err := cu.LoadData(string(text))
			if err != nil {
				return called("cuModuleLoadData "+file, err)
			}
			b.modules = append(b.modules, m)
			for _, match := range entries.FindAllSubmatchIndex(text, -1) {
				name := string(text[match[2]:match[3]])
				f, err := m.Function(name)
				if err != nil {
					return called("cuModuleGetFunction "+name, err)
				}
				if b.kernels[name] != nil {
					return fmt.Errorf("kernel %s is in two modules", name)
				}
				body, _, _ := bytes.Cut(text[match[1]:], []byte("\n.visible .entry "))
				b.kernels[name] = &entry{f: f, shared: unasked, waits: bytes.Contains(body, []byte("griddepcontrol.wait"))}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (b *Backend) unload() error {
	return b.current(func() (err error) {
		for _, m := range b.modules {
			if e := m.Unload(); err == nil {
				err = called("cuModuleUnload", e)
			}
		}
		return err
	})
}

// Close releases the device. Sessions must have been closed.
func (b *Backend) Close() error {
	err := b.unload()
	live.contexts.Add(-1)
	if e := b.dev.ReleasePrimaryCtx(); err == nil {
		err = called("cuDevicePrimaryCtxRelease", e)
	}
	if err != nil {
		return fmt.Errorf("cuda: close: %w", err)
	}
	return nil
}

// current runs f on a thread whose current context is this device's. A context belongs to a thread, and a goroutine
// may change threads between any two calls.
func (b *Backend) current(f func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := cu.SetCurrentContext(b.context); err != nil {
		return called("cuCtxSetCurrent", err)
	}
	return f()
}

// live counts what the driver has given and not got back.
var live struct{ contexts, memory, host, streams, events, graphs atomic.Int64 }

// Live returns how many contexts, blocks of device and of page-locked memory, streams, events and captured graphs the
// package holds: nothing when every session and backend is closed.
func Live() int {
	return int(live.contexts.Load() + live.memory.Load() + live.host.Load() + live.streams.Load() + live.events.Load() + live.graphs.Load())
}

// A gpu is one stream of a device.
type gpu struct {
	b       *Backend
	stream  cu.Stream
	urgency urgency
}

func (g *gpu) family() int     { return g.b.sm }
func (g *gpu) processors() int { return g.b.Device.Processors }
func (g *gpu) shared() int     { return g.b.Device.shared }

func (g *gpu) alloc(bytes int64) (p pointer, err error) {
	err = g.b.current(func() error {
		d, err := cu.MemAlloc(bytes)
		p = pointer(d)
		return called("cuMemAlloc", err)
	})
	if err == nil {
		live.memory.Add(1)
	}
	return p, err
}

func (g *gpu) free(p pointer) error {
	live.memory.Add(-1)
	return g.b.current(func() error { return called("cuMemFree", cu.MemFree(cu.DevicePtr(p))) })
}

func (g *gpu) host(bytes int64) (b []byte, err error) {
	err = g.b.current(func() error {
		var p unsafe.Pointer
		// Page-locked for every context of the process, and at the same address in the device's memory.
		const portable, mapped = 1, 2
		if err := result("cuMemHostAlloc", C.cuMemHostAlloc(&p, C.size_t(bytes), portable|mapped)); err != nil {
			return err
		}
		b = unsafe.Slice((*byte)(p), bytes)
		return nil
	})
	if err == nil {
		live.host.Add(1)
	}
	return b, err
}

func (g *gpu) freeHost(b []byte) error {
	live.host.Add(-1)
	return g.b.current(func() error { return called("cuMemFreeHost", cu.MemFreeHost(unsafe.Pointer(unsafe.SliceData(b)))) })
}

func (g *gpu) available() (free int64, err error) {
	err = g.b.current(func() error {
		free, _, err = cu.MemInfo()
		return called("cuMemGetInfo", err)
	})
	return free, err
}

func (g *gpu) upload(dst pointer, src []byte) error {
	return g.b.current(func() error {
		return called("cuMemcpyHtoDAsync", cu.MemcpyHtoDAsync(cu.DevicePtr(dst), unsafe.Pointer(unsafe.SliceData(src)), int64(len(src)), g.stream))
	})
}

func (g *gpu) download(dst []byte, src pointer) error {
	return g.b.current(func() error {
		return called("cuMemcpyDtoHAsync", cu.MemcpyDtoHAsync(unsafe.Pointer(unsafe.SliceData(dst)), cu.DevicePtr(src), int64(len(dst)), g.stream))
	})
}

func (g *gpu) fill(dst pointer, value byte, bytes int64) error {
	return g.b.current(func() error {
		return called("cuMemsetD8Async", cu.MemsetD8Async(cu.DevicePtr(dst), value, bytes, g.stream))
	})
}

type gpuLaunch struct {
	g    *gpu
	call call
	k    *entry
}

func (g *gpu) prepare(c call) (launch, error) {
	k, err := g.entry(c)
	if err != nil {
		return nil, err
	}
	return &gpuLaunch{g, c, k}, nil
}

// entry finds a kernel and allows its launches the call's shared memory, unless they are allowed more already.
func (g *gpu) entry(c call) (*entry, error) {
	g.b.mu.Lock()
	defer g.b.mu.Unlock()
	k := g.b.kernels[c.kernel]
	if k == nil {
		return nil, fmt.Errorf("no kernel %s", c.kernel)
	}
	if c.shared <= k.shared {
		return k, nil
	}
	err := g.b.current(func() error {
		return result("cuFuncSetAttribute "+c.kernel, C.cuFuncSetAttribute(k.c(), C.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, C.int(c.shared)))
	})
	if err == nil {
		k.shared = c.shared
	}
	return k, err
}

func (k *entry) c() C.CUfunction { return *(*C.CUfunction)(unsafe.Pointer(&k.f)) } // all that a cu.Function is

// overlap is false where a test asks what early launches are worth.
var overlap = true

func (l *gpuLaunch) run() error {
	return l.g.b.current(func() error {
		c, begins := &l.call, C.int(0)
		if overlap && c.early && l.k.waits {
			begins = 1
		}
		return result("cuLaunchKernel "+c.kernel, C.nvcodec_launch(l.k.c(), C.uint(c.grid), C.uint(c.block()), C.uint(c.shared), l.g.c(), (*C.uint64_t)(&c.args[0]), C.int(len(c.args)), begins))
	})
}

type gpuGraph struct {
	g    *gpu
	exec C.CUgraphExec
}

// capture records on this thread; other threads go on with their own work and contexts.
func (g *gpu) capture(f func() error) (captured, error) {
	c := &gpuGraph{g: g}
	err := g.b.current(func() error {
		if err := result("cuStreamBeginCapture", C.cuStreamBeginCapture(g.c(), C.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)); err != nil {
			return err
		}
		err := f()
		if e := result("cuStreamEndCapture", C.nvcodec_end_capture(g.c(), &c.exec)); err == nil {
			err = e
		}
		return err
	})
	if c.exec != nil {
		live.graphs.Add(1)
		if err != nil {
			c.close()
		}
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

func (c *gpuGraph) run() error {
	return c.g.b.current(func() error { return result("cuGraphLaunch", C.cuGraphLaunch(c.exec, c.g.c())) })
}

func (c *gpuGraph) close() error {
	live.graphs.Add(-1)
	return c.g.b.current(func() error { return result("cuGraphExecDestroy", C.cuGraphExecDestroy(c.exec)) })
}
