// Gathering: which symbols are coded, where each stands in the order of all, and what coding it takes.
#pragma once
#include "coder_lanes.cuh"
#include "coder_layout.cuh"

// coder_sum sums what each of an encoder's tiles holds; sums begins at the launch's first tile. Bit i of skips: section i
// of the launch is of y.
KERNEL void coder_sum(Sums *sums, const Tables *tables, const Frame *frame, i64 skips, SECTIONS) {
  SHARED u32 table[tableHalf], cost[tableHalf];
  int thread = threadIndex();
  Tile t = tileOf((u32)blockIndex(), THE_SECTIONS);
  bool skip = skips >> t.number & 1;
  if (thread < tableHalf) {
    table[thread] = tables->table[wholeTable(thread, skip)];
    cost[thread] = tables->cost[wholeTable(thread, skip)];
  }
  barrier();
  u32 first, both = 0, bits = 0;
  Sixteen s = tablesOf(t, first);
  i32 threshold = thresholdOf(frame, skip);
  UNROLL for (int i = 0; i < threadSymbols; i++) {
    if (i >= (int)s.valid || (i32)s.table(i) < threshold) continue;
    u32 x = s.table(i) & (tableHalf - 1);
    i32 v = t.section.symbols[first + i], k = tableK(table[x]);
    both += 1 + ((u32)(v < -k || v > k) << 16);
    bits += cost[x];
  }
  u64 sum = blockSum((u64)bits << 32 | both);
  if (thread == 0) sums[blockIndex()] = Sums{(u32)sum & 0xffff, (u32)sum >> 16, (u32)(sum >> 32), 0};
}

// before sums the tiles ahead of this block's.
DEVICE void before(const Sums *all, u32 tile, u32 &coded, u32 &escapes, u64 &cost) {
  u64 both = 0;
  cost = 0;
  for (u32 i = threadIndex(); i < tile; i += 256) {
    Sums s = all[i];
    both += (u64)s.escapes << 32 | s.coded;
    cost += s.cost;
  }
  both = blockSum(both);
  coded = (u32)both, escapes = (u32)(both >> 32);
}

// coder_gather lists what coding every coded symbol takes, in order: the symbol's reciprocal of f (49 bits) |
// shift<<56, f, and the byte where its segments begin; and the escapes' values: value | K<<16. Tiles are numbered through all levels, this
// launch has those from firstTile on. coding begins with y's half of the tables, z's is codingZ further. Four bits of
// closes for each section of the launch: one more than the level that ends with it, or 0. The last tile of the lastLevel
// sets the number of lanes by the sum of all costs, in 1/4096 bit, and by the number of symbols, as entropy.Tables does.
KERNEL void coder_gather(EncoderHead *head, const Sums *sums, u32x4 *entries, u32 *escapes, const Tables *tables, const u32x4 *coding, i64 codingZ, const Frame *frame, i64 firstTile, i64 lastLevel, i64 closes, i64 skips, SECTIONS) {
  SHARED u32 table[tableHalf];
  int thread = threadIndex();
  Tile t = tileOf((u32)blockIndex(), THE_SECTIONS);
  bool skip = skips >> t.number & 1;
  if (thread < tableHalf) table[thread] = tables->table[wholeTable(thread, skip)];
  if (!skip) coding += codingZ;
  u32 tile = (u32)firstTile + (u32)blockIndex(), coded, escaped, total;
  u64 cost;
  before(sums, tile, coded, escaped, cost);
  u32 first, both = 0, taken = 0, outside = 0;
  Sixteen s = tablesOf(t, first);
  i32 threshold = thresholdOf(frame, skip);
  i16 value[threadSymbols];
  UNROLL for (int i = 0; i < threadSymbols; i++) {
    value[i] = 0;
    if (i >= (int)s.valid || (i32)s.table(i) < threshold) continue;
    i32 v = value[i] = t.section.symbols[first + i], k = tableK(table[s.table(i) & (tableHalf - 1)]);
    u32 escape = v < -k || v > k;
    taken |= 1 << i;
    outside |= escape << i;
    both += 1 + (escape << 16);
  }
  u32 place = blockScan(both, total), n = coded + (place & 0xffff), e = escaped + (place >> 16);
  UNROLL for (int i = 0; i < threadSymbols; i++) {
    if (!(taken >> i & 1)) continue;
    u32 x = table[s.table(i) & (tableHalf - 1)];
    i32 k = tableK(x), symbol = 0;
    if (outside >> i & 1) {
      escapes[e++] = (u16)value[i] | (u32)k << 16;
    } else {
      symbol = value[i] + k + 1;
    }
    entries[n++] = coding[tableFirst(x) + symbol];
  }
  i32 level = (i32)(closes >> (4 * t.number) & 15) - 1;
  if (!t.last || level < 0) return;
  u64 sum = level == lastLevel ? blockSum(cost) + sums[tile].cost : 0;
  if (thread > 0) return;
  head->coded[level] = coded + (total & 0xffff);
  head->escapes[level] = escaped + (total >> 16);
  if (level == lastLevel) {
    u64 most = head->coded[level] >> 13, lanes = 1;
    most = sum >> 21 < most ? sum >> 21 : most;
    most = sum >> 23 > most ? sum >> 23 : most;
    while (lanes < maxLanes && most >= 2 * lanes) lanes *= 2;
    head->lanes = (u32)lanes;
    head->result = frame->result;
  }
}

