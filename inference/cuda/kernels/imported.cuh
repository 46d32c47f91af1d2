// Operators of imported networks beyond those that the shipped ones have: tables, sums, pictures whose chroma has luma's
// resolution, and a 3x3 convolution for where no matrix unit computes it.
#pragma once
#include "launches.cuh"

// lookup is table [65536] at x + 32768, of n runs.
template <int V>
DEVICE void lookupRun(i16 *dst, const i16 *src, const i16 *table, i64 n) {
  u32 at = unit();
  awaitLaunches();
  if (at >= n) return;
  Run<V> v = load<V>(src + (i64)at * V);
  UNROLL for (int i = 0; i < V; i++) v.x[i] = table[v.x[i] + 32768];
  store<V>(dst + (i64)at * V, v);
}

// sum2 is dst [n][c] = sat16(src[p][j] + src[p][c+j]), src [n][2c].
template <int V>
DEVICE void sum2Run(i16 *dst, const i16 *src, i64 n, i32 c) {
  u32 runs = c / V, at = unit();
  awaitLaunches();
  if (at >= n * runs) return;
  const i16 *x = src + (i64)(at / runs) * 2 * c + at % runs * V;
  Run<V> a = load<V>(x), b = load<V>(x + c);
  UNROLL for (int i = 0; i < V; i++) a.x[i] = sat16(a.x[i] + b.x[i]);
  store<V>(dst + (i64)at * V, a);
}

// add is sat16(a + b) of n runs.
template <int V>
DEVICE void addRun(i16 *dst, const i16 *a_, const i16 *b_, i64 n) {
  u32 at = unit();
  awaitLaunches();
  if (at >= n) return;
  Run<V> a = load<V>(a_ + (i64)at * V), b = load<V>(b_ + (i64)at * V);
  UNROLL for (int i = 0; i < V; i++) a.x[i] = sat16(a.x[i] + b.x[i]);
  store<V>(dst + (i64)at * V, a);
}

#define RUNS(name, parameters, arguments)                     \
  KERNEL void name##_8 parameters { name##Run<8> arguments; } \
  KERNEL void name##_1 parameters { name##Run<1> arguments; }
RUNS(lookup, (i16 * dst, const i16 *src, const i16 *table, i64 n), (dst, src, table, n))
RUNS(sum2, (i16 * dst, const i16 *src, i64 n, i64 c), (dst, src, n, (i32)c))
RUNS(add, (i16 * dst, const i16 *a, const i16 *b, i64 n), (dst, a, b, n))
#undef RUNS

// pack_full is the packed picture [h/8][w/8][192] through a table of 256: eight rows of eight samples of each plane, those
// of chroma each for two columns and two rows.
KERNEL void pack_full(i16 *dst, const u8 *picture, const i16 *table, i64 w_, i64 h_) {
  i32 w = (i32)w_, h = (i32)h_;
  u32 at = unit();
  awaitLaunches();
  if (at >= (u32)(w / 8) * (h / 8) * 24) return;
  i32 pos = at / 24, plane = at % 24 / 8, row = pos / (w / 8) * 8 + at % 8, col = pos % (w / 8) * 8;
  Run<8> out;
  if (plane == 0) {
    u32x2 eight = *(const u32x2 *)(picture + (i64)row * w + col);
    UNROLL for (int i = 0; i < 8; i++) out.x[i] = table[eight[i / 4] >> (i % 4 * 8) & 255];
  } else {
    const u8 *p = picture + (i64)w * h + (i64)(plane - 1) * (w / 2) * (h / 2);
    u32 four = *(const u32 *)(p + (i64)(row / 2) * (w / 2) + col / 2);
    UNROLL for (int i = 0; i < 8; i++) out.x[i] = table[four >> (i / 2 * 8) & 255];
  }
  store<8>(dst + (i64)at * 8, out);
}

// fullRow reads eight values of a plane's row, head with pred unless that is null.
DEVICE Run<8> fullRow(const i16 *head, const i16 *pred, i64 at) {
  Run<8> x = load<8>(head + at);
  if (pred) {
    Run<8> y = load<8>(pred + at);
    UNROLL for (int i = 0; i < 8; i++) x.x[i] = sat16(y.x[i] + x.x[i]);
  }
  return x;
}

