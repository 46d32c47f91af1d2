// Convolutions on the matrix unit of compute capability 9.0.
// families: 90a
#include "group.cuh"

// group_probe is one product of 64 x 32 by 32 x 64 bytes, for tests: sums [64][64] = a [64][32] * b, b being what a
// descriptor without its address names in an image of shared memory. kinds: 1 a is signed, 2 b is.
KERNEL void group_probe(i32 *sums, const u8 *a, const u8 *image, i64 bytes, i64 descriptor, i64 kinds) {
  u8 *memory = dynamicShared();
  u32 base = sharedAddress(memory), bar = base + (u32)bytes;
  i32 thread = threadIndex(), lane = thread % 32, row = thread / 32 * 16 + lane / 4, t = lane % 4;
  if (thread == 0) {
    phaseInit(bar);
    phaseReady();
    phaseExpect(bar, (u32)bytes);
    fetch(base, image, (u32)bytes, bar);
  }
  barrier();
  phaseWait(bar);
  u32 x[4];
  i32 c[32];
  UNROLL for (int i = 0; i < 4; i++) x[i] = *(const u32 *)(a + (row + i % 2 * 8) * 32 + i / 2 * 16 + 4 * t);
  UNROLL for (int i = 0; i < 32; i++) c[i] = 0;
  u64 b = (u64)descriptor + matrix(base, 0, 0);
  hold<4>(x);
  hold<32>(c);
  groupFence();
  if (kinds == 0) groupProduct<64, false, false>(c, x, b, 0);
  if (kinds == 1) groupProduct<64, true, false>(c, x, b, 0);
  if (kinds == 2) groupProduct<64, false, true>(c, x, b, 0);
  if (kinds == 3) groupProduct<64, true, true>(c, x, b, 0);
  groupCommit();
  groupWait();
  hold<32>(c);
  UNROLL for (int i = 0; i < 32; i++) sums[(row + i % 4 / 2 * 8) * 64 + i / 4 * 8 + 2 * t + i % 2] = c[i];
}