// coder_list lists in their Order how each coded symbol of a level decodes: the table's entry of Tables; behind the last stands a round
// of some table's, since decoding looks a round ahead. starts gets the number of the first coded symbol of every tile, and
// escapes, which has a bit for each, is cleared. This launch has the tiles from firstTile of the level's on, and base is the
// number of symbols in those before. Of y, blocks take tiles in turn and wait for those that came before them to say how
// many symbols are coded, in counts, which are 0 until then.
KERNEL void coder_list(DecoderHead *head, u32 *counts, u32 *starts, u32x4 *escapes, u32 *list, const Tables *tables, const Frame *frame, i64 base, i64 firstTile, i64 tiles, i64 level, i64 skip, SECTIONS) {
  SHARED u32 table[tableHalf], turn;
  int thread = threadIndex();
  if (thread < tableHalf) table[thread] = tables->table[wholeTable(thread, skip)];
  if (thread == 0) turn = skip ? atomicIncrement(&head->listed[level]) : (u32)firstTile + (u32)blockIndex();
  barrier();
  u32 tile = turn, total, first, n = 0;
  Tile t = tileOf(tile - (u32)firstTile, THE_SECTIONS);
  Sixteen s = tablesOf(t, first);
  i32 threshold = thresholdOf(frame, skip);
  UNROLL for (int i = 0; i < threadSymbols; i++) n += i < (int)s.valid && (i32)s.table(i) >= threshold;
  u32 place = blockScan(n, total), start = (u32)base + t.before + t.first;
  if (skip) {
    volatile u32 *said = counts;
    if (thread == 0) said[tile] = total + 1;
    u64 sum = 0;
    for (u32 i = thread; i < tile; i += 256) {
      u32 count;
      while ((count = said[i]) == 0) {
      }
      sum += count - 1;
    }
    start = (u32)blockSum(sum);
  }
  place += start;
  Order order = Order::of(head, level);
  UNROLL for (int i = 0; i < threadSymbols; i++) {
    if (i < (int)s.valid && (i32)s.table(i) >= threshold) list[order.at(place++)] = table[s.table(i) & (tableHalf - 1)];
  }
  if (tile + 1 == (u32)tiles) {
    for (u32 i = thread; i < 1u << order.logLanes; i += 256) list[order.at(start + total + i)] = table[0];
  }
  if (thread < tileSymbols / 128) escapes[tile * (tileSymbols / 128) + thread] = u32x4{0, 0, 0, 0};
  if (thread > 0) return;
  starts[tile] = start;
  if (tile + 1 == (u32)tiles) head->coded[level] = (level ? head->coded[level - 1] : 0) + start + total;
}
