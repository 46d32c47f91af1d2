// What the kernels need of CUDA C++, without a toolkit's headers: types, thread indices, barriers, and the few
// instructions that C++ cannot say. Compiled for the host, the same names come from ../emu/emulate.h.
//
// Every parameter of a kernel is a pointer or an i64, since launches copy eight bytes for each.
#pragma once

typedef signed char i8;
typedef unsigned char u8;
typedef short i16;
typedef int i32;
typedef unsigned int u32;
typedef long long i64;
typedef u32 u32x4 __attribute__((vector_size(16)));
typedef u32 u32x2 __attribute__((vector_size(8)));
typedef i32 i32x4 __attribute__((vector_size(16)));

#ifdef NVCODEC_EMULATE
#include "../emu/emulate.h"
#else

#define DEVICE static inline __attribute__((device, always_inline))
// A kernel's blocks have 256 threads, or those stated with how many blocks a multiprocessor should hold at least.
#define KERNEL KERNEL_OF(256, 1)
#define KERNEL_OF(threads, blocks) extern "C" __attribute__((global, launch_bounds(threads, blocks)))
#define SHARED static __attribute__((shared))
#define CONSTANT static __attribute__((device)) const
#define UNROLL _Pragma("unroll")

DEVICE int threadIndex() { return __nvvm_read_ptx_sreg_tid_x(); }
DEVICE int blockIndex() { return __nvvm_read_ptx_sreg_ctaid_x(); }
DEVICE void barrier() { __syncthreads(); }

// dynamicShared is the block's memory whose size the launch says, aligned to 16 bytes.
extern __attribute__((shared, aligned(16))) u32x4 nvcodec_dynamic_shared[];
DEVICE u8 *dynamicShared() { return (u8 *)nvcodec_dynamic_shared; }

// permute picks bytes: nibble i of the selector names byte i of the result among the eight of b:a.
DEVICE u32 permute(u32 a, u32 b, u32 selector) {
  u32 d;
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(selector));
  return d;
}

// wide is the 64-bit product of two 32-bit numbers, one instruction instead of the four of a 64-bit product.
DEVICE i64 wide(i32 a, i32 b) {
  i64 d;
  asm("mul.wide.s32 %0, %1, %2;" : "=l"(d) : "r"(a), "r"(b));
  return d;
}

// split takes a 64-bit number apart; compilers see no 64-bit comparisons behind it.
DEVICE void split(i64 x, i32 &low, i32 &high) { asm("mov.b64 {%0,%1}, %2;" : "=r"(low), "=r"(high) : "l"(x)); }

// dp4 adds the four products of signed bytes of w with the bytes of x, which are signed or not.
template <bool Signed>
DEVICE i32 dp4(u32 x, u32 w, i32 c) {
  i32 d;
  if (Signed)
    asm("dp4a.s32.s32 %0, %1, %2, %3;" : "=r"(d) : "r"(x), "r"(w), "r"(c));
  else
    asm("dp4a.u32.s32 %0, %1, %2, %3;" : "=r"(d) : "r"(x), "r"(w), "r"(c));
  return d;
}

// The products of a warp: C += A*B with A bytes that are signed or not, B signed bytes. They are volatile so that no
// compiler moves them to where only some lanes come.
template <bool Signed>
DEVICE void mma8816(i32 &c0, i32 &c1, u32 a, u32 b) {
  if (Signed)
    asm volatile("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%0,%1},{%2},{%3},{%0,%1};" : "+r"(c0), "+r"(c1) : "r"(a), "r"(b));
  else
    asm volatile("mma.sync.aligned.m8n8k16.row.col.s32.u8.s8.s32 {%0,%1},{%2},{%3},{%0,%1};" : "+r"(c0), "+r"(c1) : "r"(a), "r"(b));
}

template <bool Signed>
DEVICE void mma16832(i32 &c0, i32 &c1, i32 &c2, i32 &c3, const u32 *a, u32 b0, u32 b1) {
  if (Signed)
    asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
                 : "+r"(c0), "+r"(c1), "+r"(c2), "+r"(c3) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  else
    asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
                 : "+r"(c0), "+r"(c1), "+r"(c2), "+r"(c3) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
#endif

// The arithmetic of docs/MODEL.md.

DEVICE i32 clamp32(i32 x, i32 lo, i32 hi) { return x < lo ? lo : x > hi ? hi : x; }
DEVICE i64 clamp64(i64 x, i64 lo, i64 hi) { return x < lo ? lo : x > hi ? hi : x; }
DEVICE i16 sat16(i32 x) { return (i16)clamp32(x, -32768, 32767); }

// A number that int32 does not hold saturates by its sign; the others, by their low word.
DEVICE i16 sat16(i64 x) {
  i32 low, high;
  split(x, low, high);
  return sat16(high == low >> 31 ? low : high >> 31 ^ 0x7fffffff);
}

// rnd is the rounding shift: (a + 2^(s-1)) >> s, or a for s = 0.
DEVICE i64 rnd(i64 a, i32 s) { return (a + ((i64)1 << s >> 1)) >> s; }

// act needs no more than 32 bits: |x*t| <= 2^15 * 2^14 for f <= 14.
DEVICE i32 act(i32 x, i32 f) {
  i32 half = 1 << (f - 1);
  return (x * clamp32(x + half, 0, 1 << f) + half) >> f;
}

// A run of V int16 values of one position; V is 8 where channel counts allow reading 16 bytes at once, else 1.
template <int V>
struct Run {
  i16 x[V];
};

template <int V>
DEVICE Run<V> load(const i16 *p) {
  Run<V> r;
  if (V == 8) {
    u32x4 w = *(const u32x4 *)p;
    UNROLL for (int i = 0; i < V / 2; i++) {
      r.x[2 * i] = (i16)w[i];
      r.x[2 * i + 1] = (i16)(w[i] >> 16);
    }
  } else {
    UNROLL for (int i = 0; i < V; i++) r.x[i] = p[i];
  }
  return r;
}

template <int V>
DEVICE void store(i16 *p, const Run<V> &r) {
  if (V == 8) {
    u32x4 w;
    UNROLL for (int i = 0; i < V / 2; i++) w[i] = (unsigned short)r.x[2 * i] | (u32)(unsigned short)r.x[2 * i + 1] << 16;
    *(u32x4 *)p = w;
  } else {
    UNROLL for (int i = 0; i < V; i++) p[i] = r.x[i];
  }
}

// unit is the number of this thread in the grid; blocks have 256 threads.
DEVICE u32 unit() { return (u32)blockIndex() * 256u + (u32)threadIndex(); }
