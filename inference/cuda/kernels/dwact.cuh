// The 3x3 depthwise correlation of act(x), or of x, with zero padding: weights [9][c].
//
// A block of threads computes Strips*Strip rows and Columns columns of 32 channels. First it activates its inputs, each
// once, and lays them in shared memory as words of two rows, which are what one instruction multiplies by two taps; zero
// outside the tensor, since act(0) = 0. Then a thread computes Strip rows of one column and four channels.
#pragma once
#include "halves.cuh"
#include "launches.cuh"

// requantised saturates to sat16(rnd(acc*mul, shift)); with Far, shift is 32 or more, so that the high word is all that counts.
template <bool Far>
DEVICE i32 requantised(i32 acc, i32 mul, i64 half, i32 shift) {
  i64 x = wide(acc, mul) + half;
  return Far ? (i32)(x >> 32) >> (shift - 32) : sat16(x >> shift);
}

template <bool Far, int Strip>
DEVICE void dwactStore(i16 *dst, const i32 (*acc)[4], i32x4 mul, i32 rows, i64 pitch, i32 shift) {
  i64 half = (i64)1 << shift >> 1;
  UNROLL for (int r = 0; r < Strip; r++) {
    if (r < rows) {
      i32 y[4];
      UNROLL for (int k = 0; k < 4; k++) y[k] = requantised<Far>(acc[r][k], mul[k], half, shift);
      *(u32x2 *)(dst + r * pitch) = u32x2{saturated(y[0], y[1]), saturated(y[2], y[3])};
    }
  }
}

template <bool Active, int Columns, int Strips, int Strip>
DEVICE void dwactOf(i16 *dst, const i16 *src, const i8 *weights, const i32 *bias, const i32 *mul, i32 h, i32 w, i32 c, i32 f, i32 shift) {
  enum { Quads = 8, Rows = Strips * Strip, Pairs = Rows / 2 + 1, Wide = Columns + 2, Inputs = Pairs * Wide * Quads, Rounds = (Inputs / 2 + 255) / 256 };
  static_assert(Columns * Strips * Quads == 256, "a thread for each strip");
  SHARED u32x4 inputs[Inputs];    // [pair of rows][column][four channels]
  SHARED u32 taps[3][Quads * 4]; // by column: a channel's three weights from the lowest byte on, then 0
  i32 groups = (c + 31) / 32, across = (w + Columns - 1) / Columns, thread = threadIndex();
  i32 c0 = blockIndex() % groups * 32, x0 = blockIndex() / groups % across * Columns, y0 = blockIndex() / groups / across * Rows;
  if (thread < 3 * Quads * 4) {
    i32 dx = thread / (Quads * 4), k = thread % (Quads * 4);
    u32 word = 0;
    UNROLL for (int dy = 0; dy < 3; dy++) {
      if (c0 + k < c) word |= (u32)constant(weights + (dy * 3 + dx) * c + c0 + k) << (8 * dy);
    }
    taps[dx][k] = word;
  }
  i32 quad = thread % Quads, ch = c0 + 4 * quad;
  i32x4 b = constant((const i32x4 *)(bias + (ch < c ? ch : 0))), m = constant((const i32x4 *)(mul + (ch < c ? ch : 0)));
  awaitLaunches();
  u32x4 x[Rounds][2]; // eight channels of two rows
  UNROLL for (int round = 0; round < Rounds; round++) {
    i32 at = thread + 256 * round, ch = c0 + at % (Quads / 2) * 8, col = x0 - 1 + at / (Quads / 2) % Wide, row = y0 - 1 + at / (Quads / 2 * Wide) * 2;
    bool in = at < Inputs / 2 && ch < c && (u32)col < (u32)w;
    const i16 *from = src + ((row * w + col) * c + ch); // no tensor has 2^31 values
    UNROLL for (int k = 0; k < 2; k++) x[round][k] = loadIf(from + k * w * c, in && (u32)(row + k) < (u32)h);
  }
  UNROLL for (int round = 0; round < Rounds; round++) {
    i32 at = thread + 256 * round;
    u32x4 pairs[2];
    UNROLL for (int k = 0; k < 8; k++) {
      u32 a = x[round][0][k / 2], b = x[round][1][k / 2];
      if (!Active)
        pairs[k / 4][k % 4] = permute(a, b, k % 2 == 0 ? 0x5410 : 0x7632);
      else
        pairs[k / 4][k % 4] = k % 2 == 0 ? halves(act((i16)a, f), act((i16)b, f)) : halves(act((i32)a >> 16, f), act((i32)b >> 16, f));
    }
    if (at < Inputs / 2) inputs[2 * at] = pairs[0], inputs[2 * at + 1] = pairs[1];
  }
  barrier();
  i32 col = thread / Quads % Columns, strip = thread / (Quads * Columns);
  i32 y = y0 + strip * Strip;
  if (ch >= c || x0 + col >= w || y >= h) return;
  i32 acc[Strip][4];
  UNROLL for (int r = 0; r < Strip; r++) {
    UNROLL for (int k = 0; k < 4; k++) acc[r][k] = b[k];
  }
  UNROLL for (int dx = 0; dx < 3; dx++) {
    u32x4 t = *(const u32x4 *)&taps[dx][4 * quad];
    UNROLL for (int p = 0; p <= Strip / 2; p++) { // rows 2p-1 and 2p of the strip
      u32x4 v = inputs[((strip * (Strip / 2) + p) * Wide + col + dx) * Quads + quad];
      UNROLL for (int k = 0; k < 4; k++) {
        if (p > 0) acc[2 * p - 2][k] = dp2<true>(v[k], t[k], acc[2 * p - 2][k]);      // tap 2
        if (p > 0) acc[2 * p - 1][k] = dp2<true>(v[k], t[k] << 8, acc[2 * p - 1][k]); // taps 1 and 2
        if (p < Strip / 2) acc[2 * p][k] = dp2<false>(v[k], t[k], acc[2 * p][k]);     // taps 0 and 1
        if (p < Strip / 2) acc[2 * p + 1][k] = dp2<false>(v[k], t[k] << 8, acc[2 * p + 1][k]); // tap 0
      }
    }
  }
  i16 *to = dst + (i64)(y * w + x0 + col) * c + ch;
  if (shift >= 32)
    dwactStore<true, Strip>(to, acc, m, h - y, (i64)w * c, shift);
  else
    dwactStore<false, Strip>(to, acc, m, h - y, (i64)w * c, shift);
}

