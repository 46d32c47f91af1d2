// The choice: five passes over the blocks in the order of a wavefront.
#pragma once
#include "motion_field.cuh"

// A Node is what a pass leaves of a block, one word of 64 bits that is written and read as one, so that nothing else
// need tell when it is there: the vector, and above it how it is coded, whether the pass changed it, and that it is
// known. Passes have fields of their own, so that one may begin where the one before is still at work.
enum { isNew = 1, isKept = 2, howMask = 3, isChanged = 4, isKnown = 8 };

struct Node {
  u32 v, flags;
};

#ifdef NVCODEC_EMULATE
extern "C" void nvcodec_emu_yield(void);

DEVICE u64 peek(const u64 *p) { return *p; }
DEVICE void publish(u64 *p, u64 v) { *p = v; }
DEVICE u64 again(const u64 *p) {
  nvcodec_emu_yield();
  return peek(p);
}
#else
// peek reads what another multiprocessor may just have written.
DEVICE u64 peek(const u64 *p) {
  u64 v;
  asm volatile("ld.volatile.u64 %0, [%1];" : "=l"(v) : "l"(p));
  return v;
}
DEVICE void publish(u64 *p, u64 v) { asm volatile("st.volatile.u64 [%0], %1;" : : "l"(p), "l"(v) : "memory"); }
DEVICE u64 again(const u64 *p) { return peek(p); }
#endif

// any says in all lanes of a warp whether x is true in one.
#ifdef NVCODEC_EMULATE
DEVICE bool any(bool x) {
  u32 all = x;
  for (int mask = 1; mask < 32; mask *= 2) all |= shuffleXor(all, mask);
  return all;
}
#else
DEVICE bool any(bool x) { return __nvvm_vote_any_sync(0xffffffff, x); }
#endif

DEVICE bool known(u64 w) { return w >> 32 & isKnown; }

// What the decisions of the vector coder cost, in 1/16 bit: flags[context][0 or 1], then residual[context][class], the
// cost of a magnitude class of a residual with the uniform bits that follow it. Contexts are numbered as in
// codec/motion.
enum { ctxLeft = 1, ctxUp = 65, ctxRight = 81, ctxKept = 89, ctxZero = 95, ctxSign = 98, ctxTop = 100, ctxClass = 111, classContexts = 42, classes = 13 };

struct Rates {
  u16 flags[ctxClass][2];
  u16 residual[classContexts][classes];
};

// Around is what a block's cost depends on: its neighbours left, up and up-right, and its vector in the frame before.
struct Around {
  Node left, up, right;
  u32 kept;
};

DEVICE i32 least3(i32 a, i32 b, i32 c) {
  i32 d = a < b ? a : b;
  return c < d ? c : d;
}

DEVICE i32 middle(i32 a, i32 b, i32 c) {
  i32 lo = a < b ? a : b, hi = a < b ? b : a;
  return c < lo ? lo : c > hi ? hi : c;
}

DEVICE u32 median(const Around &a) {
  Vector l = unpacked(a.left.v), u = unpacked(a.up.v), r = unpacked(a.right.v);
  return packed(Vector{middle(l.y, u.y, r.y), middle(l.x, u.x, r.x)});
}

// The costs below are straight code, since branches would cost more than the few lookups in vain.

// residualBits is what v less the median of p, q and s costs; size becomes its class.
DEVICE i32 residualBits(const Rates &t, i32 axis, i32 before, i32 p, i32 q, i32 s, i32 v, i32 &size) {
  i32 lo = least3(p, q, s), hi = -least3(-p, -q, -s), d = v - (p + q + s - lo - hi), m = abs32(d), spread = bitLength(hi - lo);
  size = bitLength(m);
  i32 top = size > 2 ? size - 2 : 0;
  i32 cost = t.residual[before * 7 + (spread < 6 ? spread : 6)][size], sign = t.flags[ctxSign + axis][d < 0], next = t.flags[ctxTop + top][m >> top & 1];
  return cost + (size > 0 ? sign : 0) + (size > 1 ? next : 0);
}

