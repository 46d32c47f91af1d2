// 1x1 convolutions with int8 weights on FP16 matrix units, for devices whose units for bytes are slow.
//
// The bytes of a 16-bit activation, hi signed and lo unsigned, and the weights are halves here: all are integers of at
// most 8 bits, so every product is an integer and exact. A unit adds products to a float, in an order and with an
// alignment that are its own; but integers below 2^24 in magnitude have no bit that an addition of floats could lose, if
// each sum of any of the products is one:
//
//	|Σ w*lo| <= 512 * 128 * 255 < 2^24        |Σ w*hi| <= 512 * 128 * 128 = 2^23
//
// over 512 input channels (w*hi alone could go to 1024, where only the sum of all products reaches 2^24, which a float
// holds). So after every 512 the floats become integers again and join the rest, 256*hi + lo, modulo 2^32 as in lin.cuh.
//
// Positions, channels and weights lie as in lin.cuh. A lane's 8 channels of a step go to four products: the order of input
// channels is free where activations and weights agree.
#pragma once
#include "tile.cuh"

enum { exactSteps = 512 / 32, halfStageSteps = 8, halfVectors = 256 };

#ifdef NVCODEC_EMULATE
#include "../emu/halves.h"
#else
DEVICE u32 subtractHalves(u32 a, u32 b) {
  u32 d;
  asm("sub.f16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b));
  return d;
}

// C += A*B, halves to floats; volatile so that no compiler moves it to where only some lanes come.
DEVICE void mma1688(float &c0, float &c1, float &c2, float &c3, u32 a0, u32 a1, u32 b) {
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},{%4,%5},{%6},{%0,%1,%2,%3};"
               : "+f"(c0), "+f"(c1), "+f"(c2), "+f"(c3) : "r"(a0), "r"(a1), "r"(b));
}
#endif

// A byte below 0x64 in a half is 1024 + byte; what is subtracted makes it the unsigned byte, or the signed one whose
// highest bit has been turned over.
enum { byteAbove = 0x64646464, unsignedBase = 0x64006400, signedBase = 0x64806480 };

// wider makes the four signed bytes of a word two words of two halves.
DEVICE u32x2 wider(u32 word) {
  word ^= 0x80808080;
  return u32x2{subtractHalves(permute(word, byteAbove, 0x4140), signedBase), subtractHalves(permute(word, byteAbove, 0x4342), signedBase)};
}

// lowHalves and highHalves are the low and high bytes of two int16 numbers.
DEVICE u32 lowHalves(u32 two) { return subtractHalves(permute(two, byteAbove, 0x4240), unsignedBase); }
DEVICE u32 highHalves(u32 two) { return subtractHalves(permute(two ^ 0x80008000, byteAbove, 0x4341), signedBase); }

// Floats holds the sums of a block since they last joined the integers, by position (g, g+8) and channel.
struct Floats {
  float hi[2][16], lo[2][16];
};

DEVICE void product(float *c0, float *c1, u32 a0, u32 a1, u32 b) { mma1688(c0[0], c0[1], c1[0], c1[1], a0, a1, b); }

// halfStep multiplies 32 input channels, of which a and b are this lane's 8 of both positions; weights are [8][32][4]
// words: tile, lane, halves of its 8 channels. Each product takes two of them.
DEVICE void halfStep(Floats &s, const u32x4 *weights, u32x4 a, u32x4 b, int lane) {
  u32 hi[4][2], lo[4][2];
  UNROLL for (int k = 0; k < 4; k++) {
    hi[k][0] = highHalves(a[k]), hi[k][1] = highHalves(b[k]);
    lo[k][0] = lowHalves(a[k]), lo[k][1] = lowHalves(b[k]);
  }
  UNROLL for (int tile = 0; tile < 8; tile++) {
    u32x4 w = weights[tile * 32 + lane];
    UNROLL for (int k = 0; k < 4; k++) {
      product(s.hi[0] + 2 * tile, s.hi[1] + 2 * tile, hi[k][0], hi[k][1], w[k]);
      product(s.lo[0] + 2 * tile, s.lo[1] + 2 * tile, lo[k][0], lo[k][1], w[k]);
    }
  }
}

// join adds 256*hi + lo to the integers and begins anew.
DEVICE void join(u32 (*sum)[16], Floats &s) {
  UNROLL for (int r = 0; r < 2; r++) {
    UNROLL for (int c = 0; c < 16; c++) {
      sum[r][c] += ((u32)(i32)s.hi[r][c] << 8) + (u32)(i32)s.lo[r][c];
      s.hi[r][c] = s.lo[r][c] = 0;
    }
  }
}

