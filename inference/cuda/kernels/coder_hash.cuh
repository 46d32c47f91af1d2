// CRC-32C of a picture: the rows of Y, U and V within the crop, one behind the other. A checksum is linear over GF(2), so
// each lane of a warp takes a piece of one row, and what it has found is moved to its place by a product with a power of
// x: first behind the pieces that follow in its row, then, for the whole row, behind the rows that follow.
#pragma once
#include "coder_lanes.cuh"
#include "coder_layout.cuh"

// Polynomials are reflected, as CRC-32C has them: bit 31 is 1, bit 30 is x.
static const u32 castagnoli = 0x82f63b78;

// product is a*b mod the polynomial.
DEVICE u32 product(u32 a, u32 b) {
  u32 sum = 0;
  UNROLL for (int i = 31; i >= 0; i--) {
    sum ^= a & 1u << i ? b : 0;
    b = b >> 1 ^ (b & 1 ? castagnoli : 0);
  }
  return sum;
}

// Powers is what the host has worked out for a size, with the powers of each row behind it.
struct Powers {
  u32 slices[4][256];         // of byte b followed by 0, 1, 2, 3 zero bytes
  u32 lumaPiece[32], chromaPiece[32]; // x^8 to the number of the row's bytes behind each lane's piece
};

// hash_rows leaves in parts, one for each block, the sum of its 8 rows' checksums in their places. Of a row, each lane
// has a piece of lumaBytes or chromaBytes, multiples of 16; rows begin at multiples of 16 bytes.
KERNEL void hash_rows(u32 *parts, const u8 *picture, const Powers *powers, i64 w_, i64 h_, i64 paddedW, i64 paddedH, i64 lumaBytes, i64 chromaBytes) {
  SHARED u32 slices[4][256], sums[8];
  u32 thread = (u32)threadIndex(), lane = (u32)laneIndex();
  UNROLL for (int i = 0; i < 4; i++) slices[i][thread] = powers->slices[i][thread];
  barrier();
  u32 h = (u32)h_, chromaH = (h + 1) / 2, row = (u32)blockIndex() * 8 + thread / 32, sum = 0;
  if (row < h + 2 * chromaH) {
    bool luma = row < h;
    u32 plane = luma ? 0 : 1 + (row - h >= chromaH), line = luma ? row : (row - h) % chromaH;
    u32 w = luma ? (u32)w_ : ((u32)w_ + 1) / 2, piece = luma ? (u32)lumaBytes : (u32)chromaBytes;
    i64 stride = luma ? paddedW : paddedW / 2, at = line * stride;
    if (plane > 0) at += paddedW * paddedH + (plane - 1) * (paddedW / 2) * (paddedH / 2);
    u32 from = lane * piece, to = from + piece < w ? from + piece : w;
    const u8 *bytes = picture + at;
    for (; from + 16 <= to; from += 16) {
      u32x4 four = *(const u32x4 *)(bytes + from);
      UNROLL for (int i = 0; i < 4; i++) {
        sum ^= four[i];
        sum = slices[3][sum & 255] ^ slices[2][sum >> 8 & 255] ^ slices[1][sum >> 16 & 255] ^ slices[0][sum >> 24];
      }
    }
    for (; from < to; from++) sum = slices[0][(sum ^ bytes[from]) & 255] ^ sum >> 8;
    sum = product(sum, luma ? powers->lumaPiece[lane] : powers->chromaPiece[lane]);
  }
  UNROLL for (int d = 16; d > 0; d /= 2) sum ^= shuffleXor(sum, d);
  if (row < h + 2 * chromaH) sum = product(sum, ((const u32 *)(powers + 1))[row]);
  if (lane == 0) sums[thread / 32] = sum;
  barrier();
  if (thread > 0) return;
  UNROLL for (int i = 1; i < 8; i++) sum ^= sums[i];
  parts[blockIndex()] = sum;
}

// hash_sum adds the parts to what the checksum is for a picture of zeros. With frame the hash goes to the decoder's
// result too.
KERNEL void hash_sum(u32 *hash, const u32 *parts, i64 count, i64 zeros, const Frame *frame) {
  SHARED u32 sums[8];
  u32 thread = (u32)threadIndex(), sum = 0;
  for (u32 i = thread; i < (u32)count; i += 256) sum ^= parts[i];
  UNROLL for (int d = 16; d > 0; d /= 2) sum ^= shuffleXor(sum, d);
  if (laneIndex() == 0) sums[thread / 32] = sum;
  barrier();
  if (thread > 0) return;
  UNROLL for (int i = 1; i < 8; i++) sum ^= sums[i];
  sum ^= (u32)zeros;
  *hash = sum;
  if (frame) ((DecoderResult *)frame->result)->hash = sum;
}
