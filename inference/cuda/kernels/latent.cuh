// Latent coding: symbols, their tables, and what a decoder makes of them. frame[0] is the QP, frame[1] the threshold.
// Kernels exist for runs of 8 channels and, for other channel counts, for single ones.
#pragma once
#include "launches.cuh"

enum { expLimit = 1536 }; // q at F = 9 ends here; the tables hold 2*expLimit+1 entries

DEVICE i32 expPlace(i32 q) { return clamp32(q, -expLimit, expLimit) + expLimit; }

// firstCoded returns the first of the c/2 channels that a step codes at position pos.
DEVICE i32 firstCoded(i32 pos, i32 w, i32 c, i32 step) { return ((pos / w + pos % w + step) & 1) == 0 ? 0 : c / 2; }

// A clamped run is read through a clamp, limits = lo | hi << 16.
template <int V>
DEVICE Run<V> clamped(const i16 *p, i64 limits) {
  Run<V> r = load<V>(p);
  UNROLL for (int i = 0; i < V; i++) r.x[i] = (i16)clamp32(r.x[i], (i16)limits, (i16)(limits >> 16));
  return r;
}

template <int V>
DEVICE void storeBytes(u8 *p, const i32 *x) {
  if (V == 8) {
    u32x2 w = {0, 0};
    UNROLL for (int i = 0; i < V; i++) w[i / 4] |= (u32)x[i] << (i % 4 * 8);
    *(u32x2 *)p = w;
  } else {
    UNROLL for (int i = 0; i < V; i++) p[i] = (u8)x[i];
  }
}

// code_z names the logistic table of every z symbol, 64 + table [64][c] at the frame's QP, and unless z is null computes
// the symbols: clamp(rnd(z, F), ±127).
KERNEL void code_z(i16 *k, u8 *tables, const i16 *z, const u8 *table, const i32 *frame, i64 n, i64 c, i64 f) {
  u32 at = unit();
  awaitLaunches();
  if (at >= n * c) return;
  tables[at] = (u8)(64 + table[frame[0] * (i32)c + at % (u32)c]);
  if (z) k[at] = (i16)clamp64(rnd(z[at], (i32)f), -127, 127);
}

// scaleIndex is clamp(rnd(8v, F) + 16, 0, 63).
DEVICE i32 scaleIndex(i32 v, i32 f) { return (i32)clamp64(rnd(8 * v, f) + 16, 0, 63); }

// y_tables gives each value's scale index to the step that codes it: tables [n][c/2] of both steps, either may be null.
template <int V>
DEVICE void yTables(u8 *tables0, u8 *tables1, const i16 *v, i64 limits, i64 n, i32 w, i32 c, i32 f) {
  u32 runs = (u32)c / V, at = unit();
  awaitLaunches();
  if (at >= n * runs) return;
  i32 pos = at / runs, ch = at % runs * V, half = c / 2;
  bool upper = ch >= half;
  u8 *to = (firstCoded(pos, w, c, 0) != 0) == upper ? tables0 : tables1;
  if (!to) return;
  Run<V> x = clamped<V>(v + (i64)pos * c + ch, limits);
  i32 index[V];
  UNROLL for (int i = 0; i < V; i++) index[i] = scaleIndex(x.x[i], f);
  storeBytes<V>(to + (i64)pos * half + ch - (upper ? half : 0), index);
}

// A Coding is what an encoder makes symbols of: k = clamp(rnd(ys - mean, Fm), ±(32767 >> Fm)) with ys = rnd(y*R[q], shift)
// kept wide, |y*R| < 2^46, or 0 where the table is below the threshold.
struct Coding {
  u8 *tables;
  const i16 *y, *v;
  const i32 *rexp;
  i64 vLimits;
  i32 shift, fv;
};

