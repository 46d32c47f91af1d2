// Pictures: w x h luma samples, then both chroma planes of w/2 x h/2, one behind the other, rows tight.
#pragma once
#include "device.cuh"

CONSTANT i8 lumaTaps[4][8] = {
    {0, 0, 0, 64, 0, 0, 0, 0},
    {-1, 4, -10, 58, 17, -5, 1, 0},
    {-1, 4, -11, 40, 40, -11, 4, -1},
    {0, 1, -5, 17, 58, -10, 4, -1},
};
CONSTANT i8 chromaTaps[8][4] = {
    {0, 64, 0, 0}, {-2, 58, 10, -2}, {-4, 54, 16, -2}, {-6, 46, 28, -4},
    {-4, 36, 36, -4}, {-4, 28, 46, -6}, {-2, 16, 54, -4}, {-2, 10, 58, -2},
};

// filtered is sample (y, x) of the motion-compensated plane: both passes unrounded, |sum| <= 255*112*112 < 2^22.
template <int Taps, int Bits, int Lead>
DEVICE u8 filtered(const u8 *ref, const i8 *taps, i32 w, i32 h, i32 y, i32 x, i32 vy, i32 vx) {
  const i8 *ty = taps + (vy & ((1 << Bits) - 1)) * Taps, *tx = taps + (vx & ((1 << Bits) - 1)) * Taps;
  i32 sy = y + (vy >> Bits) - Lead, sx = x + (vx >> Bits) - Lead, sum = 0;
  UNROLL for (int a = 0; a < Taps; a++) {
    const u8 *row = ref + (i64)clamp32(sy + a, 0, h - 1) * w;
    i32 part = 0;
    UNROLL for (int b = 0; b < Taps; b++) part += tx[b] * (i32)row[clamp32(sx + b, 0, w - 1)];
    sum += ty[a] * part;
  }
  return (u8)clamp32((sum + 2048) >> 12, 0, 255);
}

// compensate fills dst from ref by the vectors (vy, vx) of blocks of 16x16 luma samples; one thread a sample.
KERNEL void compensate(u8 *dst, const u8 *ref, const i16 *vectors, i64 w_, i64 h_) {
  i32 w = (i32)w_, h = (i32)h_, luma = w * h;
  u32 at = unit();
  if (at >= (u32)(luma + luma / 2)) return;
  if (at < (u32)luma) {
    i32 y = at / w, x = at % w;
    const i16 *v = vectors + 2 * (y / 16 * (w / 16) + x / 16);
    dst[at] = filtered<8, 2, 3>(ref, &lumaTaps[0][0], w, h, y, x, v[0], v[1]);
    return;
  }
  i32 plane = luma / 4, p = ((i32)at - luma) / plane, i = ((i32)at - luma) % plane, y = i / (w / 2), x = i % (w / 2);
  const i16 *v = vectors + 2 * (y / 8 * (w / 16) + x / 8);
  dst[at] = filtered<4, 3, 1>(ref + luma + (i64)p * plane, &chromaTaps[0][0], w / 2, h / 2, y, x, v[0], v[1]);
}

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

// pack is the packed picture [h/8][w/8][96] through a table of 256.
KERNEL void pack(i16 *dst, const u8 *picture, const i16 *table, i64 w_, i64 h_) {
  i32 w = (i32)w_, h = (i32)h_;
  u32 at = unit();
  if (at >= (u32)(w / 8) * (h / 8) * 12) return;
  i32 pos = at / 12;
  Halves p = place8(at % 12, pos / (w / 8), pos % (w / 8), w, h);
  Run<8> out;
  UNROLL for (int k = 0; k < 2; k++) {
    u32 four = *(const u32 *)(picture + p.at[k]);
    UNROLL for (int i = 0; i < 4; i++) out.x[4 * k + i] = table[four >> (8 * i) & 255];
  }
  store<8>(dst + (i64)at * 8, out);
}

// unpack is the decoded picture of head [h/8][w/8][96] and, unless null, pred: x = sat16(pred + head), then
// clamp(rnd(255*x + 255*2^(F-1), F), 0, 255), which fits 32 bits for F <= 15.
KERNEL void unpack(u8 *picture, const i16 *head, const i16 *pred, i64 w_, i64 h_, i64 f_) {
  i32 w = (i32)w_, h = (i32)h_, f = (i32)f_;
  u32 at = unit();
  if (at >= (u32)(w / 8) * (h / 8) * 12) return;
  i32 pos = at / 12;
  Halves p = place8(at % 12, pos / (w / 8), pos % (w / 8), w, h);
  Run<8> x = load<8>(head + (i64)at * 8);
  if (pred) {
    Run<8> y = load<8>(pred + (i64)at * 8);
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
