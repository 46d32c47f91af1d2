// Encoding: a lane a thread, a group a warp, from the last symbol to the first.
#pragma once
#include "coder_lanes.cuh"
#include "coder_layout.cuh"

// A Pen puts the words of a group, the last of the payload first: at is where the one put last stands. Every lane of
// the warp has the same.
struct Pen {
  u16 *words;
  i32 at;
};

// putRange is rans's range of frequency 2^shift, in the state x of lane 0.
DEVICE void putRange(Pen &pen, u32 &x, u32 start, i32 shift) {
  if (x >> 16 >= 1u << shift) {
    pen.words[--pen.at] = (u16)x;
    x >>= 16;
  }
  x = x >> shift << 16 | ((x & ((1u << shift) - 1)) + start);
}

// putEscape is entropy's code of an escape's value.
DEVICE void putEscape(Pen &pen, u32 &x, u32 escape) {
  i32 v = (i16)escape, k = escape >> 16;
  u32 size = (u32)((v < 0 ? -v : v) - k); // 1..32767: class c is the place of its highest bit
  i32 c = 0;
  while (size >> (c + 1)) c++;
  u32 m = size - (1u << c) + (v < 0 ? 1u << c : 0);
  putRange(pen, x, m << (15 - c), 15 - c);
  putRange(pen, x, 1u << (15 - c), 15 - c);
}

// A Slots turns an offset into a slot: segments in shared memory where they fit, else in the device's.
template <bool Shared>
struct Slots {
  const u32 *segments;

  DEVICE_METHOD const u8 *bytes() const { return Shared ? dynamicShared() : (const u8 *)segments; }
  // slot looks at four segments at once, among which the offset's nearly always is. A segment is end<<16 | delta, first
  // the byte where the symbol's begin.
  DEVICE_METHOD u32 slot(u32 o, u32 first, u32 shift) const {
    const u32 *p = (const u32 *)(bytes() + first) + shiftRight(o, shift);
    u32 beyond = o << 16 | 0xffff, s0 = p[0], s1 = p[1], s2 = p[2], s3 = p[3];
    together(s0, s1, s2, s3); // a branch around three of the loads would make two waits of one
    u32 most01 = s0 > s1 ? s0 : s1, most23 = s2 > s3 ? s2 : s3;
    bool lost = beyond >= (most01 > most23 ? most01 : most23);
    u32 s = beyond < most01 ? (beyond < s0 ? s0 : s1) : (beyond < s2 ? s2 : s3);
    while (any(lost)) { // the lanes stay together
      p++;
      if (lost) s = p[3], lost = beyond >= s;
    }
    return (o + s) & 0xffff;
  }
};

// code takes one symbol a lane. A lane that is not active goes through the same steps, so that its state stays one, but
// puts no word.
template <bool Shared>
DEVICE u32 code(Pen &pen, u32 x, u32x4 entry, bool active, u32 lower, Slots<Shared> slots) {
  u32 f = entry[2], upper = x >> 16;
  bool full = upper >= f;
  u32 votes = ballot(full && active), y = full ? upper : x;
  together(y);
  pen.at -= __builtin_popcount(votes);
  if (full && active) pen.words[pen.at + __builtin_popcount(votes & lower)] = (u16)x;
  // q = y*⌈2^48/f⌉ >> 48, exact as in rans.
  u32 q = (u32)((high(y, entry[0]) + (u64)y * (entry[1] & 0xffffff)) >> 16);
  return q << 16 | slots.slot(y - q * f, entry[3], entry[1] >> 24);
}

// codeLevel codes the symbols n0..n1-1 of all, as one warp: l is the thread's lane, there are 1<<logLanes. In front of the
// entries are rounds of what does not matter.
template <bool Shared>
DEVICE void codeLevel(Pen &group, u32 &x, const u32x4 *entries, u32 n0, u32 n1, u32 l, u32 logLanes, bool lane, Slots<Shared> slots) {
  if (n1 == n0) return;
  u32 lower = lanesBefore();
  i32 round = (n1 - 1) >> logLanes, lowest = n0 >> logLanes, stride = 1 << logLanes;
  // Whole rounds are those below top and from bottom on.
  i32 top = n1 >> logLanes, bottom = (n0 + stride - 1) >> logLanes;
  // Both bases are the lane's own, so that they stay in registers.
  Pen pen{group.words + l, group.at - (i32)l};
  auto part = [&]() {
    u32 n = ((u32)round << logLanes) + l;
    bool active = lane && n >= n0 && n < n1;
    u32 y = code(pen, x, entries[active ? n : n0], active, lower, slots);
    if (active) x = y;
  };
  for (; round >= top && round >= lowest; round--) part();
  if (round >= bottom) {
    // A symbol's entry is loaded eight rounds ahead.
    enum { ahead = aheadRounds };
    u32x4 later[ahead];
    const u32x4 *from = entries + l;
    i32 n = round << logLanes;
    UNROLL for (int i = 0; i < ahead; i++) later[i] = from[n - i * stride];
    from -= ahead * stride;
    for (; round >= bottom + ahead - 1; round -= ahead) {
      UNROLL for (int i = 0; i < ahead; i++) {
        u32x4 entry = later[i];
        later[i] = from[n];
        n -= stride;
        x = code(pen, x, entry, lane, lower, slots);
      }
    }
    UNROLL for (int i = 0; i < ahead; i++) {
      if (round - i >= bottom) x = code(pen, x, later[i], lane, lower, slots);
    }
    round = bottom - 1;
  }
  for (; round >= lowest; round--) part();
  group.at = pen.at + (i32)l;
}

