// Convolutions on products of warpgroups: lin, its sums and tables, and the 3x3 convolution, with int8 or int16 weights.
//
// As in lin.cuh an int16 activation is two bytes, x = 256*hi + lo, and the sums over both planes are exact in int32. int16
// weights are two bytes as well, w = 256*wh + wl, so that
//
//	Σ w*x = 65536*Σ wh*hi + 256*Σ (wh*lo + wl*hi) + Σ wl*lo,
//
// three sums that are exact in int32 for as many as 32768 products, joined in 64 bits.
//
// A block of threads is two warpgroups. It keeps the weights of its blocks of N output channels in shared memory, fetched
// once, and each warpgroup takes 64 positions after the other on its own: one computes what its sums become while the other's
// products run. Activations go from global memory to the registers of the products: all of them, while what the positions
// before become is computed, or four steps of 32 input channels ahead.
//
// The host orders input channels so that the bytes that lane 4g+t gives to a step are those of channels 8t..8t+7, one read
// of 16 bytes, and output channels so that the columns that the lane gets of four neighbouring tiles of 8 are channels
// 8t..8t+7 of 32, one write of 16 bytes.
#pragma once
#include "launches.cuh"
#include "wgmma.cuh"

// What becomes of the sums: requantised, with as many as two residuals and a scale by QP; the gated sum of four activations;
// looked up in a table; the sum of two that are looked up.
enum Outcome { Plain, Gated, Looked, LookedSum };

// Where the activations are: in one tensor; in one, those of the taps of a 3x3 convolution; in two, one behind the other, the
// first of which may have r*r positions' channels in one (d2s).
enum Reading { Whole, Taps, Joined };

enum { stageSteps = 4, positionsOfGroup = 64 };

struct Layer {
  i16 *dst;
  const i16 *src, *res, *outer; // outer: the second residual
  const u8 *packed; // of each block of channels: weights, then mul and bias of each channel, see outcome
  const void *table; // see look, whole vectors; or of a scale, [64][out]
  i64 n;            // positions
  i64 in, out;
  i64 shift, f;
  i64 blocks; // of N channels
  i64 groups; // of blocks of threads: each has its share of the channels
  i64 each;   // blocks of threads of a group: each has its share of the positions
  i64 h, w, r; // of the 3x3 convolution: its input's rows and columns, and its stride; Joined: of src
  i64 last, copies; // of the table: the number of its last entry, and how often it is in shared memory
  const i32 *frame; // its QP, where there is a scale; the kernel has table point at its row
  i64 scale;        // its shift
  const i16 *second;
  i64 split; // Joined: channels of the first tensor
};

// A Rows says where the activations of two positions stand.
template <int Reading>
struct Rows;
template <>
struct Rows<Whole> {
  const i16 *x[2];
  i32 in;
};
template <>
struct Rows<Taps> {
  const i16 *src;
  i32 y[2], x[2], h, w, in;
};
template <>
struct Rows<Joined> {
  const i16 *x[2], *second[2];
  i32 in, split;
};

DEVICE void place(Rows<Joined> &rows, const Layer &l, i32 row) {
  rows.in = (i32)l.in, rows.split = (i32)l.split;
  i32 r = (i32)l.r, w = (i32)l.w;
  UNROLL for (int i = 0; i < 2; i++) {
    i32 p = row + 8 * i < l.n ? row + 8 * i : (i32)l.n - 1, from = p;
    if (r > 1) {
      i32 y = p / (w * r), x = p - y * (w * r);
      from = ((y / r * w + x / r) * r + y % r) * r + x % r;
    }
    rows.x[i] = l.src + (i64)from * rows.split;
    rows.second[i] = l.second + (i64)p * (rows.in - rows.split) - rows.split;
  }
}
DEVICE void place(Rows<Whole> &rows, const Layer &l, i32 row) {
  rows.in = (i32)l.in;
  UNROLL for (int r = 0; r < 2; r++) {
    i32 p = row + 8 * r;
    rows.x[r] = l.src + (i64)(p < l.n ? p : l.n - 1) * rows.in;
  }
}
DEVICE void place(Rows<Taps> &rows, const Layer &l, i32 row) {
  rows.src = l.src;
  rows.h = (i32)l.h, rows.w = (i32)l.w, rows.in = (i32)l.in;
  i32 r = (i32)l.r, width = rows.w / r;
  UNROLL for (int i = 0; i < 2; i++) {
    i32 p = row + 8 * i < l.n ? row + 8 * i : (i32)l.n - 1;
    rows.y[i] = p / width * r - 1;
    rows.x[i] = p % width * r - 1;
  }
}

