// The vector of the whole picture, and for each block the one that it begins with and its refinement.
#pragma once
#include "motion_small.cuh"

// A Whole is the best vector for the picture so far and the sum of SATDs over the blocks of even row and column.
struct Whole {
  i32 y, x;
  u64 least;
};

// What is tried for the whole picture: three vectors, then five times the eight around the best. Nothing of it comes to
// the host: each launch tries one step, and begins with what the sums of the step before say.
enum { wholeSteps = 6, wholeTries = 8 };

struct WholeSearch {
  u64 sums[wholeSteps][wholeTries];
  Whole best[wholeSteps + 1]; // before each step
  Vector first[2];            // what the full searches found
};

// tried is try n of a step; whether there is one is for inside to say.
DEVICE Vector tried(const WholeSearch &s, i32 step, i32 n) {
  if (step == 0) return n == 0 ? Vector{0, 0} : s.first[n == 1 ? 0 : 1]; // only three count
  return neighbour(Vector{s.best[step].y, s.best[step].x}, n, 32 >> step);
}

// settledWhole is the best vector before a step, when the sums of all earlier ones are mine.
DEVICE Whole settledWhole(const WholeSearch &s, i32 step, i32 limit) {
  if (step == 0) return Whole{0, 0, 1ull << 62};
  Whole best = step == 1 ? Whole{0, 0, 1ull << 62} : s.best[step - 1];
  i32 tries = step == 1 ? 3 : wholeTries;
  for (i32 n = 0; n < tries; n++) {
    Vector v = tried(s, step - 1, n);
    if (inside(v, limit) && s.sums[step - 1][n] < best.least) best = Whole{v.y, v.x, s.sums[step - 1][n]};
  }
  return best;
}

// leastTotal is the place in the list of the displacement that is best for all units; all threads of a block come to it.
DEVICE i32 leastTotal(const u32 *totals, const i8 *list, i32 count, i32 r) {
  SHARED u64 least[256];
  u64 best = ~0ull;
  for (i32 n = threadIndex(); n < count; n += 256) {
    u64 key = (u64)totals[n] << placeBits | (u32)n;
    if (inside(displacement(list, n), r) && key < best) best = key;
  }
  least[threadIndex()] = best;
  for (i32 half = 128; half > 0; half /= 2) {
    barrier();
    if (threadIndex() < half && least[threadIndex() + half] < least[threadIndex()]) least[threadIndex()] = least[threadIndex() + half];
  }
  barrier();
  i32 place = (i32)(least[0] & ((1 << placeBits) - 1));
  barrier();
  return place;
}

// search_whole tries one step. Each warp takes every so many'th of the blocks of even row and column.
KERNEL void search_whole(WholeSearch *search, const u32 *totals, const i8 *list, const u8 *cur, const u8 *phases, i64 w_, i64 h_, i64 r4, i64 r8, i64 count4, i64 count8,
                         i64 limit_, i64 step_, i64 warps) {
  i32 w = (i32)w_, h = (i32)h_, limit = (i32)limit_, step = (i32)step_, lane = laneIndex(), across = w / 32;
  SHARED WholeSearch mine; // the little of it that this step needs
  SHARED u32 sums[8][wholeTries];
  if (step == 0) {
    Vector d4 = displacement(list, leastTotal(totals, list, (i32)count4, (i32)r4));
    Vector d8 = displacement(list, leastTotal(totals + count4, list, (i32)count8, (i32)r8));
    if (threadIndex() == 0) {
      mine.first[0] = Vector{16 * d4.y, 16 * d4.x}, mine.first[1] = Vector{32 * d8.y, 32 * d8.x};
      if (blockIndex() == 0) search->first[0] = mine.first[0], search->first[1] = mine.first[1];
    }
  } else if (threadIndex() == 0) {
    mine.best[step] = settledWhole(*search, step, limit);
    if (blockIndex() == 0) search->best[step] = mine.best[step];
  }
  barrier();
  i32 tries = step == 0 ? 3 : wholeTries, number = lane / 4;
  Phases ref = phasesOf(phases, w, h);
  Vector v = tried(mine, step, number);
  u32 sum = 0;
  for (i32 k = (i32)(unit() / 32); k < across * (h / 32); k += (i32)warps) {
    i32 i = k / across * 2, j = k % across * 2;
    sum += laneSATD(ref, blockRows(cur, w, i, j), i, j, v);
  }
  sum = sumOfFour(sum);
  if (lane % 4 == 0) sums[threadIndex() / 32][number] = number < tries && inside(v, limit) ? sum : 0;
  barrier();
  if (threadIndex() < wholeTries) {
    u64 all = 0;
    for (int k = 0; k < 8; k++) all += sums[k][threadIndex()];
    atomicAdd(&search->sums[step][threadIndex()], all);
  }
}

