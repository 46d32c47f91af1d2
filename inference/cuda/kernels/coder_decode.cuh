// Decoding: a lane a thread, a group a warp. Whatever the words, every loop has a bound, every state is one, and what is
// read beyond a group's words is 0.
#pragma once
#include "coder_lanes.cuh"
#include "coder_layout.cuh"

// coder_begin copies a payload's image from the host and clears the head and the tiles' counts.
KERNEL void coder_begin(DecoderHead *head, u32x4 *image, u32 *counts, i64 tiles, const Frame *frame) {
  const u32x4 *input = (const u32x4 *)frame->input;
  u32 count = frame->inputBytes / 16, thread = (u32)threadIndex();
  for (u32 i = unit(); i < count; i += reportBlocks * 256) image[i] = input[i];
  for (u32 i = unit(); i < (u32)tiles; i += reportBlocks * 256) counts[i] = 0;
  if (blockIndex() > 0) return;
  u32 *words = (u32 *)head;
  for (u32 i = thread; i < sizeof(DecoderHead) / 4; i += 256) words[i] = 0;
  barrier();
  if (thread < maxLevels) head->report.range[thread] = ~(u64)0;
  if (thread == 0) head->result = frame->result, head->lanes = (u32)frame->lanes;
}

// wordAt is word i of a group, of which held are here.
DEVICE u32 wordAt(const u16 *words, u32 i, u32 held) { return i < held ? words[i] : 0; }

// Words is a group's words on their way to the lanes: chunks wait in registers, then in a ring in shared memory. Before
// each batch of rounds two chunks or more are in the ring, of which the batch consumes one at most.
struct Words {
  enum { ring = 1024, chunk = aheadRounds * groupLanes };
  const u16 *words;
  u16 *shared;
  u32 held, filled; // words that are here, and in the ring
  u32 cursor;       // twice the words consumed and this lane's number
  u16 waiting[chunk / 32];

  DEVICE_METHOD u32 at() const { return uniform(cursor / 2); } // lane 0's
  DEVICE_METHOD void load() {
    UNROLL for (int i = 0; i < chunk / 32; i++) waiting[i] = (u16)wordAt(words, filled + i * 32 + laneIndex(), held);
  }
  DEVICE_METHOD void fill() {
    warpBarrier();
    UNROLL for (int i = 0; i < chunk / 32; i++) shared[(filled + i * 32 + laneIndex()) & (ring - 1)] = waiting[i];
    filled += chunk;
    warpBarrier();
    load();
  }
  DEVICE_METHOD void begin(u32 at) {
    filled = at;
    cursor = 2 * (at + laneIndex());
    load();
    fill();
    fill();
  }
  // low tells whether refill does anything; every lane has the same answer.
  DEVICE_METHOD bool low() const { return filled - (cursor / 2 - laneIndex()) < 2 * chunk; }
  DEVICE_METHOD void refill() {
    if (any(low())) fill();
  }
  // next is this lane's place in the words to come, which wait in registers until a round has said who wants which.
  DEVICE_METHOD u32 next() const { return *(const u16 *)((const u8 *)shared + (cursor & (2 * ring - 1))); }
};

// Decoding tables: two words an entry, split | f(bucket)<<16 and offset-pos | f(right)<<16 as rans has them, in shared
// memory behind the ring, or in the device's. Each table begins at a multiple of its size.
template <bool Shared>
struct Entries {
  const u32x2 *entries;
  u32 slots; // 0xffff, in a register

  // of is the entry of the slot in the lower half of x; how is the entry of Tables of its table.
  DEVICE_METHOD u32x2 of(u32 x, u32 how) const {
    u32 first = how >> 15, size = shiftRight(slots, how) & ~7u; // bytes
    together(size); // known before x is, and then one operation does the rest
    u32 at = first | (shiftRight(x, how) & size);
    return *(const u32x2 *)((Shared ? dynamicShared() + Words::ring * 2 : (const u8 *)entries) + at);
  }
};

// A Lane is what a thread decodes with. Its state is kept as upper<<16 | slot, so that a word takes the slot's place as it
// comes. A round is a chain of waits, each for the one before, and a warp has nothing else to do: every instruction counts.
//
// Where symbols are worth little of a bit, no lane of the warp takes a word in most rounds. So each looks up its next entry
// as if that were so, and while the entry comes the warp finds out whether it is; if not, all look again.
struct Lane {
  u32 slot, upper;
  u32 lo, hi; // the entry of the symbol to come
  u32 next;   // see Words
  u32 lower;  // the lanes below this one

