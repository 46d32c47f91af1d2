// The reference at all quarter-sample phases.
#pragma once
#include "motion.cuh"

// byteOf limits x to 0..255; dp2 adds the products of two int16 of x with two signed bytes of w, its lower or upper ones.
#ifdef NVCODEC_EMULATE
DEVICE i32 byteOf(i32 x) { return clamp32(x, 0, 255); }

template <bool Upper>
DEVICE i32 dp2(u32 x, u32 w, i32 c) {
  w = Upper ? w >> 16 : w;
  return c + (i16)x * (i8)w + (i16)(x >> 16) * (i8)(w >> 8);
}
#else
DEVICE i32 byteOf(i32 x) {
  asm("max.s32 %0, %1, 0;" : "=r"(x) : "r"(x)); // as compilers would, were they not clever about ranges
  asm("min.s32 %0, %1, 255;" : "=r"(x) : "r"(x));
  return x;
}

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

// A thread computes four columns of one horizontal phase and all vertical ones, down a chunk of rows, eight at a time.
struct Column {
  const u8 *src; // the luma plane
  i32 w, h, at[3]; // where the words left, here and right lie in a row
  u32 edge[3]; // and how their bytes are repeated past an edge
  u32 taps[2];
};

// Words are what a line is made from: twelve samples.
struct Words {
  u32 w[3];
};

DEVICE Words words(const Column &c, i32 y) {
  const u8 *row = c.src + clamp32(y, 0, c.h - 1) * c.w;
  Words a;
  UNROLL for (int k = 0; k < 3; k++) a.w[k] = *(const u32 *)(row + c.at[k]);
  return a;
}

DEVICE Line horizontal(const Column &c, Words a) {
  UNROLL for (int k = 0; k < 3; k++) a.w[k] = permute(a.w[k], a.w[k], c.edge[k]);
  Line l;
  UNROLL for (int i = 0; i < 4; i++) {
    u32 low = i < 3 ? between(a.w[0], a.w[1], (i + 1) & 3) : a.w[1], high = i < 3 ? between(a.w[1], a.w[2], (i + 1) & 3) : a.w[2];
    l.x[i] = dp4<false>(low, c.taps[0], dp4<false>(high, c.taps[1], 0));
  }
  return l;
}

// A Pair is two rows of four columns as dp2 wants them.
struct Pair {
  u32 x[4];
};

DEVICE Pair pairOf(const Line &upper, const Line &lower) {
  Pair p;
  UNROLL for (int i = 0; i < 4; i++) p.x[i] = permute((u32)upper.x[i], (u32)lower.x[i], 0x5410);
  return p;
}

// vertical is the four samples of phase fy of a row from the pairs that begin 3 and 1 rows above it and 1 and 3 below.
// |sum| < 2^22.
template <int Fy>
DEVICE u32 vertical(const Pair &a, const Pair &b, const Pair &c, const Pair &d) {
  const u32 low = phaseTaps[Fy][0], high = phaseTaps[Fy][1];
  u32 x[4];
  UNROLL for (int i = 0; i < 4; i++) {
    i32 sum = Fy == 0 ? dp2<true>(b.x[i], low, 2048) : dp2<false>(a.x[i], low, dp2<true>(b.x[i], low, dp2<false>(c.x[i], high, dp2<true>(d.x[i], high, 2048))));
    x[i] = (u32)byteOf(sum >> 12);
  }
  return permute(permute(x[0], x[1], 0x0040), permute(x[2], x[3], 0x0040), 0x5410);
}

// search_phases fills phases from the luma plane of ref. chunk is a multiple of 8.
KERNEL_OF(256, 2) void search_phases(u8 *phases, const u8 *ref, i64 w_, i64 h_, i64 chunk_) {
  i32 w = (i32)w_, h = (i32)h_, size = (i32)chunk_, rows = phaseRows(h), across = phaseStrips(w) * 4, chunks = (rows + size - 1) / size;
  u32 at = unit();
  if (at >= (u32)(4 * across * chunks)) return;
  i32 word = (i32)at % across, chunk = (i32)at / across % chunks, fx = (i32)at / across / chunks;
  Column c = {ref, w, h, {0, 0, 0}, {0, 0, 0}, {phaseTaps[fx][0], phaseTaps[fx][1]}};
  UNROLL for (int k = 0; k < 3; k++) {
    i32 x = 4 * (word + k - 1) - marginColumns;
    c.at[k] = clamp32(x, 0, w - 4);
    c.edge[k] = x < 0 ? 0x0000 : x >= w ? 0x3333 : 0x3210;
  }
  i64 plane = (i64)phaseStrips(w) * rows * 16;
  i32 y0 = chunk * size, top = y0 - marginRows - 3; // the row of the first taps
  u8 *dst = phases + fx * plane + ((i64)(word / 4) * rows + y0) * 16 + word % 4 * 4;
  Pair pair[15]; // number t begins with row t of those that eight rows want
  Line last = horizontal(c, words(c, top));
  UNROLL for (int t = 1; t < 8; t++) {
    Line next = horizontal(c, words(c, top + t));
    pair[t - 1 + 8] = pairOf(last, next);
    last = next;
  }
  for (i32 base = 0; base < size && y0 + base < rows; base += 8, top += 8, dst += 8 * 16) { // rows are a multiple of 8
    UNROLL for (int t = 0; t < 7; t++) pair[t] = pair[t + 8];
    Words in[8];
    UNROLL for (int k = 0; k < 8; k++) in[k] = words(c, top + 8 + k);
    UNROLL for (int k = 0; k < 8; k++) {
      u8 *d = dst + k * 16;
      const Pair &p0 = pair[k], &p1 = pair[k + 2], &p2 = pair[k + 4], &p3 = pair[k + 6];
      *(u32 *)d = vertical<0>(p0, p1, p2, p3);
      *(u32 *)(d + 4 * plane) = vertical<1>(p0, p1, p2, p3);
      *(u32 *)(d + 8 * plane) = vertical<2>(p0, p1, p2, p3);
      *(u32 *)(d + 12 * plane) = vertical<3>(p0, p1, p2, p3);
      Line next = horizontal(c, in[k]);
      pair[k + 7] = pairOf(last, next);
      last = next;
    }
  }
}