// unpack_full is the decoded picture of head [h/8][w/8][192] and, unless null, pred. Luma is as in unpack; a sample of
// chroma is made of four values, each limited to what the samples' ends are, and fits 32 bits for F <= 15.
KERNEL void unpack_full(u8 *picture, const i16 *head, const i16 *pred, i64 w_, i64 h_, i64 f_) {
  i32 w = (i32)w_, h = (i32)h_, f = (i32)f_, half = 1 << (f - 1);
  u32 at = unit();
  awaitLaunches();
  if (at >= (u32)(w / 8) * (h / 8) * 16) return;
  i32 pos = at / 16, r = at % 16, row = pos / (w / 8), col = pos % (w / 8);
  i64 from = (i64)pos * 192;
  if (r < 8) {
    Run<8> x = fullRow(head, pred, from + 8 * r);
    u32x2 eight = {0, 0};
    UNROLL for (int i = 0; i < 8; i++) eight[i / 4] |= (u32)clamp32((255 * (i32)x.x[i] + 255 * half + half) >> f, 0, 255) << (i % 4 * 8);
    *(u32x2 *)(picture + (i64)(row * 8 + r) * w + col * 8) = eight;
    return;
  }
  i32 plane = r / 4 - 2, i = r % 4;
  Run<8> a = fullRow(head, pred, from + 64 * (plane + 1) + 16 * i), b = fullRow(head, pred, from + 64 * (plane + 1) + 16 * i + 8);
  u32 four = 0;
  UNROLL for (int j = 0; j < 4; j++) {
    i32 sum = clamp32(a.x[2 * j], -half, half) + clamp32(a.x[2 * j + 1], -half, half) + clamp32(b.x[2 * j], -half, half) + clamp32(b.x[2 * j + 1], -half, half);
    four |= (u32)clamp32((255 * sum + 255 * 4 * half + 2 * (2 * half)) >> (f + 2), 0, 255) << (8 * j);
  }
  *(u32 *)(picture + (i64)w * h + (i64)plane * (w / 2) * (h / 2) + (i64)(row * 4 + i) * (w / 2) + col * 4) = four;
}

// conv3Of is a 3x3 convolution of stride r with weights [out][9][in] as they stand in the model file; one thread a value.
// h and w are the input's. Sums of int8 weights fit 32 bits by the model's proof.
template <class W, class Sum>
DEVICE void conv3Of(i16 *dst, const i16 *src, const W *weights, const i32 *bias, const i32 *mul, i32 h, i32 w, i32 in, i32 out, i32 r, i32 shift) {
  u32 at = unit();
  awaitLaunches();
  i32 oh = h / r, ow = w / r;
  if (at >= (u32)oh * ow * out) return;
  i32 o = at % out, x = at / out % ow, y = at / out / ow;
  Sum acc = bias[o];
  for (i32 t = 0; t < 9; t++) {
    i32 sy = y * r + t / 3 - 1, sx = x * r + t % 3 - 1;
    if (sy < 0 || sy >= h || sx < 0 || sx >= w) continue;
    const i16 *p = src + (i64)(sy * w + sx) * in;
    const W *k = weights + ((i64)o * 9 + t) * in;
    for (i32 i = 0; i < in; i++) acc += (i32)k[i] * (i32)p[i];
  }
  dst[at] = sat16(rnd((i64)acc * mul[o], shift));
}
KERNEL void conv3(i16 *dst, const i16 *src, const i8 *weights, const i32 *bias, const i32 *mul, i64 h, i64 w, i64 in, i64 out, i64 r, i64 shift) {
  conv3Of<i8, i32>(dst, src, weights, bias, mul, (i32)h, (i32)w, (i32)in, (i32)out, (i32)r, (i32)shift);
}
KERNEL void conv316(i16 *dst, const i16 *src, const i16 *weights, const i32 *bias, const i32 *mul, i64 h, i64 w, i64 in, i64 out, i64 r, i64 shift) {
  conv3Of<i16, i64>(dst, src, weights, bias, mul, (i32)h, (i32)w, (i32)in, (i32)out, (i32)r, (i32)shift);
}
