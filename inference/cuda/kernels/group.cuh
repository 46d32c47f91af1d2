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
// products run. Activations go from global memory to the registers of the products, four steps of 32 input channels ahead.
//
// The host orders input channels so that the bytes that lane 4g+t gives to a step are those of channels 8t..8t+7, one read
// of 16 bytes, and output channels so that the columns that the lane gets of four neighbouring tiles of 8 are channels
// 8t..8t+7 of 32, one write of 16 bytes.
#pragma once
#include "wgmma.cuh"

// What becomes of the sums: requantised and added to a residual; the gated sum of four activations; looked up in a
// table; the sum of two that are looked up.
enum Outcome { Plain, Gated, Looked, LookedSum };

enum { stageSteps = 4, positionsOfGroup = 64 };

struct Layer {
  i16 *dst;
  const i16 *src, *res;
  const u8 *packed; // of each block of channels: weights, then for each channel mul (4 bytes) and what is added (8 bytes)
  const u8 *table;  // behind its length in bytes, see look
  i64 n;            // positions
  i64 in, out;
  i64 shift, f;
  i64 blocks; // of N channels
  i64 groups; // of blocks of threads: each has its share of the channels
  i64 each;   // blocks of threads of a group: each has its share of the positions
  i64 h, w, r; // of the 3x3 convolution: its input's rows and columns, and its stride
};

// A Rows says where the activations of two positions stand: of a lin, or of the taps of a convolution.
template <bool Conv>
struct Rows;
template <>
struct Rows<false> {
  const i16 *x[2];
  i32 in;
};
template <>
struct Rows<true> {
  const i16 *src;
  i32 y[2], x[2], h, w, in;
};

