// Pictures: w x h luma samples, then both chroma planes of w/2 x h/2, one behind the other, rows tight.
#pragma once
#include "device.cuh"

// A packed position has 12 runs of 8 channels: 8 rows of luma, then of each chroma plane two runs of two rows of 4.
// place8 returns where both halves of run r of position (row, col) begin in a picture.
struct Halves {
  i64 at[2];
};
DEVICE Halves place8(i32 r, i32 row, i32 col, i32 w, i32 h) {
  Halves p;
  if (r < 8) {
    p.at[0] = (i64)(row * 8 + r) * w + col * 8;
    p.at[1] = p.at[0] + 4;
    return p;
  }
  i32 plane = (r - 8) / 2, line = row * 4 + (r - 8) % 2 * 2;
  p.at[0] = (i64)w * h + (i64)plane * (w / 2) * (h / 2) + (i64)line * (w / 2) + col * 4;
  p.at[1] = p.at[0] + w / 2;
  return p;
}

// A pixel table is what the 256 values of a sample stand for.
DEVICE Run<8> looked(const u8 *picture, const i16 *table, const Halves &p) {
  Run<8> out;
  UNROLL for (int k = 0; k < 2; k++) {
    u32 four = *(const u32 *)(picture + p.at[k]);
    UNROLL for (int i = 0; i < 4; i++) out.x[4 * k + i] = table[four >> (8 * i) & 255];
  }
  return out;
}

// unpack is the decoded picture of head [h/8][w/8][96] and of what it adds to: pred, in the same form, or a picture through
// a table, or nothing where all are null. x = sat16(pred + head), then clamp(rnd(255*x + 255*2^(F-1), F), 0, 255), which
// fits 32 bits for F <= 15.
KERNEL void unpack(u8 *picture, const i16 *head, const i16 *pred, const u8 *from, const i16 *table, i64 w_, i64 h_, i64 f_) {
  i32 w = (i32)w_, h = (i32)h_, f = (i32)f_;
  u32 at = unit();
  if (at >= (u32)(w / 8) * (h / 8) * 12) return;
  i32 pos = at / 12;
  Halves p = place8(at % 12, pos / (w / 8), pos % (w / 8), w, h);
  Run<8> x = load<8>(head + (i64)at * 8);
  if (pred || from) {
    Run<8> y = pred ? load<8>(pred + (i64)at * 8) : looked(from, table, p);
    UNROLL for (int i = 0; i < 8; i++) x.x[i] = sat16(y.x[i] + x.x[i]);
  }
  UNROLL for (int k = 0; k < 2; k++) {
    u32 four = 0;
    UNROLL for (int i = 0; i < 4; i++) {
      i32 s = (255 * (i32)x.x[4 * k + i] + (255 << (f - 1)) + (1 << (f - 1))) >> f;
      four |= (u32)clamp32(s, 0, 255) << (8 * i);
    }
    *(u32 *)(picture + p.at[k]) = four;
  }
}
