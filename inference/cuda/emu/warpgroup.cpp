//go:build cuda

#include "block.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern "C" {
#include <stdint.h>
extern int nvcodec_emu_thread;
extern unsigned char *nvcodec_emu_shared;
}

// A device would compute nonsense, or wait for ever.
#define REFUSE(what) (fprintf(stderr, "emu: thread %d: %s\n", nvcodec_emu_thread, what), abort())

// Shared memory of a block begins behind what a kernel's static variables take; any multiple of 1024 will do.
enum { Base = 3072, Limit = 228 << 10, Threads = 1024, Pending = 4, MostColumns = 256, Reads = 20 };

extern "C" uint32_t nvcodec_emu_shared_address(const void *p) { return Base + (uint32_t)((const unsigned char *)p - nvcodec_emu_shared); }

static unsigned char *at(uint32_t address, uint32_t bytes) {
  if (address < Base || address + bytes > Base + Limit) REFUSE("outside shared memory");
  return nvcodec_emu_shared + (address - Base);
}

extern "C" const unsigned char *nvcodec_emu_shared_at(uint32_t address, uint32_t bytes) {
  if (address % bytes) REFUSE("a read that is not aligned");
  return at(address, bytes);
}

// A phase counts bytes that were announced against those that were copied.
struct Phase {
  uint32_t bar, expected, copied;
  struct { uint32_t to, bytes; const void *from; } copies[4];
  int waiting;
};
static Phase phases[Limit / 8]; // by address; blocks of earlier launches have left theirs

static Phase &slot(uint32_t bar) {
  if (bar % 8 || bar < Base || bar >= Base + Limit) REFUSE("a barrier that is not aligned, or outside shared memory");
  return phases[(bar - Base) / 8];
}

static Phase &phase(uint32_t bar) {
  Phase &p = slot(bar);
  if (p.bar != bar) REFUSE("no such barrier");
  return p;
}

extern "C" void nvcodec_emu_phase_init(uint32_t bar) { slot(bar) = Phase{bar}; }

extern "C" void nvcodec_emu_phase_expect(uint32_t bar, uint32_t bytes) {
  Phase &p = phase(bar);
  if (p.expected || !bytes) REFUSE("bytes announced twice, or none");
  p.expected = bytes;
}

extern "C" void nvcodec_emu_fetch(uint32_t to, const void *from, uint32_t bytes, uint32_t bar) {
  Phase &p = phase(bar);
  if (to % 16 || (uintptr_t)from % 16 || bytes % 16 || p.waiting == 4) REFUSE("a copy that is not aligned, or one too many");
  p.copies[p.waiting++] = {to, bytes, from};
}

extern "C" void nvcodec_emu_phase_wait(uint32_t bar) {
  Phase &p = phase(bar);
  for (int i = 0; i < p.waiting; i++) {
    memcpy(at(p.copies[i].to, p.copies[i].bytes), p.copies[i].from, p.copies[i].bytes);
    p.copied += p.copies[i].bytes;
  }
  p.waiting = 0;
  if (!p.expected || p.copied != p.expected) REFUSE("other bytes came than were announced");
}

// What a thread has under way: sums that are not to be read yet, and registers that are still read.
struct Thread {
  bool fenced, committed;
  int sums, reads;
  struct { int32_t *c; int n; int32_t value[MostColumns / 2]; } sum[Pending];
  struct { const uint32_t *a; uint32_t value[4]; } read[2 * Reads];
};
static Thread all[Threads];

struct Group {
  int arrived, generation, n, signed_a, signed_b, more;
  uint64_t b;
  uint32_t a[128][4];
  int32_t *c[128];
};
static Group groups[Threads / 128];

// What B's descriptor names: column j (of N), byte k (of 32). Cores of 8 columns x 16 bytes; bits 62 and 63 say how
// 16-byte pieces are exchanged inside a row of cores (0: not at all).
static int32_t element(uint64_t b, int j, int k, bool is_signed) {
  uint32_t start = (b & 0x3fff) << 4, leading = (b >> 16 & 0x3fff) << 4, stride = (b >> 32 & 0x3fff) << 4;
  int mode = b >> 62;
  uint32_t address;
  if (mode == 0) {
    address = start + k / 16 * leading + j / 8 * stride + j % 8 * 16 + k % 16;
  } else {
    int width = mode == 1 ? 128 : mode == 2 ? 64 : 32; // bytes of a column that lie together
    address = start + j / 8 * stride + j % 8 * width + k;
    address ^= (address >> 7 & (width / 16 - 1)) << 4;
  }
  unsigned char v = *at(address, 1);
  return is_signed ? (int8_t)v : v;
}

