// Weights on their way through shared memory, stage after stage, to warps that each go through all of them at a pace of
// their own.
#pragma once
#include "async.cuh"

// A Ring is the stages as one warp goes through them. Stage s lies in slot s % slots; warp s % warps loads it when it
// takes the stage 'ahead' before, once all warps have left what was in that slot.
struct Ring {
  const u8 *source; // what this warp loads next
  u8 *memory;
  Arrivals *full, *empty;
  i32 slots, ahead, warps, lane;
  i32 slot, turn, left; // turn: stages until this warp loads one; left: those that there are from then on
  u32 parity;
};

// lag is by how many stages a warp may be ahead of the slowest one at least.
enum { lag = 2, mostAhead = 5 };

template <int Bytes>
DEVICE void fill(Ring &r, i32 slot) {
  u8 *to = r.memory + slot * Bytes;
  NOUNROLL for (i32 i = 16 * r.lane; i < Bytes; i += 512) copyAsync(to + i, r.source + i);
  arriveCopied(r.full + slot);
  r.source += r.warps * Bytes;
  r.left -= r.warps;
}

// startRing has all threads of the block; slots are more than lag, or stages.
template <int Bytes>
DEVICE Ring startRing(const u8 *source, u8 *memory, i32 stages, i32 slots, i32 warps) {
  Ring r;
  i32 warp = threadIndex() / 32;
  r.source = source + warp * Bytes;
  r.full = (Arrivals *)memory;
  r.empty = r.full + slots;
  r.memory = memory + 16 * slots;
  r.slots = slots, r.warps = warps, r.lane = laneIndex();
  r.ahead = slots >= stages ? (slots < mostAhead ? slots : mostAhead) : slots - lag < mostAhead ? slots - lag : mostAhead;
  r.slot = 0, r.parity = 0;
  NOUNROLL for (i32 i = threadIndex(); i < slots; i += 32 * warps) {
    expect(r.full + i, 32);
    expect(r.empty + i, warps);
  }
  barrier();
  r.left = stages - warp;
  i32 slot = warp;
  NOUNROLL for (; slot < r.ahead && r.left > 0; slot += warps) fill<Bytes>(r, slot);
  r.turn = slot - r.ahead;
  return r;
}

// take waits for the next stage.
template <int Bytes>
DEVICE const u8 *take(Ring &r) {
  if (r.left > 0 && r.turn-- == 0) {
    i32 slot = r.slot + r.ahead;
    bool next = slot >= r.slots;
    if (next) slot -= r.slots;
    await(r.empty + slot, next ? r.parity : r.parity ^ 1);
    fill<Bytes>(r, slot);
    r.turn += r.warps;
  }
  await(r.full + r.slot, r.parity);
  return r.memory + r.slot * Bytes;
}

// stay is take for a stage that this warp has already.
template <int Bytes>
DEVICE const u8 *stay(Ring &r) {
  await(r.full + r.slot, r.parity);
  return r.memory + r.slot * Bytes;
}

// leave says that this warp has read the stage.
DEVICE void leave(Ring &r) {
  syncWarp();
  if (r.lane == 0) arrive(r.empty + r.slot);
  if (++r.slot == r.slots) {
    r.slot = 0;
    r.parity ^= 1;
  }
}
