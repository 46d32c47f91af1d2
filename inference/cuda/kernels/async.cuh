// Copies from device memory to shared memory that run while a block computes, and barriers in shared memory (mbarrier)
// that count who has arrived: a phase ends when all that are expected have, and the next one begins. sm_80 and above.
#pragma once
#include "lanes.cuh"

#ifdef NVCODEC_EMULATE
#define METHOD inline // DEVICE, of a class
#define NOUNROLL

// The copies of a thread happen when it waits for them or says that it will arrive behind them, which is late enough to show a reader
// that does not wait.
struct Arrivals {
  unsigned short expected, missing;
  u32 phase;
};
struct AsyncCopy {
  u32x4 *to;
  const u32x4 *from;
};
static AsyncCopy asyncCopies[1024][64];
static int asyncCount[1024];

extern "C" void nvcodec_emu_yield(void);

DEVICE void expect(Arrivals *b, u32 count) { *b = Arrivals{(unsigned short)count, (unsigned short)count, 0}; }
DEVICE void arrive(Arrivals *b) {
  if (--b->missing == 0) {
    b->missing = b->expected;
    b->phase++;
  }
}
DEVICE void copyAsync(u8 *to, const u8 *from) {
  int t = threadIndex();
  asyncCopies[t][asyncCount[t]++] = {(u32x4 *)to, (const u32x4 *)from};
}
DEVICE void copied() {
  int t = threadIndex();
  for (int i = 0; i < asyncCount[t]; i++) *asyncCopies[t][i].to = *asyncCopies[t][i].from;
  asyncCount[t] = 0;
}
DEVICE void arriveCopied(Arrivals *b) {
  copied();
  arrive(b);
}
DEVICE void await(Arrivals *b, u32 parity) {
  while ((b->phase & 1) == parity) nvcodec_emu_yield();
}
DEVICE void syncWarp() { nvcodec_emu_shuffle(0, 0); }
#else
#define METHOD inline __attribute__((device, always_inline))
#define NOUNROLL _Pragma("nounroll") // a loop whose copies would only fill the instruction cache

typedef u64 Arrivals;

DEVICE u32 sharedAddress(const void *p) { return (u32)(u64)(__attribute__((address_space(3))) const void *)p; }

// expect begins a barrier's first phase, for count arrivals.
DEVICE void expect(Arrivals *b, u32 count) { asm volatile("mbarrier.init.shared.b64 [%0], %1;" : : "r"(sharedAddress(b)), "r"(count) : "memory"); }

DEVICE void arrive(Arrivals *b) {
  u64 state;
  asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(state) : "r"(sharedAddress(b)) : "memory");
}

// copyAsync copies 16 bytes.
DEVICE void copyAsync(u8 *to, const u8 *from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" : : "r"(sharedAddress(to)), "l"(from) : "memory");
}

// arriveCopied arrives when all copies that this thread has begun are done.
DEVICE void arriveCopied(Arrivals *b) { asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" : : "r"(sharedAddress(b)) : "memory"); }

// copied returns when they are done.
DEVICE void copied() { asm volatile("cp.async.wait_all;" : : : "memory"); }

// await returns when the phase of that parity has ended: 0 for the first, third, …; 1 for the one before the first too.
DEVICE void await(Arrivals *b, u32 parity) {
  u32 done;
  do {
    asm volatile("{\n\t.reg .pred p;\n\tmbarrier.test_wait.parity.shared.b64 p, [%1], %2;\n\tselp.u32 %0, 1, 0, p;\n\t}"
                 : "=r"(done)
                 : "r"(sharedAddress(b)), "r"(parity)
                 : "memory");
  } while (!done);
}

DEVICE void syncWarp() { asm volatile("bar.warp.sync 0xffffffff;" : : : "memory"); }
#endif