// latent is yhat = sat16((k << Fm) + mean) where the step codes, and base (0 if null) elsewhere, for values of [n][c]; out
// is sat16(rnd(yhat*E[q], outShift)). yhat and out may be null. The symbols k are read or, with y, computed and written.
template <int V>
DEVICE void latentRun(i16 *yhat, i16 *out, i16 *k, const i16 *mean, const i16 *base, const i16 *q, i64 qLimits, const i32 *exp, const i32 *frame,
                      i64 n, i32 w, i32 c, i32 step, i32 fm, i32 outShift, const Coding &coding) {
  u32 runs = (u32)c / V, at = unit();
  awaitLaunches();
  if (at >= n * runs) return;
  i32 pos = at / runs, ch = at % runs * V, half = c / 2, first = firstCoded(pos, w, c, step);
  i64 from = (i64)pos * c + ch;
  Run<V> quantiser, hat;
  if (q) quantiser = clamped<V>(q + from, qLimits);
  if (ch >= first && ch < first + half) {
    i64 symbol = (i64)pos * half + ch - first;
    Run<V> m = load<V>(mean + from), s;
    if (coding.y) {
      Run<V> y = load<V>(coding.y + from), v = clamped<V>(coding.v + from, coding.vLimits);
      i32 index[V], limit = 32767 >> fm, threshold = frame[1];
      UNROLL for (int i = 0; i < V; i++) {
        index[i] = scaleIndex(v.x[i], coding.fv);
        i64 ys = rnd(wide(y.x[i], coding.rexp[expPlace(quantiser.x[i])]), coding.shift);
        s.x[i] = index[i] < threshold ? 0 : (i16)clamp64(rnd(ys - m.x[i], fm), -limit, limit);
      }
      storeBytes<V>(coding.tables + symbol, index);
      store<V>(k + symbol, s);
    } else {
      s = load<V>(k + symbol);
    }
    UNROLL for (int i = 0; i < V; i++) hat.x[i] = sat16(s.x[i] * (1 << fm) + m.x[i]);
  } else if (base) {
    hat = load<V>(base + from);
  } else {
    UNROLL for (int i = 0; i < V; i++) hat.x[i] = 0;
  }
  if (yhat) store<V>(yhat + from, hat);
  if (out) {
    UNROLL for (int i = 0; i < V; i++) hat.x[i] = sat16(rnd(wide(hat.x[i], exp[expPlace(quantiser.x[i])]), outShift));
    store<V>(out + from, hat);
  }
}

// unstep is sat16(rnd(yhat*E[q], shift)) of n values.
KERNEL void unstep(i16 *dst, const i16 *yhat, const i16 *q, i64 qLimits, const i32 *exp, i64 n, i64 shift) {
  u32 at = unit();
  awaitLaunches();
  if (at < n) dst[at] = sat16(rnd(wide(yhat[at], exp[expPlace(clamped<1>(q + at, qLimits).x[0])]), (i32)shift));
}

#define LATENT(size)                                                                                                                   \
  KERNEL void y_tables_##size(u8 *tables0, u8 *tables1, const i16 *v, i64 limits, i64 n, i64 w, i64 c, i64 f) {                          \
    yTables<size>(tables0, tables1, v, limits, n, (i32)w, (i32)c, (i32)f);                                                              \
  }                                                                                                                                    \
  KERNEL void latent_##size(i16 *yhat, i16 *out, i16 *k, const i16 *mean, const i16 *base, const i16 *q, i64 qLimits, const i32 *exp,    \
                            const i32 *frame, i64 n, i64 w, i64 c, i64 step, i64 fm, i64 outShift, u8 *tables, const i16 *y,             \
                            const i16 *v, i64 vLimits, const i32 *rexp, i64 shift, i64 fv) {                                            \
    latentRun<size>(yhat, out, k, mean, base, q, qLimits, exp, frame, n, (i32)w, (i32)c, (i32)step, (i32)fm, (i32)outShift,             \
                    Coding{tables, y, v, rexp, vLimits, (i32)shift, (i32)fv});                                                          \
  }
LATENT(8)
LATENT(1)
#undef LATENT
