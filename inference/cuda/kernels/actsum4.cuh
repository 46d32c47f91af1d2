// The gated sum where no convolution computes it too: for runs of 8 channels and, for other channel counts, single ones.
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

KERNEL void actsum4_8(i16 *dst, const i16 *src, i64 n, i64 c, i64 f) { actsum4Run<8>(dst, src, n, (i32)c, (i32)f); }
KERNEL void actsum4_1(i16 *dst, const i16 *src, i64 n, i64 c, i64 f) { actsum4Run<1>(dst, src, n, (i32)c, (i32)f); }