  // look fetches the entry of the slot in the lower half of x.
  template <bool Shared>
  DEVICE_METHOD void look(u32 x, u32 how, Entries<Shared> entries) {
    u32x2 e = entries.of(x, how);
    lo = e[0], hi = e[1];
  }

  // decode returns the symbol whose entry is there, and fetches the next one's. A lane that is not active goes through the
  // same steps, with a state that means nothing but is below 2^32, and takes no word.
  template <bool Shared>
  DEVICE_METHOD u32 decode(Words &words, u32 how, u32 following, bool active, Entries<Shared> entries) {
    u32 outside = shiftLeft(~7u, how), pos = slot & ~outside;
    bool left = pos < (lo & ~outside); // fewer bits than 16
    u32 yl = (lo >> 16) * upper + pos, yr = (hi >> 16) * upper + ((hi + pos) & 0xffff), y = left ? yl : yr;
    u32 symbol = shiftRight(left ? slot : lo & 0xffff, how) >> 3;
    bool empty = active && y < lowState;
    slot = y & 0xffff, upper = y >> 16;
    look(y, following, entries);
    bool some = any(empty);
    u32 votes = ballot(empty), place = __builtin_popcount(votes & lower);
    together(lo, hi); // neither is put off until it is known whether it is wanted
    together(place);
    if (__builtin_expect(some, false)) {
      u32 word = shuffle(next, (int)place);
      words.cursor += 2 * __builtin_popcount(votes);
      next = words.next();
      if (empty) slot = word, upper = y;
      look(slot, following, entries);
    }
    return symbol;
  }
};

DEVICE void mark(u32 *bits, u32 n) { atomicOr(bits + n / 32, 1u << (n % 32)); }

// decodeLevel decodes the symbols up to n1 of all, as one warp: l is the thread's lane, lane whether it has one. values gets
// their numbers, escapes a bit for each that is one. Behind the list's end is a round of entries of Tables, and then rounds
// of what does not matter.
template <bool Shared>
DEVICE u32 decodeLevel(Words &words, u32 x, i16 *values, const u32 *list, u32 *escapes, Order order, u32 n1, u32 l, bool lane, Entries<Shared> entries) {
  enum { batch = aheadRounds };
  u32 logLanes = order.logLanes, stride = 1u << logLanes, n0 = order.n0;
  i32 round = n0 >> logLanes, last = (n1 - 1) >> logLanes;
  // Whole rounds are those from bottom on and below top.
  i32 bottom = order.bottom, top = n1 >> logLanes;
  Lane state{x & 0xffff, x >> 16, 0, 0, words.next(), lanesBefore()};
  auto part = [&]() {
    u32 n = ((u32)round << logLanes) + l;
    bool active = lane && n >= n0 && n < n1;
    u32 at = order.at(active ? n - n0 : 0), how = list[at];
    words.refill();
    Lane before = state;
    state.look(state.slot, how, entries);
    u32 symbol = state.decode(words, how, how, active, entries);
    if (active) {
      values[at] = (i16)symbol;
      if (symbol == 0) mark(escapes, n - n0);
    } else {
      state.slot = before.slot, state.upper = before.upper;
    }
  };
  for (; round < bottom && round <= last; round++) part();
  if (round < top) {
    // How symbols decode is loaded a batch of rounds ahead.
    const u32x4 *from = (const u32x4 *)list + 2 * (stride + l);
    u32x4 *to = (u32x4 *)values + (stride + l), now[2] = {from[0], from[1]}, later[2], symbols;
    u32 least;
    auto next = [&](int i) {
      u32 following = i + 1 < batch ? now[(i + 1) / 4][(i + 1) % 4] : later[0][0];
      u32 symbol = state.decode(words, now[i / 4][i % 4], following, lane, entries);
      symbols[i / 2] |= symbol << (i % 2 * 16);
      least = symbol < least ? symbol : least;
    };
    // Behind a batch one vote asks for all that is rarely wanted. Of its rounds, those up to end have symbols.
    auto tend = [&](i32 end) {
      if (lane) *to = symbols;
      if (any((lane & (least == 0)) | words.low())) {
        words.refill();
        UNROLL for (int i = 0; i < batch; i++) {
          if (lane && round + i < end && (symbols[i / 2] >> (i % 2 * 16) & 0xffff) == 0) mark(escapes, ((u32)(round + i) << logLanes) + l - n0);
        }
      }
    };
    words.refill();
    state.look(state.slot, now[0][0], entries);
    for (; round + batch <= top; round += batch) {
      from += 2 * stride;
      UNROLL for (int i = 0; i < 2; i++) later[i] = from[i];
      symbols = u32x4{0, 0, 0, 0}, least = 1;
      UNROLL for (int i = 0; i < batch; i++) next(i);
      tend(round + batch);
      to += stride;
      UNROLL for (int i = 0; i < 2; i++) now[i] = later[i];
    }
    if (round < top) {
      symbols = u32x4{0, 0, 0, 0}, least = 1;
      UNROLL for (int i = 0; i < batch - 1; i++) {
        if (round + i < top) next(i);
      }
      tend(top);
      round = top;
    }
  }
  for (; round <= last; round++) part();
  return state.upper << 16 | state.slot;
}

