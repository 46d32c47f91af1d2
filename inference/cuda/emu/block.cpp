//go:build cuda

#include "block.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

// A block's threads as fibers. Each has a stack of its own and runs until it must wait; the scheduler goes round them
// forwards or backwards, since a kernel must not depend on the order.

enum { MaxThreads = 1024, Warps = MaxThreads / 32, StackBytes = 64 << 10, MaxShared = 228 << 10 };

extern "C" {
int nvcodec_emu_thread, nvcodec_emu_block;
unsigned char *nvcodec_emu_shared;
void nvcodec_emu_switch(void **save, void *load);
}

// Keeps what a call must preserve on the stack and changes stacks.
__asm__(R"(
.text
.globl nvcodec_emu_switch
.type nvcodec_emu_switch,@function
nvcodec_emu_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
)");

static void *scheduler, *stacks, *fibers[MaxThreads];
static bool done[MaxThreads];
static void (*body)(const uint64_t *);
static const uint64_t *arguments;

static void wait() { nvcodec_emu_switch(&fibers[nvcodec_emu_thread], scheduler); }

static void enter() {
  body(arguments);
  done[nvcodec_emu_thread] = true;
  wait();
  abort(); // a fiber that is done is not run again
}

static int arrived, generation, live;

extern "C" void nvcodec_emu_yield(void) { wait(); }

extern "C" void nvcodec_emu_barrier(void) {
  int mine = generation;
  if (++arrived == live) {
    arrived = 0;
    generation++;
    return;
  }
  while (generation == mine) wait();
}

struct Warp {
  int arrived, generation, kind;
  uint32_t word[32], given[32];
  int32_t c[32][4];
  uint32_t a[32][4], b[32][2];
};
static Warp warps[Warps];

static int32_t byte(uint32_t word, int i, bool is_signed) {
  return is_signed ? (int8_t)(word >> (8 * i)) : (uint8_t)(word >> (8 * i));
}

// m8n8k16: lane 4g+t holds A[g][4t+i], B[4t+i][g], C[g][2t+i].
static void product8816(Warp &w, bool is_signed) {
  int32_t A[8][16], B[16][8];
  for (int lane = 0; lane < 32; lane++) {
    int g = lane >> 2, t = lane & 3;
    for (int i = 0; i < 4; i++) {
      A[g][4 * t + i] = byte(w.a[lane][0], i, is_signed);
      B[4 * t + i][g] = byte(w.b[lane][0], i, true);
    }
  }
  for (int lane = 0; lane < 32; lane++) {
    for (int i = 0; i < 2; i++) {
      int row = lane >> 2, col = (lane & 3) * 2 + i;
      for (int k = 0; k < 16; k++) w.c[lane][i] += A[row][k] * B[k][col];
    }
  }
}

// m16n8k32, by the manual: of A's byte i, row = g for i in 0..3 and 8..11, else g+8; column = 4t + i%4, plus 16 from
// i = 8 on. Of B's byte i, row = 4t + i%4, plus 16 from i = 4 on; column g. Of C's i, row = g for i < 2, else g+8;
// column 2t + i%2.
static void product16832(Warp &w, bool is_signed) {
  int32_t A[16][32], B[32][8];
  for (int lane = 0; lane < 32; lane++) {
    int g = lane >> 2, t = lane & 3;
    for (int i = 0; i < 16; i++) {
      bool top = i < 4 || (i >= 8 && i < 12);
      A[top ? g : g + 8][4 * t + i % 4 + (i >= 8 ? 16 : 0)] = byte(w.a[lane][i / 4], i % 4, is_signed);
    }
    for (int i = 0; i < 8; i++) B[4 * t + i % 4 + (i >= 4 ? 16 : 0)][g] = byte(w.b[lane][i / 4], i % 4, true);
  }
  for (int lane = 0; lane < 32; lane++) {
    for (int i = 0; i < 4; i++) {
      int row = (lane >> 2) + (i < 2 ? 0 : 8), col = (lane & 3) * 2 + i % 2;
      for (int k = 0; k < 32; k++) w.c[lane][i] += A[row][k] * B[k][col];
    }
  }
}

