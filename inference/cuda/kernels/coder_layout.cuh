// What the kernels of the entropy coder keep in memory. ../coderlayout.go has the same structures.
//
// All sizes vary from frame to frame: grids are for the largest, and blocks that have nothing to do end early.
#pragma once
#include "lanes.cuh"

typedef unsigned short u16;

enum {
  groupLanes = 32,
  maxLanes = 1024,
  maxGroups = maxLanes / groupLanes,
  maxLevels = 8,
  tableHalf = 64,      // y has the tables below, z those from here on
  threadSymbols = 16,  // consecutive symbols that a thread gathers or scatters
  tileSymbols = 256 * threadSymbols,
  aheadRounds = 8, // by which an encoder's entries and a decoder's list are loaded ahead
  reportBlocks = 32, // that write an encoder's result or copy a decoder's input
};
static const u32 lowState = 1 << 16;

// Frame is what varies from frame to frame.
struct Frame {
  i32 qp, threshold;
  i32 lanes;      // decoder
  u32 inputBytes; // decoder: of the payload's image at input, a multiple of 16
  u64 input;      // decoder: address of a PayloadImage
  u64 result;     // address of an EncoderResult or DecoderResult, of page-locked memory of the host
};

// Tables is a model's tables, each number where a kernel wants it.
struct Tables {
  u32 table[128]; // shift-3 | K<<8 | 8 times the first entry in its half of tables<<15
  u32 cost[128];
};

DEVICE i32 tableK(u32 x) { return x >> 8 & 127; }
DEVICE u32 tableFirst(u32 x) { return x >> 18; }

// Sums is what a tile of symbols holds.
struct Sums {
  u32 coded, escapes, cost, unused;
};

// EncoderHead leads an encoder's memory.
struct EncoderHead {
  u64 result;
  u32 lanes, unused;
  u32 coded[maxLevels], escapes[maxLevels]; // through each level
  u32 state[maxLanes];
  u32 begin[maxGroups], end[maxGroups]; // each group's words
};

// EncoderResult goes to the host; the words of all groups follow, one behind the other.
struct EncoderResult {
  u32 lanes, hash, words, coded;
  u32 begin[maxGroups]; // where each group's words begin
  u32 state[maxLanes];
};

// PayloadImage is a payload without what leads it, vectors included: states, and the words of each group that its
// symbols can possibly want, one behind the other.
struct PayloadImage {
  u32 state[maxLanes];
  u32 begin[maxGroups + 1]; // where the words of each group begin that are here
  u32 count[maxGroups];     // how many words each group has
  u32 unused[3];            // words begin at a multiple of 16 bytes
};

// Kinds of errors.
enum { fine, endsEarly, noClass, escapeRange, leftOver, laneEnd };

// An Issue is the first error of a level, or of the payload's end.
struct Issue {
  u32 kind, at, value, unused;
};

// DecoderResult goes to the host.
struct DecoderResult {
  Issue level[maxLevels];
  Issue end;
  u64 range[maxLevels]; // lowest section<<48 | symbol<<16 | value of a symbol beyond its limit; all ones: none
  u32 tail, coded;
  u32 hash, unused; // hash: see picture_hash
};

// DecoderHead leads a decoder's memory, in front of the PayloadImage's copy.
struct DecoderHead {
  DecoderResult report;
  u64 result;
  u32 lanes, unused;
  u32 coded[maxLevels]; // through each level
  u32 at[maxGroups];    // words consumed
  // Of each level: tiles listed, groups decoded, tiles scattered.
  u32 listed[maxLevels], decoded[maxLevels], scattered[maxLevels];
};

// A Section is one run of symbols and their tables; a launch has up to four, the others with a count of -1.
struct Section {
  i16 *symbols;
  const u8 *tables;
  i64 count;
};
#define SECTIONS \
  i16 *symbols0, const u8 *tables0, i64 n0, i16 *symbols1, const u8 *tables1, i64 n1, i16 *symbols2, const u8 *tables2, i64 n2, i16 *symbols3, const u8 *tables3, i64 n3
#define THE_SECTIONS \
  Section { symbols0, tables0, n0 }, Section{symbols1, tables1, n1}, Section{symbols2, tables2, n2}, Section { symbols3, tables3, n3 }

// A Tile is what one block of threads has of a launch's sections. Every section has one tile at least.
struct Tile {
  Section section;
  u32 number, before; // of the section; how many symbols the sections before it have
  u32 first;          // symbol
  bool last;          // tile of its section
};

// An Order is where a decoder keeps a level's symbols: eight rounds of a lane together, so that the lane loads and stores
// what it needs for them at once. Batches of eight begin with the first round that is a whole one of the level; a round of
// which the level before has a part is the last of the batch ahead of those.
struct Order {
  u32 logLanes, n0; // of the level's first symbol
  u32 bottom;       // the first whole round