DEVICE void place(Rows<false> &rows, const Layer &l, i32 row) {
  rows.in = (i32)l.in;
  UNROLL for (int r = 0; r < 2; r++) {
    i32 p = row + 8 * r;
    rows.x[r] = l.src + (i64)(p < l.n ? p : l.n - 1) * rows.in;
  }
}
DEVICE void place(Rows<true> &rows, const Layer &l, i32 row) {
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
DEVICE u32x4 activations(const Rows<false> &rows, int r, i32 step, i32 t) {
  i32 c = 32 * step + 8 * t;
  return *(const u32x4 *)(rows.x[r] + (c < rows.in ? c : rows.in - 8));
}
DEVICE u32x4 activations(const Rows<true> &rows, int r, i32 step, i32 t) {
  i32 steps = rows.in / 32, tap = step / steps, dy = tap / 3, y = rows.y[r] + dy, x = rows.x[r] + tap - 3 * dy;
  if (tap > 8 || y < 0 || y >= rows.h || x < 0 || x >= rows.w) return u32x4{0, 0, 0, 0};
  return *(const u32x4 *)(rows.src + (i64)(y * rows.w + x) * rows.in + (step - tap * steps) * 32 + 8 * t);
}

template <int N, bool Wide>
struct GroupSums {
  i32 high[N / 2], low[N / 2]; // wide: of wh*hi and of wl*lo
  i32 cross[Wide ? N / 2 : 1];
};

// stage multiplies S steps from the first on, whose activations are in raw, by way of hi and lo, and has raw hold those of
// the next stage.
template <int N, bool Wide, int S, bool Conv>
DEVICE void stage(GroupSums<N, Wide> &s, u32x4 (*raw)[2], u32 (*hi)[4], u32 (*lo)[4], u32 weights, i32 first, const Rows<Conv> &rows, i32 next, i32 t) {
  groupWait();
  UNROLL for (int k = 0; k < S; k++) {
    hold<2>(raw[k]);
    UNROLL for (int r = 0; r < 2; r++) {
      UNROLL for (int half = 0; half < 2; half++) {
        lo[k][2 * half + r] = permute(raw[k][r][2 * half], raw[k][r][2 * half + 1], 0x6420);
        hi[k][2 * half + r] = permute(raw[k][r][2 * half], raw[k][r][2 * half + 1], 0x7531);
      }
    }
    hold<4>(hi[k]);
    hold<4>(lo[k]);
  }
  UNROLL for (int k = 0; k < stageSteps; k++) {
    UNROLL for (int r = 0; r < 2; r++) raw[k][r] = activations(rows, r, next + k, t);
  }
  enum { plane = N * 32, planes = Wide ? 2 : 1 };
  groupFence();
  UNROLL for (int k = 0; k < S; k++) {
    u64 w = matrix(weights + (first + k) * planes * plane, 128, 256);
    u32 more = first + k > 0;
    groupProduct<N, true, true>(s.high, hi[k], w, more);
    if (Wide) {
      u64 wl = matrix(weights + (first + k) * planes * plane + plane, 128, 256);
      groupProduct<N, false, true>(s.cross, lo[k], w, more);
      groupProduct<N, true, false>(s.cross, hi[k], wl, 1);
      groupProduct<N, false, false>(s.low, lo[k], wl, more);
    } else {
      groupProduct<N, false, true>(s.low, lo[k], w, more);
    }
  }
  groupCommit();
}

// Constants of output channels, in shared memory: what follows the products' sum is (acc*mul + add) >> shift, where add
// holds bias*mul and the rounding.
struct Constants {
  u32 mul, add;
};

// requantised returns the number that saturates to output i. With int8 weights the host has scaled mul so that what is
// shifted out of the product is its lower word and shift more bits.
template <int N, bool Wide, bool Shifts>
DEVICE i32 requantised(const GroupSums<N, Wide> &s, int i, i32 mul, i64 add, i32 shift) {
  if (Wide) {
    i64 acc = (i64)s.high[i] * 65536 + (i64)s.cross[i] * 256 + s.low[i];
    return sat16((acc * mul + add) >> shift);
  }
  i32 low, high;
  split(multiplyAdd(joined(s.high[i], s.low[i]), mul, add), low, high);
  return Shifts ? high >> shift : high;
}

// look is the table's value of sat16(y): max(y, 0) less the entry of |y|, of which the last serves all that are larger.
// Such tables are what activations that are x or 0 far from 0 are but for a small even part.
DEVICE i32 look(i32 y, u32 table, u32 last) {
  u32 size = y < 0 ? 0u - (u32)y : (u32)y;
  return positive(y, 32767) - sharedByte(table + (size < last ? size : last));
}

// outcome stores what the sums of one block of channels become. Without Shifts the shift is 0.
template <int N, int Out, bool Wide, bool Shifts>
DEVICE void outcome(const Layer &l, const GroupSums<N, Wide> &s, Constants k, u32 table, u32 last, i32 row, i32 block, i32 t) {
  enum { parts = Out == Gated ? 4 : Out == LookedSum ? 2 : 1, tiles = N / 8 / parts };
  i32 shift = (i32)l.shift;
  UNROLL for (int quad = 0; quad < tiles / 4; quad++) {
    i32 from = 32 * quad + 8 * t, c = block * (N / parts) + from;
    i32 y[2][8];
    UNROLL for (int part = 0; part < parts; part++) {
      UNROLL for (int q = 0; q < 4; q++) {
        i32 at = part * (N / parts) + from + 2 * q;
        i32 mul[2];
        i64 add[2];
        sharedPair(k.mul + 4 * at, mul);
        sharedPair(k.add + 8 * at, add);
        UNROLL for (int e = 0; e < 2; e++) {
          UNROLL for (int r = 0; r < 2; r++) {
            i32 v = requantised<N, Wide, Shifts>(s, 4 * (part * tiles + 4 * quad + q) + 2 * r + e, mul[e], add[e], shift);
            if (Out == Gated) v = act(clamp32(v, -32768, 32767), (i32)l.f);
            if (Out == Looked || Out == LookedSum) v = look(v, table, last);
            y[r][2 * q + e] = part == 0 ? v : y[r][2 * q + e] + v;
          }
        }
      }
    }
    UNROLL for (int r = 0; r < 2; r++) {
      i32 p = row + 8 * r;
      if (p < l.n && c < l.out) {
        i64 to = (i64)p * l.out + c;
        if (Out == Plain && l.res) {
          Run<8> x = load<8>(l.res + to);
          UNROLL for (int i = 0; i < 8; i++) y[r][i] = clamp32(y[r][i], -32768, 32767) + x.x[i];
        }
        u32x4 words;
        UNROLL for (int i = 0; i < 4; i++) words[i] = saturated(y[r][2 * i], y[r][2 * i + 1]);
        *(u32x4 *)(l.dst + to) = words;
      }
    }
  }
}

template <int N, int Out, bool Conv, bool Wide>
DEVICE void convolve(const Layer &l) {
  enum { planes = Wide ? 2 : 1 };
  u8 *memory = dynamicShared(); // the table, where its address is a constant; then weights, then barriers
  i32 thread = threadIndex(), group = thread / 128, lane = thread % 32, t = lane % 4;
  i32 steps = ((i32)l.in * (Conv ? 9 : 1) + 31) / 32, bytes = N * 32 * planes * steps, blob = bytes + N * 12;
  i32 share = ((i32)l.blocks + (i32)l.groups - 1) / (i32)l.groups, first = blockIndex() % (i32)l.groups * share;
  i32 count = (i32)l.blocks - first < share ? (i32)l.blocks - first : share;
  u32 last = 0, size = 0;
  if (Out == Looked || Out == LookedSum) {
    last = *(const u32 *)l.table - 1;
    size = (last + 16) / 16 * 16;
    for (u32 i = thread; i < size / 16; i += 256) ((u32x4 *)memory)[i] = ((const u32x4 *)l.table)[1 + i];
  }
  u32 table = sharedAddress(memory), base = table + size, bars = base + share * blob;
  if (thread == 0) {
    for (i32 i = 0; i < count; i++) phaseInit(bars + 8 * i);
    phaseReady();
    for (i32 i = 0; i < count; i++) {
      phaseExpect(bars + 8 * i, blob);
      fetch(base + i * blob, l.packed + (i64)(first + i) * blob, blob, bars + 8 * i);
    }
  }
  barrier();

  i32 stride = (i32)l.each * 2, tiles = ((i32)l.n + positionsOfGroup - 1) / positionsOfGroup;
  i32 tile = blockIndex() / (i32)l.groups * 2 + group;
  i32 inTile = thread % 128 / 32 * 16 + lane / 4;
  GroupSums<N, Wide> s;
  UNROLL for (int i = 0; i < N / 2; i++) s.high[i] = s.low[i] = 0;
  UNROLL for (int i = 0; i < (Wide ? N / 2 : 1); i++) s.cross[i] = 0;
  Rows<Conv> rows;
  u32x4 raw[stageSteps][2];
  u32 hi[stageSteps][4], lo[stageSteps][4]; // the planes of a stage, which its products read until they are waited for
  place(rows, l, tile * positionsOfGroup + inTile);
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
    stage<N, Wide, S>(s, raw, hi, lo, weights, done, rows, next, t);                                 \
    done += S;                                                                               \
  }
      while (done + 4 <= steps) STAGE(4)
      if (steps - done >= 2) STAGE(2)
      if (done < steps) STAGE(1)
#undef STAGE
      groupWait();
      hold<N / 2>(s.high);
      hold<N / 2>(s.low);
      if (Wide) hold<N / 2>(s.cross);
      Constants k = {weights + bytes, weights + bytes + 4 * N};
      if (l.shift != 0 || Wide)
        outcome<N, Out, Wide, true>(l, s, k, table, last, row, first + i, t);
      else
        outcome<N, Out, Wide, false>(l, s, k, table, last, row, first + i, t);
    }
  }
}

