// Package entropy codes what a frame sends, motion vectors and latent symbols, into one payload. It knows tables and
// levels, not networks; the coder beneath is package rans, whose documentation defines states, slots, bucket tables, lanes and the layout of bytes.
//
// # Payload (normative)
//
// In coding order, which is the order in which a decoder takes things from the lanes:
//
//	vectors    where the frame's graph has them: ranges in lane 0
//	level 0    z: the symbols, then the values of its escapes
//	level 1 …  y: likewise; nvc1 has one such level, of two sections (step 0, then step 1)
//
// A level is what can be decoded at once: the sections whose tables are known before the first of them is decoded. Its
// symbols run through its sections in order, each section in (row, column, channel) order. A symbol of y whose scale
// index is below the frame's threshold T is not coded and is 0; z is coded whole. Coded symbols are numbered 0, 1, …
// through all levels of the frame (no new start at a level) and symbol n is in lane n mod L. The encoder, which works
// backward, puts the last level's escapes first and the vectors last.
//
// # Symbols and escapes (normative)
//
// Table t of a symbol: t = scale index (0..63, Gaussian) for y, t = 64 + z scale (0..63, logistic) for z. Table t has K
// = K(t) and 2K+2 symbols: symbol 0 is the escape, symbol 1+K+k the value k, -K ≤ k ≤ K. When all symbols of a level are decoded, the
// value of each escape symbol follows, in order of symbol number, as ranges in lane 0:
//
//	class  c = 0..14: the range (start, freq) = (2^(15-c), 2^(15-c)); c = the leading zeros of the 16-bit slot; slots 0 and 1 are corrupt
//	bits   c+1 uniform bits: the sign (1 = negative), then c bits m
//	value  ±(K + 2^c + m); outside int16: corrupt
//
// so that an escape costs 2c+2 bits beside its symbol, and the loop over a level's symbols never branches on one.
// Values up to ±32767 (and -32768) can be coded.
//
// The tables are data of the model file (see NewTables). Package convert/tables makes them: frequencies follow P(k) + 1e-5·exp(-|k|/8), the rate that
// training assumed, K is the last magnitude worth a slot of 65536, at most 127, and all else shares the escape.
//
// # Lanes (normative for encoders)
//
// The estimate e is the sum of entropy.cost[t] over the frame's n coded z and y symbols, in 1/4096 bit. L is the largest
// power of two ≤ max(1, ⌊e / 2^23⌋, min(⌊e / 2^21⌋, ⌊n / 2^13⌋)), at most 1024: a lane for every 256 bytes, or for every
// 8192 symbols where they have 64 bytes at least. A lane costs three bytes and a decoder's time follows the symbols of a
// lane, which few bytes may hold very many of. L stands in the frame record; a decoder takes any power of two up to 1024.
//
// # Vectors (normative)
//
// One vector v = (y, x), both within ±2047, for each of the HB x WB blocks of 16x16 luma samples, in raster order.
// Everything is coded as binary decisions with adaptive probabilities and as uniform bits, ranges in lane 0. A
// decision has a context; context i has a probability p of 1 (of 65536) and a weight n, which start in every frame at
// entropy.vector.prob[i] and entropy.vector.weight[i]. Value 1 is the range (0, p), value 0 is (p, 65536-p). After each decision b:
//
//	d = (b ? 65536 : 0) - p
//	p = clamp(p + ((d * r[n]) >> 16), 16, 65520)     r[n] = ⌊131072 / (2n+5)⌋, >> arithmetic, all in int32
//	n = min(n + 1, 60)
//
// The field starts with decision 0: 1 if all vectors are the same. Then the vector follows, y+2047 and x+2047 as 12
// uniform bits each, and nothing else; zero or a component beyond 2047 is corrupt. An encoder must use it where
// the vectors are all the same, not zero, and not all equal to the field before; a decoder does not check that.
//
// Otherwise, for each block, with the neighbours left, up, right (that is, up-right) and before, the same block's
// vector in the field of the frame before (zero after an intra frame): in row 0 up and right are left; in column 0 left is up; past
// the right edge right is up; for the first block all three are zero. A neighbour stands for a block, its vector and these two flags of it, both 0 for the first block's neighbours:
//
//	new(b)   1 if b was coded by a residual
//	kept(b)  1 if b's vector equals b's vector in the field before
//
// The candidates are left, up, right, before, zero, in this order. For each candidate that differs from all earlier
// ones a decision says whether the vector is that candidate; 1 ends the block. So a vector equal to a candidate is
// always coded as the first such. [e] is 1 if e holds, else 0; news = new(left) + new(up) + new(right); keeps = kept(left) + kept(up):
//
//	candidate  context
//	left        1 + [left=up] + 2[left=right] + 4[left=before] + 8 news + 32 [keeps>0]
//	up         65 + [up=right] + 2[up=before] + 4 news
//	right      81 + [right=before] + 2 news
//	before     89 + [before=zero] + 2 keeps
//	zero       95 + new(left) + new(up)
//
// If it is none of them, the residual d = v - median(left, up, right) follows for y, then x, the median taken of each component:
//
//	class  c = bits in |d| (0 for 0), 0..12, in unary: for u = 0, 1, …, 11 the decision [u < c], until one is 0
//	       context 111 + (7·a + s)·12 + u; a = 0 for y, 1 + min(4, c of y) for x;
//	       s = min(6, bits in (largest - smallest of the three neighbours' components))
//	sign   if c > 0: the decision [d < 0], context 98 for y, 99 for x
//	top    if c > 1: the decision [bit c-2 of |d|], context 98 + c
//	rest   if c > 2: the low c-2 bits of |d|, uniform
//
// There are 615 contexts. A residual that gives a component beyond 2047 or one of the candidates is corrupt.
//
// # Errors
//
// Whatever the bytes, a decoder reads within the payload, allocates by the caller's sizes alone, and returns a
// CorruptError that names the part. A payload is whole when every lane is back at its start state and every word is used.
package entropy