// coder_encode codes the gathered symbols, a block each group of lanes. Bit i of skips: level i is y. segments holds
// both halves' segments, y's first, behind each half three more that are never taken. capacity is how many fit in shared
// memory.
KERNEL_OF(128, 1) void coder_encode(EncoderHead *head, const u32x4 *entries, const u32 *escapes, u16 *words, const u32 *segments, i64 segmentsY, i64 segmentsZ, i64 capacity, const u32 *hash, i64 levels, i64 skips) {
  u32 group = (u32)blockIndex(), lanes = uniform(head->lanes), thread = (u32)threadIndex(), warp = uniform(thread / groupLanes);
  if (group * groupLanes >= lanes) return;
  u32 logLanes = 31 - __builtin_clz(lanes), groupSize = lanes < groupLanes ? lanes : groupLanes;
  // A group's words end where the next one's may begin: a symbol makes one word at most, an escape two more.
  u32 coded = head->coded[levels - 1], escaped = head->escapes[levels - 1];
  u32 room = ((coded + lanes - 1) >> logLanes) * groupSize, end = 2 * escaped + (group + 1) * room;
  Pen pen{words, (i32)end};
  bool lane = thread < groupSize;
  u32 l = group * groupLanes + (thread & (groupSize - 1));
  u32 x = lowState + (l == 0 ? *hash & 0xffff : 0);
  for (i32 level = (i32)levels - 1; level >= 0; level--) {
    bool y = skips >> level & 1;
    const u32 *from = y ? segments : segments + segmentsY;
    u32 count = (u32)(y ? segmentsY : segmentsZ), *shared = (u32 *)dynamicShared();
    bool fits = count <= (u32)capacity;
    barrier();
    for (u32 i = thread; fits && i < count; i += 128) shared[i] = from[i];
    barrier();
    if (warp > 0) continue;
    u32 n0 = uniform(level ? head->coded[level - 1] : 0), n1 = uniform(head->coded[level]);
    u32 e0 = uniform(level ? head->escapes[level - 1] : 0), e1 = uniform(head->escapes[level]);
    if (group == 0) {
      for (u32 e = e1, count; e > e0; e -= count) { // a lane has each ready for the first
        count = e - e0 < groupLanes ? e - e0 : groupLanes;
        u32 escape = thread < count ? escapes[e - 1 - thread] : 0;
        for (u32 i = 0; i < count; i++) {
          u32 one = shuffle(escape, (int)i);
          if (thread == 0) putEscape(pen, x, one);
        }
      }
      pen.at = (i32)uniform((u32)pen.at);
    }
    if (fits) {
      codeLevel(pen, x, entries, n0, n1, l, logLanes, lane, Slots<true>{from});
    } else {
      codeLevel(pen, x, entries, n0, n1, l, logLanes, lane, Slots<false>{from});
    }
  }
  if (warp > 0) return;
  if (lane) head->state[l] = x;
  if (thread == 0) head->begin[group] = (u32)pen.at, head->end[group] = end;
}

// coder_report writes the result for the host: 8 words a thread at a time, all groups' one behind the other.
KERNEL void coder_report(const EncoderHead *head, const u16 *words, const u32 *hash, i64 levels) {
  SHARED u32 begin[maxGroups + 1], from[maxGroups];
  EncoderResult *result = (EncoderResult *)head->result;
  u32 lanes = head->lanes, groups = (lanes + groupLanes - 1) / groupLanes, thread = (u32)threadIndex();
  if (thread < groupLanes) {
    u32 count = thread < groups ? head->end[thread] - head->begin[thread] : 0, sum = count;
    UNROLL for (int d = 1; d < 32; d *= 2) {
      u32 left = shuffle(sum, (i32)thread - d);
      if ((i32)thread >= d) sum += left;
    }
    begin[thread + 1] = sum;
    if (thread == 0) begin[0] = 0;
    from[thread] = thread < groups ? head->begin[thread] : 0;
  }
  barrier();
  u32 total = begin[groups];
  if (blockIndex() == 0) {
    if (thread == 0) result->lanes = lanes, result->hash = *hash, result->words = total, result->coded = head->coded[levels - 1];
    if (thread < groups) result->begin[thread] = begin[thread];
    for (u32 i = thread; i < lanes; i += 256) result->state[i] = head->state[i];
  }
  u32x4 *out = (u32x4 *)(result + 1);
  u32 group = 0;
  for (u32 at = unit() * 8; at < total; at += reportBlocks * 256 * 8) {
    u32x4 eight = {0, 0, 0, 0};
    UNROLL for (int i = 0; i < 8; i++) {
      u32 n = at + i;
      if (n >= total) break;
      while (n >= begin[group + 1]) group++;
      eight[i / 2] |= (u32)words[from[group] + n - begin[group]] << (i % 2 * 16);
    }
    out[at / 8] = eight;
  }
}
