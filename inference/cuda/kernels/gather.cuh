// Tensors put together from others. Concatenation, shuffles, moves and the operators that work value by value are no
// passes of their own: a piece says where a run of channels is read and what becomes of each value on the way.
#pragma once
#include "launches.cuh"
#include "picture.cuh"

// How a piece's position (y, x) of h x w is read from its source.
enum {
  pieceHere,   // the same position
  pieceMoved,  // (y, x) + ((v + 16) >> 5), coordinates clamped, v the vector of the block of 2x2 positions
  pieceDeep,   // s2d: channel (dy*r+dx)*c + j is channel j of (y*r+dy, x*r+dx)
  pieceFlat,   // d2s: its inverse
  piecePacked, // channels of a packed picture, through a table of 256
};

// A Divisor of numbers below 2^31: the quotient is n*m >> 31+s, m = 2^(31+s)/d rounded up and 2^s the first power of two
// that is not below d. Divisions by what launches know are most of what a gathering thread computes, if they are divisions.
struct Divisor {
  u32 m;
  i32 s;
};
DEVICE Divisor divisorOf(i64 packed) { return Divisor{(u32)packed, (i32)(packed >> 32)}; }
DEVICE u32 quotient(u32 n, Divisor d) { return (u32)((unsigned long long)n * d.m >> (31 + d.s)); }

// A Piece makes count channels from a source of c channels a position, with these steps in this order: a scale by the row
// of the table [64][c] that the frame's QP picks, a clamp, and a move from one F to another (right by requant, or left).
struct Piece {
  const i16 *src;
  const void *table;
  i32 count, c, kind, r, parts; // parts: 256/r, rounded up
  i32 scale, lo, hi, requant;   // scale -1: none
  Divisor by;                   // pieceDeep: c, pieceFlat: r
};

// Words are a piece as launches pass it: shape is count and c from the lowest bits on, 16 each, then kind, r and parts;
// steps likewise scale, lo, hi and requant.
struct Words {
  const void *src, *table;
  i64 shape, steps, by;
};
DEVICE i32 countOf(const Words &w) { return (i32)(w.shape & 0xffff); }
DEVICE Piece pieceOf(const Words &w) {
  return Piece{(const i16 *)w.src, w.table, countOf(w), (i32)(w.shape >> 16 & 0xffff), (i32)(w.shape >> 32 & 0xffff), (i32)(w.shape >> 48 & 0xff), (i32)(w.shape >> 56 & 0xff),
               (i16)w.steps, (i16)(w.steps >> 16), (i16)(w.steps >> 32), (i16)(w.steps >> 48), divisorOf(w.by)};
}

// packedRun reads V channels of a packed picture of w x h positions, from channel ch on.
template <int V>
DEVICE Run<V> packedRun(const u8 *picture, const i16 *table, i32 row, i32 col, i32 ch, i32 w, i32 h) {
  Halves p = place8(ch / 8, row, col, w * 8, h * 8);
  if constexpr (V == 8) {
    return looked(picture, table, p);
  } else {
    return Run<V>{{table[picture[p.at[ch % 8 / 4] + ch % 4]]}};
  }
}