static double half(uint16_t x) {
  int exponent = x >> 10 & 31, mantissa = x & 1023;
  double v = exponent ? ldexp(1024 + mantissa, exponent - 25) : ldexp(mantissa, -24);
  return x >> 15 ? -v : v;
}

// chopped is what a float holds of x, dropping the rest: no hardware's sum is farther from the exact one.
static float chopped(double x) {
  float f = (float)x;
  return fabs(f) > fabs(x) ? nextafterf(f, 0) : f;
}

// m16n8k8 of halves, by the manual: of A's half i, row = g for i < 2, else g+8; column = 2t + i%2. Of B's half i, row = 2t + i;
// column g. C as that of m16n8k32.
static void product1688(Warp &w) {
  double A[16][8], B[8][8];
  static double halves[1 << 16]; // of every half but infinities and their like, which have no place here
  if (halves[0x3c00] == 0) {
    for (int x = 0; x < 1 << 16; x++) halves[x] = (x >> 10 & 31) == 31 ? NAN : half(x);
  }
  for (int lane = 0; lane < 32; lane++) {
    int g = lane >> 2, t = lane & 3;
    for (int i = 0; i < 4; i++) A[i < 2 ? g : g + 8][2 * t + i % 2] = halves[(uint16_t)(w.a[lane][i / 2] >> (i % 2 * 16))];
    for (int i = 0; i < 2; i++) B[2 * t + i][g] = halves[(uint16_t)(w.b[lane][0] >> (i * 16))];
  }
  for (int lane = 0; lane < 32; lane++) {
    for (int i = 0; i < 4; i++) {
      int row = (lane >> 2) + (i < 2 ? 0 : 8), col = (lane & 3) * 2 + i % 2;
      float c;
      memcpy(&c, &w.c[lane][i], 4);
      double sum = c, magnitude = fabs(c);
      for (int j = 0; j < 8; j++) sum += A[row][j] * B[j][col], magnitude += fabs(A[row][j] * B[j][col]);
      if (magnitude <= 1 << 24 && sum == (int)sum) { // no part of the sum loses anything
        c = (float)sum;
      } else {
        for (int j = 0; j < 8; j++) c = chopped(c + A[row][j] * B[j][col]);
      }
      memcpy(&w.c[lane][i], &c, 4);
    }
  }
}

enum { unsignedBytes, signedBytes, floats };

static void product(int32_t *c, int nc, const uint32_t *a, int na, const uint32_t *b, int nb, int kind) {
  int lane = nvcodec_emu_thread % 32, mine = nc << 8 | kind;
  Warp &w = warps[nvcodec_emu_thread / 32];
  if (w.arrived == 0) w.kind = mine;
  if (w.kind != mine) abort(); // lanes of a warp that do not execute the same product
  for (int i = 0; i < nc; i++) w.c[lane][i] = c[i];
  for (int i = 0; i < na; i++) w.a[lane][i] = a[i];
  for (int i = 0; i < nb; i++) w.b[lane][i] = b[i];
  int generation = w.generation;
  if (++w.arrived == 32) {
    if (kind == floats) product1688(w);
    else if (nc == 2) product8816(w, kind == signedBytes);
    else product16832(w, kind == signedBytes);
    w.arrived = 0;
    w.generation++;
  } else {
    while (w.generation == generation) wait();
  }
  for (int i = 0; i < nc; i++) c[i] = w.c[lane][i];
}

extern "C" void nvcodec_emu_mma8816(int32_t *c, uint32_t a, uint32_t b, int is_signed) { product(c, 2, &a, 1, &b, 1, is_signed); }
extern "C" void nvcodec_emu_mma16832(int32_t *c, const uint32_t *a, const uint32_t *b, int is_signed) { product(c, 4, a, 4, b, 2, is_signed); }
extern "C" void nvcodec_emu_mma1688(float *c, const uint32_t *a, const uint32_t *b) { product((int32_t *)c, 4, a, 2, b, 1, floats); }

enum { Shuffle = 100 }; // a kind that no product has

