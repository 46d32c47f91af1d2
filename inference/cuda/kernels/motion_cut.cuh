// What a frame costs with and without the one before: codec/motion's rule for scene cuts.
#pragma once
#include "motion_small.cuh"

enum { cutReach = 8 };

// cut_eighth is the average of 8x8 samples, half up, of both pictures, one behind the other; and clears what maxima go to.
KERNEL void cut_eighth(u8 *eighth, u32 *near, const u8 *cur, const u8 *ref, i64 w_, i64 h_) {
  i32 w = (i32)w_, across = w / 8, n = across * ((i32)h_ / 8), at = (i32)unit();
  if (at < n / 16) near[at] = 0;
  if (at >= 2 * n) return;
  const u8 *p = at < n ? cur : ref;
  i32 k = at < n ? at : at - n;
  p += (i64)(k / across) * 8 * w + k % across * 8;
  u32 sum = 32;
  for (int r = 0; r < 8; r++, p += w) sum = sum4(*(const u32 *)p, sum4(*(const u32 *)(p + 4), sum));
  eighth[at] = (u8)(sum >> 6);
}

// mean16 is 16 times the mean of the samples at most r rows and columns away, half up.
template <int R>
DEVICE i32 mean16(const u8 *p, i32 w, i32 h, i32 y, i32 x) {
  const i32 n = (2 * R + 1) * (2 * R + 1);
  i32 sum = 0;
  for (i32 dy = -R; dy <= R; dy++) {
    const u8 *row = p + clamp32(y + dy, 0, h - 1) * w;
    for (i32 dx = -R; dx <= R; dx++) sum += row[clamp32(x + dx, 0, w - 1)];
  }
  return (16 * sum + n / 2) / n;
}

// cut_detail is what is left of both when the smooth is taken away, with a margin.
KERNEL void cut_detail(u8 *detail, const u8 *eighth, i64 w_, i64 h_) {
  i32 w = (i32)w_ / 8, h = (i32)h_ / 8, at = (i32)unit();
  Small s = smallOf(w, h, cutReach);
  i32 n = smallBytes(s);
  if (at >= 2 * n) return;
  i32 k = at < n ? at : at - n;
  i32 y = clamp32(k / s.stride - s.r, 0, h - 1), x = clamp32(k % s.stride - s.left, 0, w - 1);
  const u8 *p = at < n ? eighth : eighth + w * h;
  i32 v = mean16<1>(p, w, h, y, x) - mean16<3>(p, w, h, y, x);
  detail[at] = (u8)clamp32(128 + ((2 * v + 8) >> 4), 0, 255);
}

// cut_full finds for every unit how well the picture before serves.
KERNEL_OF(256, 2) void cut_full(u32 *near, const u8 *detail, const u16 *places, i64 w_, i64 h_, i64 warps) {
  i32 warp = (i32)(unit() / 32);
  Full f = {};
  f.s = smallOf((i32)w_ / 8, (i32)h_ / 8, cutReach), f.warps = (i32)warps;
  f.near = near, f.cur = detail, f.ref = detail + smallBytes(f.s);
  if (warp >= tiles(f.s) * f.warps) return;
  fullTile<false>(f, places, warp / f.warps, warp % f.warps, 0);
}

// cut_sum adds up what all units cost; one block of threads.
KERNEL void cut_sum(i64 *costs, const u32 *near, const u8 *detail, i64 w_, i64 h_) {
  Small s = smallOf((i32)w_ / 8, (i32)h_ / 8, cutReach);
  i32 hu = s.h / 4, wu = s.w / 4, units = hu * wu;
  i64 inter = 0, intra = 0;
  for (i32 u = threadIndex(); u < units; u += 256) {
    u32 flat = 0; // against a picture of 128
    for (i32 dy = -1; dy <= 1; dy++) {
      for (i32 dx = -1; dx <= 1; dx++) {
        i32 y = 4 * clamp32(u / wu + dy, 0, hu - 1) + s.r, x = 4 * clamp32(u % wu + dx, 0, wu - 1) + s.left;
        u32 sum = 0;
        for (i32 k = 0; k < 4; k++) sum = sad4(*(const u32 *)(detail + (y + k) * s.stride + x), 0x80808080, sum);
        flat += (u32)((2 - dy * dy) * (2 - dx * dx)) * sum;
      }
    }
    u32 moved = foundCost(near[u]);
    inter += moved < flat ? moved : flat;
    intra += flat;
  }
  SHARED i64 sums[2][256];
  sums[0][threadIndex()] = inter, sums[1][threadIndex()] = intra;
  for (i32 half = 128; half > 0; half /= 2) {
    barrier();
    if (threadIndex() < half) sums[0][threadIndex()] += sums[0][threadIndex() + half], sums[1][threadIndex()] += sums[1][threadIndex() + half];
  }
  if (threadIndex() == 0) { // noise and rounding are no cut
    costs[0] = sums[0][0] + 64 * (i64)units;
    costs[1] = sums[1][0] + 128 * (i64)units;
  }
}
