// What threads tell each other without a barrier of their block: words between the lanes of a warp, and sums and maxima
// in memory, whose order cannot show. All 32 lanes come to a shuffle together.
#pragma once
#include "device.cuh"

typedef unsigned long long u64;
typedef unsigned short u16;

DEVICE int laneIndex() { return threadIndex() & 31; }

#ifdef NVCODEC_EMULATE
extern "C" uint32_t nvcodec_emu_shuffle(uint32_t word, int from);

DEVICE u32 shuffle(u32 word, int from) { return nvcodec_emu_shuffle(word, from); }
DEVICE u32 shuffleXor(u32 word, int mask) { return nvcodec_emu_shuffle(word, laneIndex() ^ mask); }

// The threads of an emulation never run at the same time.
DEVICE u32 atomicIncrement(u32 *p) { return (*p)++; }
DEVICE void atomicAdd(u32 *p, u32 v) { *p += v; }
DEVICE void atomicAdd(u64 *p, u64 v) { *p += v; }
DEVICE void atomicMax(u32 *p, u32 v) { *p = *p > v ? *p : v; }
#else
DEVICE u32 shuffle(u32 word, int from) {
  u32 d;
  asm volatile("shfl.sync.idx.b32 %0, %1, %2, 31, 0xffffffff;" : "=r"(d) : "r"(word), "r"(from));
  return d;
}

DEVICE u32 shuffleXor(u32 word, int mask) {
  u32 d;
  asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 31, 0xffffffff;" : "=r"(d) : "r"(word), "r"(mask));
  return d;
}

// atomicIncrement returns what was there.
DEVICE u32 atomicIncrement(u32 *p) {
  u32 d;
  asm volatile("atom.add.u32 %0, [%1], 1;" : "=r"(d) : "l"(p) : "memory");
  return d;
}

DEVICE void atomicAdd(u32 *p, u32 v) { asm volatile("red.add.u32 [%0], %1;" : : "l"(p), "r"(v) : "memory"); }
DEVICE void atomicAdd(u64 *p, u64 v) { asm volatile("red.add.u64 [%0], %1;" : : "l"(p), "l"(v) : "memory"); }
DEVICE void atomicMax(u32 *p, u32 v) { asm volatile("red.max.u32 [%0], %1;" : : "l"(p), "r"(v) : "memory"); }
#endif
