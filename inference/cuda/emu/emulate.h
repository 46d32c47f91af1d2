// The host's side of kernels/device.cuh: a block's threads are fibers of one host thread, so that barriers and the
// products of a warp mean what they mean on a device. The fragments of the products are written out here from the
// tables of the PTX manual, apart from how the kernels use them.
#pragma once
#include <stdint.h>

#define DEVICE static inline
#define KERNEL static
#define KERNEL_OF(threads, blocks) static
#define SHARED static
#define CONSTANT static const
#define UNROLL

extern "C" {
// The thread that runs, and how it lets others run.
extern int nvcodec_emu_thread, nvcodec_emu_block;
void nvcodec_emu_barrier(void);
extern unsigned char *nvcodec_emu_shared; // ends at memory that nothing may touch, but for less than 16 bytes
// The products: every lane hands in its registers and gets its c back when the last one of its warp has come.
void nvcodec_emu_mma8816(int32_t *c, uint32_t a, uint32_t b, int is_signed);
void nvcodec_emu_mma16832(int32_t *c, const uint32_t *a, const uint32_t *b, int is_signed);
}

DEVICE int threadIndex() { return nvcodec_emu_thread; }
DEVICE int blockIndex() { return nvcodec_emu_block; }
DEVICE void barrier() { nvcodec_emu_barrier(); }
DEVICE u8 *dynamicShared() { return nvcodec_emu_shared; }

DEVICE u32 permute(u32 a, u32 b, u32 selector) {
  uint64_t both = (uint64_t)b << 32 | a;
  u32 d = 0;
  for (int i = 0; i < 4; i++) d |= (u32)(both >> (8 * (selector >> (4 * i) & 7)) & 255) << (8 * i);
  return d;
}

DEVICE i64 wide(i32 a, i32 b) { return (i64)a * b; }
DEVICE void split(i64 x, i32 &low, i32 &high) { low = (i32)x, high = (i32)(x >> 32); }

template <bool Signed>
DEVICE i32 dp4(u32 x, u32 w, i32 c) {
  for (int i = 0; i < 4; i++) {
    i32 a = Signed ? (i8)(x >> (8 * i)) : (u8)(x >> (8 * i));
    c += a * (i8)(w >> (8 * i));
  }
  return c;
}

template <bool Signed>
DEVICE void mma8816(i32 &c0, i32 &c1, u32 a, u32 b) {
  i32 c[2] = {c0, c1};
  nvcodec_emu_mma8816(c, a, b, Signed);
  c0 = c[0], c1 = c[1];
}

template <bool Signed>
DEVICE void mma16832(i32 &c0, i32 &c1, i32 &c2, i32 &c3, const u32 *a, u32 b0, u32 b1) {
  i32 c[4] = {c0, c1, c2, c3};
  u32 b[2] = {b0, b1};
  nvcodec_emu_mma16832(c, a, b, Signed);
  c0 = c[0], c1 = c[1], c2 = c[2], c3 = c[3];
}
