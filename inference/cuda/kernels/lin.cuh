// 1x1 convolutions with int8 weights on byte products.
//
// An int16 activation is two bytes, x = 256*hi + lo with hi signed and lo unsigned, so
//
//	Σ w*x = 256*Σ w*hi + Σ w*lo.
//
// Both sums are exact in int32 in any order: |w*hi| <= 128*128 and w*lo in -128*255..127*255, at most 8192 input
// channels (inference refuses more), so |Σ w*hi| <= 2^27 and |Σ w*lo| < 2^28. The join below may leave int32 on the
// way, but wraps; its end, bias + Σ w*x, is below 2^31 by the model's proof, so it is right modulo 2^32 and in range,
// whatever range of x that proof uses.
//
// A block of threads computes 128 positions, each of its 8 warps 16, and 64 output channels at a time, 'each' times, so
// that the activations of its positions are read from near memory from the second time on. Lane 4g+t holds positions g
// and g+8 and channels 16t..16t+15 of them: the host orders the weights so that the columns 2t, 2t+1 of eight
// neighbouring tiles, which are what lane 4g+t gets of a product, are these 16. In the same way the 32 input channels
// of a step are ordered so that the bytes that lane 4g+t gives are those of channels 8t..8t+7, one read of 16 bytes.
#pragma once
#include "tile.cuh"

// stageSteps is how many steps of 32 input channels have their weights in shared memory at once, 2 KiB each.
enum { stageSteps = 8, stepVectors = 128 };

struct Sums {
  i32 hi[2][16], lo[2][16]; // by position (g, g+8) and channel
};

#if NVCODEC_SM < 75
// step multiplies 32 input channels; weights are [8][4][16] words: four input channels, lane%4, channel.
template <bool Whole>
DEVICE void step(Sums &s, const u32x4 *weights, const i16 *x0, const i16 *x1, i32 at, i32 in, int lane) {
  UNROLL for (int half = 0; half < 4; half++) {
    u32x4 a[2] = {activations<Whole>(x0, at + 8 * half, in), activations<Whole>(x1, at + 8 * half, in)};
    UNROLL for (int q = 0; q < 2; q++) {
      u32 hi[2], lo[2];
      UNROLL for (int r = 0; r < 2; r++) {
        lo[r] = permute(a[r][2 * q], a[r][2 * q + 1], 0x6420);
        hi[r] = permute(a[r][2 * q], a[r][2 * q + 1], 0x7531);
      }
      UNROLL for (int v = 0; v < 4; v++) {
        u32x4 w = weights[(2 * half + q) * 16 + lane % 4 * 4 + v];
        UNROLL for (int e = 0; e < 4; e++) {
          UNROLL for (int r = 0; r < 2; r++) {
            s.hi[r][4 * v + e] = dp4<true>(hi[r], w[e], s.hi[r][4 * v + e]);
            s.lo[r][4 * v + e] = dp4<false>(lo[r], w[e], s.lo[r][4 * v + e]);
          }
        }
      }
    }
  }
}
#else
// mma is the product of a 16x32 and a 32x8 tile. Four m8n8k16 share the fragments of m16n8k32 register by register: a0
// and a1 hold rows 0-7 and 8-15 of the first half of k, a2 and a3 of the second, b0 and b1 the halves of k.
template <bool Signed>
DEVICE void mma(i32 *c0, i32 *c1, const u32 *a, u32 b0, u32 b1) {
#if NVCODEC_SM < 80
  mma8816<Signed>(c0[0], c0[1], a[0], b0);
  mma8816<Signed>(c1[0], c1[1], a[1], b0);
  mma8816<Signed>(c0[0], c0[1], a[2], b1);
  mma8816<Signed>(c1[0], c1[1], a[3], b1);
#else
  mma16832<Signed>(c0[0], c0[1], c1[0], c1[1], a, b0, b1);
#endif
}

