// Pictures as they come, to padded size.
#pragma once
#include "motion.cuh"

// pad copies the three planes of a picture of w x h luma samples, tight rows and chroma of half the size rounded up, to
// one of padded size, and repeats the last column and row of each beyond it. A thread makes 16 samples of a row.
KERNEL void pad(u8 *dst, const u8 *src, i64 w_, i64 h_, i64 paddedW, i64 paddedH) {
  i32 w = (i32)w_, h = (i32)h_, pw = (i32)paddedW, ph = (i32)paddedH, at = (i32)unit(), luma = pw / 16 * ph;
  if (at >= luma) { // chroma rows are multiples of 32 samples
    at -= luma, dst += (i64)pw * ph, src += (i64)w * h;
    w = (w + 1) / 2, h = (h + 1) / 2, pw /= 2, ph /= 2;
    i32 plane = pw / 16 * ph;
    if (at >= 2 * plane) return;
    if (at >= plane) at -= plane, dst += (i64)pw * ph, src += (i64)w * h;
  }
  i32 y = at / (pw / 16), x = at % (pw / 16) * 16;
  const u8 *row = src + (i64)(y < h ? y : h - 1) * w;
  u32x4 out;
  if (x + 16 <= w && ((u64)(row + x) & 15) == 0) {
    out = *(const u32x4 *)(row + x);
  } else {
    UNROLL for (int k = 0; k < 4; k++) {
      u32 four = 0;
      UNROLL for (int i = 0; i < 4; i++) four |= (u32)row[x + 4 * k + i < w ? x + 4 * k + i : w - 1] << (8 * i);
      out[k] = four;
    }
  }
  *(u32x4 *)(dst + (i64)y * pw + x) = out;
}
