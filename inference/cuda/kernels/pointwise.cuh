// Operators that work value by value or move values. Each exists for runs of 8 channels and, for other channel counts,
// for single ones.
#pragma once
#include "device.cuh"

// actsum4 is dst [n][c] = sat16(Σ_k act(src[p][k*c+j])), src [n][4c].
template <int V>
DEVICE void actsum4Run(i16 *dst, const i16 *src, i64 n, i32 c, i32 f) {
  u32 runs = c / V, at = unit();
  if (at >= n * runs) return;
  i32 j = at % runs * V;
  i64 pos = at / runs;
  i32 sum[V];
  UNROLL for (int i = 0; i < V; i++) sum[i] = 0;
  UNROLL for (int k = 0; k < 4; k++) {
    Run<V> v = load<V>(src + pos * 4 * c + k * c + j);
    UNROLL for (int i = 0; i < V; i++) sum[i] += act(v.x[i], f);
  }
  Run<V> out;
  UNROLL for (int i = 0; i < V; i++) out.x[i] = sat16(sum[i]);
  store<V>(dst + pos * c + j, out);
}

// scale multiplies by the row of the table [64][c] that the frame's QP picks: frame[0].
template <int V>
DEVICE void scaleRun(i16 *dst, const i16 *src, const i32 *table, const i32 *frame, i64 n, i32 c, i32 shift) {
  u32 runs = c / V, at = unit();
  if (at >= n * runs) return;
  i32 j = at % runs * V;
  const i32 *m = table + frame[0] * c + j;
  Run<V> v = load<V>(src + (i64)at * V);
  UNROLL for (int i = 0; i < V; i++) v.x[i] = sat16(rnd(wide(v.x[i], m[i]), shift));
  store<V>(dst + (i64)at * V, v);
}

// requant moves n*V values from one F to another: right by shift, or left by -shift.
template <int V>
DEVICE void requantRun(i16 *dst, const i16 *src, i64 n, i32 shift) {
  u32 at = unit();
  if (at >= n) return;
  Run<V> v = load<V>(src + (i64)at * V);
  UNROLL for (int i = 0; i < V; i++) v.x[i] = shift >= 0 ? sat16(rnd(v.x[i], shift)) : sat16((i64)v.x[i] * ((i64)1 << -shift));
  store<V>(dst + (i64)at * V, v);
}

template <int V>
DEVICE void clampRun(i16 *dst, const i16 *src, i64 n, i32 lo, i32 hi) {
  u32 at = unit();
  if (at >= n) return;
  Run<V> v = load<V>(src + (i64)at * V);
  UNROLL for (int i = 0; i < V; i++) v.x[i] = (i16)clamp32(v.x[i], lo, hi);
  store<V>(dst + (i64)at * V, v);
}

// place copies channels: dst[p][to+j] = src[p][j], dst [n][total], src [n][c]; concat is one place for each input.
template <int V>
DEVICE void placeRun(i16 *dst, const i16 *src, i64 n, i32 c, i32 total, i32 to) {
  u32 runs = c / V, at = unit();
  if (at >= n * runs) return;
  store<V>(dst + (i64)(at / runs) * total + to + at % runs * V, load<V>(src + (i64)at * V));
}

// s2d makes h x w positions of r*r*c channels: channel (dy*r+dx)*c + j.
template <int V>
DEVICE void s2dRun(i16 *dst, const i16 *src, i32 h, i32 w, i32 c, i32 r) {
  u32 runs = c * r * r / V, at = unit();
  if (at >= (u32)h * w * runs) return;
  i32 ch = at % runs * V, pos = at / runs, y = pos / w, x = pos % w, j = ch % c, d = ch / c;
  i64 from = (i64)(y * r + d / r) * (w * r) + x * r + d % r;
  store<V>(dst + (i64)at * V, load<V>(src + from * c + j));
}

// d2s makes h x w positions of c channels; it is the inverse.
template <int V>
DEVICE void d2sRun(i16 *dst, const i16 *src, i32 h, i32 w, i32 c, i32 r) {
  u32 runs = c / V, at = unit();
  if (at >= (u32)h * w * runs) return;
  i32 j = at % runs * V, pos = at / runs, y = pos / w, x = pos % w;
  i64 from = (i64)(y / r) * (w / r) + x / r;
  store<V>(dst + (i64)at * V, load<V>(src + from * (c * r * r) + (y % r * r + x % r) * c + j));
}

// move reads position p at p + ((v + 16) >> 5), v the vector of the block of 2x2 positions that holds p.
template <int V>
DEVICE void moveRun(i16 *dst, const i16 *src, const i16 *vectors, i32 h, i32 w, i32 c) {
  u32 runs = c / V, at = unit();
  if (at >= (u32)h * w * runs) return;
  i32 j = at % runs * V, pos = at / runs, y = pos / w, x = pos % w;
  const i16 *v = vectors + 2 * (y / 2 * (w / 2) + x / 2);
  i32 sy = clamp32(y + ((v[0] + 16) >> 5), 0, h - 1), sx = clamp32(x + ((v[1] + 16) >> 5), 0, w - 1);
  store<V>(dst + (i64)at * V, load<V>(src + (i64)(sy * w + sx) * c + j));
}

#define RUNS(name, parameters, arguments)                         \
  KERNEL void name##_8 parameters { name##Run<8> arguments; } \
  KERNEL void name##_1 parameters { name##Run<1> arguments; }

RUNS(actsum4, (i16 * dst, const i16 *src, i64 n, i64 c, i64 f), (dst, src, n, (i32)c, (i32)f))
RUNS(scale, (i16 * dst, const i16 *src, const i32 *table, const i32 *frame, i64 n, i64 c, i64 shift), (dst, src, table, frame, n, (i32)c, (i32)shift))
RUNS(requant, (i16 * dst, const i16 *src, i64 n, i64 shift), (dst, src, n, (i32)shift))
RUNS(clamp, (i16 * dst, const i16 *src, i64 n, i64 lo, i64 hi), (dst, src, n, (i32)lo, (i32)hi))
RUNS(place, (i16 * dst, const i16 *src, i64 n, i64 c, i64 total, i64 to), (dst, src, n, (i32)c, (i32)total, (i32)to))
RUNS(s2d, (i16 * dst, const i16 *src, i64 h, i64 w, i64 c, i64 r), (dst, src, (i32)h, (i32)w, (i32)c, (i32)r))
RUNS(d2s, (i16 * dst, const i16 *src, i64 h, i64 w, i64 c, i64 r), (dst, src, (i32)h, (i32)w, (i32)c, (i32)r))
RUNS(move, (i16 * dst, const i16 *src, const i16 *vectors, i64 h, i64 w, i64 c), (dst, src, vectors, (i32)h, (i32)w, (i32)c))
