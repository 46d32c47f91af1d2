// The matrix unit of compute capability 9.0: products of a warpgroup (128 threads), whose sums are ready only after a wait,
// with the second matrix read from shared memory as a descriptor says; and copies into shared memory that run on their
// own. Compiled for the host, the same names come from ../emu/warpgroup.h.
#pragma once
#include "halves.cuh"

typedef unsigned long long u64;

// A matrix in shared memory that a product reads without swizzling is made of cores of 8 rows (of B: columns) by 16
// bytes along k, 128 bytes each. leading is the distance of two cores that are neighbours along k, stride of two along
// the other side; both in bytes, as the address multiples of 16.
DEVICE u64 matrix(u32 address, u32 leading, u32 stride) {
  return (u64)((address & 0x3ffff) >> 4) | (u64)(leading >> 4) << 16 | (u64)(stride >> 4) << 32;
}

#ifdef NVCODEC_EMULATE
#include "../emu/warpgroup.h"
#else

// sharedAddress is where p stands among the block's shared memory.
DEVICE u32 sharedAddress(const void *p) {
  u32 a;
  asm("{.reg .u64 s; cvta.to.shared.u64 s, %1; cvt.u32.u64 %0, s;}" : "=r"(a) : "l"(p));
  return a;
}

// Reads of shared memory in one instruction each; a compiler keeps them behind the wait for what they read.
DEVICE i32 sharedByte(u32 at) {
  i32 d;
  asm volatile("ld.shared.u8 %0, [%1];" : "=r"(d) : "r"(at));
  return d;
}
DEVICE void sharedFour(u32 at, i32 *x) { asm volatile("ld.shared.v4.s32 {%0,%1,%2,%3}, [%4];" : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]) : "r"(at)); }

// A phase of a barrier in shared memory ends when one thread has announced bytes and they have come.
DEVICE void phaseInit(u32 bar) { asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(bar) : "memory"); }
DEVICE void phaseReady() { asm volatile("fence.mbarrier_init.release.cluster; fence.proxy.async.shared::cta;" ::: "memory"); }
DEVICE void phaseExpect(u32 bar, u32 bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes) : "memory");
}
// fetch copies bytes, a multiple of 16 between multiples of 16, into shared memory.
DEVICE void fetch(u32 to, const void *from, u32 bytes, u32 bar) {
  asm volatile("{.reg .u64 g; cvta.to.global.u64 g, %1; cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [g], %2, [%3];}" ::"r"(to), "l"(from), "r"(bytes), "r"(bar) : "memory");
}
// phaseWait waits for the end of the first phase; where bytes never come it ends the kernel with an error, seconds later.
DEVICE void phaseWait(u32 bar) {
  u32 done, tries = 0;
  do {
    asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, p;}" : "=r"(done) : "r"(bar) : "memory");
    if (++tries == 1u << 22) asm volatile("trap;");
  } while (!done);
}

// hold keeps what computes and what reads these registers on their sides of it.
template <int N>
DEVICE void hold(i32 *x) {
  UNROLL for (int i = 0; i < N; i++) asm volatile("" : "+r"(x[i])::"memory");
}
template <int N>
DEVICE void hold(u32 *x) {
  UNROLL for (int i = 0; i < N; i++) asm volatile("" : "+r"(x[i])::"memory");
}
template <int N>
DEVICE void hold(u32x4 *x) {
  UNROLL for (int i = 0; i < N; i++) asm volatile("" : "+r"(x[i][0]), "+r"(x[i][1]), "+r"(x[i][2]), "+r"(x[i][3])::"memory");
}

// groupFence stands between what wrote registers and the products that read or add to them, groupCommit behind
// the products, and groupWait in front of what reads the sums or writes the products' registers anew.
DEVICE void groupFence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
DEVICE void groupCommit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
DEVICE void groupWait() { asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory"); }

// groupProduct is C = A*B, or C += A*B with more, of 64 x 32 bytes by 32 x N bytes, each signed or not. Of A a warp holds
// 16 rows as of m16n8k32; of C its lane 4g+t holds in c[4j..4j+3] row g columns 8j+2t, 8j+2t+1 and row g+8 the same.
template <int N, bool SignedA, bool SignedB>
DEVICE void groupProduct(i32 *c, const u32 *a, u64 b, u32 more) {
#define PRODUCT(n, types, sums, A, B, MORE, ...)                                                                    \
  asm volatile("{.reg .pred p; setp.ne.u32 p, " MORE ", 0; wgmma.mma_async.sync.aligned.m64n" #n "k32.s32." types " {" sums "}, {" A "}, " B ", p;}" \
               : __VA_ARGS__ : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(more))
#define PRODUCT32(types) PRODUCT(32, types, "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15", "%16,%17,%18,%19", "%20", "%21", \
    "+r"(c[0]),"+r"(c[1]),"+r"(c[2]),"+r"(c[3]),"+r"(c[4]),"+r"(c[5]),"+r"(c[6]),"+r"(c[7]),"+r"(c[8]),"+r"(c[9]),"+r"(c[10]),"+r"(c[11]),"+r"(c[12]),"+r"(c[13]),"+r"(c[14]),"+r"(c[15]))
#define PRODUCT64(types) PRODUCT(64, types, "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31", "%32,%33,%34,%35", "%36", "%37", \
    "+r"(c[0]),"+r"(c[1]),"+r"(c[2]),"+r"(c[3]),"+r"(c[4]),"+r"(c[5]),"+r"(c[6]),"+r"(c[7]),"+r"(c[8]),"+r"(c[9]),"+r"(c[10]),"+r"(c[11]),"+r"(c[12]),"+r"(c[13]),"+r"(c[14]),"+r"(c[15]),"+r"(c[16]),"+r"(c[17]),"+r"(c[18]),"+r"(c[19]),"+r"(c[20]),"+r"(c[21]),"+r"(c[22]),"+r"(c[23]),"+r"(c[24]),"+r"(c[25]),"+r"(c[26]),"+r"(c[27]),"+r"(c[28]),"+r"(c[29]),"+r"(c[30]),"+r"(c[31]))
