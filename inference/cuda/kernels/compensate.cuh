// Motion compensation of a picture: w x h luma samples, then both chroma planes of w/2 x h/2, rows tight.
//
// A thread computes 4 x 4 samples of one plane, all of one block and so of one vector. It keeps the rows that it has
// filtered across in pairs, which is what the pass down multiplies two at a time: 0..255 times taps that add up to 64 and
// in magnitude to at most 112 lie in -6120..22440, so a half word holds them, and both passes' sum is below 2^22.
#pragma once
#include "halves.cuh"

enum { tile = 4 }; // rows and columns of a thread

// Taps as signed bytes, -3..+4 of a luma phase (quarters) and -1..+2 of a chroma phase (eighths), from the lowest byte on.
CONSTANT u32 lumaTaps[4][2] = {
    {0x40000000, 0x00000000}, // 0, 0, 0, 64, 0, 0, 0, 0
    {0x3af604ff, 0x0001fb11}, // -1, 4, -10, 58, 17, -5, 1, 0
    {0x28f504ff, 0xff04f528}, // -1, 4, -11, 40, 40, -11, 4, -1
    {0x11fb0100, 0xff04f63a}, // 0, 1, -5, 17, 58, -10, 4, -1
};
CONSTANT u32 chromaTaps[8] = {
    0x00004000, // 0, 64, 0, 0
    0xfe0a3afe, // -2, 58, 10, -2
    0xfe1036fc, // -4, 54, 16, -2
    0xfc1c2efa, // -6, 46, 28, -4
    0xfc2424fc, // -4, 36, 36, -4
    0xfa2e1cfc, // -4, 28, 46, -6
    0xfc3610fe, // -2, 16, 54, -4
    0xfe3a0afe, // -2, 10, 58, -2
};

// A Row is where samples of one row of a plane are read: from x on, inside says that whole aligned words around them are
// in the row.
struct Row {
  const u8 *p;
  i32 x, w;
  bool inside;
};

// samples reads 4*Words samples from the row, coordinates clamped to it.
template <int Words>
DEVICE void samples(u32 *out, const Row &r) {
  if (r.inside) {
    const u32 *p = (const u32 *)(r.p + (r.x & ~3));
    u32 selector = 0x3210 + 0x1111 * (r.x & 3), word = p[0];
    UNROLL for (int i = 0; i < Words; i++) {
      u32 next = p[i + 1];
      out[i] = permute(word, next, selector);
      word = next;
    }
    return;
  }
  UNROLL for (int i = 0; i < Words; i++) {
    out[i] = 0;
    UNROLL for (int k = 0; k < 4; k++) out[i] |= (u32)r.p[clamp32(r.x + 4 * i + k, 0, r.w - 1)] << (8 * k);
  }
}

// across filters a row of 4 samples: sample i from bytes i..i+Taps-1.
template <int Taps>
DEVICE void across(i32 *out, const u32 *b, const u32 *taps) {
  UNROLL for (int i = 0; i < tile; i++) {
    u32 selector = 0x3210 + 0x1111 * i;
    out[i] = dp4<false>(i == 0 ? b[0] : permute(b[0], b[1], selector), taps[0], 0);
    if (Taps == 8) out[i] = dp4<false>(i == 0 ? b[1] : permute(b[1], b[2], selector), taps[1], out[i]);
  }
}

// moved computes 4 x 4 samples from (y, x) on, of a plane of w x h.
template <int Taps, int Bits>
DEVICE void moved(u8 *dst, const u8 *ref, const u32 *table, i32 w, i32 h, i32 y, i32 x, i32 vy, i32 vx) {
  enum { Lead = Taps / 2 - 1, Words = Taps / 4, Mask = (1 << Bits) - 1 };
  i32 sy = y + (vy >> Bits), sx = x + (vx >> Bits);
  Row r = {ref, sx, w, sx >= 0 && (sx & ~3) + 8 <= w};
  if (((vy | vx) & Mask) == 0) { // (64*64*s + 2048) >> 12 is s
    UNROLL for (int i = 0; i < tile; i++) {
      u32 four[1];
      r.p = ref + (i64)clamp32(sy + i, 0, h - 1) * w;
      samples<1>(four, r);
      *(u32 *)(dst + (i64)(y + i) * w + x) = four[0];
    }
    return;
  }
  r.x = sx - Lead;
  r.inside = r.x >= 0 && (r.x & ~3) + 4 * (Words + 2) <= w;
  u32 ty[Words], tx[Words];
  UNROLL for (int i = 0; i < Words; i++) ty[i] = table[(vy & Mask) * Words + i], tx[i] = table[(vx & Mask) * Words + i];
  i32 sum[tile][tile], row[tile], before[tile] = {};
  UNROLL for (int i = 0; i < tile; i++) {
    UNROLL for (int k = 0; k < tile; k++) sum[i][k] = 2048;
  }
  UNROLL for (int in = 0; in < tile + Taps - 1; in++) {
    u32 b[Words + 1];
    r.p = ref + (i64)clamp32(sy - Lead + in, 0, h - 1) * w;
    samples<Words + 1>(b, r);
    across<Taps>(row, b, tx);
    UNROLL for (int k = 0; k < tile; k++) {
      u32 pair = halves(before[k], row[k]);
      // The rows in-1 and in are taps t and t+1 of row in-1-t.
      UNROLL for (int t = 0; t < Taps; t += 2) {
        if (in >= 1 && in - 1 - t >= 0 && in - 1 - t < tile) {
          i32 &s = sum[in - 1 - t][k];
          s = t % 4 == 0 ? dp2<false>(pair, ty[t / 4], s) : dp2<true>(pair, ty[t / 4], s);
        }
      }
      before[k] = row[k];
    }
  }
  UNROLL for (int i = 0; i < tile; i++) {
    u32 four = 0;
    UNROLL for (int k = 0; k < tile; k++) four |= (u32)clamp32(sum[i][k] >> 12, 0, 255) << (8 * k);
    *(u32 *)(dst + (i64)(y + i) * w + x) = four;
  }
}

// compensate fills dst from ref by the vectors (vy, vx) of blocks of 16x16 luma samples.
KERNEL void compensate(u8 *dst, const u8 *ref, const i16 *vectors, i64 w_, i64 h_) {
  i32 w = (i32)w_, h = (i32)h_, luma = w * h, tiles = luma / (tile * tile), at = (i32)unit();
  if (at < tiles) {
    i32 y = at / (w / tile) * tile, x = at % (w / tile) * tile;
    const i16 *v = vectors + 2 * (y / 16 * (w / 16) + x / 16);
    moved<8, 2>(dst, ref, &lumaTaps[0][0], w, h, y, x, v[0], v[1]);
    return;
  }
  at -= tiles;
  i32 plane = at / (tiles / 4), i = at % (tiles / 4), from = luma + plane * (luma / 4);
  if (plane > 1) return;
  w /= 2;
  h /= 2;
  i32 y = i / (w / tile) * tile, x = i % (w / tile) * tile;
  const i16 *v = vectors + 2 * (y / 8 * (w / 8) + x / 8);
  moved<4, 3>(dst + from, ref + from, chromaTaps, w, h, y, x, v[0], v[1]);
}
