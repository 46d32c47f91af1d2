// The reference at all quarter-sample phases.
#pragma once
#include "motion.cuh"

// dp2 adds the products of two int16 of x with two signed bytes of w, its lower or upper ones.
#ifdef NVCODEC_EMULATE
template <bool Upper>
DEVICE i32 dp2(u32 x, u32 w, i32 c) {
  w = Upper ? w >> 16 : w;
  return c + (i16)x * (i8)w + (i16)(x >> 16) * (i8)(w >> 8);
}
#else
template <bool Upper>
DEVICE i32 dp2(u32 x, u32 w, i32 c) {
  i32 d;
  if (Upper)
    asm("dp2a.hi.s32.s32 %0, %1, %2, %3;" : "=r"(d) : "r"(x), "r"(w), "r"(c));
  else
    asm("dp2a.lo.s32.s32 %0, %1, %2, %3;" : "=r"(d) : "r"(x), "r"(w), "r"(c));
  return d;
}
#endif

#define TAPS(a, b, c, d) ((u32)(a) & 255) | ((u32)(b) & 255) << 8 | ((u32)(c) & 255) << 16 | (u32)(d) << 24
CONSTANT u32 phaseTaps[4][2] = {
    {TAPS(0, 0, 0, 64), TAPS(0, 0, 0, 0)},
    {TAPS(-1, 4, -10, 58), TAPS(17, -5, 1, 0)},
    {TAPS(-1, 4, -11, 40), TAPS(40, -11, 4, -1)},
    {TAPS(0, 1, -5, 17), TAPS(58, -10, 4, -1)},
};
#undef TAPS

// A Line is four samples of the horizontal pass, unrounded: -24*255 .. 88*255 fits int16.
struct Line {
  i32 x[4];
};

// A thread computes four columns of one horizontal phase and all vertical ones, down phaseChunk rows. Rows of the
// horizontal pass are kept in pairs, as dp2 wants them: pair[k] has rows k-1 and k, modulo 8.
enum { phaseChunk = 32 };

struct Column {
  const u8 *src; // the luma plane
  i32 w, h, at[3]; // where the words left, here and right lie in a row
  u32 edge[3]; // and how their bytes are repeated past an edge
  u32 taps[2];
};

DEVICE Line horizontal(const Column &c, i32 y) {
  const u8 *row = c.src + (i64)clamp32(y, 0, c.h - 1) * c.w;
  u32 a[3];
  UNROLL for (int k = 0; k < 3; k++) {
    u32 four = *(const u32 *)(row + c.at[k]);
    a[k] = permute(four, four, c.edge[k]);
  }
  Line l;
  UNROLL for (int i = 0; i < 4; i++) {
    u32 low = i < 3 ? between(a[0], a[1], (i + 1) & 3) : a[1], high = i < 3 ? between(a[1], a[2], (i + 1) & 3) : a[2];
    l.x[i] = dp4<false>(low, c.taps[0], dp4<false>(high, c.taps[1], 0));
  }
  return l;
}

// vertical is the four samples of phase fy of a row from the pairs that begin 3 and 1 rows above it and 1 and 3 below.
// |sum| < 2^22.
template <int Fy>
DEVICE u32 vertical(const u32 *a, const u32 *b, const u32 *c, const u32 *d) {
  u32 four = 0;
  UNROLL for (int i = 0; i < 4; i++) {
    u32 low = phaseTaps[Fy][0], high = phaseTaps[Fy][1];
    i32 sum = Fy == 0 ? dp2<true>(b[i], low, 2048) : dp2<false>(a[i], low, dp2<true>(b[i], low, dp2<false>(c[i], high, dp2<true>(d[i], high, 2048))));
    four |= (u32)clamp32(sum >> 12, 0, 255) << (8 * i);
  }
  return four;
}

// search_phases fills phases from the luma plane of ref.
KERNEL void search_phases(u8 *phases, const u8 *ref, i64 w_, i64 h_) {
  i32 w = (i32)w_, h = (i32)h_, rows = phaseRows(h), words = phaseStrips(w) * 4, chunks = (rows + phaseChunk - 1) / phaseChunk;
  u32 at = unit();
  if (at >= (u32)(4 * words * chunks)) return;
  i32 word = (i32)at % words, chunk = (i32)at / words % chunks, fx = (i32)at / words / chunks;
  Column c = {ref, w, h, {0, 0, 0}, {0, 0, 0}, {phaseTaps[fx][0], phaseTaps[fx][1]}};
  UNROLL for (int k = 0; k < 3; k++) {
    i32 x = 4 * (word + k - 1) - marginColumns;
    c.at[k] = clamp32(x, 0, w - 4);
    c.edge[k] = x < 0 ? 0x0000 : x >= w ? 0x3333 : 0x3210;
  }
  i64 plane = (i64)phaseStrips(w) * rows * 16;
  i32 y0 = chunk * phaseChunk;
  u8 *dst = phases + fx * plane + ((i64)(word / 4) * rows + y0) * 16 + word % 4 * 4;
  u32 pair[8][4];
  Line last = horizontal(c, y0 - marginRows - 3);
  UNROLL for (int t = 1; t < 7; t++) {
    Line next = horizontal(c, y0 - marginRows - 3 + t);
    UNROLL for (int i = 0; i < 4; i++) pair[t & 7][i] = ((u32)last.x[i] & 0xffff) | (u32)next.x[i] << 16;
    last = next;
  }
  for (i32 base = 0; base < phaseChunk; base += 8) {
    UNROLL for (int k = 0; k < 8; k++) {
      if (y0 + base + k >= rows) return;
      const int t = k + 7; // of the rows from 3 above on, the one that the last taps of row k want
      Line next = horizontal(c, y0 - marginRows - 3 + base + t);
      UNROLL for (int i = 0; i < 4; i++) pair[t & 7][i] = ((u32)last.x[i] & 0xffff) | (u32)next.x[i] << 16;
      last = next;
      const u32 *p0 = pair[(t - 6) & 7], *p1 = pair[(t - 4) & 7], *p2 = pair[(t - 2) & 7], *p3 = pair[t & 7];
      u8 *d = dst + (base + k) * 16;
      *(u32 *)d = vertical<0>(p0, p1, p2, p3);
      *(u32 *)(d + 4 * plane) = vertical<1>(p0, p1, p2, p3);
      *(u32 *)(d + 8 * plane) = vertical<2>(p0, p1, p2, p3);
      *(u32 *)(d + 12 * plane) = vertical<3>(p0, p1, p2, p3);
    }
  }
}
