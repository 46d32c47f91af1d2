// What the kernels of the motion search share. codec/motion says what is found; these kernels find the same.
//
// A vector is (y, x) in quarter luma samples, in memory an int16 of each, as one word. Pictures at padded size begin
// with their luma plane, rows tight. All of a search lies in one block of memory that search.go lays out.
#pragma once
#include "lanes.cuh"

// sad4 adds the absolute differences of four bytes to c; select is a choice between two registers that compilers do not
// turn into one between places in memory; warpBarrier orders what the lanes of a warp read and write, so that nothing
// moves over it; computed keeps them from putting x off, with all that it is made from in registers till then.
#ifdef NVCODEC_EMULATE
DEVICE void warpBarrier() { nvcodec_emu_shuffle(0, 0); }
DEVICE void computed(u32 &) {}
DEVICE u32 select(bool first, u32 a, u32 b) { return first ? a : b; }

DEVICE u32 sad4(u32 a, u32 b, u32 c) {
  for (int i = 0; i < 4; i++) {
    i32 d = (i32)(a >> (8 * i) & 255) - (i32)(b >> (8 * i) & 255);
    c += d < 0 ? -d : d;
  }
  return c;
}
#else
DEVICE void warpBarrier() { asm volatile("bar.warp.sync 0xffffffff;" : : : "memory"); }

DEVICE void computed(u32 &x) { asm volatile("" : "+r"(x)); }

DEVICE u32 select(bool first, u32 a, u32 b) {
  u32 d;
  asm("{ .reg .pred p; setp.ne.u32 p, %3, 0; selp.b32 %0, %1, %2, p; }" : "=r"(d) : "r"(a), "r"(b), "r"((u32)first));
  return d;
}