// gathered is V channels of a piece, from its channel ch on, at position pos = (y, x) of h x w.
template <int V>
DEVICE Run<V> gathered(const Piece &p, const i16 *vectors, const i32 *frame, i32 pos, i32 y, i32 x, i32 ch, i32 h, i32 w) {
  i32 j = ch;
  Run<V> out;
  if (p.kind == piecePacked) {
    out = packedRun<V>((const u8 *)p.src, (const i16 *)p.table, y, x, ch, w, h);
  } else {
    i32 from = pos; // no tensor has 2^31 values
    switch (p.kind) {
    case pieceMoved: {
      const i16 *v = vectors + 2 * ((y >> 1) * (w >> 1) + (x >> 1));
      from = clamp32(y + ((v[0] + 16) >> 5), 0, h - 1) * w + clamp32(x + ((v[1] + 16) >> 5), 0, w - 1);
      break;
    }
    case pieceDeep: {
      i32 d = quotient(ch, p.by), dy = d * p.parts >> 8;
      j = ch - d * p.c;
      from = (y * p.r + dy) * (w * p.r) + x * p.r + d - dy * p.r;
      break;
    }
    case pieceFlat: {
      i32 sy = quotient(y, p.by), sx = quotient(x, p.by);
      j = ((y - sy * p.r) * p.r + x - sx * p.r) * p.count + ch;
      from = sy * quotient(w, p.by) + sx;
      break;
    }
    }
    out = load<V>(p.src + from * p.c + j);
  }
  if (p.scale >= 0) {
    const i32 *m = (const i32 *)p.table + frame[0] * p.c + j;
    UNROLL for (int i = 0; i < V; i++) out.x[i] = sat16(rnd(wide(out.x[i], m[i]), p.scale));
  }
  if (p.lo > -32768 || p.hi < 32767) {
    UNROLL for (int i = 0; i < V; i++) out.x[i] = (i16)clamp32(out.x[i], p.lo, p.hi);
  }
  if (p.requant > 0) {
    UNROLL for (int i = 0; i < V; i++) out.x[i] = sat16((out.x[i] + (1 << p.requant >> 1)) >> p.requant);
  } else if (p.requant < 0) {
    UNROLL for (int i = 0; i < V; i++) out.x[i] = sat16(out.x[i] * (1 << -p.requant));
  }
  return out;
}

// gather makes channels to.. of dst [h][w][total] from up to four pieces, one after the other, sum channels together.
template <int V>
DEVICE void gatherRun(i16 *dst, const i16 *vectors, const i32 *frame, i32 h, i32 w, Divisor byW, i32 total, i32 to, i32 sum, Divisor byRuns, const Words &a, const Words &b, const Words &c, const Words &d) {
  u32 runs = (u32)sum / V, at = unit();
  awaitLaunches();
  if (at >= (u32)(h * w) * runs) return;
  i32 pos = quotient(at, byRuns), y = quotient(pos, byW), x = pos - y * w;
  i32 ch = (i32)(at - pos * runs) * V;
  dst += pos * total + to + ch;
  Words p = a;
  if (ch >= countOf(p)) {
    ch -= countOf(p);
    p = b;
    if (ch >= countOf(p)) {
      ch -= countOf(p);
      p = c;
      if (ch >= countOf(p)) {
        ch -= countOf(p);
        p = d;
      }
    }
  }
  store<V>(dst, gathered<V>(pieceOf(p), vectors, frame, pos, y, x, ch, h, w));
}

// gather_8 is for channel counts that are multiples of 8, gather_1 for all others.
#define GATHER(v)                                                                                                                       \
  KERNEL void gather_##v(i16 *dst, const i16 *vectors, const i32 *frame, i64 h, i64 w, i64 byW, i64 total, i64 to, i64 sum, i64 byRuns, \
                         const void *src0, const void *table0, i64 shape0, i64 steps0, i64 by0,                                         \
                         const void *src1, const void *table1, i64 shape1, i64 steps1, i64 by1,                                         \
                         const void *src2, const void *table2, i64 shape2, i64 steps2, i64 by2,                                         \
                         const void *src3, const void *table3, i64 shape3, i64 steps3, i64 by3) {                                       \
    gatherRun<v>(dst, vectors, frame, (i32)h, (i32)w, divisorOf(byW), (i32)total, (i32)to, (i32)sum, divisorOf(byRuns),                 \
                 Words{src0, table0, shape0, steps0, by0},                                                                              \
                 Words{src1, table1, shape1, steps1, by1},                                                                              \
                 Words{src2, table2, shape2, steps2, by2},                                                                              \
                 Words{src3, table3, shape3, steps3, by3});                                                                             \
  }
GATHER(8)
GATHER(1)
#undef GATHER
