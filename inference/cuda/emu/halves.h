// Halves and their products for kernels/fp16.cuh.
#pragma once
#include <stdlib.h>
#include <string.h>

extern "C" void nvcodec_emu_mma1688(float *c, const uint32_t *a, const uint32_t *b);

// integerOf is the number that a half holds, integerHalf the half that holds an integer: nothing else occurs.
DEVICE int integerOf(uint16_t h) {
  int exponent = h >> 10 & 31, mantissa = 1024 + (h & 1023), shift = 25 - exponent;
  if ((h & 0x7fff) == 0) return 0;
  if (exponent == 0 || shift < 0 || shift > 10 || (mantissa & ((1 << shift) - 1))) abort();
  return h >> 15 ? -(mantissa >> shift) : mantissa >> shift;
}

DEVICE uint16_t integerHalf(int x) {
  int magnitude = x < 0 ? -x : x, exponent = 25;
  if (magnitude >= 2048) abort();
  if (x == 0) return 0;
  for (; magnitude < 1024; exponent--) magnitude *= 2;
  return (uint16_t)((x < 0 ? 0x8000 : 0) | exponent << 10 | (magnitude & 1023));
}

DEVICE u32 subtractHalves(u32 a, u32 b) {
  return integerHalf(integerOf(a) - integerOf(b)) | (u32)integerHalf(integerOf(a >> 16) - integerOf(b >> 16)) << 16;
}

DEVICE void mma1688(float &c0, float &c1, float &c2, float &c3, u32 a0, u32 a1, u32 b) {
  float c[4] = {c0, c1, c2, c3};
  u32 a[2] = {a0, a1};
  nvcodec_emu_mma1688(c, a, &b);
  c0 = c[0], c1 = c[1], c2 = c[2], c3 = c[3];
}