// step multiplies 32 input channels, of which a and b are this lane's 8 of both positions; weights are [4][32][4]
// words: pair of tiles, lane, and of each tile the two registers of the fragment.
DEVICE void step(Sums &s, const u32x4 *weights, u32x4 a, u32x4 b, int lane) {
  u32 lo[4] = {permute(a[0], a[1], 0x6420), permute(b[0], b[1], 0x6420), permute(a[2], a[3], 0x6420), permute(b[2], b[3], 0x6420)};
  u32 hi[4] = {permute(a[0], a[1], 0x7531), permute(b[0], b[1], 0x7531), permute(a[2], a[3], 0x7531), permute(b[2], b[3], 0x7531)};
  UNROLL for (int pair = 0; pair < 4; pair++) {
    u32x4 w = weights[pair * 32 + lane];
    UNROLL for (int k = 0; k < 2; k++) {
      int c = 4 * pair + 2 * k;
      mma<true>(s.hi[0] + c, s.hi[1] + c, hi, w[2 * k], w[2 * k + 1]);
      mma<false>(s.lo[0] + c, s.lo[1] + c, lo, w[2 * k], w[2 * k + 1]);
    }
  }
}
#endif

// four reads four channels' bias or mul.
DEVICE i32x4 four(const i32 *p) { return *(const i32x4 *)p; }

// requantise joins the sums of one position and channel and returns sat16(rnd(acc*mul, shift)).
DEVICE i16 requantise(i32 hi, i32 lo, i32 bias, i32 mul, i32 shift) {
  i32 acc = (i32)(((u32)hi << 8) + (u32)lo + (u32)bias);
  return sat16(rnd(wide(acc, mul), shift));
}

// products computes a block's sums over all input channels.
template <bool Whole>
DEVICE void products(Sums &s, const i16 *src, const u8 *packed, i32 block, i32 row0, i32 row1, i32 n, i32 in) {
  SHARED u32x4 stage[stageSteps * stepVectors];
  int thread = threadIndex(), lane = thread % 32;
  UNROLL for (int r = 0; r < 2; r++) {
    UNROLL for (int c = 0; c < 16; c++) s.hi[r][c] = s.lo[r][c] = 0;
  }
  // Positions past the end read the last one's values; nothing is stored for them.
  const i16 *x0 = src + (i64)(row0 < n ? row0 : n - 1) * in;
  const i16 *x1 = src + (i64)(row1 < n ? row1 : n - 1) * in;
  i32 steps = (in + 31) / 32;
  const u32x4 *weights = (const u32x4 *)packed + (i64)block * steps * stepVectors;
#if NVCODEC_SM >= 75
  i32 at = lane % 4 * 8;
  u32x4 a = activations<Whole>(x0, at, in), b = activations<Whole>(x1, at, in);
#endif
  for (i32 first = 0; first < steps; first += stageSteps) {
    i32 here = steps - first < stageSteps ? steps - first : stageSteps;
    barrier(); // the stage before has been read
    for (i32 i = thread; i < here * stepVectors; i += 256) stage[i] = weights[first * stepVectors + i];
    barrier();
    for (i32 k = 0; k < here; k++) {
      const u32x4 *w = stage + k * stepVectors;
#if NVCODEC_SM < 75
      step<Whole>(s, w, x0, x1, (first + k) * 32, in, lane);
#else
      // The next step's activations are on their way while this one multiplies; past the end nothing uses them.
      at += 32;
      u32x4 nextA = activations<Whole>(x0, at, in), nextB = activations<Whole>(x1, at, in);
      step(s, w, a, b, lane);
      a = nextA;
      b = nextB;
#endif
    }
  }
}

// lin is dst [n][out] = sat16(rnd(acc*mul, shift)), with res [n][out] or null added behind another sat16. bias and mul
// are in the order of the weights, whole blocks of 64. dst may be res: a thread reads what it then writes.
template <bool Whole>
DEVICE void linOf(i16 *dst, const i16 *src, const i16 *res, const u8 *packed, const i32 *bias, const i32 *mul, i32 n, i32 in, i32 out, i32 shift, i32 each) {
  Share share = shareOf((out + 63) / 64, each);
  int lane = threadIndex() % 32;
  for (i32 block = share.first; block < share.last; block++) {
    Sums s;
    products<Whole>(s, src, packed, block, share.row, share.row + 8, n, in);
    UNROLL for (int r = 0; r < 2; r++) {
      i32 row = share.row + 8 * r;
      UNROLL for (int h = 0; h < 2; h++) {
        i32 c = block * 64 + lane % 4 * 16 + 8 * h;
        if (row < n && c < out) {
          i64 at = (i64)row * out + c;
          Run<8> y;
          UNROLL for (int q = 0; q < 2; q++) {
            i32x4 b = four(bias + c + 4 * q), m = four(mul + c + 4 * q);
            UNROLL for (int i = 0; i < 4; i++) {
              int j = 8 * h + 4 * q + i;
              y.x[4 * q + i] = requantise(s.hi[r][j], s.lo[r][j], b[i], m[i], shift);
            }
          }
          storeRun<Whole>(dst, res, at, c, out, y);
        }
      }
    }
  }
}

