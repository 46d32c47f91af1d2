// Products of 16-bit numbers, two at once.
#pragma once
#include "device.cuh"

// dp2 adds to c the products of both signed halves of x with two signed bytes of w: the low two or, with High, the high.
template <bool High>
DEVICE i32 dp2(u32 x, u32 w, i32 c) {
#ifdef NVCODEC_EMULATE
  w = High ? w >> 16 : w;
  return (i32)((u32)c + (u32)((i16)x * (i8)w) + (u32)((i16)(x >> 16) * (i8)(w >> 8)));
#else
  i32 d;
  if (High)
    asm("dp2a.hi.s32.s32 %0, %1, %2, %3;" : "=r"(d) : "r"(x), "r"(w), "r"(c));
  else
    asm("dp2a.lo.s32.s32 %0, %1, %2, %3;" : "=r"(d) : "r"(x), "r"(w), "r"(c));
  return d;
#endif
}

// saturated packs two numbers, each limited to int16; a is the lower half.
DEVICE u32 saturated(i32 a, i32 b) {
#if NVCODEC_SM >= 75 && !defined(NVCODEC_EMULATE)
  u32 d;
  asm("cvt.pack.sat.s16.s32 %0, %1, %2;" : "=r"(d) : "r"(b), "r"(a));
  return d;
#else
  return permute((u32)sat16(a), (u32)sat16(b), 0x5410);
#endif
}

// loadIf reads eight numbers, or is 0 where there are none; without a branch, so that all such reads are under way at once.
DEVICE u32x4 loadIf(const i16 *p, bool there) {
#ifdef NVCODEC_EMULATE
  return there ? *(const u32x4 *)p : u32x4{0, 0, 0, 0};
#else
  u32 x[4] = {0, 0, 0, 0};
  asm volatile("{.reg .pred p; .reg .u64 g; setp.ne.u32 p, %5, 0; cvta.to.global.u64 g, %4; @p ld.global.v4.u32 {%0,%1,%2,%3}, [g];}"
               : "+r"(x[0]), "+r"(x[1]), "+r"(x[2]), "+r"(x[3]) : "l"(p), "r"((u32)there) : "memory");
  return u32x4{x[0], x[1], x[2], x[3]};
#endif
}

// halves puts two numbers of 16 bits into a word, the first one low.
DEVICE u32 halves(i32 a, i32 b) { return permute((u32)a, (u32)b, 0x5410); }
