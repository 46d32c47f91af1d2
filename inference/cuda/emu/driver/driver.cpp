// A CUDA driver in software, as libcuda.so.1: what inference/cuda calls, and no more. It is strict where a real one is
// lenient or late: every call that needs a context wants it current on its thread, asynchronous copies want page-locked
// memory and stay within one allocation, nothing that a stream is given happens before the stream is synchronised, and
// a context that is released with anything left in it answers an error.
extern "C" {
#include "../../include/cuda.h"
}
#include <map>
#include <mutex>
#include <functional>
#include <set>
#include <stdio.h>
#include <string.h>
#include <string>
#include <vector>
#include <sys/mman.h>

#include "../block.h"

struct CUctx_st { int retained; };
struct CUmod_st { int family; std::string text; };
struct CUfunc_st { const KernelEntry *entry; int shared; };
typedef std::function<CUresult()> Work;
struct CUstream_st { std::vector<Work> queue, recorded; bool capturing; };
struct CUgraph_st { std::vector<Work> work; };
struct CUgraphExec_st { std::vector<Work> work; };

static std::mutex mu, running; // running: blocks of the emulation one at a time
static CUctx_st context;
static thread_local CUcontext current;
static std::map<CUdeviceptr, size_t> memory;
static std::map<char *, size_t> pinned;
static std::map<const KernelEntry *, CUfunction> functions;
static std::set<CUstream> streams;
static std::set<CUgraphExec> execs;
static int modules;
static bool flip;

#define CURRENT if (!current || !context.retained) return CUDA_ERROR_INVALID_CONTEXT

static bool device(CUdeviceptr p, size_t n) {
  std::lock_guard<std::mutex> l(mu);
  auto i = memory.upper_bound(p);
  return i != memory.begin() && (--i, p + n <= i->first + i->second);
}
static bool locked(const void *q, size_t n) {
  std::lock_guard<std::mutex> l(mu);
  char *p = (char *)q;
  auto i = pinned.upper_bound(p);
  return i != pinned.begin() && (--i, p + n <= i->first + i->second);
}
static CUresult give(CUstream s, Work w) {
  std::lock_guard<std::mutex> l(mu);
  if (!streams.count(s)) return CUDA_ERROR_INVALID_HANDLE; // the default stream too: nothing may use it
  (s->capturing ? s->recorded : s->queue).push_back(w);
  return CUDA_SUCCESS;
}