// vectorBits is the cost of v.
DEVICE i32 vectorBits(const Rates &t, const Around &a, u32 v) {
  u32 left = a.left.v, up = a.up.v, right = a.right.v, kept = a.kept;
  i32 news2 = (i32)((a.left.flags & isNew) + (a.up.flags & isNew)), news = news2 + (i32)(a.right.flags & isNew);
  i32 keeps = (i32)((a.left.flags & isKept) + (a.up.flags & isKept)) / isKept;
  bool isLeft = v == left, isUp = v == up, isRight = v == right, isSame = v == kept, isZero = v == 0;
  bool upLeft = up == left, rightLeft = right == left, rightUp = right == up, keptLeft = kept == left, keptUp = kept == up, keptRight = kept == right;
  i32 bits = t.flags[ctxLeft + upLeft + 2 * rightLeft + 4 * keptLeft + 8 * news + 32 * (keeps > 0)][isLeft];
  i32 ofUp = t.flags[ctxUp + rightUp + 2 * keptUp + 4 * news][isUp];
  i32 ofRight = t.flags[ctxRight + keptRight + 2 * news][isRight];
  i32 ofKept = t.flags[ctxKept + (kept == 0) + 2 * keeps][isSame];
  i32 ofZero = t.flags[ctxZero + news2][isZero];
  // A decision is taken where the vector is not coded yet and what it asks for differs from all that was asked before.
  bool open = !isLeft;
  bits += (open & !upLeft) ? ofUp : 0;
  open &= !isUp;
  bits += (open & !rightLeft & !rightUp) ? ofRight : 0;
  open &= !isRight;
  bits += (open & !keptLeft & !keptUp & !keptRight) ? ofKept : 0;
  open &= !isSame;
  bits += (open & (left != 0) & (up != 0) & (right != 0) & (kept != 0)) ? ofZero : 0;
  open &= !isZero;
  Vector l = unpacked(left), u = unpacked(up), r = unpacked(right), w = unpacked(v);
  i32 sizeY, sizeX;
  i32 y = residualBits(t, 0, 0, l.y, u.y, r.y, w.y, sizeY);
  i32 x = residualBits(t, 1, 1 + (sizeY < 4 ? sizeY : 4), l.x, u.x, r.x, w.x, sizeX);
  return bits + (open ? y + x : 0);
}

// codedAs is how v is coded there.
DEVICE u32 codedAs(const Around &a, u32 v) {
  u32 how = v != a.left.v && v != a.up.v && v != a.right.v && v != a.kept && v != 0 ? isNew : 0;
  return how | (v == a.kept ? isKept : 0);
}

// A Place is a block of a pass with all that its decision depends on: of this pass left, up and right (up-right); of the
// pass before its own node and those to the right, below, below to the left and one further left; of the frame before
// the vectors of the block itself, to the right, below and below to the left.
struct Place {
  i32 pass, i, j, hb, wb;
  Node left, up, right;
  Node own, next, below, below1, below2;
  u32 kept, keptNext, keptBelow, keptBelow1;
};

// around is what the block's own cost depends on.
DEVICE Around around(const Place &p) {
  if (p.i == 0) {
    Node n = p.j == 0 ? Node{0, 0} : p.left;
    return Around{n, n, n, p.kept};
  }
  return Around{p.j == 0 ? p.up : p.left, p.up, p.j + 1 == p.wb ? p.up : p.right, p.kept};
}

// A Part is one of the costs that a candidate is judged by: a block around which it counts, and that block's vector.
// Where it says so the candidate stands instead of a neighbour or of the vector.
struct Part {
  Around around;
  u32 v;
  bool left, up, right, itself, counts;
};

// part is number 0, the block itself; 1, 2 or 3, the blocks to the right, below and below to the left. In the first
// pass 1 is what zero costs the block itself, and there are no others.
DEVICE Part part(const Place &p, const Around &a, i32 number) {
  bool first = p.pass == 0, next = p.j + 1 < p.wb, below = p.i + 1 < p.hb, before = p.j > 0;
  i32 n = first ? 0 : number;
  bool n1 = n == 1, n2 = n == 2, n3 = n == 3;
  Part q;
  q.around.left = n2 ? p.below1 : n3 ? (p.j > 1 ? p.below2 : p.left) : a.left;
  q.around.up = n1 ? p.right : n3 ? p.left : a.up; // what is up-right of the block to the right is not known yet
  q.around.right = n1 ? p.right : n2 ? p.next : a.right;
  q.around.kept = n1 ? p.keptNext : n2 ? p.keptBelow : n3 ? p.keptBelow1 : a.kept;
  q.v = n1 ? p.next.v : n2 ? p.below.v : n3 ? p.below1.v : 0;
  q.left = n1 | (n2 & !before);
  q.up = n2 | (n1 & (p.i == 0));
  q.right = n3 | (n2 & !next) | (n1 & (p.i == 0));
  q.itself = number == 0;
  q.counts = (number == 0) | (first & (number == 1)) | (n1 & next) | (n2 & below) | (n3 & below & before);
  return q;
}

// settled says that nothing the decision depends on has changed since the pass before, so that it would come out the same.
DEVICE bool settled(const Place &p) {
  u32 changed = p.own.flags | (p.j > 0 ? p.left.flags : 0);
  if (p.i > 0) changed |= p.up.flags | (p.j + 1 < p.wb ? p.right.flags : 0);
  if (p.j + 1 < p.wb) changed |= p.next.flags;
  if (p.i + 1 < p.hb) changed |= p.below.flags | (p.j > 0 ? p.below1.flags : 0) | (p.j > 1 ? p.below2.flags : 0);
  return p.pass > 1 && !(changed & isChanged);
}