#define DWACT(name, active, columns, strips, strip)                                                                                                                  \
  KERNEL_OF(256, 4) void name(i16 *dst, const i16 *src, const i8 *weights, const i32 *bias, const i32 *mul, i64 h, i64 w, i64 c, i64 f, i64 shift) {                    \
    dwactOf<active, columns, strips, strip>(dst, src, weights, bias, mul, (i32)h, (i32)w, (i32)c, (i32)f, (i32)shift);                                               \
  }
DWACT(dw_large, false, 16, 2, 4)
DWACT(dw_small, false, 8, 4, 2)
DWACT(dwact_large, true, 16, 2, 4)
DWACT(dwact_small, true, 8, 4, 2) // where the large tiles are too few for a device
#undef DWACT

// dwact_1 and dw_1 are for any number of channels: one thread a value.
template <bool Active>
DEVICE void dwactOne(i16 *dst, const i16 *src, const i8 *weights, const i32 *bias, const i32 *mul, i64 h_, i64 w_, i64 c_, i64 f, i64 shift) {
  i32 h = (i32)h_, w = (i32)w_, c = (i32)c_;
  u32 at = unit();
  awaitLaunches();
  if (at >= (u32)h * w * c) return;
  i32 ch = at % c, x = at / c % w, y = at / c / w, acc = bias[ch];
  for (i32 t = 0; t < 9; t++) {
    i32 row = y + t / 3 - 1, col = x + t % 3 - 1;
    if (row < 0 || row >= h || col < 0 || col >= w) continue;
    i32 v = src[(i64)(row * w + col) * c + ch];
    acc += weights[t * c + ch] * (Active ? act(v, (i32)f) : v);
  }
  dst[at] = sat16(rnd(wide(acc, mul[ch]), (i32)shift));
}
KERNEL void dwact_1(i16 *dst, const i16 *src, const i8 *weights, const i32 *bias, const i32 *mul, i64 h, i64 w, i64 c, i64 f, i64 shift) {
  dwactOne<true>(dst, src, weights, bias, mul, h, w, c, f, shift);
}
KERNEL void dw_1(i16 *dst, const i16 *src, const i8 *weights, const i32 *bias, const i32 *mul, i64 h, i64 w, i64 c, i64 f, i64 shift) {
  dwactOne<false>(dst, src, weights, bias, mul, h, w, c, f, shift);
}
