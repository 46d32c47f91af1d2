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

// A full search tries displacements in the order of a list (i8 y, x), from which those within r are taken. Every unit
// has 4x4 samples. What a unit finds is kept as the greatest of ~(cost << 14 | number in the list), so that the least
// cost wins and the earlier of equal ones: a cost is at most 16*16*255 + 2*1023 < 2^17, and numbers are below 127*127.
enum { tileColumns = 30, tileRows = 8, placeBits = 14 };

DEVICE i32 foundPlace(u32 key) { return (i32)(~key & ((1 << placeBits) - 1)); }
DEVICE u32 foundCost(u32 key) { return ~key >> placeBits; }

DEVICE Vector displacement(const i8 *list, i32 n) { return Vector{list[2 * n], list[2 * n + 1]}; }

struct Full {
  const u8 *cur, *ref;
  u32 *near, *own, *totals;
  i32 count, groups; // of the list; it is shared out among so many warps for each tile
  Small s;
};

DEVICE i32 tilesAcross(i32 units) { return (units + tileColumns - 1) / tileColumns; }
DEVICE i32 tiles(const Small &s) { return tilesAcross(s.w / 4) * ((s.h / 4 + tileRows - 1) / tileRows); }

// fullTile searches for the units of one tile, a column a lane (and one more on both sides), with every groups'th
// displacement from first on. Only Whole searches want own and totals.
template <bool Whole>
DEVICE void fullTile(const Full &f, const i8 *list, i32 tile, i32 first, u32 penalty) {
  const Small &s = f.s;
  i32 hu = s.h / 4, wu = s.w / 4, lane = laneIndex();
  i32 row0 = tile / tilesAcross(wu) * tileRows, column = tile % tilesAcross(wu) * tileColumns + lane - 1;
  bool mine = lane >= 1 && lane <= tileColumns && column < wu;
  i32 x = 4 * clamp32(column, 0, wu - 1) + s.left, row[tileRows + 2];
  u32 cur[tileRows + 2][4], near[tileRows], own[tileRows];
  UNROLL for (int n = 0; n < tileRows + 2; n++) {
    row[n] = 4 * clamp32(row0 - 1 + n, 0, hu - 1) * s.stride;
    UNROLL for (int k = 0; k < 4; k++) cur[n][k] = *(const u32 *)(f.cur + (s.r + k) * s.stride + x + row[n]);
  }
  UNROLL for (int n = 0; n < tileRows; n++) near[n] = own[n] = 0xffffffff;
  for (i32 place = first; place < f.count; place += f.groups) {
    Vector d = displacement(list, place);
    if (!inside(d, s.r)) continue;
    u32 extra = place == 0 ? 0 : penalty, total = 0, above2 = 0, above = 0;
    const u8 *from[4]; // all rows and columns begin at words, so that only d says which bytes of two words count
    UNROLL for (int k = 0; k < 4; k++) from[k] = f.ref + (s.r + d.y + k) * s.stride + ((x + d.x) & ~3);
    UNROLL for (int n = 0; n < tileRows + 2; n++) {
      u32 sum = 0;
      UNROLL for (int k = 0; k < 4; k++) {
        const u32 *p = (const u32 *)(from[k] + row[n]);
        sum = sad4(cur[n][k], between(p[0], p[1], d.x & 3), sum);
      }
      u32 wide = shuffle(sum, lane - 1) + 2 * sum + shuffle(sum, lane + 1);
      if (n >= 2) {
        u32 key = (above2 + 2 * above + wide + extra) << placeBits | (u32)place;
        near[n - 2] = key < near[n - 2] ? key : near[n - 2];
      }
      if (Whole && n >= 1 && n <= tileRows) {
        u32 key = (16 * sum + extra) << placeBits | (u32)place;
        own[n - 1] = key < own[n - 1] ? key : own[n - 1];
        total += row0 + n - 1 < hu ? sum : 0;
      }
      above2 = above, above = wide;
    }
    if (Whole) {
      total = mine ? total : 0;
      UNROLL for (int mask = 16; mask > 0; mask /= 2) total += shuffleXor(total, mask);
      if (lane == 0) atomicAdd(f.totals + place, total); // below 2^32: 2^27 / 256 units of at most 4080
    }
  }
  UNROLL for (int n = 0; n < tileRows; n++) {
    if (!mine || row0 + n >= hu) continue;
    i32 u = (row0 + n) * wu + column;
    atomicMax(f.near + u, ~near[n]);
    if (Whole) atomicMax(f.own + u, ~own[n]);
  }
}

// search_full runs both full searches, a warp for each tile and group. near, own and totals hold what both find, the
// finer one first: near4, own4, near8, own8; totals4, totals8.
KERNEL_OF(256, 2) void search_full(u32 *keys, u32 *totals, const u8 *small, const i8 *list, const i32 *penalties, const i32 *frame, i64 w_, i64 h_, i64 r4, i64 r8, i64 count4,
                        i64 count8, i64 groups4, i64 groups8) {
  i32 w = (i32)w_, h = (i32)h_, warp = (i32)(unit() / 32);
  u32 penalty = 2 * (u32)penalties[frame[0]];
  Full f;
  i32 units = h / 16 * (w / 16);
  f.s = smallOf(w / 4, h / 4, (i32)r4), f.count = (i32)count4, f.groups = (i32)groups4;
  f.near = keys, f.own = keys + units, f.totals = totals;
  i32 warps = tiles(f.s) * f.groups;
  if (warp >= warps) {
    warp -= warps, small += 2 * smallBytes(f.s), keys += 2 * units, totals += count4, units /= 4;
    f.s = smallOf(w / 8, h / 8, (i32)r8), f.count = (i32)count8, f.groups = (i32)groups8;
    f.near = keys, f.own = keys + units, f.totals = totals;
    if (warp >= tiles(f.s) * f.groups) return;
  }
  f.cur = small, f.ref = small + smallBytes(f.s);
  fullTile<true>(f, list, warp / f.groups, warp % f.groups, penalty);
}
