// Latent coding: symbols, their tables, and what a decoder makes of them. frame[0] is the QP, frame[1] the threshold.
#pragma once
#include "device.cuh"

enum { expLimit = 1536 }; // q at F = 9 ends here; the tables hold 2*expLimit+1 entries

DEVICE i32 expPlace(i32 q) { return clamp32(q, -expLimit, expLimit) + expLimit; }

// coded returns the channel that step codes at position pos as its value i of c/2.
DEVICE i32 coded(i32 pos, i32 i, i32 w, i32 c, i32 step) { return ((pos / w + pos % w + step) & 1) == 0 ? i : c / 2 + i; }

// z_tables names the logistic table of every z symbol: 64 + table [64][c] at the frame's QP.
KERNEL void z_tables(u8 *tables, const u8 *table, const i32 *frame, i64 n, i64 c) {
  u32 at = unit();
  if (at < n * c) tables[at] = (u8)(64 + table[frame[0] * (i32)c + at % (u32)c]);
}

// z_symbols is clamp(rnd(z, F), ±127) of n values.
KERNEL void z_symbols(i16 *k, const i16 *z, i64 n, i64 f) {
  u32 at = unit();
  if (at < n) k[at] = (i16)clamp64(rnd(z[at], (i32)f), -127, 127);
}

// scale_index is clamp(rnd(8v, F) + 16, 0, 63) of n values.
KERNEL void scale_index(u8 *index, const i16 *v, i64 n, i64 f) {
  u32 at = unit();
  if (at < n) index[at] = (u8)clamp64(rnd((i64)8 * v[at], (i32)f) + 16, 0, 63);
}

// y_tables collects the scale indices [n][c] of the symbols of one step [n][c/2].
KERNEL void y_tables(u8 *tables, const u8 *index, i64 n, i64 w, i64 c_, i64 step) {
  u32 at = unit(), c = (u32)c_, half = c / 2;
  if (at >= n * half) return;
  i32 pos = at / half;
  tables[at] = index[(i64)pos * c + coded(pos, at % half, (i32)w, c, (i32)step)];
}

// y_symbols is k = clamp(rnd(ys - mean, Fm), ±(32767 >> Fm)) with ys = rnd(y*R[q], shift) kept wide, |y*R| < 2^46, or
// 0 where the table is below the threshold.
KERNEL void y_symbols(i16 *k, const u8 *tables, const i16 *y, const i16 *q, const i16 *mean, const i32 *rexp, const i32 *frame, i64 n, i64 w, i64 c_, i64 step, i64 shift, i64 fm) {
  u32 at = unit(), c = (u32)c_, half = c / 2;
  if (at >= n * half) return;
  i32 pos = at / half;
  i64 from = (i64)pos * c + coded(pos, at % half, (i32)w, c, (i32)step);
  i64 limit = 32767 >> fm;
  i64 ys = rnd(wide(y[from], rexp[expPlace(q[from])]), (i32)shift);
  i64 symbol = clamp64(rnd(ys - mean[from], (i32)fm), -limit, limit);
  k[at] = tables[at] < frame[1] ? 0 : (i16)symbol;
}

// latent is sat16((k << Fm) + mean) where the step codes, and base (0 if null) elsewhere; one thread a value of [n][c].
KERNEL void latent(i16 *dst, const i16 *k, const i16 *mean, const i16 *base, i64 n, i64 w, i64 c_, i64 step, i64 fm) {
  u32 at = unit(), c = (u32)c_, half = c / 2;
  if (at >= n * c) return;
  i32 pos = at / c, ch = at % c, first = coded(pos, 0, (i32)w, c, (i32)step);
  if (ch < first || ch >= first + (i32)half) {
    dst[at] = base ? base[at] : 0;
    return;
  }
  dst[at] = sat16((i64)k[(i64)pos * half + ch - first] * ((i64)1 << fm) + mean[at]);
}

// unstep is sat16(rnd(yhat*E[q], shift)) of n values.
KERNEL void unstep(i16 *dst, const i16 *yhat, const i16 *q, const i32 *exp, i64 n, i64 shift) {
  u32 at = unit();
  if (at < n) dst[at] = sat16(rnd(wide(yhat[at], exp[expPlace(q[at])]), (i32)shift));
}
