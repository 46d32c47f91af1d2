// Chains of position-wise operators as one kernel: what stands between two depthwise convolutions of a network.
//
// Of a tile of 16 positions a warp keeps all C channels in its registers from the first operator to the
// last: what a product of matrices leaves in a lane is what the next one takes from it, with the weights' rows and
// columns in a fitting order. Only weights go through shared memory, in stages that warps take turns to load. A chain:
//
//	head   x = lin(src), or x = src, or x = res + lin(depthwise(a)), or x = res + lin(src)
//	body   x = x + lin(gated sum of lin(x)), unless the chain has none
//	tail   x = x times the table's row of the frame's QP, if there is a table; x is stored, if dst is not null;
//	       then up to three lins of x are stored, each through an activation or not
//
// Arithmetic and the split of int16 in two bytes are those of lin.cuh, but with shifts of 33 and more (the host raises
// mul and shift together): then the upper word of acc*mul, rounded and shifted by the rest, is the result.
//
// Of every 32 channels, lane 4g+t of a warp holds 8t..8t+7, for positions 2g and 2g+1 of a tile of 16: these stand in
// rows g and g+8 of the products. Columns 2t, 2t+1 of the four products of a group are its channels 8t+2j, 8t+2j+1 for
// j = 0..3, and bytes 4t..4t+3, 16+4t..19+4t of a product's 32 rows its channels 8t..8t+7.
#pragma once
#include "halves.cuh"
#include "ring.cuh"

enum { groupBytes = 1024, numberBytes = 384 }; // weights of 32x32 channels; the numbers of 32 channels

template <int C>
struct Widths {
  enum {
    K = C / 32,                      // groups of channels
    H = C / 2, HK = (H + 31) / 32,   // the same of what stands inside a block
    Groups = K > 2 * HK ? K : 2 * HK, // of weights in a stage
    Stage = Groups * groupBytes + 2 * numberBytes
  };
};