// blockMin is the least of the 256 threads of a block, for all of them.
DEVICE u32 blockMin(u32 v) {
  SHARED u32 part[8];
  UNROLL for (int d = 16; d > 0; d /= 2) {
    u32 other = shuffleXor(v, d);
    v = other < v ? other : v;
  }
  barrier();
  if (laneIndex() == 0) part[threadIndex() / 32] = v;
  barrier();
  UNROLL for (int i = 0; i < 8; i++) v = part[i] < v ? part[i] : v;
  return v;
}

// A Closing is what a block reads the values of escapes from, so many at a time: the one thread that reads them, one behind
// the other, waits for shared memory only.
struct Closing {
  enum { window = 512, runSymbols = 512 }; // of symbols, those that a thread looks at
  u32 which[window];
  u16 words[2 * window]; // an escape takes two at most
  i16 value[window];
  u8 k[window];
};

// A Reader takes ranges from lane 0.
struct Reader {
  const u16 *words;
  u32 at, count; // words taken, and how many there are
  u32 x;
  bool early;

  DEVICE_METHOD void advance(u32 start, u32 shift) {
    x = (x >> 16 << shift) + (x & 0xffff) - start;
    if (x >= lowState) return;
    x <<= 16;
    if (at < count) {
      x |= words[at++];
    } else {
      early = true;
    }
  }
};

// escapeValue reads the value behind escape symbol number i, or says what is wrong with it.
DEVICE Issue escapeValue(Reader &r, u32 i, u32 k, i16 *value) {
  *value = 0;
  u32 slot = r.x & 0xffff;
  if (slot < 2) return Issue{noClass, i, 0, 0};
  u32 c = __builtin_clz(slot) - 16;
  r.advance(1u << (15 - c), 15 - c);
  u32 m = (r.x & 0xffff) >> (15 - c);
  r.advance(m << (15 - c), 15 - c);
  i32 v = (i32)((m & ((1u << c) - 1)) + (1u << c) + k);
  if (m >> c) v = -v;
  if (v != (i16)v) return Issue{escapeRange, i, (u32)v, 0};
  *value = (i16)v;
  return Issue{fine, 0, 0, 0};
}