extern "C" {
CUresult cuInit(unsigned int) { return CUDA_SUCCESS; }
CUresult cuDriverGetVersion(int *v) { *v = 13000; return CUDA_SUCCESS; }
CUresult cuGetErrorName(CUresult, const char **name) { *name = "an error of the driver in software"; return CUDA_SUCCESS; }
CUresult cuDeviceGetCount(int *n) { *n = 1; return CUDA_SUCCESS; }
CUresult cuDeviceGet(CUdevice *d, int i) { *d = i; return i == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE; }
CUresult cuDeviceGetName(char *s, int n, CUdevice) { snprintf(s, n, "software"); return CUDA_SUCCESS; }
CUresult cuDeviceTotalMem(size_t *n, CUdevice) { *n = (size_t)1 << 33; return CUDA_SUCCESS; }
CUresult cuDeviceGetAttribute(int *v, CUdevice_attribute a, CUdevice) {
  *v = a == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR ? 9 : a == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT ? 2 : 0;
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRetain(CUcontext *c, CUdevice) { context.retained++; *c = &context; return CUDA_SUCCESS; }
CUresult cuDevicePrimaryCtxRelease(CUdevice) {
  if (--context.retained < 0) return CUDA_ERROR_INVALID_CONTEXT;
  bool left = memory.size() + pinned.size() + streams.size() + execs.size() + modules > 0;
  return context.retained == 0 && left ? CUDA_ERROR_ILLEGAL_STATE : CUDA_SUCCESS;
}
CUresult cuCtxSetCurrent(CUcontext c) { current = c; return CUDA_SUCCESS; }

CUresult cuModuleLoadData(CUmodule *m, const void *image) {
  CURRENT;
  const char *target = strstr((const char *)image, "\n.target sm_");
  if (!target) return CUDA_ERROR_INVALID_PTX;
  modules++;
  *m = new CUmod_st{atoi(target + 12), (const char *)image};
  return CUDA_SUCCESS;
}
CUresult cuModuleUnload(CUmodule m) { CURRENT; modules--; delete m; return CUDA_SUCCESS; }

CUresult cuModuleGetFunction(CUfunction *f, CUmodule m, const char *name) {
  CURRENT;
  if (m->text.find(std::string(".entry ") + name + "(") == std::string::npos) return CUDA_ERROR_NOT_FOUND;
  const KernelEntry *k = nvcodec_emu_find(m->family, name);
  if (!k) return CUDA_ERROR_NOT_FOUND;
  std::lock_guard<std::mutex> l(mu);
  CUfunction &known = functions[k];
  if (!known) known = new CUfunc_st{k, 48 << 10};
  *f = known;
  return CUDA_SUCCESS;
}
CUresult cuFuncSetAttribute(CUfunction f, CUfunction_attribute a, int v) {
  CURRENT;
  if (a != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES || v > 227 << 10) return CUDA_ERROR_INVALID_VALUE;
  f->shared = v;
  return CUDA_SUCCESS;
}
CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, CUstream s, void **params, void **) {
  CURRENT;
  if (!gx || gy != 1 || gz != 1 || !bx || bx > 1024 || by != 1 || bz != 1 || (int)shared > f->shared) return CUDA_ERROR_INVALID_VALUE;
  std::vector<uint64_t> args;
  for (int i = 0; i < f->entry->count; i++) args.push_back(*(uint64_t *)params[i]);
  return give(s, [=] {
    std::lock_guard<std::mutex> l(running);
    flip = !flip;
    return nvcodec_emu_run(f->entry, gx, bx, shared, args.data(), flip) ? CUDA_ERROR_LAUNCH_FAILED : CUDA_SUCCESS;
  });
}

// Memory ends where a page begins that nothing may touch.
CUresult cuMemAlloc(CUdeviceptr *p, size_t n) {
  CURRENT;
  if (!n) return CUDA_ERROR_INVALID_VALUE;
  size_t size = (n + 4095) / 4096 * 4096;
  char *m = (char *)mmap(NULL, size + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (m == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  mprotect(m + size, 4096, PROT_NONE);
  memset(m, 0xa5, size);
  *p = (CUdeviceptr)(m + size - (n + 255) / 256 * 256);
  std::lock_guard<std::mutex> l(mu);
  memory[*p] = n;
  return CUDA_SUCCESS;
}
CUresult cuMemFree(CUdeviceptr p) {
  CURRENT;
  std::lock_guard<std::mutex> l(mu);
  auto i = memory.find(p);
  if (i == memory.end()) return CUDA_ERROR_INVALID_VALUE;
  size_t size = (i->second + 4095) / 4096 * 4096;
  munmap((char *)p + (i->second + 255) / 256 * 256 - size, size + 4096);
  memory.erase(i);
  return CUDA_SUCCESS;
}
CUresult cuMemGetInfo(size_t *free, size_t *total) { CURRENT; *free = *total = (size_t)1 << 33; return CUDA_SUCCESS; }
CUresult cuMemHostAlloc(void **p, size_t n, unsigned) {
  CURRENT;
  char *m = (char *)malloc(n);
  memset(m, 0x5a, n);
  *p = m;
  std::lock_guard<std::mutex> l(mu);
  pinned[m] = n;
  return CUDA_SUCCESS;
}
CUresult cuMemFreeHost(void *p) {
  CURRENT;
  std::lock_guard<std::mutex> l(mu);
  if (!pinned.erase((char *)p)) return CUDA_ERROR_INVALID_VALUE;
  free(p);
  return CUDA_SUCCESS;
}
CUresult cuMemcpyHtoDAsync(CUdeviceptr d, const void *h, size_t n, CUstream s) {
  CURRENT;
  if (!device(d, n) || !locked(h, n)) return CUDA_ERROR_INVALID_VALUE;
  return give(s, [=] { memcpy((void *)d, h, n); return CUDA_SUCCESS; });
}
CUresult cuMemcpyDtoHAsync(void *h, CUdeviceptr d, size_t n, CUstream s) {
  CURRENT;
  if (!device(d, n) || !locked(h, n)) return CUDA_ERROR_INVALID_VALUE;
  return give(s, [=] { memcpy(h, (void *)d, n); return CUDA_SUCCESS; });
}

CUresult cuStreamCreate(CUstream *s, unsigned flags) {
  CURRENT;
  if (flags != CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
  *s = new CUstream_st();
  std::lock_guard<std::mutex> l(mu);
  streams.insert(*s);
  return CUDA_SUCCESS;
}
CUresult cuStreamDestroy(CUstream s) {
  CURRENT;
  std::lock_guard<std::mutex> l(mu);
  if (!streams.erase(s)) return CUDA_ERROR_INVALID_HANDLE;
  delete s;
  return CUDA_SUCCESS;
}
CUresult cuStreamSynchronize(CUstream s) {
  CURRENT;
  std::vector<Work> all;
  {
    std::lock_guard<std::mutex> l(mu);
    if (!streams.count(s)) return CUDA_ERROR_INVALID_HANDLE;
    if (s->capturing) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    all.swap(s->queue);
  }
  for (Work &w : all)
    if (CUresult r = w()) return r;
  return CUDA_SUCCESS;
}
CUresult cuStreamBeginCapture(CUstream s, CUstreamCaptureMode) {
  CURRENT;
  if (s->capturing) return CUDA_ERROR_ILLEGAL_STATE;
  s->capturing = true;
  return CUDA_SUCCESS;
}
CUresult cuStreamEndCapture(CUstream s, CUgraph *g) {
  CURRENT;
  if (!s->capturing) return CUDA_ERROR_ILLEGAL_STATE;
  s->capturing = false;
  *g = new CUgraph_st{s->recorded};
  s->recorded.clear();
  return CUDA_SUCCESS;
}
CUresult cuGraphInstantiateWithFlags(CUgraphExec *e, CUgraph g, unsigned long long) {
  CURRENT;
  *e = new CUgraphExec_st{g->work};
  std::lock_guard<std::mutex> l(mu);
  execs.insert(*e);
  return CUDA_SUCCESS;
}
CUresult cuGraphDestroy(CUgraph g) { delete g; return CUDA_SUCCESS; }
CUresult cuGraphExecDestroy(CUgraphExec e) {
  CURRENT;
  std::lock_guard<std::mutex> l(mu);
  if (!execs.erase(e)) return CUDA_ERROR_INVALID_HANDLE;
  delete e;
  return CUDA_SUCCESS;
}
CUresult cuGraphLaunch(CUgraphExec e, CUstream s) {
  CURRENT;
  for (Work &w : e->work)
    if (CUresult r = give(s, w)) return r;
  return CUDA_SUCCESS;
}
}