// halfProducts computes a block's sums over all input channels, modulo 2^32.
template <bool Whole>
DEVICE void halfProducts(u32 (*sum)[16], const i16 *src, const u8 *packed, i32 block, i32 row0, i32 row1, i32 n, i32 in) {
  SHARED u32x4 stage[halfStageSteps * halfVectors];
  int thread = threadIndex(), lane = thread % 32;
  Floats s;
  UNROLL for (int r = 0; r < 2; r++) {
    UNROLL for (int c = 0; c < 16; c++) sum[r][c] = 0, s.hi[r][c] = s.lo[r][c] = 0;
  }
  // Positions past the end read the last one's values; nothing is stored for them.
  const i16 *x0 = src + (i64)(row0 < n ? row0 : n - 1) * in;
  const i16 *x1 = src + (i64)(row1 < n ? row1 : n - 1) * in;
  i32 steps = (in + 31) / 32, at = lane % 4 * 8;
  const u32x4 *weights = (const u32x4 *)packed + (i64)block * steps * (halfVectors / 2);
  u32x4 a = activations<Whole>(x0, at, in), b = activations<Whole>(x1, at, in);
  for (i32 first = 0; first < steps; first += halfStageSteps) {
    i32 here = steps - first < halfStageSteps ? steps - first : halfStageSteps;
    barrier(); // the stage before has been read
    for (i32 i = thread; i < here * (halfVectors / 2); i += 256) { // [step][pair of tiles][lane] of 16 bytes
      u32x4 w = weights[first * (halfVectors / 2) + i];
      UNROLL for (int k = 0; k < 2; k++) {
        u32x2 front = wider(w[2 * k]), back = wider(w[2 * k + 1]);
        stage[(i / 32 * 2 + k) * 32 + i % 32] = u32x4{front[0], front[1], back[0], back[1]};
      }
    }
    barrier();
    for (i32 k = 0; k < here; k++) {
      at += 32;
      u32x4 nextA = activations<Whole>(x0, at, in), nextB = activations<Whole>(x1, at, in);
      halfStep(s, stage + k * halfVectors, a, b, lane);
      a = nextA;
      b = nextB;
    }
    if ((first + here) % exactSteps == 0 || first + here == steps) join(sum, s);
  }
}
static_assert(exactSteps % halfStageSteps == 0, "sums join at the end of a stage");

DEVICE i16 finished(u32 sum, i32 bias, i32 mul, i32 shift) { return sat16(rnd(wide((i32)(sum + (u32)bias), mul), shift)); }

// lin_fp16 is lin of lin.cuh.
template <bool Whole>
DEVICE void linHalf(i16 *dst, const i16 *src, const i16 *res, const u8 *packed, const i32 *bias, const i32 *mul, i32 n, i32 in, i32 out, i32 shift, i32 each) {
  Share share = shareOf((out + 63) / 64, each);
  int lane = threadIndex() % 32;
  for (i32 block = share.first; block < share.last; block++) {
    u32 sum[2][16];
    halfProducts<Whole>(sum, src, packed, block, share.row, share.row + 8, n, in);
    UNROLL for (int r = 0; r < 2; r++) {
      i32 row = share.row + 8 * r;
      UNROLL for (int half = 0; half < 2; half++) {
        i32 c = block * 64 + lane % 4 * 16 + 8 * half;
        if (row >= n || c >= out) continue;
        i64 at = (i64)row * out + c;
        Run<8> y;
        UNROLL for (int i = 0; i < 8; i++) y.x[i] = finished(sum[r][8 * half + i], bias[c + i], mul[c + i], shift);
        storeRun<Whole>(dst, res, at, c, out, y);
      }
    }
  }
}

// lin_actsum4_fp16 is lin_actsum4 of lin.cuh: lane t has the four quarters of channels 4t..4t+3.
template <bool Whole>
DEVICE void linActSum4Half(i16 *dst, const i16 *src, const u8 *packed, const i32 *bias, const i32 *mul, i32 n, i32 in, i32 out, i32 shift, i32 f, i32 each) {
  Share share = shareOf((out + 15) / 16, each);
  int lane = threadIndex() % 32;
  for (i32 block = share.first; block < share.last; block++) {
    u32 sum[2][16];
    halfProducts<Whole>(sum, src, packed, block, share.row, share.row + 8, n, in);
    i32 at = block * 64 + lane % 4 * 16, c = block * 16 + lane % 4 * 4;
    UNROLL for (int r = 0; r < 2; r++) {
      i32 row = share.row + 8 * r;
      if (row >= n || c >= out) continue;
      i32 gated[4] = {0, 0, 0, 0};
      UNROLL for (int j = 0; j < 16; j++) gated[j % 4] += act(finished(sum[r][j], bias[at + j], mul[at + j], shift), f);
      storeGated<Whole>(dst + (i64)row * out + c, c, out, gated);
    }
  }
}

#define LIN(suffix, whole)                                                                                                       \
  KERNEL void lin_fp16_##suffix(i16 *dst, const i16 *src, const i16 *res, const u8 *packed, const i32 *bias, const i32 *mul,      \
                                i64 n, i64 in, i64 out, i64 shift, i64 each) {                                                   \
    linHalf<whole>(dst, src, res, packed, bias, mul, (i32)n, (i32)in, (i32)out, (i32)shift, (i32)each);                          \
  }                                                                                                                              \
  KERNEL void lin_actsum4_fp16_##suffix(i16 *dst, const i16 *src, const u8 *packed, const i32 *bias, const i32 *mul, i64 n,       \
                                        i64 in, i64 out, i64 shift, i64 f, i64 each) {                                           \
    linActSum4Half<whole>(dst, src, packed, bias, mul, (i32)n, (i32)in, (i32)out, (i32)shift, (i32)f, (i32)each);                \
  }
LIN(8, true)
LIN(1, false)
#undef LIN
