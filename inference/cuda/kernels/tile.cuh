// What the convolutions of mma.sync share, whatever unit multiplies: which positions and channels a thread has, how it
// reads 8 input channels of a position, and how it stores what has become of them. lin.cuh says how they lie.
#pragma once
#include "device.cuh"

// activations reads the 8 channels of a position from channel at on. Weights past the last channel are 0, so what
// stands for such channels does not matter: with Whole, when in is a multiple of 8, the last 8 do.
template <bool Whole>
DEVICE u32x4 activations(const i16 *x, i32 at, i32 in) {
  if (Whole) return *(const u32x4 *)(x + (at < in ? at : in - 8));
  u32x4 w = {0, 0, 0, 0};
  UNROLL for (int i = 0; i < 8; i++) {
    if (at + i < in) w[i / 2] |= (u32)(unsigned short)x[at + i] << (i % 2 * 16);
  }
  return w;
}

// A Share is what a block of threads computes: channel blocks first..last-1 at positions that for this thread begin at
// row, and row + 8.
struct Share {
  i32 first, last, row;
};
DEVICE Share shareOf(i32 blocks, i32 each) {
  i32 groups = (blocks + each - 1) / each;
  Share s;
  s.first = blockIndex() % groups * each;
  s.last = s.first + each < blocks ? s.first + each : blocks;
  s.row = blockIndex() / groups * 128 + threadIndex() / 32 * 16 + threadIndex() % 32 / 4;
  return s;
}

// storeRun stores 8 outputs of a position, at channel c of out, with res or null added behind another sat16.
template <bool Whole>
DEVICE void storeRun(i16 *dst, const i16 *res, i64 at, i32 c, i32 out, Run<8> y) {
  if (Whole) {
    if (res) {
      Run<8> x = load<8>(res + at);
      UNROLL for (int i = 0; i < 8; i++) y.x[i] = sat16(x.x[i] + y.x[i]);
    }
    store<8>(dst + at, y);
  } else {
    UNROLL for (int i = 0; i < 8; i++) {
      if (c + i < out) dst[at + i] = res ? sat16(res[at + i] + y.x[i]) : y.x[i];
    }
  }
}

// storeGated stores the gated sums of four channels of a position from channel c of out on.
template <bool Whole>
DEVICE void storeGated(i16 *to, i32 c, i32 out, const i32 *sum) {
  i16 y[4];
  UNROLL for (int i = 0; i < 4; i++) y[i] = sat16(sum[i]);
  if (Whole) {
    u32x2 w = {(unsigned short)y[0] | (u32)(unsigned short)y[1] << 16, (unsigned short)y[2] | (u32)(unsigned short)y[3] << 16};
    *(u32x2 *)to = w;
  } else {
    UNROLL for (int i = 0; i < 4; i++) {
      if (c + i < out) to[i] = y[i];
    }
  }
}