  DEVICE_METHOD static Order of(const DecoderHead *head, i64 level) {
    u32 logLanes = 31 - __builtin_clz(head->lanes), n0 = level ? head->coded[level - 1] : 0;
    return Order{logLanes, n0, (n0 + (1u << logLanes) - 1) >> logLanes};
  }
  // at is the place of symbol i of the level.
  DEVICE_METHOD u32 at(u32 i) const {
    u32 n = n0 + i, round = (n >> logLanes) - bottom + aheadRounds, lane = n & ((1u << logLanes) - 1);
    return (round / aheadRounds << logLanes | lane) * aheadRounds + round % aheadRounds;
  }
};

DEVICE u32 tilesOf(u32 n) { return (n + tileSymbols - 1) / tileSymbols; }

DEVICE Tile tileOf(u32 block, Section a, Section b, Section c, Section d) {
  Tile t{a, 0, 0, 0, false};
  Section others[3] = {b, c, d};
  u32 tiles = a.count > tileSymbols ? tilesOf((u32)a.count) : 1;
  UNROLL for (int i = 0; i < 3; i++) {
    if (block < tiles || others[i].count < 0) continue;
    block -= tiles;
    t.before += (u32)t.section.count;
    t.section = others[i], t.number = i + 1;
    tiles = t.section.count > tileSymbols ? tilesOf((u32)t.section.count) : 1;
  }
  t.first = block * tileSymbols;
  t.last = block + 1 == tiles;
  return t;
}

// Sixteen holds the tables of a thread's symbols.
struct Sixteen {
  u32 w[4];
  u32 valid; // how many of them exist

  DEVICE_METHOD u32 table(int i) const { return w[i / 4] >> (i % 4 * 8) & 255; }
};

// tablesOf loads the tables of this thread's symbols of a tile; section tables begin at multiples of 16 bytes.
DEVICE Sixteen tablesOf(const Tile &t, u32 &first) {
  first = t.first + (u32)threadIndex() * threadSymbols;
  Sixteen s;
  s.valid = first < t.section.count ? (u32)t.section.count - first : 0;
  const u8 *p = t.section.tables + first;
  if (s.valid >= threadSymbols) {
    s.valid = threadSymbols;
    u32x4 w = *(const u32x4 *)p;
    UNROLL for (int i = 0; i < 4; i++) s.w[i] = w[i];
  } else {
    UNROLL for (int i = 0; i < 4; i++) s.w[i] = 0;
    UNROLL for (int i = 0; i < threadSymbols; i++) {
      if (i < (int)s.valid) s.w[i / 4] |= (u32)p[i] << (i % 4 * 8);
    }
  }
  return s;
}

DEVICE u32 warpSum(u32 v) {
  UNROLL for (int d = 16; d > 0; d /= 2) v += shuffleXor(v, d);
  return v;
}

// blockSum is the sum over the 256 threads of a block, for all of them.
DEVICE u64 blockSum(u64 v) {
  SHARED u64 part[8];
  UNROLL for (int d = 16; d > 0; d /= 2) {
    u32 low = shuffleXor((u32)v, d), high = shuffleXor((u32)(v >> 32), d);
    v += (u64)high << 32 | low;
  }
  barrier();
  if (laneIndex() == 0) part[threadIndex() / 32] = v;
  barrier();
  u64 sum = 0;
  UNROLL for (int i = 0; i < 8; i++) sum += part[i];
  return sum;
}

// blockScan is the sum over the threads before this one; total over all 256.
DEVICE u32 blockScan(u32 v, u32 &total) {
  SHARED u32 part[8];
  int lane = laneIndex(), warp = threadIndex() / 32;
  u32 sum = v;
  UNROLL for (int d = 1; d < 32; d *= 2) {
    u32 before = shuffle(sum, lane - d);
    if (lane >= d) sum += before;
  }
  barrier();
  if (lane == 31) part[warp] = sum;
  barrier();
  u32 before = 0;
  total = 0;
  UNROLL for (int i = 0; i < 8; i++) {
    if (i < warp) before += part[i];
    total += part[i];
  }
  return before + sum - v;
}

// thresholdOf is the lowest table that is coded.
DEVICE i32 thresholdOf(const Frame *frame, i64 skip) { return skip ? frame->threshold : 0; }

// wholeTable numbers table t of a level: y has the lower half of the tables, z the upper one.
DEVICE u32 wholeTable(u32 t, i64 skip) { return (t & (tableHalf - 1)) + (skip ? 0 : tableHalf); }
