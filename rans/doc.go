// Package rans is the static interleaved rANS coder of the stream: 32-bit states in [2^16, 2^32), 16-bit words,
// 16-bit frequencies. It knows slots and frequencies; what a symbol means is package entropy's matter.
//
// What surprises people first: the encoder works backward, from the last symbol to the first, so that the decoder can
// work forward; one state feeds one lane of symbols, and the lanes of a group share one sequence of words, which is
// why a decoder must take the words in exactly the order below.
//
// # State and slots (normative)
//
// A table maps each of the 65536 slots to a symbol. The number of a symbol's slots is its frequency f, and the offset
// of a slot counts the slots of the same symbol that come before it, in the order that the kind of table states.
// Every frequency is in 1..65535. Decoding one symbol from lane state x:
//
//	slot = x & 0xFFFF
//	s    = symbol of slot
//	x    = f(s) * (x >> 16) + offset(slot)
//	if x < 2^16:  x = x << 16 | next word of the lane's group
//
// and encoding is its inverse, with slot(s, o) the slot of symbol s that has offset o:
//
//	if x >= f(s) << 16:  put word x & 0xFFFF before the words put so far; x = x >> 16
//	x = (x / f(s)) << 16 | slot(s, x % f(s))
//
// One word is always enough: x>>16 is at least 1 and f at least 1, so x ≥ 1 before the refill and ≥ 2^16 after it.
//
// A range (start, f) is the table of one symbol with the slots start..start+f-1; offset = slot - start. A bit with
// probability p (1..65535, of 65536) of being 1 is the range (0, p) for 1 and (p, 65536-p) for 0. n uniform bits with
// value v (1 ≤ n ≤ 15) are the range (v << (16-n), 1 << (16-n)).
//
// # Bucket tables (normative)
//
// A bucket table with parameter n (2..8) cuts the slots into 2^n buckets of W = 2^(16-n) slots, so that slot =
// bucket<<(16-n) | pos. It is given by one 16-bit split for each bucket, read in the same shape: split = right<<(16-n) |
// cut. In bucket b the slots with pos < cut belong to symbol b, the rest to symbol right. Offsets count a
// symbol's left part (the slots 0..cut-1 of its own bucket) first, then its right parts in increasing order of bucket.
// A bucket that belongs to one symbol alone is a right part: cut = 0. So one look-up, one comparison and no search decode any symbol, whatever the table: an
// entry holds split, f(b), f(right) and offset(slot)-pos of the right part, 64 bits. With pos < cut the offset is pos.
// The symbols are 0..m-1 with m ≤ 2^n; each must own a slot, and right < m; buckets b ≥ m have cut = 0.
//
// # Lanes, groups, words (normative)
//
// There are L lanes, a power of two from 1 to 1024; lane l belongs to group l >> 5. Each group has its own sequence of
// words. The symbols of bucket tables are numbered n = 0, 1, … over the whole payload and symbol n belongs to lane
// n mod L; what is coded as ranges (vectors, escapes) belongs to lane 0. A group's words stand in the order in which
// a decoder needs them that decodes everything in coding order: refills by round (n div L), within a round by lane;
// lane 0's ranges stand where they come in coding order. The order between groups never matters.
//
// Every lane starts, in the encoder, and must end, in the decoder, at state 2^16; lane 0 at 2^16 + tail, where tail is
// 16 bits given by the user of the package, which ride for free (0 where unused). When all is decoded every word must have been consumed.
//
// # Payload layout (normative)
//
// Words and states are little-endian. L is not part of the payload.
//
//	L = 1: a state of k bytes holding x - 2^16, then the words. k follows from the payload's length P:
//	       k = P for P < 4; else 3 for odd P, 4 for even P. The encoder takes the smallest k that holds
//	       x - 2^16, among 0..4 when there are no words and among 3, 4 when there are; any other k is corrupt.
//	L ≥ 2: for each group but the last, its number of words as LEB128 (7 bits a byte, low first, no padding, at most 4 bytes);
//	       then the L states in lane order, 4 bytes each, x itself, at least 2^16;
//	       then the words of group 0, of group 1, …; the last group has the rest, an even number of bytes.
//
// States cost 16 + (32 - log2 x) bits of a payload each, 24 bits on average, and with L = 1 about 20.
//
// # Worked example
//
// One lane, tail 0, one table with n = 2 (W = 16384), symbols 0, 1, 2 of frequencies 5000, 50000, 10536, and splits
// 21384, 16384, 26920, 16384, that is (right, cut) = (1, 5000), (1, 0), (1, 10536), (1, 0):
//
//	slots       symbol  offsets
//	    0..4999    0        0..4999     bucket 0, left
//	 5000..16383   1        0..11383    bucket 0, right
//	16384..32767   1    11384..27767    bucket 1
//	32768..43303   2        0..10535    bucket 2, left
//	43304..49151   1    27768..33615    bucket 2, right
//	49152..65535   1    33616..49999    bucket 3
//
// The symbols 0, 0, 0, 1, 2, 0, 1, 1 are coded from the last to the first. The encoder's states, with q = x / f and o = x mod f:
//
//	symbol   x before       word        q      o   slot    x after
//	   1          65536       -         1  15536  20536       86072
//	   1          86072       -         1  36072  51608      117144
//	   0         117144       -        23   2144   2144     1509472
//	   2        1509472       -       143   2824  35592     9407240
//	   1        9407240       -       188   7240  12240    12333008
//	   0       12333008       -      2466   3008   3008   161614784
//	   0      161614784       -     32322   4784   4784  2118259376
//	   0     2118259376    4784         6   2322   2322      395538
//
// In the last step x is at least 5000<<16 = 327680000, so its low 16 bits become a word first and x = 32322 is coded.
// The payload is x - 65536 = 330002 = 0x050912 in three bytes, as it is below 2^24, then the word 0x12B0:
//
//	12 09 05 B0 12
//
// Five bytes: odd, so the state has three. The decoder starts at 395538, whose slot 2322 gives symbol 0 and 5000·6 +
// 2322 = 32322, below 2^16: it takes the word and is at 2118259376; and so on up the table to 65536, where it must end.
package rans
