// Package motion chooses what an encoder sends about motion: a vector for each block of 16x16 luma samples, and whether
// a frame is better coded without the one before. It compares pictures at padded size and uses integers only.
//
// An encoder searches for its source picture in the picture decoded before it, the one that vectors predict from: vectors between sources are off by
// fractions of a sample, which add up from frame to frame wherever nothing else is coded, and the residual then pays for shifting the picture back.
//
// Nothing here touches a decoder: any field is a valid one. But encoders on different devices should write the same
// stream, so what follows fixes the field that Search returns; another implementation that follows it finds the same.
//
// # Conventions
//
// Vectors are (y, x) in quarter luma samples. A block's SATD with v is Σ |H·D·H| over its sixteen blocks of 4x4 luma samples, D their
// differences from the reference at p + v/4, each sample of it filtered, rounded and clamped as docs/MODEL.md says of motion compensation, and H the Hadamard matrix
// of 1 and −1, not normalised. It stands for bits better than the sum of absolute differences (1.5 % BD-rate, train/EXPERIMENTS.md 11). Only vectors within ±4·reach in
// both components are tried (reach at most 511 samples). Blocks are in hb rows of wb. "The nearest inside" replaces a block past an edge
// by the one whose row and column are clamped. Of equal costs the candidate tried first wins throughout.
// S = motion.search16[qp], L = motion.lambda16[qp], B = motion.bits16; products and sums fit 32 bits except the sums over whole pictures.
//
// # Displacements
//
// Both pictures shrink to a quarter: each sample the average of 4x4, (sum + 8) >> 4; and from that to an eighth: of 2x2, (sum + 2) >> 2.
// Coordinates outside are clamped. In the smaller pictures units of 4x4 samples (blocks of 16x16 and areas of 32x32) are
// compared at all displacements d of at most min(8, reach/4) samples at a quarter and reach/8 at an eighth, in the order of |y|+|x|, then y,
// then x. With D(u, d) the sum of absolute differences of unit u, each unit gets two displacements and each picture one:
//
//	near   least Σ w·D(neighbour, d) + 2·S·[d ≠ 0] over the unit (w 4), the four beside it (2) and the four at its corners (1), the nearest inside for those outside
//	own    least 16·D(u, d) + 2·S·[d ≠ 0]
//	whole  least Σ D(u, d) over all units
//
// # One vector for the picture
//
// Over the blocks of even row and column the sum of SATDs is compared of: zero, whole at a quarter (times 16), whole at an eighth (times
// 32). Then for steps of 16, 8, 4, 2, 1 the eight vectors around the best so far at that step are tried in raster order (y, then x), all
// against the same centre, and the best becomes the next centre. The result is G.
//
// # A vector for each block
//
// The distance of two vectors is that of y and that of x: 0 if equal, else 16 + 32·(bits in |difference|).
// First each block takes the least 6·SATD(v) + S·min(distance(v, 0), distance(v, G)) of the vectors
//
//	near at a quarter (times 16); zero; G; near at a quarter of the blocks left, above, right, below (the nearest inside);
//	own at a quarter; near and own at an eighth (times 32) of the unit that holds the block
//
// Then for steps of 8, 4, 2, 1 all blocks at once compare their vector with the eight around it at that step, in raster order
// after itself, by 6·SATD(v) + (S·(distance(v, left) + distance(v, above)) >> 1), where left and above are those blocks' vectors (the nearest
// inside) before the step. What results is the block's found vector.
//
// # The choice
//
// bits(v) of a block is what the vector coder of package entropy needs for v, summed from B: for each decision, in the context that
// its neighbours left, up and up-right, their flags new and kept, and the frame before give it (its documentation has the rules of
// edges), B[context][decision]; and 16 for each uniform bit. The decision for uniform fields is left out.
//
// Five passes go over the blocks in raster order; the flags of a block follow from its vector. In each pass a block takes
// the least 6·SATD(v) + L·(bits(v) + next(v)), of
//
//	left, up, up-right, before, zero; the median of left, up and up-right; its found vector;
//	in the first pass G, in others its own vector of the pass before and those of the blocks to the right and below;
//	the eight vectors around the best of these, in raster order
//
// In the first pass next is 0 and bits(G) is at most bits(zero), so that a motion of the whole picture can begin somewhere. In
// the others next(v) is what the blocks to the right, below and below to the left need for their vectors of the pass before if this
// block takes v: everything else they depend on is as it is at this moment (of this pass where it has been, of the one before elsewhere),
// but the one to the right uses its upper block as its upper right one too.
//
// So a block of a pass depends on the block to the left and the three above in this pass, on its surroundings in the pass before, and
// on the frame before: rows can proceed together, each two blocks behind the one above.
//
// # Scene cuts
//
// Of both source pictures at an eighth of the resolution (the average of 8x8 samples, half up) let m(r) be 16 times the mean of the (2r+1)x(2r+1) samples
// around one (coordinates clamped), half up. Each sample becomes 128 + ((2·(m(1) - m(3)) + 8) >> 4), clamped to 0..255, which is free of light and fades. Units are
// compared as near above, without S, at most 8 samples away, with the other picture and with a flat one of 128. With n units, a the least
// with the picture and f that with the flat one, the frame is a cut if
//
//	3·(Σ min(a, f) + 64·n) > 2·(Σ f + 128·n)
//
// On real clips the quotient of the two sums is below 0.5 within a scene and above 0.8 across a cut.
package motion