DEVICE u32 sad4(u32 a, u32 b, u32 c) {
  u32 d;
  asm("vabsdiff4.u32.u32.u32.add %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
  return d;
}
#endif

// between is four bytes of b:a, from byte number at (0..3) on.
DEVICE u32 between(u32 a, u32 b, i32 at) { return permute(a, b, 0x3210u + 0x1111u * (u32)at); }

struct Vector {
  i32 y, x;
};

DEVICE Vector unpacked(u32 v) { return Vector{(i32)(i16)v, (i32)(i16)(v >> 16)}; }
DEVICE u32 packed(Vector v) { return ((u32)v.y & 0xffff) | (u32)v.x << 16; }

DEVICE i32 abs32(i32 x) { return x < 0 ? -x : x; }
DEVICE bool inside(Vector v, i32 limit) { return abs32(v.y) <= limit && abs32(v.x) <= limit; }

// bitLength is the number of bits of a number that is not negative.
DEVICE i32 bitLength(i32 x) { return x == 0 ? 0 : 32 - __builtin_clz((u32)x); }

// distance is a rough guess of what a vector costs next to another, in 1/16 bit.
DEVICE i32 distance(Vector a, Vector b) {
  i32 y = abs32(a.y - b.y), x = abs32(a.x - b.x);
  return (y == 0 ? 0 : 16 + 32 * bitLength(y)) + (x == 0 ? 0 : 16 + 32 * bitLength(x));
}

// neighbour is number n of the eight vectors around v, in raster order.
DEVICE Vector neighbour(Vector v, i32 n, i32 step) {
  i32 k = n < 4 ? n : n + 1;
  return Vector{v.y + (k / 3 - 1) * step, v.x + (k % 3 - 1) * step};
}

// The reference's luma at all sixteen quarter-sample phases (phase 4*(vy&3) + (vx&3)) with a margin that stands for
// clamped coordinates: a block whose origin lies 20 samples before an edge or 4 past it sees only repeated samples
// along that axis. Columns lie in strips of 16 samples, so that any block of 16x16 lies in two short runs of memory.
enum { marginRows = 20, marginColumns = 32, outsidePast = 4 };

struct Phases {
  const u8 *p;
  i32 w, h, rows;
  i64 plane; // bytes
};

DEVICE i32 phaseRows(i32 h) { return h + 2 * marginRows; }
DEVICE i32 phaseStrips(i32 w) { return (w + 2 * marginColumns) / 16; }

DEVICE Phases phasesOf(const u8 *p, i32 w, i32 h) { return Phases{p, w, h, phaseRows(h), (i64)phaseStrips(w) * phaseRows(h) * 16}; }

// A Sixteen is a row of a block.
struct Sixteen {
  u32 w[4];
};

DEVICE Sixteen sixteen(const u8 *p) {
  u32x4 v = *(const u32x4 *)p;
  return Sixteen{{v[0], v[1], v[2], v[3]}};
}

// Four lanes take a vector, each four rows of a block one below the other, so that a warp compares eight at a time and a
// lane has what it transforms.
enum { laneRows = 4 };

// A Window is a lane's rows of a block's counterpart. Each lies in two runs of 16 bytes and begins with byte x % 16.
struct Window {
  Sixteen a[laneRows], b[laneRows];
  i32 x;
};

// window reads this lane's rows of what block (i, j) is compared with at v. No v leads outside.
DEVICE Window window(const Phases &ref, i32 i, i32 j, Vector v) {
  i32 y = clamp32(16 * i + (v.y >> 2), -marginRows, ref.h + outsidePast) + marginRows + (laneIndex() & 3) * laneRows;
  i32 x = clamp32(16 * j + (v.x >> 2), -marginRows, ref.w + outsidePast) + marginColumns;
  const u8 *p = ref.p + ((v.y & 3) * 4 + (v.x & 3)) * ref.plane + ((i64)(x >> 4) * ref.rows + y) * 16;
  Window f;
  f.x = x;
  UNROLL for (int k = 0; k < laneRows; k++) f.a[k] = sixteen(p + 16 * k), f.b[k] = sixteen(p + 16 * k + (i64)ref.rows * 16);
  return f;
}

// inWindow is row k of it.
DEVICE Sixteen inWindow(const Window &f, int k) {
  u32 all[8], w[6], t[5];
  Sixteen row;
  UNROLL for (int n = 0; n < 4; n++) all[n] = f.a[k].w[n], all[4 + n] = f.b[k].w[n];
  UNROLL for (int n = 0; n < 6; n++) w[n] = select(f.x & 8, all[n + 2], all[n]);
  UNROLL for (int n = 0; n < 5; n++) t[n] = select(f.x & 4, w[n + 1], w[n]);
  UNROLL for (int n = 0; n < 4; n++) row.w[n] = between(t[n], t[n + 1], f.x & 3);
  return row;
}

// windowSATD transforms the four 4x4 blocks of differences: rows by products of four samples with signs, columns by sums.
// Of their last step only |a + c| + |a - c| is wanted, which is twice the larger of |a| and |c|.
DEVICE u32 windowSATD(const Window &f, const Sixteen *cur) {
  const u32 plus[4] = {0x01010101, 0xff01ff01, 0xffff0101, 0x01ffff01}, minus[4] = {0xffffffff, 0x01ff01ff, 0x0101ffff, 0xff0101ff};
  Sixteen ref[laneRows];
  UNROLL for (int k = 0; k < laneRows; k++) ref[k] = inWindow(f, k);
  u32 half = 0;
  UNROLL for (int n = 0; n < 4; n++) {
    UNROLL for (int u = 0; u < 4; u++) {
      i32 row[laneRows];
      UNROLL for (int k = 0; k < laneRows; k++) row[k] = dp4<false>(cur[k].w[n], plus[u], dp4<false>(ref[k].w[n], minus[u], 0));
      i32 a = abs32(row[0] + row[1]), b = abs32(row[0] - row[1]), c = abs32(row[2] + row[3]), d = abs32(row[2] - row[3]);
      half += (u32)((a > c ? a : c) + (b > d ? b : d));
    }
  }
  return 2 * half;
}

struct Block {
  Sixteen line[laneRows];
};

// blockRows are this lane's rows of block (i, j) of a picture of w samples a row.
DEVICE Block blockRows(const u8 *picture, i32 w, i32 i, i32 j) {
  Block b;
  UNROLL for (int k = 0; k < laneRows; k++) b.line[k] = sixteen(picture + (i64)(16 * i + (laneIndex() & 3) * laneRows + k) * w + 16 * j);
  return b;
}

// laneSATD is what this lane's rows of block (i, j) differ from where v points, sumOfFour the sum of all rows.
DEVICE u32 laneSATD(const Phases &ref, const Block &cur, i32 i, i32 j, Vector v) { return windowSATD(window(ref, i, j, v), cur.line); }

// satdCost is what 1 of SATD costs, in the unit of lambda.
enum { satdCost = 6 };

DEVICE u32 sumOfFour(u32 x) {
  x += shuffleXor(x, 1);
  return x + shuffleXor(x, 2);
}

// leastOfEight is the least of what the lanes of eight vectors have.
DEVICE u32 leastOfEight(u32 key) {
  UNROLL for (int mask = 4; mask < 32; mask *= 2) {
    u32 other = shuffleXor(key, mask);
    key = other < key ? other : key;
  }
  return key;
}