// activations reads 8 channels of a step for position r. Weights past the last channel are 0, so what stands for such
// channels does not matter.
DEVICE u32x4 activations(const Rows<Whole> &rows, int r, i32 step, i32 t) {
  i32 c = 32 * step + 8 * t;
  return *(const u32x4 *)(rows.x[r] + (c < rows.in ? c : rows.in - 8));
}
DEVICE u32x4 activations(const Rows<Joined> &rows, int r, i32 step, i32 t) {
  i32 c = 32 * step + 8 * t;
  if (c >= rows.in) c = rows.in - 8;
  return *(const u32x4 *)((c < rows.split ? rows.x[r] : rows.second[r]) + c);
}
DEVICE u32x4 activations(const Rows<Taps> &rows, int r, i32 step, i32 t) {
  i32 steps = rows.in / 32, tap = step / steps, dy = tap / 3, y = rows.y[r] + dy, x = rows.x[r] + tap - 3 * dy;
  if (tap > 8 || y < 0 || y >= rows.h || x < 0 || x >= rows.w) return u32x4{0, 0, 0, 0};
  return *(const u32x4 *)(rows.src + (i64)(y * rows.w + x) * rows.in + (step - tap * steps) * 32 + 8 * t);
}

template <int N, bool Wide>
struct GroupSums {
  i32 high[N / 2], low[N / 2]; // wide: of wh*hi and of wl*lo
  i32 cross[Wide ? N / 2 : 1];
};

// planes makes the operands of a step of what was read for its two positions: x[0..3] of the high bytes, x[4..7] of the low
// ones. The numbers read may stand in x.
DEVICE void planes(u32 *x, u32x4 first, u32x4 second) {
  u32x4 raw[2] = {first, second};
  UNROLL for (int r = 0; r < 2; r++) {
    UNROLL for (int half = 0; half < 2; half++) {
      x[2 * half + r] = permute(raw[r][2 * half], raw[r][2 * half + 1], 0x7531);
      x[4 + 2 * half + r] = permute(raw[r][2 * half], raw[r][2 * half + 1], 0x6420);
    }
  }
  hold<8>(x);
}

// products begins those of S steps from the first on, whose planes are in x.
template <int N, bool Wide, int S>
DEVICE void products(GroupSums<N, Wide> &s, u32 (*x)[8], u32 weights, i32 first) {
  enum { plane = N * 32, planes = Wide ? 2 : 1 };
  groupFence();
  UNROLL for (int k = 0; k < S; k++) {
    u64 w = matrix(weights + (first + k) * planes * plane, 128, 256);
    u32 *hi = x[k], *lo = x[k] + 4, more = first + k > 0;
    groupProduct<N, true, true>(s.high, hi, w, more);
    if (Wide) {
      u64 wl = matrix(weights + (first + k) * planes * plane + plane, 128, 256);
      groupProduct<N, false, true>(s.cross, lo, w, more);
      groupProduct<N, true, false>(s.cross, hi, wl, 1);
      groupProduct<N, false, false>(s.low, lo, wl, more);
    } else {
      groupProduct<N, false, true>(s.low, lo, w, more);
    }
  }
  groupCommit();
}