// startRate is what a vector is guessed to cost before its neighbours' are known, refineRate then.
DEVICE u32 startRate(Vector v, Vector whole, i32 lambda) {
  i32 zero = distance(v, Vector{0, 0}), other = distance(v, whole);
  return (u32)(lambda * (zero < other ? zero : other));
}

DEVICE u32 refineRate(Vector v, Vector left, Vector up, i32 lambda) { return (u32)(lambda * (distance(v, left) + distance(v, up)) / 2); }

// search_start gives every block, a warp each, the best of ten candidates. The least cost << 4 | number decides.
KERNEL void search_start(u32 *found, u32 *satds, WholeSearch *search, const u32 *keys, const i8 *list, const u8 *cur, const u8 *phases, const i32 *lambdas, const i32 *frame,
                         i64 w_, i64 h_, i64 limit) {
  i32 w = (i32)w_, h = (i32)h_, wb = w / 16, hb = h / 16, lane = laneIndex(), k = (i32)(unit() / 32);
  Whole best = settledWhole(*search, wholeSteps, (i32)limit);
  if (unit() == 0) search->best[wholeSteps] = best;
  if (k >= wb * hb) return;
  i32 i = k / wb, j = k % wb, units = wb * hb, lambda = lambdas[frame[0]];
  Vector whole = {best.y, best.x}, mine = {0, 0};
  const u32 *near4 = keys, *own4 = keys + units, *near8 = own4 + units, *own8 = near8 + units / 4;
  i32 eighth = i / 2 * (wb / 2) + j / 2;
  if (lane == 2) mine = whole;
  if (lane != 1 && lane != 2 && lane < 10) { // 1 is zero
    const u32 *p = near4 + k;
    p = lane == 3 ? near4 + i * wb + clamp32(j - 1, 0, wb - 1) : lane == 4 ? near4 + clamp32(i - 1, 0, hb - 1) * wb + j : p;
    p = lane == 5 ? near4 + i * wb + clamp32(j + 1, 0, wb - 1) : lane == 6 ? near4 + clamp32(i + 1, 0, hb - 1) * wb + j : p;
    p = lane == 7 ? own4 + k : lane == 8 ? near8 + eighth : lane == 9 ? own8 + eighth : p;
    mine = displacement(list, foundPlace(*p));
    i32 scale = lane < 8 ? 16 : 32;
    mine.y *= scale, mine.x *= scale;
  }
  u32 word = packed(mine);
  Phases ref = phasesOf(phases, w, h);
  Block block = blockRows(cur, w, i, j);
  u32 key = ~0u;
  UNROLL for (int from = 0; from < 10; from += 8) { // the last six of the second eight are not there
    i32 n = from + lane / 4;
    Vector v = unpacked(shuffle(word, n));
    u32 cost = satdCost * sumOfFour(laneSATD(ref, block, i, j, v)) + startRate(v, whole, lambda);
    key = n < 10 && (cost << 4 | (u32)n) < key ? cost << 4 | (u32)n : key;
  }
  key = leastOfEight(key);
  word = shuffle(word, (i32)(key & 15));
  if (lane == 0) found[k] = word, satds[k] = ((key >> 4) - startRate(unpacked(word), whole, lambda)) / satdCost;
}

// search_refine compares the vector found for each block, a warp each, with the eight around it.
KERNEL void search_refine(u32 *found, u32 *satds, const u32 *foundBefore, const u32 *satdsBefore, const u8 *cur, const u8 *phases, const i32 *lambdas, const i32 *frame, i64 w_,
                          i64 h_, i64 limit, i64 step) {
  i32 w = (i32)w_, h = (i32)h_, wb = w / 16, hb = h / 16, lane = laneIndex(), k = (i32)(unit() / 32);
  if (k >= wb * hb) return;
  i32 i = k / wb, j = k % wb, lambda = lambdas[frame[0]];
  Vector base = unpacked(foundBefore[k]), left = unpacked(foundBefore[j > 0 ? k - 1 : k]), up = unpacked(foundBefore[i > 0 ? k - wb : k]);
  u32 key = (satdCost * satdsBefore[k] + refineRate(base, left, up, lambda)) << 4;
  Vector v = neighbour(base, lane / 4, (i32)step);
  u32 cost = satdCost * sumOfFour(laneSATD(phasesOf(phases, w, h), blockRows(cur, w, i, j), i, j, v)) + refineRate(v, left, up, lambda);
  u32 other = leastOfEight(inside(v, (i32)limit) ? cost << 4 | (u32)(lane / 4 + 1) : ~0u);
  if (other < key) key = other, base = neighbour(base, (i32)(key & 15) - 1, (i32)step);
  if (lane == 0) found[k] = packed(base), satds[k] = ((key >> 4) - refineRate(base, left, up, lambda)) / satdCost;
}