#define GROUP(name, n, outcome, conv, wide)                                                                                       \
  KERNEL void name(i16 *dst, const i16 *src, const i16 *res, const u8 *packed, const u8 *table, i64 positions, i64 in, i64 out, \
                   i64 shift, i64 f, i64 blocks, i64 groups, i64 each, i64 h, i64 w, i64 r) {                                     \
    Layer l = {dst, src, res, packed, table, positions, in, out, shift, f, blocks, groups, each, h, w, r};                        \
    convolve<n, outcome, conv, wide>(l);                                                                                          \
  }
GROUP(group_lin_128, 128, Plain, false, false)
GROUP(group_lin_96, 96, Plain, false, false)
GROUP(group_lin_64, 64, Plain, false, false)
GROUP(group_gated_128, 128, Gated, false, false)
GROUP(group_looked_128, 128, Looked, false, false)
GROUP(group_looked_64, 64, Looked, false, false)
GROUP(group_lookedsum_128, 128, LookedSum, false, false)
GROUP(group_lookedsum_64, 64, LookedSum, false, false)
GROUP(group_conv3_128, 128, Plain, true, false)
GROUP(group_conv3_64, 64, Plain, true, false)
GROUP(group_lin16_64, 64, Plain, false, true)
GROUP(group_looked16_64, 64, Looked, false, true)
GROUP(group_lookedsum16_64, 64, LookedSum, false, true)
GROUP(group_conv316_64, 64, Plain, true, true)
GROUP(group_conv316_32, 32, Plain, true, true)
#undef GROUP