#define PRODUCT96(types) PRODUCT(96, types, "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47", "%48,%49,%50,%51", "%52", "%53", \
    "+r"(c[0]),"+r"(c[1]),"+r"(c[2]),"+r"(c[3]),"+r"(c[4]),"+r"(c[5]),"+r"(c[6]),"+r"(c[7]),"+r"(c[8]),"+r"(c[9]),"+r"(c[10]),"+r"(c[11]),"+r"(c[12]),"+r"(c[13]),"+r"(c[14]),"+r"(c[15]),"+r"(c[16]),"+r"(c[17]),"+r"(c[18]),"+r"(c[19]),"+r"(c[20]),"+r"(c[21]),"+r"(c[22]),"+r"(c[23]),"+r"(c[24]),"+r"(c[25]),"+r"(c[26]),"+r"(c[27]),"+r"(c[28]),"+r"(c[29]),"+r"(c[30]),"+r"(c[31]),"+r"(c[32]),"+r"(c[33]),"+r"(c[34]),"+r"(c[35]),"+r"(c[36]),"+r"(c[37]),"+r"(c[38]),"+r"(c[39]),"+r"(c[40]),"+r"(c[41]),"+r"(c[42]),"+r"(c[43]),"+r"(c[44]),"+r"(c[45]),"+r"(c[46]),"+r"(c[47]))
#define PRODUCT128(types) PRODUCT(128, types, "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63", "%64,%65,%66,%67", "%68", "%69", \
    "+r"(c[0]),"+r"(c[1]),"+r"(c[2]),"+r"(c[3]),"+r"(c[4]),"+r"(c[5]),"+r"(c[6]),"+r"(c[7]),"+r"(c[8]),"+r"(c[9]),"+r"(c[10]),"+r"(c[11]),"+r"(c[12]),"+r"(c[13]),"+r"(c[14]),"+r"(c[15]),"+r"(c[16]),"+r"(c[17]),"+r"(c[18]),"+r"(c[19]),"+r"(c[20]),"+r"(c[21]),"+r"(c[22]),"+r"(c[23]),"+r"(c[24]),"+r"(c[25]),"+r"(c[26]),"+r"(c[27]),"+r"(c[28]),"+r"(c[29]),"+r"(c[30]),"+r"(c[31]),"+r"(c[32]),"+r"(c[33]),"+r"(c[34]),"+r"(c[35]),"+r"(c[36]),"+r"(c[37]),"+r"(c[38]),"+r"(c[39]),"+r"(c[40]),"+r"(c[41]),"+r"(c[42]),"+r"(c[43]),"+r"(c[44]),"+r"(c[45]),"+r"(c[46]),"+r"(c[47]),"+r"(c[48]),"+r"(c[49]),"+r"(c[50]),"+r"(c[51]),"+r"(c[52]),"+r"(c[53]),"+r"(c[54]),"+r"(c[55]),"+r"(c[56]),"+r"(c[57]),"+r"(c[58]),"+r"(c[59]),"+r"(c[60]),"+r"(c[61]),"+r"(c[62]),"+r"(c[63]))
#define PRODUCTS(n)                          \
  if (N == n) {                              \
    if (SignedA && SignedB) PRODUCT##n("s8.s8"); \
    if (SignedA && !SignedB) PRODUCT##n("s8.u8"); \
    if (!SignedA && SignedB) PRODUCT##n("u8.s8"); \
    if (!SignedA && !SignedB) PRODUCT##n("u8.u8"); \
  }
  PRODUCTS(32) else PRODUCTS(64) else PRODUCTS(96) else PRODUCTS(128)
#undef PRODUCTS
#undef PRODUCT32
#undef PRODUCT64
#undef PRODUCT96
#undef PRODUCT128
#undef PRODUCT
}

// joined is 256*high + low, modulo 2^32, one instruction.
DEVICE i32 joined(i32 high, i32 low) {
  i32 d;
  asm("mad.lo.s32 %0, %1, 256, %2;" : "=r"(d) : "r"(high), "r"(low));
  return d;
}

// positive is clamp(x, 0, most), one instruction.
DEVICE i32 positive(i32 x, i32 most) {
  i32 d;
  asm("min.relu.s32 %0, %1, %2;" : "=r"(d) : "r"(x), "r"(most));
  return d;
}
#endif