// stage multiplies S steps from the first on, whose activations are in raw, by way of x, and has raw hold those of the
// next stage.
template <int N, bool Wide, int S, int Reading>
DEVICE void stage(GroupSums<N, Wide> &s, u32x4 (*raw)[2], u32 (*x)[8], u32 weights, i32 first, const Rows<Reading> &rows, i32 next, i32 t) {
  groupWait();
  UNROLL for (int k = 0; k < S; k++) {
    hold<2>(raw[k]);
    planes(x[k], raw[k][0], raw[k][1]);
  }
  UNROLL for (int k = 0; k < stageSteps; k++) {
    UNROLL for (int r = 0; r < 2; r++) raw[k][r] = activations(rows, r, next + k, t);
  }
  products<N, Wide, S>(s, x, weights, first);
}

// requantised returns the number that saturates to output i: (acc*mul + half) >> shift, acc being the sum with its bias and
// half the rounding. With int8 weights the host has scaled mul so that what is shifted out of the product is its lower word
// and shift more bits.
template <int N, bool Wide, bool Shifts>
DEVICE i32 requantised(const GroupSums<N, Wide> &s, int i, i32 mul, i32 bias, i32 shift) {
  if (Wide) {
    i64 acc = (i64)s.high[i] * 65536 + (i64)s.cross[i] * 256 + ((i64)s.low[i] + bias);
    return sat16(rnd(acc * mul, shift));
  }
  i32 acc = (i32)((u32)joined(s.high[i], s.low[i]) + (u32)bias), low, high;
  split(wide(acc, mul) + ((i64)1 << 31 << (Shifts ? shift : 0)), low, high);
  return Shifts ? high >> shift : high;
}

// A table in shared memory is rows of 128 bytes: as many entries as fit so many copies, copy after copy. Each lane has one of
// the copies; where there are 32, no two lanes meet in a bank.
struct Looks {
  u32 base, last, inRow; // base: of this lane's copy; inRow: entries of a row, less one
  u32 copies;
};
DEVICE Looks looksOf(const Layer &l, u32 table, i32 lane) {
  u32 copies = (u32)l.copies, entries = 128 / copies;
  return Looks{table + (u32)lane % copies * entries, (u32)l.last, entries - 1, copies};
}

// copyTable makes the rows that begin at base. All threads of the block do.
DEVICE void copyTable(u8 *rows, const Layer &l, u32 size) {
  u32 entries = 128 / (u32)l.copies;
  const u32 *from = (const u32 *)l.table;
  for (u32 at = threadIndex(); at < size / 16; at += 256) {
    u32x4 words;
    UNROLL for (u32 i = 0; i < 4; i++) words[i] = constant(from + (at / 8 * entries + (16 * at + 4 * i & entries - 1)) / 4);
    ((u32x4 *)rows)[at] = words;
  }
}

// look is the table's value of sat16(y): max(y, 0) less the entry of |y|, of which the last serves all that are larger.
// Such tables are what activations that are x or 0 far from 0 are but for a small even part.
DEVICE i32 look(i32 y, const Looks &k) {
  u32 size = y < 0 ? 0u - (u32)y : (u32)y, i = size < k.last ? size : k.last;
  return positive(y, 32767) - sharedByte(k.base + i * k.copies - (i & k.inRow) * (k.copies - 1));
}

// Residuals are those of what a lane computes of a block of channels. Each is on its way for as long as a product, so they
// are read ahead of the wait for the products, or, where there are not the registers for all, a few at once behind it; those of
// one lin may be its output. Nothing is added behind Taps and Joined.
enum Adding { Nothing, ReadAhead, ReadHere };

template <int N>
struct Residuals {
  u32x4 x[N / 32][2];
};
template <int N>
DEVICE void readResiduals(Residuals<N> &r, const Layer &l, i32 row, i32 block, int from, int count, i32 t) {
  if (!l.res) return;
  UNROLL for (int quad = from; quad < from + count; quad++) {
    i32 c = block * N + 32 * quad + 8 * t;
    UNROLL for (int i = 0; i < 2; i++) { // what stands for positions and channels past the last does not matter
      i32 p = row + 8 * i < l.n ? row + 8 * i : (i32)l.n - 1;
      r.x[quad][i] = *(const u32x4 *)(l.res + (i64)p * l.out + (c < l.out ? c : 0));
    }
  }
}

