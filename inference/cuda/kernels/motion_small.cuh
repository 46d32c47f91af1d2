// Pictures of averages and the full searches between them.
#pragma once
#include "motion.cuh"

// A Small is a picture of averages at a quarter or an eighth, with a margin of r samples that repeat its edge, so that
// it can be read at any displacement of a full search. Rows begin at words, and another word may be read behind them.
struct Small {
  i32 w, h, r, left, stride;
};

DEVICE Small smallOf(i32 w, i32 h, i32 r) {
  i32 left = (r + 3) & ~3;
  return Small{w, h, r, left, w + 2 * left + 4};
}

DEVICE i32 smallBytes(const Small &s) { return s.stride * (s.h + 2 * s.r); }

DEVICE u32 sum4(u32 four, u32 c) { return (u32)dp4<false>(four, 0x01010101, (i32)c); }

// quarter is the average of 4x4 samples, half up.
DEVICE u32 quarter(const u8 *picture, i32 w, i32 y, i32 x) {
  u32 sum = 8;
  UNROLL for (int k = 0; k < 4; k++) sum = sum4(*(const u32 *)(picture + (i64)(4 * y + k) * w + 4 * x), sum);
  return sum >> 4;
}

DEVICE u8 average(const u8 *picture, i32 w, const Small &s, bool eighth, i32 at) {
  i32 y = clamp32(at / s.stride - s.r, 0, s.h - 1), x = clamp32(at % s.stride - s.left, 0, s.w - 1);
  if (!eighth) return (u8)quarter(picture, w, y, x);
  u32 sum = quarter(picture, w, 2 * y, 2 * x) + quarter(picture, w, 2 * y, 2 * x + 1);
  return (u8)((sum + quarter(picture, w, 2 * y + 1, 2 * x) + quarter(picture, w, 2 * y + 1, 2 * x + 1) + 2) >> 2);
}

// search_begin clears what sums and maxima go to and computes the averages of both pictures: cur at a quarter, ref at a
// quarter, then both at an eighth, one behind the other in small.
KERNEL void search_begin(u32x4 *clear, i64 clears, u8 *small, const u8 *cur, const u8 *ref, i64 w_, i64 h_, i64 r4, i64 r8) {
  i32 w = (i32)w_, h = (i32)h_, at = (i32)unit();
  if (at < clears) {
    clear[at] = u32x4{0, 0, 0, 0};
    return;
  }
  at -= (i32)clears;
  Small s = smallOf(w / 4, h / 4, (i32)r4);
  i32 n = smallBytes(s);
  bool eighth = at >= 2 * n;
  if (eighth) {
    at -= 2 * n, small += 2 * n;
    s = smallOf(w / 8, h / 8, (i32)r8);
    n = smallBytes(s);
    if (at >= 2 * n) return;
  }
  small[at] = average(at < n ? cur : ref, w, s, eighth, at < n ? at : at - n);
}

// Displacements have an order, which a list (i8 y, x) and its inverse (u16 [127][127]) tell; a full search tries those
// within r. Every unit has 4x4 samples. What a unit finds is kept as the greatest of ~(cost << 14 | place in the order), so
// that the least cost wins and the earlier of equal ones: a cost is at most 16*16*255 + 2*1023 < 2^17, and places are
// below 127*127.
enum { tileColumns = 30, tileRows = 4, placeBits = 14, listReach = 63 };

DEVICE i32 foundPlace(u32 key) { return (i32)(~key & ((1 << placeBits) - 1)); }
DEVICE u32 foundCost(u32 key) { return ~key >> placeBits; }

DEVICE Vector displacement(const i8 *list, i32 n) { return Vector{list[2 * n], list[2 * n + 1]}; }

struct Full {
  const u8 *cur, *ref;
  u32 *near, *own, *totals;
  i32 warps; // that share a tile's displacements
  Small s;
};

DEVICE i32 tilesAcross(i32 units) { return (units + tileColumns - 1) / tileColumns; }
DEVICE i32 tiles(const Small &s) { return tilesAcross(s.w / 4) * ((s.h / 4 + tileRows - 1) / tileRows); }

// Two are words side by side.
struct Two {
  u32 a, b;
};

DEVICE Two two(const u8 *p) { return Two{((const u32 *)p)[0], ((const u32 *)p)[1]}; }

