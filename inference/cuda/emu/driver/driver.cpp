// A CUDA driver in software, as libcuda.so.1: what inference/cuda calls, and no more. It is strict where a real one is
// lenient or late: every call that needs a context wants it current on its thread, asynchronous copies want page-locked
// memory and stay within one allocation, nothing that a stream is given happens before the host waits for a stream or an
// event, what several streams hold happens in a random order, and a context that is released with anything left in it
// answers an error.
extern "C" {
#include "../../include/cuda.h"
}
#include <deque>
#include <map>
#include <mutex>
#include <functional>
#include <random>
#include <set>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <string>
#include <vector>
#include <sys/mman.h>
#include <unistd.h>

#include "../block.h"

struct CUctx_st { int retained; };
struct CUmod_st { int family; std::string text; };
struct CUfunc_st { const KernelEntry *entry; int shared; };
typedef std::function<CUresult()> Work;

// A lane is a queue of tasks, done one after the other: a stream's, or a branch of a captured graph's. A task waits for
// another lane to have done so many of its own, or for a condition, and then does its work.
struct Lane;
struct Point { Lane *lane; size_t n; };
struct Task { Work work; Point after; std::function<bool()> when; };
struct Lane { std::deque<Task> tasks; size_t given, done; };
struct Graph {
  std::vector<Lane *> lanes;
  std::vector<std::deque<Task>> all; // the lanes' tasks, once the capture has ended
  std::vector<CUstream> joined;
  bool ended;
};

struct CUstream_st { Lane own, *into; Graph *capture; CUcontext in; };
struct CUevent_st { Point at; Graph *capture; };
struct CUgraph_st { Graph *graph; };
struct CUgraphExec_st { Graph *graph; };

static std::mutex mu, running; // running: blocks of the emulation one at a time
static CUctx_st contexts[2]; // a device has one
static thread_local CUcontext current;
struct Memory { size_t size; CUcontext in; };
static std::map<CUdeviceptr, Memory> memory;
static std::map<char *, size_t> pinned;
static std::map<const KernelEntry *, CUfunction> functions;
static std::set<CUstream> streams;
static std::set<CUevent> events;
static std::set<CUgraphExec> execs;
static std::set<Graph *> graphs;
static int modules;
static bool flip;

#define CURRENT if (!current || !current->retained) return CUDA_ERROR_INVALID_CONTEXT

static bool device(CUdeviceptr p, size_t n) {
  std::lock_guard<std::mutex> l(mu);
  auto i = memory.upper_bound(p);
  return i != memory.begin() && (--i, p + n <= i->first + i->second.size && i->second.in == current);
}
static bool locked(const void *q, size_t n) {
  std::lock_guard<std::mutex> l(mu);
  char *p = (char *)q;
  auto i = pinned.upper_bound(p);
  return i != pinned.begin() && (--i, p + n <= i->first + i->second);
}
static CUresult give(CUstream s, Task t) {
  std::lock_guard<std::mutex> l(mu);
  if (!streams.count(s)) return CUDA_ERROR_INVALID_HANDLE; // the default stream too: nothing may use it
  if (s->in != current) return CUDA_ERROR_INVALID_CONTEXT;
  s->into->tasks.push_back(t);
  s->into->given++;
  return CUDA_SUCCESS;
}
static CUresult give(CUstream s, Work w) { return give(s, Task{w, {}, nullptr}); }

static bool passed(const Point &p) { return !p.lane || p.lane->done >= p.n; }
static bool ready(Lane *l) {
  if (l->tasks.empty()) return false;
  Task &t = l->tasks.front();
  return passed(t.after) && (!t.when || t.when());
}

