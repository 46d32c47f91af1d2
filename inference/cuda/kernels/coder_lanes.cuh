// What the lanes of a warp ask each other while they code.
#pragma once
#include "lanes.cuh"

#ifdef NVCODEC_EMULATE
#define DEVICE_METHOD
extern "C" uint32_t nvcodec_emu_ballot(bool vote);

DEVICE u32 ballot(bool vote) { return nvcodec_emu_ballot(vote); }
DEVICE bool any(bool vote) { return nvcodec_emu_ballot(vote) != 0; }
DEVICE void warpBarrier() { nvcodec_emu_ballot(false); }
DEVICE u32 lanesBefore() { return (1u << laneIndex()) - 1; }
DEVICE u32 high(u32 a, u32 b) { return (u32)((u64)a * b >> 32); }
DEVICE u32 shiftRight(u32 x, u32 by) { return x >> (by & 31); }
DEVICE u32 shiftLeft(u32 x, u32 by) { return x << (by & 31); }
DEVICE void atomicMin(u64 *p, u64 v) { *p = *p < v ? *p : v; }
DEVICE void atomicOr(u32 *p, u32 v) { *p |= v; }
DEVICE void fence() {}
DEVICE void together(u32 &, u32 &, u32 &, u32 &) {}
DEVICE void together(u32 &, u32 &) {}
DEVICE void together(u32 &) {}
#else
#define DEVICE_METHOD __attribute__((device, always_inline))

// ballot is the lanes that vote, lane 0 in bit 0. All 32 lanes come to it together.
DEVICE u32 ballot(bool vote) { return __nvvm_vote_ballot_sync(~0u, vote); }
DEVICE bool any(bool vote) { return __nvvm_vote_any_sync(~0u, vote); }

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

// shiftRight and shiftLeft take the number of bits from the low five of by.
DEVICE u32 shiftRight(u32 x, u32 by) {
  u32 d;
  asm("shf.r.wrap.b32 %0, %1, 0, %2;" : "=r"(d) : "r"(x), "r"(by));
  return d;
}
DEVICE u32 shiftLeft(u32 x, u32 by) {
  u32 d;
  asm("shf.l.wrap.b32 %0, 0, %1, %2;" : "=r"(d) : "r"(x), "r"(by));
  return d;
}

DEVICE void atomicMin(u64 *p, u64 v) { asm volatile("red.min.u64 [%0], %1;" : : "l"(p), "l"(v) : "memory"); }
DEVICE void atomicOr(u32 *p, u32 v) { asm volatile("red.or.b32 [%0], %1;" : : "l"(p), "r"(v) : "memory"); }

// fence makes what this thread has written visible before what it writes later.
DEVICE void fence() { asm volatile("membar.gl;" : : : "memory"); }

// together keeps a compiler from computing some of four words only where it finds that they are wanted, or one in two ways.
DEVICE void together(u32 &a, u32 &b, u32 &c, u32 &d) { asm volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d)); }
DEVICE void together(u32 &a, u32 &b) { asm volatile("" : "+r"(a), "+r"(b)); }
DEVICE void together(u32 &a) { asm volatile("" : "+r"(a)); }
#endif

// uniform is x, which all lanes of the warp have alike. A compiler that knows so lets the warp go on as one behind a
// branch on it, instead of bringing its lanes together anew for each ballot.
DEVICE u32 uniform(u32 x) { return shuffle(x, 0); }