// A warp takes one row of one pass. Of the four lanes of a candidate each takes a part of its rate, too.
enum { choosePasses = 5, chooseThreads = 128 };

// candidate is number n of the first eight.
DEVICE u32 candidate(const Around &a, u32 own, u32 found, i32 n) {
  u32 v = n == 0 ? a.left.v : n == 1 ? a.up.v : n == 2 ? a.right.v : n == 3 ? a.kept : 0;
  return n == 5 ? median(a) : n == 6 ? found : n == 7 ? own : v;
}

struct Choice {
  const Rates *rates;
  Phases ref;
  i32 lambda, limit;
  u32 whole;
};

// A Trial is the candidates of a warp, four lanes each, and what is read to judge them.
struct Trial {
  u32 v;
  Window f;
};

// begin reads what it takes to judge v; there is work to do while it comes.
DEVICE Trial begin(const Choice &c, const Place &p, u32 v) { return Trial{v, window(c.ref, p.i, p.j, unpacked(v))}; }

// finish is the least cost << 4 | number; candidates count where they are there.
DEVICE u32 finish(const Choice &c, const Place &p, const Around &a, Part q, const Block &block, const Trial &t, bool there, i32 number) {
  i32 lane = laneIndex();
  u32 v = t.v;
  Node self = {v, codedAs(a, v)};
  q.around.left = q.left ? self : q.around.left;
  q.around.up = q.up ? self : q.around.up;
  q.around.right = q.right ? self : q.around.right;
  i32 bits = vectorBits(*c.rates, q.around, q.itself ? v : q.v);
  bits = q.counts ? bits : 0;
  if (p.pass == 0) { // a motion of the whole picture must be able to begin somewhere
    i32 zero = (i32)shuffle((u32)bits, lane / 4 * 4 + 1);
    bits = (lane & 3) == 0 ? (v == c.whole && zero < bits ? zero : bits) : 0;
  }
  u32 cost = sumOfFour(satdCost * windowSATD(t.f, block.line) + (u32)(c.lambda * bits));
  return leastOfEight(there && inside(unpacked(v), c.limit) ? cost << 4 | (u32)number : ~0u);
}

// A Base is the best of the first candidates, its cost << 4, and what the next eight are judged by.
struct Base {
  Around around;
  Part part;
  u32 v, key;
};

// firstBest judges the first candidates. All lanes come to it together.
DEVICE Base firstBest(const Choice &c, const Place &p, u32 found, const Block &block) {
  i32 four = laneIndex() / 4;
  Base b;
  b.around = around(p);
  Trial t = begin(c, p, candidate(b.around, p.pass > 0 ? p.own.v : c.whole, found, four));
  warpBarrier();
  b.part = part(p, b.around, laneIndex() & 3);
  b.key = finish(c, p, b.around, b.part, block, t, true, four);
  // Two more where they are, which are often the same as others.
  bool next = p.pass > 0 && p.j + 1 < p.wb && !any(t.v == p.next.v), below = p.pass > 0 && p.i + 1 < p.hb && !any(t.v == p.below.v);
  if (next | below) {
    Trial more = begin(c, p, four == 0 ? p.next.v : p.below.v);
    warpBarrier();
    u32 key = finish(c, p, b.around, b.part, block, more, four == 0 ? next : four == 1 && below, 8 + four);
    b.key = key < b.key ? key : b.key;
  }
  b.v = shuffle(t.v, (i32)(b.key & 7) * 4);
  b.v = b.key & 8 ? (b.key & 1 ? p.below.v : p.next.v) : b.v;
  b.key &= ~15u;
  return b;
}

// lastBest judges the eight around the best, which have been begun, and is what the block takes.
DEVICE Node lastBest(const Choice &c, const Place &p, const Base &b, const Block &block, const Trial &t) {
  u32 key = finish(c, p, b.around, b.part, block, t, true, laneIndex() / 4 + 1);
  key = key < b.key ? key : b.key;
  u32 v = (key & 15) == 0 ? b.v : packed(neighbour(unpacked(b.v), (i32)(key & 15) - 1, 1));
  u32 how = codedAs(b.around, v);
  bool changed = p.pass == 0 || v != p.own.v || how != (p.own.flags & howMask);
  return Node{v, how | (changed ? isChanged : 0) | isKnown};
}