// added and scaled take numbers that are still to be saturated, and leave such numbers.
DEVICE void added(i32 *y, u32x4 x) {
  UNROLL for (int i = 0; i < 8; i++) y[i] = clamp32(y[i], -32768, 32767) + (i16)(x[i / 2] >> (i % 2 * 16));
}
DEVICE void scaled(i32 *y, const i32 *by, i32 shift) {
  UNROLL for (int half = 0; half < 2; half++) {
    i32x4 m = *(const i32x4 *)(by + 4 * half);
    UNROLL for (int i = 0; i < 4; i++) y[4 * half + i] = sat16(rnd(wide(clamp32(y[4 * half + i], -32768, 32767), m[i]), shift));
  }
}

// outcome stores what the sums of one block of channels become. Without Shifts the shift is 0. Constants are mul and bias of
// two channels, 16 bytes a lane, so that those of a read follow each other.
template <int N, int Out, int Adding, bool Wide, bool Shifts>
DEVICE void outcome(const Layer &l, const GroupSums<N, Wide> &s, Residuals<N> &res, u32 constants, const Looks &looks, i32 row, i32 block, i32 t) {
  enum { parts = Out == Gated ? 4 : Out == LookedSum ? 2 : 1, tiles = N / 8 / parts };
  i32 shift = (i32)l.shift;
  UNROLL for (int quad = 0; quad < tiles / 4; quad++) {
    i32 c = block * (N / parts) + 32 * quad + 8 * t;
    i32 y[2][8];
    if (Adding == ReadHere) readResiduals(res, l, row, block, quad, 1, t);
    UNROLL for (int part = 0; part < parts; part++) {
      UNROLL for (int q = 0; q < 4; q++) {
        i32 tile = part * tiles + 4 * quad + q, k[4];
        sharedFour(constants + 64 * tile + 16 * t, k);
        UNROLL for (int e = 0; e < 2; e++) {
          UNROLL for (int r = 0; r < 2; r++) {
            i32 v = requantised<N, Wide, Shifts>(s, 4 * tile + 2 * r + e, k[2 * e], k[2 * e + 1], shift);
            if (Out == Gated) v = act(clamp32(v, -32768, 32767), (i32)l.f);
            if (Out == Looked || Out == LookedSum) v = look(v, looks);
            y[r][2 * q + e] = part == 0 ? v : y[r][2 * q + e] + v;
          }
        }
      }
    }
    UNROLL for (int r = 0; r < 2; r++) {
      i32 p = row + 8 * r;
      if (p < l.n && c < l.out) {
        i64 to = (i64)p * l.out + c;
        if (Adding != Nothing && l.res) added(y[r], res.x[quad][r]);
        if (Adding != Nothing && l.outer) added(y[r], *(const u32x4 *)(l.outer + to));
        if (Adding != Nothing && l.frame) scaled(y[r], (const i32 *)l.table + c, (i32)l.scale);
        u32x4 words;
        UNROLL for (int i = 0; i < 4; i++) words[i] = saturated(y[r][2 * i], y[r][2 * i + 1]);
        *(u32x4 *)(l.dst + to) = words;
      }
    }
  }
}

// finished waits for the products of a block of channels.
template <int N, bool Wide>
DEVICE void finished(GroupSums<N, Wide> &s) {
  groupWait();
  hold<N / 2>(s.high);
  hold<N / 2>(s.low);
  if (Wide) hold<N / 2>(s.cross);
}

template <int N, int Out, int Adding, bool Wide>
DEVICE void finish(const Layer &l, const GroupSums<N, Wide> &s, Residuals<N> &res, u32 constants, const Looks &looks, i32 row, i32 block, i32 t) {
  if (l.shift != 0 || Wide)
    outcome<N, Out, Adding, Wide, true>(l, s, res, constants, looks, row, block, t);
  else
    outcome<N, Out, Adding, Wide, false>(l, s, res, constants, looks, row, block, t);
}