// closeLevel says whether a group's words ended early, and reads the values of the escapes; behind the last level, whether
// every word is used and every lane at its start. What other blocks have just written is volatile.
DEVICE void closeLevel(DecoderHead *head, PayloadImage *image, i16 *values, const u32 *list, const volatile u32x4 *escapes, Order order, u32 coded, u32 level, bool last) {
  SHARED u32 stop, next, read;
  Closing *c = (Closing *)dynamicShared(); // nothing needs the decoding tables any more
  u32 thread = (u32)threadIndex(), lanes = head->lanes, groups = (lanes + groupLanes - 1) / groupLanes;
  volatile u32 *at = head->at, *state = image->state;
  u32 early = blockMin(thread < groups && at[thread] > image->count[thread] ? thread : ~0u);
  if (thread == 0) {
    next = at[0];
    stop = early != ~0u;
    if (stop) head->report.level[level] = Issue{endsEarly, early, 0, 0};
  }
  const u16 *words = (const u16 *)(image + 1);
  u32 held = image->begin[1], count = image->count[0];
  Reader r{c->words, 0, 0, state[0], false};
  barrier();
  for (u32 base = 0; base < coded && !stop; base += 256 * Closing::runSymbols) {
    u32 first = base + thread * Closing::runSymbols, bits[Closing::runSymbols / 32], mine = 0, total;
    UNROLL for (int i = 0; i < Closing::runSymbols / 32; i += 4) {
      u32x4 four = {0, 0, 0, 0};
      if (first + i * 32 < coded) four = escapes[first / 128 + i / 4];
      UNROLL for (int j = 0; j < 4; j++) {
        bits[i + j] = four[j];
        mine += __builtin_popcount(four[j]);
      }
    }
    u32 before = blockScan(mine, total);
    for (u32 from = 0; from < total && !stop; from += Closing::window) {
      u32 place = before - from, here = total - from < Closing::window ? total - from : Closing::window;
      UNROLL for (int i = 0; i < Closing::runSymbols / 32; i++) {
        for (u32 left = bits[i]; left != 0; left &= left - 1, place++) {
          if (place < here) c->which[place] = first + i * 32 + __builtin_ctz(left);
        }
      }
      barrier();
      for (u32 i = thread; i < here; i += 256) c->k[i] = (u8)tableK(list[order.at(c->which[i])]);
      for (u32 i = thread; i < 2 * here; i += 256) c->words[i] = (u16)wordAt(words, next + i, held);
      barrier();
      if (thread == 0) {
        Issue issue{fine, 0, 0, 0};
        u32 i = 0;
        r.at = 0, r.count = count - next;
        for (; i < here && issue.kind == fine; i++) issue = escapeValue(r, c->which[i], c->k[i], &c->value[i]);
        if (issue.kind != fine) head->report.level[level] = issue, stop = 1;
        read = i, next += r.at;
      }
      barrier();
      for (u32 i = thread; i < read; i += 256) values[order.at(c->which[i])] = (i16)(c->value[i] + 1 + c->k[i]); // as if it were a symbol's number
      barrier();
    }
  }
  if (thread == 0) {
    if (!stop && r.early) head->report.level[level] = Issue{endsEarly, 0, 0, 0};
    state[0] = r.x;
    at[0] = next;
  }
  if (!last) return;
  barrier();
  u32 left = blockMin(thread < groups && at[thread] != image->count[thread] ? thread : ~0u), astray = ~0u;
  for (u32 l = thread; l < lanes; l += 256) {
    u32 x = state[l];
    if (x != lowState && (l > 0 || x >> 16 != 1) && l < astray) astray = l;
  }
  astray = blockMin(astray);
  if (thread > 0) return;
  if (left != ~0u) {
    head->report.end = Issue{leftOver, left, image->count[left] - at[left], 0};
  } else if (astray != ~0u) {
    head->report.end = Issue{laneEnd, astray, state[astray], 0};
  }
  head->report.tail = state[0] & 0xffff;
  head->report.coded = head->coded[level];
}