// upper is the upper word of a*b, plus c.
DEVICE i32 upper(i32 a, i32 b, i32 c) {
#ifdef NVCODEC_EMULATE
  return (i32)((i64)a * b >> 32) + c;
#else
  i32 d;
  asm("mad.hi.s32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
  return d;
#endif
}

// scaled is rnd(sum*mul, 33 + shift), which int32 holds; half is 2^shift.
DEVICE i32 scaled(i32 sum, i32 mul, i32 half, i32 shift) { return upper(sum, mul, half) >> (shift + 1); }

// A Fragment is what a lane gives to products with 32 channels: high bytes and low bytes.
struct Fragment {
  u32 hi[4], lo[4];
};

// fragment takes the 8 channels of both positions apart.
DEVICE Fragment fragment(u32x4 a, u32x4 b) {
  Fragment f;
  UNROLL for (int i = 0; i < 2; i++) {
    f.lo[2 * i] = permute(a[2 * i], a[2 * i + 1], 0x6420);
    f.lo[2 * i + 1] = permute(b[2 * i], b[2 * i + 1], 0x6420);
    f.hi[2 * i] = permute(a[2 * i], a[2 * i + 1], 0x7531);
    f.hi[2 * i + 1] = permute(b[2 * i], b[2 * i + 1], 0x7531);
  }
  return f;
}

// channels joins a fragment's 8 channels of position r again.
DEVICE u32x4 channels(const Fragment &f, int r) {
  return u32x4{permute(f.lo[r], f.hi[r], 0x5140), permute(f.lo[r], f.hi[r], 0x7362), permute(f.lo[2 + r], f.hi[2 + r], 0x5140), permute(f.lo[2 + r], f.hi[2 + r], 0x7362)};
}

// Products are the sums of 32 output channels: [tile][j][2 r + i] belongs to position r and channel 8t + 2j + i.
struct Products {
  i32 hi[4][4], lo[4][4];
};

// begin starts sums from the bias; numbers are the bias [4][4][4] words, by t, tile and number in the product, and mul [32].
DEVICE void begin(Products &p, const u8 *numbers, i32 lane) {
  UNROLL for (int j = 0; j < 4; j++) {
    i32x4 bias = ((const i32x4 *)numbers)[lane % 4 * 4 + j];
    UNROLL for (int i = 0; i < 4; i++) {
      p.lo[j][i] = bias[i];
      p.hi[j][i] = 0;
    }
  }
}

// Numbers are what a lane's eight output channels of a group are multiplied by.
struct Numbers {
  i32 mul[8];
};

DEVICE Numbers numbersOf(const u8 *numbers, i32 lane) {
  const i32x4 *mul = (const i32x4 *)(numbers + 256) + lane % 4 * 2;
  Numbers n;
  UNROLL for (int i = 0; i < 8; i++) n.mul[i] = mul[i / 4][i % 4];
  return n;
}

// multiply adds the products of 32 channels with weights [2][32][4] words: pair of j, lane, registers of the fragment.
DEVICE void multiply(Products &p, const Fragment &a, const u8 *weights, i32 lane) {
  UNROLL for (int pair = 0; pair < 2; pair++) {
    u32x4 w = ((const u32x4 *)weights)[pair * 32 + lane];
    UNROLL for (int k = 0; k < 2; k++) {
      i32 *hi = p.hi[2 * pair + k], *lo = p.lo[2 * pair + k];
      mma16832<true>(hi[0], hi[1], hi[2], hi[3], a.hi, w[2 * k], w[2 * k + 1]);
      mma16832<false>(lo[0], lo[1], lo[2], lo[3], a.lo, w[2 * k], w[2 * k + 1]);
    }
  }
}

// result is the product's number i of position r and pair j behind requantisation, before saturation.
DEVICE i32 result(const Products &p, int j, int r, int i, const Numbers &n, i32 half, i32 shift) {
  i32 sum = (i32)(((u32)p.hi[j][2 * r + i] << 8) + (u32)p.lo[j][2 * r + i]);
  return scaled(sum, n.mul[2 * j + i], half, shift);
}

DEVICE i32 lesser(i32 a, i32 b) {
#ifdef NVCODEC_EMULATE
  return a < b ? a : b;
#else
  i32 d;
  asm("min.s32 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b));
  return d;
#endif
}

DEVICE i32 positive(i32 a) {
#ifdef NVCODEC_EMULATE
  return a > 0 ? a : 0;
#else
  i32 d;
  asm("max.s32 %0, %1, 0;" : "=r"(d) : "r"(a));
  return d;
#endif
}

// gated is act(sat16(y)), also for y that only int32 holds: what lies below -half becomes 0 whatever it is.
DEVICE i32 gated(i32 y, i32 half, i32 f) {
  y = lesser(y, 32767);
  return (y * positive(lesser(y + half, 2 * half)) + half) >> f;
}

// A Tail is a lin of x that is stored.
struct Tail {
  i16 *dst;
  i32 n, shift, f;
};

struct ChainArguments {
  i16 *dst;
  const i16 *src, *res;
  i32 warps, head, in, n, h, w;
  const u8 *weights;
  i32 stages, slots, convShift, shift, f, sumShift, bodyShift;
  const i32 *table, *frame;
  i32 tableShift;
  Tail tails[3];
};

enum { headLin, headCopy, headDepthwise, headResidual };

template <int C>
struct Chain {
  typedef Widths<C> W;
  const ChainArguments &p;
  Ring ring;
  u32x4 *scratch; // this lane's: what stands inside a block, then x as it comes: [group][position] at a stride of 32
  i32 lane, first; // this lane's first position; past the end for none
  Fragment x[W::K];

  METHOD explicit Chain(const ChainArguments &arguments) : p(arguments) {
    i32 warp = threadIndex() / 32;
    lane = laneIndex();
    // Tiles go down columns of 16 where a row is made of them: then a block's share of the convolution's input is squarer.
    i32 tile = blockIndex() * p.warps + warp, at = 16 * tile;
    if (p.w % 16 == 0 && at < p.n) at = tile % p.h * p.w + tile / p.h * 16;
    first = at + lane / 4 * 2;
    u8 *memory = dynamicShared();
    scratch = (u32x4 *)memory + warp * (W::HK + W::K) * 2 * 32 + lane;
    ring = startRing<W::Stage>(p.weights, memory + p.warps * ((W::HK + W::K) * 2 * 512), p.stages, p.slots, p.warps);
  }

  // position is number r of the lane's; behind the last one stands the last again.
  METHOD i32 position(int r) const {
    i32 at = first + r;
    return at < p.n ? at : p.n - 1;
  }
  METHOD u32x4 read(const i16 *from, i32 c, int r, i32 ch) const {
    return *(const u32x4 *)(from + (i64)position(r) * c + (ch < c ? ch : c - 8));
  }
  METHOD void write(i16 *to, i32 c, int r, i32 ch, u32x4 v) const {
    if (first + r < p.n && ch < c) *(u32x4 *)(to + (i64)(first + r) * c + ch) = v;
  }
  METHOD u32x4 *inside(int k, int r) const { return scratch + (k * 2 + r) * 32; }

  METHOD u32x4 *coming(int k, int r) const { return scratch + (W::HK * 2 + k * 2 + r) * 32; }

  // fetchX begins to copy x, getX has it.
  METHOD void fetchX(const i16 *from) {
    UNROLL for (int r = 0; r < 2; r++) {
      const i16 *at = from + (i64)position(r) * C + lane % 4 * 8;
      UNROLL for (int k = 0; k < W::K; k++) copyAsync((u8 *)coming(k, r), (const u8 *)(at + 32 * k));
    }
  }
  METHOD void getX() {
    copied();
    UNROLL for (int k = 0; k < W::K; k++) x[k] = fragment(*coming(k, 0), *coming(k, 1));
  }

  // append moves the groups down and adds one at the end, so that a loop can write registers.
  METHOD void append(Fragment f) {
    UNROLL for (int k = 0; k + 1 < W::K; k++) x[k] = x[k + 1];
    x[W::K - 1] = f;
  }

  // linear is x = lin(src) over any number of input channels.
  METHOD void linear() {
    i32 steps = (p.in + 31) / 32, half = 1 << p.shift;
    NOUNROLL for (i32 k = 0; k < W::K; k++) {
      Products s;
      Numbers by;
      i32 ch = lane % 4 * 8;
      u32x4 next[2];
      UNROLL for (int r = 0; r < 2; r++) next[r] = read(p.src, p.in, r, ch);
      NOUNROLL for (i32 done = 0; done < steps; done += W::Groups) {
        const u8 *stage = take<W::Stage>(ring);
        if (done == 0) begin(s, stage + W::Groups * groupBytes, lane);
        i32 here = steps - done < W::Groups ? steps - done : W::Groups;
        NOUNROLL for (i32 i = 0; i < here; i++) {
          Fragment a = fragment(next[0], next[1]);
          ch += 32;
          UNROLL for (int r = 0; r < 2; r++) next[r] = read(p.src, p.in, r, ch);
          multiply(s, a, stage + i * groupBytes, lane);
        }
        by = numbersOf(stage + W::Groups * groupBytes, lane);
        leave(ring);
      }
      u32x4 y[2];
      UNROLL for (int r = 0; r < 2; r++) {
        UNROLL for (int j = 0; j < 4; j++) y[r][j] = saturated(result(s, j, r, 0, by, half, p.shift), result(s, j, r, 1, by, half, p.shift));
      }
      append(fragment(y[0], y[1]));
    }
  }

  // depthwise is the 3x3 correlation of a, which has been through its activation; positions 2g and 2g+1 stand in one
  // row. The stage holds weights [9][16 HK] words, of two channels c and c+1: w(c), 0, 0, w(c+1); then bias
  // and mul [32 HK].
  METHOD void depthwise() {
    const u8 *stage = take<W::Stage>(ring);
    const i32 *bias = (const i32 *)(stage + 9 * 64 * W::HK), *mul = bias + 32 * W::HK;
    i32 shift = p.convShift, half = 1 << shift, channel0 = lane % 4 * 8;
    // Behind the stage's numbers stand zeros, which are read in the place of what lies outside.
    const i16 *zeros = (const i16 *)(p.weights + 832 * W::HK);
    static_assert(832 * W::HK + 2 * W::H <= W::Stage, "zeros of all channels");
    i32 at = first < p.n ? first : p.n - 2, y = at / p.w, col = at % p.w;
    const i16 *from[3][4];
    UNROLL for (int dy = 0; dy < 3; dy++) {
      bool row = dy == 1 || (dy == 0 ? y > 0 : y < p.h - 1);
      UNROLL for (int dx = 0; dx < 4; dx++) {
        bool in = row && (dx == 0 ? col > 0 : dx == 3 ? col < p.w - 2 : true);
        from[dy][dx] = in ? p.src + (i64)(at + (dy - 1) * p.w + dx - 1) * W::H : zeros;
      }
    }
    NOUNROLL for (i32 k = 0; k < W::HK; k++) {
      i32 ch = 32 * k + channel0, within = W::H % 32 == 0 || ch < W::H ? ch : W::H - 8; // past the last, weights are 0
      i32 acc[2][8];
      UNROLL for (int i = 0; i < 8; i++) acc[0][i] = acc[1][i] = bias[ch + i];
      UNROLL for (int dy = 0; dy < 3; dy++) {
        u32x4 v[4];
        UNROLL for (int dx = 0; dx < 4; dx++) v[dx] = *(const u32x4 *)(from[dy][dx] + within);
        UNROLL for (int dx = 0; dx < 3; dx++) {
          u32x4 weights = ((const u32x4 *)stage)[(dy * 3 + dx) * 4 * W::HK + ch / 8];
          UNROLL for (int r = 0; r < 2; r++) {
            UNROLL for (int q = 0; q < 4; q++) {
              acc[r][2 * q] = dp2<false>(v[dx + r][q], weights[q], acc[r][2 * q]);
              acc[r][2 * q + 1] = dp2<true>(v[dx + r][q], weights[q], acc[r][2 * q + 1]);
            }
          }
        }
      }
      UNROLL for (int r = 0; r < 2; r++) {
        u32x4 out;
        UNROLL for (int q = 0; q < 4; q++) out[q] = saturated(scaled(acc[r][2 * q], mul[ch + 2 * q], half, shift), scaled(acc[r][2 * q + 1], mul[ch + 2 * q + 1], half, shift));
        *inside(k, r) = out;
      }
    }
    leave(ring);
  }

  // sum is the gated sum of lin(x): groups j of the products are its four quarters.
  METHOD void sum() {
    i32 middle = 1 << (p.f - 1), half = 1 << p.sumShift;
    NOUNROLL for (i32 group = 0; group < 4 * W::HK; group++) {
      const u8 *stage = take<W::Stage>(ring);
      Products s;
      begin(s, stage + W::Groups * groupBytes, lane);
      UNROLL for (int k = 0; k < W::K; k++) multiply(s, x[k], stage + k * groupBytes, lane);
      Numbers by = numbersOf(stage + W::Groups * groupBytes, lane);
      leave(ring);
      UNROLL for (int r = 0; r < 2; r++) {
        i32 total[2] = {0, 0};
        UNROLL for (int j = 0; j < 4; j++) {
          UNROLL for (int i = 0; i < 2; i++) total[i] += gated(result(s, j, r, i, by, half, p.sumShift), middle, p.f);
        }
        ((u32 *)inside(group / 4, r))[group % 4] = saturated(total[0], total[1]);
      }
    }
  }

  // mixed is x of a group + sat16(the products), saturated.
  METHOD Fragment mixed(const Products &s, const Fragment &x, const Numbers &by, i32 half, i32 shift) const {
    const u32 both = 0x01000001; // dp2 of a word with it adds one half
    u32x4 z[2];
    UNROLL for (int r = 0; r < 2; r++) {
      u32x4 before = channels(x, r);
      UNROLL for (int j = 0; j < 4; j++) {
        u32 y = saturated(result(s, j, r, 0, by, half, shift), result(s, j, r, 1, by, half, shift));
        z[r][j] = saturated(dp2<false>(before[j], both, dp2<false>(y, both, 0)), dp2<true>(before[j], both, dp2<true>(y, both, 0)));
      }
    }
    return fragment(z[0], z[1]);
  }

  // residual is x = sat16(x + sat16(lin(what stands inside))), two groups a stage.
  METHOD void residual(i32 shift) {
    enum { Pair = W::K % 2 == 0 ? 2 : 1 };
    i32 half = 1 << shift;
    NOUNROLL for (i32 first = 0; first < W::K; first += Pair) {
      UNROLL for (int i = 0; i < Pair; i++) {
        i32 which = Pair == 2 ? i : first % 2;
        // Waiting again keeps a group's products from beginning before the sums of the one before are done with.
        const u8 *stage = which == 0 ? take<W::Stage>(ring) : stay<W::Stage>(ring);
        Products s;
        begin(s, stage + W::Groups * groupBytes + which * numberBytes, lane);
        UNROLL for (int k = 0; k < W::HK; k++) {
          Fragment a = fragment(*inside(k, 0), *inside(k, 1));
          multiply(s, a, stage + (which * W::HK + k) * groupBytes, lane);
        }
        Numbers by = numbersOf(stage + W::Groups * groupBytes + which * numberBytes, lane);
        if (which == 1 || first + i == W::K - 1) leave(ring);
        x[i] = mixed(s, x[i], by, half, shift);
      }
      UNROLL for (int i = 0; i < Pair; i++) append(x[0]);
    }
  }

  METHOD void scale() {
    const i32 *table = p.table + (i64)p.frame[0] * C + lane % 4 * 8;
    NOUNROLL for (i32 k = 0; k < W::K; k++, table += 32) {
      i32x4 by[2] = {*(const i32x4 *)table, *(const i32x4 *)(table + 4)};
      u32x4 y[2];
      UNROLL for (int r = 0; r < 2; r++) {
        y[r] = channels(x[0], r);
        UNROLL for (int j = 0; j < 4; j++) {
          i32 low = (i16)y[r][j], high = (i32)y[r][j] >> 16;
          y[r][j] = halves(sat16(rnd(wide(low, by[j / 2][j % 2 * 2]), p.tableShift)), sat16(rnd(wide(high, by[j / 2][j % 2 * 2 + 1]), p.tableShift)));
        }
      }
      append(fragment(y[0], y[1]));
    }
  }

  METHOD void writeX() {
    UNROLL for (int k = 0; k < W::K; k++) {
      UNROLL for (int r = 0; r < 2; r++) write(p.dst, C, r, 32 * k + lane % 4 * 8, channels(x[k], r));
    }
  }

  METHOD void tail(const Tail &to) {
    i32 middle = 1 << to.f >> 1, half = 1 << to.shift;
    NOUNROLL for (i32 c = 0; c < to.n; c += 32) {
      const u8 *stage = take<W::Stage>(ring);
      Products s;
      begin(s, stage + W::Groups * groupBytes, lane);
      UNROLL for (int k = 0; k < W::K; k++) multiply(s, x[k], stage + k * groupBytes, lane);
      Numbers by = numbersOf(stage + W::Groups * groupBytes, lane);
      leave(ring);
      UNROLL for (int r = 0; r < 2; r++) {
        u32x4 out;
        UNROLL for (int j = 0; j < 4; j++) {
          i32 y[2];
          UNROLL for (int i = 0; i < 2; i++) {
            y[i] = result(s, j, r, i, by, half, to.shift);
            if (to.f > 0) y[i] = gated(y[i], middle, to.f);
          }
          out[j] = saturated(y[0], y[1]);
        }
        if (to.dst) write(to.dst, to.n, r, c + lane % 4 * 8, out);
      }
    }
  }

  METHOD void run() {
    if (p.head == headCopy) fetchX(p.src);
    if (p.head >= headDepthwise) fetchX(p.res);
    switch (p.head) {
    case headLin: linear(); break;
    case headDepthwise: depthwise(); break;
    case headResidual:
      NOUNROLL for (i32 k = 0; k < W::HK; k++) {
        UNROLL for (int r = 0; r < 2; r++) *inside(k, r) = read(p.src, W::H, r, 32 * k + lane % 4 * 8);
      }
    }
    if (p.head != headLin) getX();
    NOUNROLL for (i32 pass = p.head >= headDepthwise ? 0 : 1; pass < (p.f > 0 ? 2 : 1); pass++) {
      if (pass == 1) sum();
      residual(pass == 0 ? p.shift : p.bodyShift);
    }
    if (p.table) scale();
    if (p.dst) writeX();
    Tail now = p.tails[0], next = p.tails[1];
    NOUNROLL for (int i = 0; i < 3; i++) {
      tail(now);
      now = next;
      next = p.tails[2];
    }
  }
};

// Shifts are those of the model less 33; f is 0 for no activation or body.
#define CHAIN(c, threads)                                                                                                        \
  KERNEL_OF(threads, 1)                                                                                                          \
  void chain_##c(i16 *dst, const i16 *src, const i16 *res, i64 warps, i64 head, i64 in, i64 n, i64 h, i64 w,                     \
                 const u8 *weights, i64 stages, i64 slots, i64 convShift, i64 shift, i64 f, i64 sumShift, i64 bodyShift,         \
                 const i32 *table, const i32 *frame, i64 tableShift, i16 *dst0, i64 n0, i64 shift0, i64 f0, i16 *dst1,           \
                 i64 n1, i64 shift1, i64 f1, i16 *dst2, i64 n2, i64 shift2, i64 f2) {                                            \
    ChainArguments p = {dst, src, res, (i32)warps, (i32)head, (i32)in, (i32)n, (i32)h, (i32)w, weights, (i32)stages, (i32)slots, \
                        (i32)convShift, (i32)shift, (i32)f, (i32)sumShift, (i32)bodyShift, table, frame, (i32)tableShift,        \
                        {{dst0, (i32)n0, (i32)shift0, (i32)f0}, {dst1, (i32)n1, (i32)shift1, (i32)f1},                           \
                         {dst2, (i32)n2, (i32)shift2, (i32)f2}}};                                                                \
    Chain<c>(p).run();                                                                                                           \
  }
CHAIN(64, 512)
CHAIN(96, 512)
CHAIN(128, 512)
CHAIN(192, 512)
CHAIN(256, 256)
CHAIN(288, 256)
#undef CHAIN
