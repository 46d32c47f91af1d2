// The host's side of kernels/wgmma.cuh. Products of a warpgroup happen when its last thread has come, but what they add to
// is poisoned until the wait, and registers that they read must still hold the same then; copies into shared memory
// happen at the wait for their barrier.
#pragma once
#include <stdint.h>

extern "C" {
uint32_t nvcodec_emu_shared_address(const void *p);
const unsigned char *nvcodec_emu_shared_at(uint32_t address, uint32_t bytes); // aligned to bytes
void nvcodec_emu_phase_init(uint32_t bar);
void nvcodec_emu_phase_expect(uint32_t bar, uint32_t bytes);
void nvcodec_emu_fetch(uint32_t to, const void *from, uint32_t bytes, uint32_t bar);
void nvcodec_emu_phase_wait(uint32_t bar);
void nvcodec_emu_group_fence(void);
void nvcodec_emu_group_product(int32_t *c, int n, const uint32_t *a, int signed_a, uint64_t b, int signed_b, int more);
void nvcodec_emu_group_commit(void);
void nvcodec_emu_group_wait(void);
}

DEVICE u32 sharedAddress(const void *p) { return nvcodec_emu_shared_address(p); }
DEVICE void phaseInit(u32 bar) { nvcodec_emu_phase_init(bar); }
DEVICE void phaseReady() {}
DEVICE void phaseExpect(u32 bar, u32 bytes) { nvcodec_emu_phase_expect(bar, bytes); }
DEVICE void fetch(u32 to, const void *from, u32 bytes, u32 bar) { nvcodec_emu_fetch(to, from, bytes, bar); }
DEVICE void phaseWait(u32 bar) { nvcodec_emu_phase_wait(bar); }

template <int N>
DEVICE void hold(i32 *) {}
template <int N>
DEVICE void hold(u32 *) {}
template <int N>
DEVICE void hold(u32x4 *) {}

DEVICE void groupFence() { nvcodec_emu_group_fence(); }
DEVICE void groupCommit() { nvcodec_emu_group_commit(); }
DEVICE void groupWait() { nvcodec_emu_group_wait(); }
template <int N, bool SignedA, bool SignedB>
DEVICE void groupProduct(i32 *c, const u32 *a, u64 b, u32 more) {
  nvcodec_emu_group_product(c, N, a, SignedA, b, SignedB, more);
}

DEVICE i32 sharedByte(u32 at) { return *nvcodec_emu_shared_at(at, 1); }
DEVICE void sharedFour(u32 at, i32 *x) { __builtin_memcpy(x, nvcodec_emu_shared_at(at, 16), 16); }

DEVICE i32 joined(i32 high, i32 low) { return (i32)(((u32)high << 8) + (u32)low); }
DEVICE i32 positive(i32 x, i32 most) { return clamp32(x, 0, most); }