// until does tasks of the lanes, chosen at random, until p has passed; one thread at a time.
static std::mutex worker;
static CUresult until(std::function<std::vector<Lane *>()> lanes, Point p, bool outermost) {
  static std::mt19937 random(1);
  for (;;) {
    std::unique_lock<std::mutex> w(worker, std::defer_lock);
    if (outermost) w.lock();
    Work work;
    Lane *chosen = nullptr;
    {
      std::lock_guard<std::mutex> l(mu);
      if (passed(p)) return CUDA_SUCCESS;
      std::vector<Lane *> able;
      for (Lane *lane : lanes())
        if (ready(lane)) able.push_back(lane);
      if (!able.empty()) {
        chosen = able[random() % able.size()];
        work = chosen->tasks.front().work;
        chosen->tasks.pop_front();
      }
    }
    if (!chosen) { // all wait for the host
      if (outermost) w.unlock();
      usleep(200);
      continue;
    }
    if (work)
      if (CUresult r = work()) return r;
    std::lock_guard<std::mutex> l(mu);
    chosen->done++;
  }
}
static std::vector<Lane *> every() {
  std::vector<Lane *> all;
  for (CUstream s : streams) all.push_back(&s->own);
  return all;
}

static void drop(Graph *g) {
  for (Lane *l : g->lanes) delete l;
  delete g;
}

