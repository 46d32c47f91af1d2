// Launches that begin before those ahead of them in their stream have ended.
#pragma once
#include "device.cuh"

// awaitLaunches stands ahead of everything that a kernel reads of what other launches wrote, and ahead of all that it writes.
// From compute capability 9.0 on a kernel that has it may begin while the launch before it ends, and lets the next one
// begin as early. What no launch writes may be read before: weights, and by way of constant other tensors of a model.
DEVICE void awaitLaunches() {
#if NVCODEC_SM >= 90 && !defined(NVCODEC_EMULATE)
  asm volatile("griddepcontrol.launch_dependents;\n\tgriddepcontrol.wait;" ::: "memory");
#endif
}

#ifdef NVCODEC_EMULATE
DEVICE u32 constant(const u32 *p) { return *p; }
DEVICE i32x4 constant(const i32x4 *p) { return *p; }
DEVICE u8 constant(const i8 *p) { return (u8)*p; }
#else
DEVICE u32 constant(const u32 *p) {
  u32 d;
  asm("{.reg .u64 g; cvta.to.global.u64 g, %1; ld.global.nc.u32 %0, [g];}" : "=r"(d) : "l"(p));
  return d;
}
DEVICE i32x4 constant(const i32x4 *p) {
  i32 d[4];
  asm("{.reg .u64 g; cvta.to.global.u64 g, %4; ld.global.nc.v4.u32 {%0,%1,%2,%3}, [g];}" : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3]) : "l"(p));
  return i32x4{d[0], d[1], d[2], d[3]};
}
DEVICE u8 constant(const i8 *p) {
  u32 d;
  asm("{.reg .u64 g; cvta.to.global.u64 g, %1; ld.global.nc.u8 %0, [g];}" : "=r"(d) : "l"(p));
  return (u8)d;
}
#endif
