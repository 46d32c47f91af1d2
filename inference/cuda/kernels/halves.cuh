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

// halves puts two numbers of 16 bits into a word, the first one low.
DEVICE u32 halves(i32 a, i32 b) { return permute((u32)a, (u32)b, 0x5410); }