extern "C" {
CUresult cuInit(unsigned int) { return CUDA_SUCCESS; }
CUresult cuDriverGetVersion(int *v) { *v = 13000; return CUDA_SUCCESS; }
CUresult cuGetErrorName(CUresult, const char **name) { *name = "an error of the driver in software"; return CUDA_SUCCESS; }
// NVCODEC_SOFTWARE_DEVICES is how many devices there are, at most 2; none can use what another has.
static int count() { const char *n = getenv("NVCODEC_SOFTWARE_DEVICES"); return n && *n == '2' ? 2 : 1; }
CUresult cuDeviceGetCount(int *n) { *n = count(); return CUDA_SUCCESS; }
CUresult cuDeviceGet(CUdevice *d, int i) { *d = i; return i >= 0 && i < count() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE; }
CUresult cuDeviceGetName(char *s, int n, CUdevice) { snprintf(s, n, "software"); return CUDA_SUCCESS; }
CUresult cuDeviceTotalMem(size_t *n, CUdevice) { *n = (size_t)1 << 33; return CUDA_SUCCESS; }
CUresult cuDeviceGetAttribute(int *v, CUdevice_attribute a, CUdevice) {
  *v = a == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR ? 9 : a == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT ? 2 : a == 97 /* shared memory of a block */ ? 227 << 10 : 0;
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRetain(CUcontext *c, CUdevice d) { contexts[d].retained++; *c = &contexts[d]; return CUDA_SUCCESS; }
CUresult cuDevicePrimaryCtxRelease(CUdevice d) {
  if (--contexts[d].retained < 0) return CUDA_ERROR_INVALID_CONTEXT;
  bool left = memory.size() + pinned.size() + streams.size() + events.size() + execs.size() + modules > 0;
  return contexts[0].retained + contexts[1].retained == 0 && left ? CUDA_ERROR_ILLEGAL_STATE : CUDA_SUCCESS;
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
  const KernelEntry *k = NULL; // the emulation has what all families share once
  for (int family : {90, 80, 75, 61})
    if (!k && family <= m->family) k = nvcodec_emu_find(family, name);
  if (!k) return CUDA_ERROR_NOT_FOUND;
  std::lock_guard<std::mutex> l(mu);
  CUfunction &known = functions[k];
  if (!known) known = new CUfunc_st{k, 48 << 10};
  *f = known;
  return CUDA_SUCCESS;
}
CUresult cuFuncSetAttribute(CUfunction f, CUfunction_attribute a, int v) {
  CURRENT;
  const int mostStatic = 512; // what a kernel declares counts too
  if (a != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES || v > (227 << 10) - mostStatic) return CUDA_ERROR_INVALID_VALUE;
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
CUresult cuLaunchKernelEx(const CUlaunchConfig *c, CUfunction f, void **params, void **extra) {
  if (c->numAttrs > 1 || c->numAttrs && c->attrs->id != CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION) return CUDA_ERROR_INVALID_VALUE;
  return cuLaunchKernel(f, c->gridDimX, c->gridDimY, c->gridDimZ, c->blockDimX, c->blockDimY, c->blockDimZ, c->sharedMemBytes, c->hStream, params, extra);
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
  memory[*p] = {n, current};
  return CUDA_SUCCESS;
}
CUresult cuMemFree(CUdeviceptr p) {
  CURRENT;
  std::lock_guard<std::mutex> l(mu);
  auto i = memory.find(p);
  if (i == memory.end() || i->second.in != current) return CUDA_ERROR_INVALID_VALUE;
  size_t size = (i->second.size + 4095) / 4096 * 4096;
  munmap((char *)p + (i->second.size + 255) / 256 * 256 - size, size + 4096);
  memory.erase(i);
  return CUDA_SUCCESS;
}
// NVCODEC_SOFTWARE_FREE makes the device a small one: so many MiB are free, whatever is allocated.
CUresult cuMemGetInfo(size_t *free, size_t *total) {
  CURRENT;
  const char *mib = getenv("NVCODEC_SOFTWARE_FREE");
  *total = (size_t)1 << 33;
  *free = mib ? (size_t)atoll(mib) << 20 : *total;
  return CUDA_SUCCESS;
}
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

CUresult cuMemsetD8Async(CUdeviceptr d, unsigned char value, size_t n, CUstream s) {
  CURRENT;
  if (!device(d, n)) return CUDA_ERROR_INVALID_VALUE;
  return give(s, [=] { memset((void *)d, value, n); return CUDA_SUCCESS; });
}

CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest) { CURRENT; *least = 0, *greatest = -5; return CUDA_SUCCESS; }
CUresult cuStreamCreateWithPriority(CUstream *s, unsigned flags, int priority) {
  CURRENT;
  if (flags != CU_STREAM_NON_BLOCKING || priority < -5 || priority > 0) return CUDA_ERROR_INVALID_VALUE;
  *s = new CUstream_st();
  (*s)->into = &(*s)->own;
  (*s)->in = current;
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
  Point end;
  {
    std::lock_guard<std::mutex> l(mu);
    if (!streams.count(s)) return CUDA_ERROR_INVALID_HANDLE;
    if (s->capture) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    end = {&s->own, s->own.given};
  }
  return until(every, end, true);
}
CUresult cuStreamWaitValue32(CUstream s, CUdeviceptr p, cuuint32_t v, unsigned flags) {
  CURRENT;
  if (flags != 0 || !locked((void *)p, 4)) return CUDA_ERROR_INVALID_VALUE; // 0: at least v
  return give(s, Task{nullptr, {}, [=] { return (int)(*(volatile cuuint32_t *)p - v) >= 0; }});
}

CUresult cuEventCreate(CUevent *e, unsigned) {
  CURRENT;
  std::lock_guard<std::mutex> l(mu);
  events.insert(*e = new CUevent_st());
  return CUDA_SUCCESS;
}
CUresult cuEventDestroy(CUevent e) {
  CURRENT;
  std::lock_guard<std::mutex> l(mu);
  if (!events.erase(e)) return CUDA_ERROR_INVALID_HANDLE;
  delete e;
  return CUDA_SUCCESS;
}
CUresult cuEventRecord(CUevent e, CUstream s) {
  CURRENT;
  std::lock_guard<std::mutex> l(mu);
  if (!events.count(e) || !streams.count(s)) return CUDA_ERROR_INVALID_HANDLE;
  *e = {{s->into, s->into->given}, s->capture};
  return CUDA_SUCCESS;
}
CUresult cuEventSynchronize(CUevent e) {
  CURRENT;
  Point at;
  {
    std::lock_guard<std::mutex> l(mu);
    if (!events.count(e)) return CUDA_ERROR_INVALID_HANDLE;
    if (e->capture) return CUDA_ERROR_INVALID_VALUE;
    at = e->at;
  }
  return until(every, at, true);
}
// A stream that waits for an event of a capture becomes a branch of it.
CUresult cuStreamWaitEvent(CUstream s, CUevent e, unsigned) {
  CURRENT;
  Point at;
  {
    std::lock_guard<std::mutex> l(mu);
    if (!events.count(e) || !streams.count(s)) return CUDA_ERROR_INVALID_HANDLE;
    if (e->capture != s->capture) {
      if (!e->capture || s->capture || !graphs.count(e->capture) || e->capture->ended) return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
      s->capture = e->capture;
      s->capture->joined.push_back(s);
      s->capture->lanes.push_back(s->into = new Lane());
    }
    at = e->at;
  }
  return give(s, Task{nullptr, at, nullptr});
}

CUresult cuStreamBeginCapture(CUstream s, CUstreamCaptureMode) {
  CURRENT;
  std::lock_guard<std::mutex> l(mu);
  if (s->capture) return CUDA_ERROR_ILLEGAL_STATE;
  s->capture = new Graph();
  graphs.insert(s->capture);
  s->capture->joined.push_back(s);
  s->capture->lanes.push_back(s->into = new Lane());
  return CUDA_SUCCESS;
}
CUresult cuStreamEndCapture(CUstream s, CUgraph *out) {
  CURRENT;
  std::lock_guard<std::mutex> l(mu);
  Graph *g = s->capture;
  if (!g || g->joined[0] != s) return CUDA_ERROR_ILLEGAL_STATE;
  g->ended = true;
  for (CUstream j : g->joined) j->capture = nullptr, j->into = &j->own;
  for (Lane *lane : g->lanes) {
    g->all.push_back(lane->tasks);
    lane->tasks.clear();
  }
  // Every branch must end in something that the first one waits for.
  std::map<Lane *, size_t> reached = {{g->lanes[0], g->lanes[0]->given}};
  for (size_t round = 0; round < g->lanes.size(); round++)
    for (size_t i = 0; i < g->lanes.size(); i++)
      for (size_t k = 0; k < reached[g->lanes[i]]; k++)
        if (Lane *to = g->all[i][k].after.lane) reached[to] = std::max(reached[to], g->all[i][k].after.n);
  for (Lane *lane : g->lanes)
    if (reached[lane] < lane->given) return CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
  *out = new CUgraph_st{g};
  return CUDA_SUCCESS;
}
CUresult cuGraphInstantiateWithFlags(CUgraphExec *e, CUgraph g, unsigned long long) {
  CURRENT;
  *e = new CUgraphExec_st{g->graph};
  std::lock_guard<std::mutex> l(mu);
  execs.insert(*e);
  return CUDA_SUCCESS;
}
CUresult cuGraphDestroy(CUgraph g) { delete g; return CUDA_SUCCESS; } // its Exec keeps what was recorded
CUresult cuGraphExecDestroy(CUgraphExec e) {
  CURRENT;
  std::lock_guard<std::mutex> l(mu);
  if (!execs.erase(e)) return CUDA_ERROR_INVALID_HANDLE;
  graphs.erase(e->graph);
  drop(e->graph);
  delete e;
  return CUDA_SUCCESS;
}
CUresult cuGraphLaunch(CUgraphExec e, CUstream s) {
  CURRENT;
  Graph *g = e->graph;
  return give(s, [=] {
    for (size_t i = 0; i < g->lanes.size(); i++) g->lanes[i]->tasks = g->all[i], g->lanes[i]->done = 0;
    for (Lane *lane : g->lanes)
      if (CUresult r = until([=] { return g->lanes; }, Point{lane, lane->given}, false)) return r;
    return CUDA_SUCCESS;
  });
}
}