// Every lane hands in a word and gets that of the lane it names when the last one of its warp has come.
extern "C" uint32_t nvcodec_emu_shuffle(uint32_t word, int from) {
  int lane = nvcodec_emu_thread % 32;
  Warp &w = warps[nvcodec_emu_thread / 32];
  if (w.arrived == 0) w.kind = Shuffle;
  if (w.kind != Shuffle) abort();
  w.word[lane] = word;
  int mine = w.generation;
  if (++w.arrived == 32) {
    memcpy(w.given, w.word, sizeof w.given); // the first to go on may hand in its next word before the last has read
    w.arrived = 0;
    w.generation++;
  } else {
    while (w.generation == mine) wait();
  }
  return w.given[from & 31];
}

// Every lane votes and gets the votes of its warp, lane 0 in bit 0.
extern "C" uint32_t nvcodec_emu_ballot(bool vote) {
  uint32_t all = 0;
  nvcodec_emu_shuffle(vote, 0);
  for (int i = 0; i < 32; i++) all |= warps[nvcodec_emu_thread / 32].given[i] << i;
  return all;
}

static bool fiberBlock(int threads, bool backwards) {
  if (!stacks) {
    stacks = mmap(NULL, (size_t)MaxThreads * StackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (stacks == MAP_FAILED) abort();
  }
  arrived = generation = 0;
  live = threads;
  for (int i = 0; i < Warps; i++) warps[i].arrived = warps[i].generation = 0;
  for (int i = 0; i < threads; i++) {
    done[i] = false;
    // The stack of a fiber that has not begun: six registers, where to go, and a word that aligns as a call does.
    void **top = (void **)((char *)stacks + (size_t)(i + 1) * StackBytes);
    *--top = NULL;
    *--top = (void *)enter;
    for (int r = 0; r < 6; r++) *--top = NULL;
    fibers[i] = top;
  }
  for (int rounds = 0, left = threads; left > 0; rounds++) {
    if (rounds > 1 << 24) return false; // they wait for each other
    for (int k = 0; k < threads; k++) {
      int i = backwards ? threads - 1 - k : k;
      if (done[i]) continue;
      nvcodec_emu_thread = i;
      nvcodec_emu_switch(&scheduler, fibers[i]);
      if (done[i]) left--;
    }
  }
  return true;
}

static KernelEntry *entries;

KernelEntry::KernelEntry(int family, const char *name, int count, bool fiber, void (*run)(const uint64_t *))
    : family(family), name(name), count(count), fiber(fiber), run(run), next(entries) {
  entries = this;
}

const KernelEntry *nvcodec_emu_find(int family, const char *name) {
  for (const KernelEntry *k = entries; k; k = k->next)
    if (k->family == family && !strcmp(k->name, name)) return k;
  return NULL;
}

// sharedMemory returns memory that ends where a page begins that nothing may touch.
static unsigned char *sharedMemory(int bytes) {
  static unsigned char *end;
  if (!end) {
    void *m = mmap(NULL, MaxShared + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (m == MAP_FAILED) abort();
    end = (unsigned char *)m + MaxShared;
    mprotect(end, 4096, PROT_NONE);
  }
  return end - (bytes + 15) / 16 * 16;
}

int nvcodec_emu_run(const KernelEntry *entry, int grid, int threads, int shared, const uint64_t *args, bool backwards) {
  if (grid < 1 || threads < 1 || threads > MaxThreads || shared < 0 || shared > MaxShared) return -4;
  body = entry->run;
  arguments = args;
  nvcodec_emu_shared = sharedMemory(shared);
  for (int k = 0; k < grid; k++) {
    nvcodec_emu_block = backwards ? grid - 1 - k : k;
    memset(nvcodec_emu_shared, 0xa5, shared); // a block finds there what another left
    if (entry->fiber) {
      if (!fiberBlock(threads, backwards)) return -3;
      continue;
    }
    for (int i = 0; i < threads; i++) {
      nvcodec_emu_thread = backwards ? threads - 1 - i : i;
      body(args);
    }
  }
  return 0;
}

// What emu.go calls: -1 without such a kernel, -2 when it takes another number of arguments.
extern "C" int nvcodec_emu_launch(int family, const char *name, int grid, int threads, int shared, const uint64_t *args, int count, int backwards) {
  const KernelEntry *k = nvcodec_emu_find(family, name);
  if (!k) return -1;
  if (k->count != count) return -2;
  return nvcodec_emu_run(k, grid, threads, shared, args, backwards);
}