// chooseRow is row i of a pass.
DEVICE void chooseRow(const Choice &c, u32 *vectors, u64 *nodes, const u32 *found, const u32 *before, const u8 *cur, i32 w, i32 h, i32 pass, i32 i) {
  Place p = {};
  p.pass = pass, p.i = i, p.hb = h / 16, p.wb = w / 16;
  i32 lane = laneIndex(), units = p.hb * p.wb, first = p.i * p.wb;
  u64 *mine = nodes + (i64)p.pass * units;

  // Six lanes read ahead what comes new with the next block: the nodes above to the right, to the right and below, and
  // words of the fields before and found. Block -1 is ahead of the first.
  const u64 *node = 0;
  const u32 *word = 0;
  if (lane == 0 && p.i > 0) node = mine + first - p.wb + 1;
  if (lane == 1 && p.pass > 0) node = mine - units + first + 1;
  if (lane == 2 && p.pass > 0 && p.i + 1 < p.hb) node = mine - units + first + p.wb;
  if (lane == 3) word = before + first + 1;
  if (lane == 4 && p.i + 1 < p.hb) word = before + first + p.wb;
  if (lane == 5) word = found + first;
  bool right = lane == 0 || lane == 1 || lane == 3;
  i32 start = right ? -1 : 0, end = right ? p.wb - 1 : p.wb; // blocks for which there is one
  u64 ahead = 0;
  if (right) {
    if (node) ahead = peek(node - 1);
    if (word) ahead = word[-1];
  }

  for (p.j = -1; p.j < p.wb; p.j++) {
    Block block = blockRows(cur, w, p.i, p.j < 0 ? 0 : p.j);
    bool reads = p.j >= start && p.j < end;
    if (node && reads) {
      for (u32 n = 0; !known(ahead); ahead = again(node + p.j)) {
        if (++n >> 26) __builtin_trap(); // half a minute: an error is better than to wait for ever
      }
    }
    warpBarrier();
    u32 low = reads ? (u32)ahead : 0, high = reads ? (u32)(ahead >> 32) : 0;
    p.up = p.right, p.own = p.next, p.below2 = p.below1, p.below1 = p.below;
    p.kept = p.keptNext, p.keptBelow1 = p.keptBelow;
    p.right = Node{shuffle(low, 0), shuffle(high, 0)};
    p.next = Node{shuffle(low, 1), shuffle(high, 1)};
    p.below = Node{shuffle(low, 2), shuffle(high, 2)};
    p.keptNext = shuffle(low, 3), p.keptBelow = shuffle(low, 4);
    u32 here = shuffle(low, 5);
    bool same = p.j < 0 || settled(p);
    Base best = {};
    Trial last = {};
    if (!same) {
      best = firstBest(c, p, here, block);
      last = begin(c, p, packed(neighbour(unpacked(best.v), lane / 4, 1)));
    }
    // What the next block needs is asked for late, since the row above is hardly ahead, but early enough to be here then.
    reads = p.j + 1 >= start && p.j + 1 < end;
    ahead = 0;
    if (node && reads) ahead = peek(node + p.j + 1);
    if (word && reads) ahead = word[p.j + 1];
    if (p.j < 0) continue;
    warpBarrier();
    p.left = same ? Node{p.own.v, (p.own.flags & howMask) | isKnown} : lastBest(c, p, best, block, last);
    if (lane == 0) {
      publish(mine + first + p.j, (u64)p.left.flags << 32 | p.left.v);
      if (p.pass + 1 == choosePasses) vectors[first + p.j] = p.left.v;
    }
  }
}

// search_choose is all passes. Warps take rows of passes by a ticket until there are no more, in an order in which each row
// comes after those that it waits for: the one above in its pass, and the one below in the pass before. So those are
// running or done, however few warps run at a time.
KERNEL_OF(chooseThreads, 1) void search_choose(u32 *vectors, u64 *nodes, u32 *ticket, const u32 *found, const u32 *before, const WholeSearch *search, const Rates *rates,
                                               const u8 *cur, const u8 *phases, const i32 *lambdas, const i32 *frame, i64 w_, i64 h_, i64 limit) {
  SHARED Rates costs;
  for (i32 k = threadIndex(); k < (i32)sizeof(Rates) / 4; k += chooseThreads) ((u32 *)&costs)[k] = ((const u32 *)rates)[k];
  barrier();
  i32 w = (i32)w_, h = (i32)h_, rows = h / 16;
  Choice c = {&costs, phasesOf(phases, w, h), lambdas[frame[0]], (i32)limit, packed(Vector{search->best[wholeSteps].y, search->best[wholeSteps].x})};
  for (;;) {
    u32 taken = 0;
    if (laneIndex() == 0) taken = atomicIncrement(ticket);
    taken = shuffle(taken, 0);
    i32 pass = (i32)taken % choosePasses, row = (i32)taken / choosePasses - 2 * pass;
    if (taken >= (u32)(choosePasses * (rows + 2 * (choosePasses - 1)))) return;
    if (row >= 0 && row < rows) chooseRow(c, vectors, nodes, found, before, cur, w, h, pass, row);
  }
}