static void product(Group &w) {
  static int32_t B[MostColumns][32];
  for (int j = 0; j < w.n; j++)
    for (int k = 0; k < 32; k++) B[j][k] = element(w.b, j, k, w.signed_b);
  for (int warp = 0; warp < 4; warp++) {
    int32_t A[16][32];
    for (int lane = 0; lane < 32; lane++) {
      int g = lane >> 2, t = lane & 3;
      for (int i = 0; i < 16; i++) { // the table of m16n8k32
        uint8_t v = w.a[32 * warp + lane][i / 4] >> (i % 4 * 8);
        bool top = i < 4 || (i >= 8 && i < 12);
        A[top ? g : g + 8][4 * t + i % 4 + (i >= 8 ? 16 : 0)] = w.signed_a ? (int8_t)v : v;
      }
    }
    for (int lane = 0; lane < 32; lane++) {
      int32_t *c = w.c[32 * warp + lane];
      for (int i = 0; i < w.n / 2; i++) {
        int row = (lane >> 2) + i % 4 / 2 * 8, col = i / 4 * 8 + (lane & 3) * 2 + i % 2;
        uint32_t sum = w.more ? c[i] : 0;
        for (int k = 0; k < 32; k++) sum += (uint32_t)(A[row][k] * B[col][k]);
        c[i] = (int32_t)sum;
      }
    }
  }
}

extern "C" void nvcodec_emu_yield(void);

extern "C" void nvcodec_emu_group_fence(void) { all[nvcodec_emu_thread].fenced = true; }

extern "C" void nvcodec_emu_group_product(int32_t *c, int n, const uint32_t *a, int signed_a, uint64_t b, int signed_b, int more) {
  Thread &t = all[nvcodec_emu_thread];
  if (!t.fenced || t.reads == 2 * Reads) REFUSE("a product without a fence, or one too many");
  int i = 0;
  while (i < t.sums && t.sum[i].c != c) i++;
  if (i == t.sums) {
    if (i == Pending) REFUSE("too many sums");
    t.sums++;
    t.sum[i].c = c;
    t.sum[i].n = n / 2;
    memcpy(t.sum[i].value, c, n / 2 * sizeof *c);
    memset(c, 0x5a, n / 2 * sizeof *c);
  }
  t.read[t.reads].a = a;
  memcpy(t.read[t.reads++].value, a, sizeof t.read[0].value);
  t.committed = false;

  Group &w = groups[nvcodec_emu_thread / 128];
  if (w.arrived == 0) {
    w.n = n, w.signed_a = signed_a, w.signed_b = signed_b, w.more = more, w.b = b;
  }
  if (w.n != n || w.signed_a != signed_a || w.signed_b != signed_b || w.more != more || w.b != b) REFUSE("threads of a group execute different products");
  int lane = nvcodec_emu_thread % 128, mine = w.generation;
  memcpy(w.a[lane], a, sizeof w.a[lane]);
  w.c[lane] = t.sum[i].value;
  if (++w.arrived == 128) {
    product(w);
    w.arrived = 0;
    w.generation++;
  } else {
    while (w.generation == mine) nvcodec_emu_yield();
  }
}

extern "C" void nvcodec_emu_group_commit(void) { all[nvcodec_emu_thread].committed = true; }

extern "C" void nvcodec_emu_group_wait(void) {
  Thread &t = all[nvcodec_emu_thread];
  if (t.sums && !t.committed) REFUSE("products are waited for but not committed");
  for (int i = 0; i < t.reads; i++)
    if (memcmp(t.read[i].a, t.read[i].value, sizeof t.read[i].value)) REFUSE("a register was written while a product may read it");
  for (int i = 0; i < t.sums; i++) memcpy(t.sum[i].c, t.sum[i].value, t.sum[i].n * sizeof(int32_t));
  t.sums = t.reads = 0;
  t.fenced = false;
}
