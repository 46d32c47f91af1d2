// What the lanes of a warp ask each other while they code.
#pragma once
#include "lanes.cuh"

#ifdef NVCODEC_EMULATE
#define DEVICE_METHOD
extern "C" uint32_t nvcodec_emu_ballot(bool vote);

DEVICE u32 ballot(bool vote) { return nvcodec_emu_ballot(vote); }
DEVICE u32 ballotLess(u32 a, u32 b, u32 x, u32 y, u32 limit) { return ballot((a < b ? x : y) < limit); }
DEVICE void warpBarrier() { nvcodec_emu_ballot(false); }
DEVICE u32 lanesBefore() { return (1u << laneIndex()) - 1; }
DEVICE u32 high(u32 a, u32 b) { return (u32)((u64)a * b >> 32); }
DEVICE void addIf(bool yes, u32 *p) { *p += yes; }
DEVICE void atomicMin(u64 *p, u64 v) { *p = *p < v ? *p : v; }
DEVICE void atomicXor(u32 *p, u32 v) { *p ^= v; }
DEVICE void fence() {}
DEVICE void together(u32 &, u32 &, u32 &, u32 &) {}
#else
#define DEVICE_METHOD __attribute__((device, always_inline))

// ballot is the lanes that vote, lane 0 in bit 0. All 32 lanes come to it together.
DEVICE u32 ballot(bool vote) { return __nvvm_vote_ballot_sync(~0u, vote); }

// ballotLess is ballot((a < b ? x : y) < limit), with all three comparisons at once.
DEVICE u32 ballotLess(u32 a, u32 b, u32 x, u32 y, u32 limit) {
  u32 d;
  asm volatile("{.reg .pred ab, xl, yl, nab;\n"
               "setp.lt.u32 ab, %1, %2;\n"
               "setp.lt.u32 xl, %3, %5;\n"
               "setp.lt.u32 yl, %4, %5;\n"
               "not.pred nab, ab;\n"
               "and.pred xl, xl, ab;\n"
               "and.pred yl, yl, nab;\n"
               "or.pred xl, xl, yl;\n"
               "vote.sync.ballot.b32 %0, xl, 0xffffffff;}"
               : "=r"(d)
               : "r"(a), "r"(b), "r"(x), "r"(y), "r"(limit));
  return d;
}

// warpBarrier makes what the lanes of a warp have written visible to each other.
DEVICE void warpBarrier() { asm volatile("bar.warp.sync 0xffffffff;" : : : "memory"); }

// lanesBefore has a bit for each lane below this one.
DEVICE u32 lanesBefore() {
  u32 d;
  asm("mov.u32 %0, %%lanemask_lt;" : "=r"(d));
  return d;
}

// high is the upper half of a product.
DEVICE u32 high(u32 a, u32 b) {
  u32 d;
  asm("mul.hi.u32 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b));
  return d;
}

// addIf adds 1 where yes, without a branch.
DEVICE void addIf(bool yes, u32 *p) {
  asm volatile("{.reg .pred p; setp.ne.u32 p, %0, 0; @p red.global.add.u32 [%1], 1;}" : : "r"((u32)yes), "l"(p) : "memory");
}

DEVICE void atomicMin(u64 *p, u64 v) { asm volatile("red.min.u64 [%0], %1;" : : "l"(p), "l"(v) : "memory"); }
DEVICE void atomicXor(u32 *p, u32 v) { asm volatile("red.xor.b32 [%0], %1;" : : "l"(p), "r"(v) : "memory"); }

// fence makes what this thread has written visible before what it writes later.
DEVICE void fence() { asm volatile("membar.gl;" : : : "memory"); }

// together keeps a compiler from computing some of four words only where it finds that they are wanted.
DEVICE void together(u32 &a, u32 &b, u32 &c, u32 &d) { asm volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d)); }
#endif