// fullTile searches for the units of one tile, a column a lane (and one more on both sides). It takes every so many'th four
// displacements side by side, which read the same words. Only Whole searches want own and totals.
template <bool Whole>
DEVICE void fullTile(const Full &f, const u16 *places, i32 tile, i32 first, u32 penalty) {
  const Small &s = f.s;
  i32 hu = s.h / 4, wu = s.w / 4, lane = laneIndex(), fours = (s.left + s.r) / 4 + 1;
  i32 row0 = tile / tilesAcross(wu) * tileRows, column = tile % tilesAcross(wu) * tileColumns + lane - 1;
  bool mine = lane >= 1 && lane <= tileColumns && column < wu;
  i32 x = 4 * clamp32(column, 0, wu - 1) + s.left, row[tileRows + 2];
  u32 cur[tileRows + 2][4], near[tileRows], own[tileRows];
  UNROLL for (int n = 0; n < tileRows + 2; n++) {
    row[n] = 4 * clamp32(row0 - 1 + n, 0, hu - 1) * s.stride;
    UNROLL for (int k = 0; k < 4; k++) cur[n][k] = *(const u32 *)(f.cur + (s.r + k) * s.stride + x + row[n]);
  }
  UNROLL for (int n = 0; n < tileRows; n++) near[n] = own[n] = 0xffffffff;
  for (i32 four = first; four < (2 * s.r + 1) * fours; four += f.warps) {
    i32 dy = four / fours - s.r, dx = four % fours * 4 - s.left;
    u32 extra[4], place[4], total[4], above2[4], above[4];
    UNROLL for (int e = 0; e < 4; e++) {
      bool there = abs32(dx + e) <= s.r;
      place[e] = there ? places[(dy + listReach) * (2 * listReach + 1) + dx + e + listReach] : 0;
      extra[e] = !there ? 1 << 17 : place[e] == 0 ? 0 : penalty; // more than any other costs
      total[e] = above2[e] = above[e] = 0;
    }
    const u8 *from = f.ref + (s.r + dy) * s.stride + x + dx;
    Two next[4];
    const u8 *p = from + row[0];
    UNROLL for (int k = 0; k < 4; k++, p += s.stride) next[k] = two(p);
    UNROLL for (int n = 0; n < tileRows + 2; n++) {
      u32 sum[4] = {0, 0, 0, 0};
      Two now[4];
      UNROLL for (int k = 0; k < 4; k++) now[k] = next[k];
      if (n < tileRows + 1) p = from + row[n + 1];
      UNROLL for (int k = 0; k < 4 && n < tileRows + 1; k++, p += s.stride) next[k] = two(p);
      warpBarrier(); // the next row is on its way, but not all of them: that many registers there are not
      UNROLL for (int k = 0; k < 4; k++) {
        UNROLL for (int e = 0; e < 4; e++) sum[e] = sad4(cur[n][k], e == 0 ? now[k].a : between(now[k].a, now[k].b, e), sum[e]);
      }
      UNROLL for (int e = 0; e < 4; e++) {
        u32 wide = shuffle(sum[e], lane - 1) + 2 * sum[e] + shuffle(sum[e], lane + 1);
        if (n >= 2) {
          u32 key = (above2[e] + 2 * above[e] + wide + extra[e]) << placeBits | place[e];
          near[n - 2] = key < near[n - 2] ? key : near[n - 2];
        }
        if (Whole && n >= 1 && n <= tileRows) {
          u32 key = (16 * sum[e] + extra[e]) << placeBits | place[e];
          own[n - 1] = key < own[n - 1] ? key : own[n - 1];
          total[e] += row0 + n - 1 < hu ? sum[e] : 0;
        }
        above2[e] = above[e], above[e] = wide;
      }
      if (n >= 2) computed(near[n - 2]);
      if (Whole && n >= 1 && n <= tileRows) computed(own[n - 1]);
    }
    UNROLL for (int e = 0; Whole && e < 4; e++) {
      u32 all = mine ? total[e] : 0;
      UNROLL for (int mask = 16; mask > 0; mask /= 2) all += shuffleXor(all, mask);
      if (lane == 0 && extra[e] < 1 << 17) atomicAdd(f.totals + place[e], all); // below 2^32: 2^27 / 256 units of at most 4080
    }
  }
  UNROLL for (int n = 0; n < tileRows; n++) {
    if (!mine || row0 + n >= hu) continue;
    i32 u = (row0 + n) * wu + column;
    atomicMax(f.near + u, ~near[n]);
    if (Whole) atomicMax(f.own + u, ~own[n]);
  }
}

// search_full runs both full searches, so many warps for each tile. near, own and totals hold what both find, the finer one
// first: near4, own4, near8, own8; totals4, totals8.
KERNEL_OF(256, 2) void search_full(u32 *keys, u32 *totals, const u8 *small, const u16 *places, const i32 *penalties, const i32 *frame, i64 w_, i64 h_, i64 r4, i64 r8,
                                   i64 count4, i64 warps4, i64 warps8) {
  i32 w = (i32)w_, h = (i32)h_, warp = (i32)(unit() / 32), units = h / 16 * (w / 16);
  u32 penalty = 2 * (u32)penalties[frame[0]];
  Full f;
  f.s = smallOf(w / 4, h / 4, (i32)r4), f.warps = (i32)warps4;
  if (warp >= tiles(f.s) * f.warps) {
    warp -= tiles(f.s) * f.warps, small += 2 * smallBytes(f.s), keys += 2 * units, totals += count4, units /= 4;
    f.s = smallOf(w / 8, h / 8, (i32)r8), f.warps = (i32)warps8;
    if (warp >= tiles(f.s) * f.warps) return;
  }
  f.near = keys, f.own = keys + units, f.totals = totals;
  f.cur = small, f.ref = small + smallBytes(f.s);
  fullTile<true>(f, places, warp / f.warps, warp % f.warps, penalty);
}