// readAll reads the activations of all steps.
template <int Steps, int Reading>
DEVICE void readAll(u32 (*x)[8], const Rows<Reading> &rows, i32 t) {
  UNROLL for (int k = 0; k < Steps; k++) {
    UNROLL for (int r = 0; r < 2; r++) {
      u32x4 v = activations(rows, r, k, t);
      UNROLL for (int i = 0; i < 4; i++) x[k][4 * r + i] = v[i];
    }
  }
}

// convolve computes a layer. With Steps input channels are 32 of these, whose planes stay in registers while all of a
// block of threads' channels are computed; otherwise they are read for each block of channels, stage by stage.
template <int N, int Out, int Reading, bool Wide, int Steps>
DEVICE void convolve(Layer l) {
  enum { planesOf = Wide ? 2 : 1, Looking = Out == Looked || Out == LookedSum };
  constexpr int Adding = Out != Plain || Reading != Whole ? Nothing : Steps ? ReadAhead : ReadHere;
  u8 *memory = dynamicShared(); // the table, weights, barriers
  i32 thread = threadIndex(), group = thread / 128, lane = thread % 32, t = lane % 4;
  i32 steps = Steps ? Steps : ((i32)l.in * (Reading == Taps ? 9 : 1) + 31) / 32, bytes = N * 32 * planesOf * steps, blob = bytes + N * 8;
  i32 share = ((i32)l.blocks + (i32)l.groups - 1) / (i32)l.groups, first = blockIndex() % (i32)l.groups * share;
  i32 count = (i32)l.blocks - first < share ? (i32)l.blocks - first : share;
  u32 table = sharedAddress(memory), size = 0;
  Looks looks = {};
  if (Looking) {
    looks = looksOf(l, table, lane);
    size = (looks.last / (looks.inRow + 1) + 1) * 128;
  }
  u32 base = table + size, bars = base + share * blob;
  if (thread == 0) {
    for (i32 i = 0; i < count; i++) phaseInit(bars + 8 * i);
    phaseReady();
    for (i32 i = 0; i < count; i++) {
      phaseExpect(bars + 8 * i, blob);
      fetch(base + i * blob, l.packed + (i64)(first + i) * blob, blob, bars + 8 * i);
    }
  }
  if (Looking) copyTable(memory, l, size);
  barrier();
  awaitLaunches();
  if (Adding != Nothing && l.frame) l.table = (const i32 *)l.table + (i64)*l.frame * l.out;

  i32 stride = (i32)l.each * 2, tiles = ((i32)l.n + positionsOfGroup - 1) / positionsOfGroup;
  i32 tile = blockIndex() / (i32)l.groups * 2 + group;
  i32 inTile = thread % 128 / 32 * 16 + lane / 4;
  GroupSums<N, Wide> s;
  UNROLL for (int i = 0; i < N / 2; i++) s.high[i] = s.low[i] = 0;
  UNROLL for (int i = 0; i < (Wide ? N / 2 : 1); i++) s.cross[i] = 0;
  Residuals<N> res;
  Rows<Reading> rows;
  place(rows, l, tile * positionsOfGroup + inTile);
  if constexpr (Steps > 0) {
    u32 x[Steps][8];
    readAll<Steps>(x, rows, t);
    for (; tile < tiles; tile += stride) {
      i32 row = tile * positionsOfGroup + inTile;
      UNROLL for (int k = 0; k < Steps; k++) {
        hold<8>(x[k]);
        planes(x[k], u32x4{x[k][0], x[k][1], x[k][2], x[k][3]}, u32x4{x[k][4], x[k][5], x[k][6], x[k][7]});
      }
      for (i32 i = 0; i < count; i++) {
        u32 weights = base + i * blob;
        phaseWait(bars + 8 * i);
        products<N, Wide, Steps>(s, x, weights, 0);
        if (i == count - 1) place(rows, l, row + stride * positionsOfGroup);
        if (Adding != Nothing) readResiduals(res, l, row, first + i, 0, N / 32, t);
        finished(s);
        if (i == count - 1) readAll<Steps>(x, rows, t);
        finish<N, Out, Adding, Wide>(l, s, res, weights + bytes, looks, row, first + i, t);
      }
    }
    return;
  }
  u32x4 raw[stageSteps][2];
  u32 x[stageSteps][8]; // the planes of a stage, which its products read until they are waited for
  UNROLL for (int k = 0; k < stageSteps; k++) {
    UNROLL for (int r = 0; r < 2; r++) raw[k][r] = activations(rows, r, k, t);
  }
  for (; tile < tiles; tile += stride) {
    i32 row = tile * positionsOfGroup + inTile;
    for (i32 i = 0; i < count; i++) {
      u32 weights = base + i * blob;
      phaseWait(bars + 8 * i);
      i32 done = 0;
      // Behind the last stage of a block of channels the first stage's activations are read: of the next block, or of
      // the next positions.
#define STAGE(S)                                                                             \
  {                                                                                          \
    i32 next = done + S < steps ? done + S : 0;                                              \
    if (next == 0 && i == count - 1) place(rows, l, row + stride * positionsOfGroup);            \
    stage<N, Wide, S>(s, raw, x, weights, done, rows, next, t);                                      \
    done += S;                                                                               \
  }
      while (done + 4 <= steps) STAGE(4)
      if (steps - done >= 2) STAGE(2)
      if (done < steps) STAGE(1)
#undef STAGE
      finished(s);
      finish<N, Out, Adding, Wide>(l, s, res, weights + bytes, looks, row, first + i, t);
    }
  }
}