// coder_decode decodes the listed symbols of a level, a block each group of lanes, as its first warp. entries are those of
// the level's half of the tables, of which there are count; they are copied to shared memory where capacity allows. The
// last block to end closes the level.
KERNEL void coder_decode(DecoderHead *head, PayloadImage *image, i16 *values, const u32 *list, u32 *escapes, const u32x2 *entries, i64 count, i64 capacity, i64 level, i64 last) {
  SHARED u32 closing;
  u32 group = (u32)blockIndex(), thread = (u32)threadIndex();
  u32 lanes = uniform(head->lanes), n0 = uniform(level ? head->coded[level - 1] : 0), n1 = uniform(head->coded[level]);
  if (group * groupLanes >= lanes) return;
  bool fits = count <= capacity;
  u32x4 *shared = (u32x4 *)(dynamicShared() + Words::ring * 2);
  const u32x4 *from = (const u32x4 *)entries; // a table has four entries at least
  for (u32 i = thread; fits && i < (u32)count / 2; i += 256) shared[i] = from[i];
  barrier();
  Order order = Order::of(head, level);
  order.logLanes = uniform(order.logLanes), order.n0 = n0, order.bottom = uniform(order.bottom);
  if (uniform(thread / groupLanes) == 0 && n1 > n0) {
    u32 groupSize = lanes < groupLanes ? lanes : groupLanes;
    bool lane = thread < groupSize;
    u32 l = group * groupLanes + (thread & (groupSize - 1)), x = image->state[l];
    Words words;
    words.words = (const u16 *)(image + 1) + image->begin[group];
    words.shared = (u16 *)dynamicShared();
    words.held = image->begin[group + 1] - image->begin[group];
    words.begin(uniform(head->at[group]));
    u32 slots = 0xffff;
    together(slots);
    if (fits) {
      x = decodeLevel(words, x, values, list, escapes, order, n1, l, lane, Entries<true>{entries, slots});
    } else {
      x = decodeLevel(words, x, values, list, escapes, order, n1, l, lane, Entries<false>{entries, slots});
    }
    if (lane) image->state[l] = x;
    u32 at = words.at();
    if (thread == 0) head->at[group] = at;
    fence();
  }
  barrier();
  if (thread == 0) closing = atomicIncrement(&head->decoded[level]) + 1 == (lanes + groupLanes - 1) / groupLanes;
  barrier();
  if (!closing) return;
  fence();
  closeLevel(head, image, values, list, (const volatile u32x4 *)escapes, order, n1 - n0, (u32)level, last);
}

// coder_scatter puts a level's symbols into their places: 0 where a symbol is not coded, and in the place of one beyond
// ±limit, which it reports by the number of its section, the launch's first being firstSection. The last of the level's tiles sends
// the report behind the last level.
KERNEL void coder_scatter(DecoderHead *head, const i16 *values, const u32 *starts, const Tables *tables, const Frame *frame, i64 firstTile, i64 tiles, i64 level, i64 last, i64 limit, i64 firstSection, i64 skip, SECTIONS) {
  SHARED u32 final, table[tableHalf];
  if (threadIndex() < tableHalf) table[threadIndex()] = tables->table[wholeTable(threadIndex(), skip)];
  Tile t = tileOf((u32)blockIndex(), THE_SECTIONS);
  u32 first, n = 0, total, coded = 0, thread = (u32)threadIndex();
  Sixteen s = tablesOf(t, first);
  i32 threshold = thresholdOf(frame, skip);
  UNROLL for (int i = 0; i < threadSymbols; i++) {
    u32 yes = i < (int)s.valid && (i32)s.table(i) >= threshold;
    coded |= yes << i;
    n += yes;
  }
  u32 place = starts[(u32)firstTile + (u32)blockIndex()] + blockScan(n, total);
  Order order = Order::of(head, level);
  Run<threadSymbols> out;
  UNROLL for (int i = 0; i < threadSymbols; i++) {
    // A symbol's number is 1+K+v.
    i32 v = coded >> i & 1 ? (i16)(values[order.at(place++)] - 1 - tableK(table[s.table(i) & (tableHalf - 1)])) : 0;
    if (v > (i32)limit || v < -(i32)limit) {
      atomicMin(&head->report.range[level], (u64)(firstSection + t.number) << 48 | (u64)(first + i) << 16 | (u16)v);
      v = 0;
    }
    out.x[i] = (i16)v;
  }
  i16 *to = t.section.symbols + first;
  if (s.valid == threadSymbols) {
    Run<8> half[2];
    UNROLL for (int i = 0; i < threadSymbols; i++) half[i / 8].x[i % 8] = out.x[i];
    store<8>(to, half[0]);
    store<8>(to + 8, half[1]);
  } else {
    UNROLL for (int i = 0; i < threadSymbols; i++) {
      if (i < (int)s.valid) to[i] = out.x[i];
    }
  }
  if (!last) return;
  fence();
  barrier();
  if (thread == 0) final = atomicIncrement(&head->scattered[level]) + 1 == (u32)tiles;
  barrier();
  if (!final) return;
  fence();
  const volatile u32 *report = (const volatile u32 *)&head->report;
  u32 *result = (u32 *)head->result;
  // The hash, which comes later, has its place behind what is copied.
  for (u32 i = thread; i < sizeof(DecoderResult) / 4 - 2; i += 256) result[i] = report[i];
}