// lin_actsum4 is lin to 4*out channels and the gated sum over them: dst [n][out] = sat16(Σ_k act(y[k*out + c])). The
// host orders the weights so that a block holds channels 16b..16b+15 of all four quarters: lane t's 16 are the four
// quarters of channels 4t..4t+3.
template <bool Whole>
DEVICE void linActSum4Of(i16 *dst, const i16 *src, const u8 *packed, const i32 *bias, const i32 *mul, i32 n, i32 in, i32 out, i32 shift, i32 f, i32 each) {
  Share share = shareOf((out + 15) / 16, each);
  int lane = threadIndex() % 32;
  for (i32 block = share.first; block < share.last; block++) {
    Sums s;
    products<Whole>(s, src, packed, block, share.row, share.row + 8, n, in);
    i32 at = block * 64 + lane % 4 * 16, c = block * 16 + lane % 4 * 4;
    UNROLL for (int r = 0; r < 2; r++) {
      i32 row = share.row + 8 * r;
      if (row < n && c < out) {
        i32 sum[4] = {0, 0, 0, 0};
        UNROLL for (int k = 0; k < 4; k++) {
          i32x4 b = four(bias + at + 4 * k), m = four(mul + at + 4 * k);
          UNROLL for (int i = 0; i < 4; i++) {
            int j = 4 * k + i;
            sum[i] += act(requantise(s.hi[r][j], s.lo[r][j], b[i], m[i], shift), f);
          }
        }
        storeGated<Whole>(dst + (i64)row * out + c, c, out, sum);
      }
    }
  }
}

// As with the pointwise kernels, _8 is for channel counts in and out that are multiples of 8 and _1 for all others.
#define LIN(suffix, whole)                                                                                                       \
  KERNEL void lin_##suffix(i16 *dst, const i16 *src, const i16 *res, const u8 *packed, const i32 *bias, const i32 *mul, i64 n,   \
                           i64 in, i64 out, i64 shift, i64 each) {                                                               \
    linOf<whole>(dst, src, res, packed, bias, mul, (i32)n, (i32)in, (i32)out, (i32)shift, (i32)each);                            \
  }                                                                                                                              \
  KERNEL void lin_actsum4_##suffix(i16 *dst, const i16 *src, const u8 *packed, const i32 *bias, const i32 *mul, i64 n, i64 in,   \
                                   i64 out, i64 shift, i64 f, i64 each) {                                                        \
    linActSum4Of<whole>(dst, src, packed, bias, mul, (i32)n, (i32)in, (i32)out, (i32)shift, (i32)f, (i32)each);                  \
  }
LIN(8, true)
LIN(1, false)
#undef LIN

// lin16 has int16 weights [out][in] as they stand in the model file, and sums in int64: the imported networks' way to
// hold what int8 cannot.
KERNEL void lin16(i16 *dst, const i16 *src, const i16 *res, const i16 *w, const i32 *bias, const i32 *mul, i64 n, i64 in_, i64 out_, i64 shift) {
  u32 at = unit();
  i32 in = (i32)in_, out = (i32)out_;
  if (at >= n * out) return;
  u32 row = at / out, o = at % out;
  const i16 *x = src + (i64)row * in, *wo = w + (i64)o * in;
  i64 acc = bias[o];
  for (i32 i = 0; i < in; i++) acc += (i32)wo[i] * (i32)x[i];
  i16 y = sat16(rnd(acc * mul[o], (i32)shift));
  dst[at] = res ? sat16(res[at] + y) : y;
}