#define GROUP(name, n, outcome, reading, wide, steps)                                                                             \
  KERNEL void name(i16 *dst, const i16 *src, const i16 *res, const i16 *outer, const u8 *packed, const void *table, i64 positions, \
                   i64 in, i64 out, i64 shift, i64 f, i64 blocks, i64 groups, i64 each, i64 h, i64 w, i64 r, i64 last, i64 copies, \
                   const i32 *frame, i64 scale, const i16 *second, i64 split) {                                                   \
    Layer l = {dst, src, res, outer, packed, table, positions, in, out, shift, f, blocks, groups, each, h, w, r, last, copies, frame, scale, second, split}; \
    convolve<n, outcome, reading, wide, steps>(l);                                                                                \
  }
GROUP(group_lin_96, 96, Plain, Whole, false, 0)
GROUP(group_lin_64, 64, Plain, Whole, false, 0)
GROUP(group_gated_128, 128, Gated, Whole, false, 0)
GROUP(group_looked_64, 64, Looked, Whole, false, 0)
GROUP(group_lookedsum_64, 64, LookedSum, Whole, false, 0)
GROUP(group_conv3_128, 128, Plain, Taps, false, 0)
GROUP(group_conv3_64, 64, Plain, Taps, false, 0)
GROUP(group_joined_64, 64, Plain, Joined, false, 0)
GROUP(group_lin16_64, 64, Plain, Whole, true, 0)
GROUP(group_looked16_64, 64, Looked, Whole, true, 0)
GROUP(group_lookedsum16_64, 64, LookedSum, Whole, true, 0)
GROUP(group_conv316_64, 64, Plain, Taps, true, 0)
GROUP(group_conv316_32, 32, Plain, Taps, true, 0)
// Those that have 256, 320, 384, 512 and 640 input channels.
GROUP(group_lin_64x256, 64, Plain, Whole, false, 8)
GROUP(group_looked_128x256, 128, Looked, Whole, false, 8)
GROUP(group_lookedsum_128x256, 128, LookedSum, Whole, false, 8)
GROUP(group_lin_64x320, 64, Plain, Whole, false, 10)
GROUP(group_looked_64x320, 64, Looked, Whole, false, 10)
GROUP(group_lookedsum_128x320, 128, LookedSum, Whole, false, 10)
GROUP(group_lin_64x384, 64, Plain, Whole, false, 12)
GROUP(group_looked_64x384, 64, Looked, Whole, false, 12)
GROUP(group_lookedsum_64x384, 64, LookedSum, Whole, false, 12)
GROUP(group_lin_64x512, 64, Plain, Whole, false, 16)
GROUP(group_lin_32x640, 32, Plain, Whole, false, 20)
GROUP(group_joined_64x512, 64, Plain, Joined, false, 16)
#undef GROUP
