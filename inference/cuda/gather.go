//go:build cuda

package cuda

import "math/bits"

// A pieceKind says how the positions of a piece are read from its source; kernels/gather.cuh has the same order.
type pieceKind int

const (
	pieceHere pieceKind = iota
	pieceMoved
	pieceDeep // s2d
	pieceFlat // d2s
	piecePacked
)

// A piece is a run of channels of a gathered tensor: where they are read, and what becomes of them on the way.
type piece struct {
	src, table pointer // table of a scale or of a packed picture
	count      int     // channels that it makes
	c          int     // channels of its source
	kind       pieceKind
	r          int // of pieceDeep and pieceFlat
	scale      int // shift of a scale, or -1
	lo, hi     int // clamp
	requant    int // right by so many bits, or left
}

// whole reads c channels as they are.
func whole(src pointer, c int) piece {
	return piece{src: src, count: c, c: c, scale: -1, lo: -32768, hi: 32767}
}

// callsGather make h x w positions of their pieces' channels; a launch takes four pieces.
func callsGather(dst, vectors, frame pointer, h, w int, pieces ...piece) []call {
	const most = 4
	pack := func(a, b, c, d int) int64 {
		return int64(uint64(uint16(a)) | uint64(uint16(b))<<16 | uint64(uint16(c))<<32 | uint64(uint16(d))<<48)
	}
	total := 0
	for _, p := range pieces {
		total += p.count
	}
	var all []call
	for to := 0; len(pieces) > 0; {
		here := pieces[:min(most, len(pieces))]
		pieces = pieces[len(here):]
		sum, counts := 0, []int{total, to}
		for _, p := range here {
			sum += p.count
			counts = append(counts, p.count, p.c)
		}
		name, v := runs("gather", counts...)
		args := arg(dst, vectors, frame, h, w, divisor(w), total, to, sum, divisor(sum/int(v)))
		for i := range most {
			var p piece
			if i < len(here) {
				p = here[i]
			}
			by := 1
			switch p.kind {
			case pieceDeep:
				by = p.c
			case pieceFlat:
				by = p.r
			}
			r := max(p.r, 1)
			args = append(args, arg(p.src, p.table, pack(p.count, p.c, int(p.kind), r|(256+r-1)/r<<8), pack(p.scale, p.lo, p.hi, p.requant), divisor(by))...)
		}
		all = append(all, call{kernel: name, grid: blocks(int64(h) * int64(w) * int64(sum) / v), args: args})
		to += sum
	}
	return all
}

// divisor is a number to divide by, as kernels/gather.cuh has it.
func divisor(d int) int64 {
	s := bits.Len(uint(d - 1))
	m := (uint64(1)<<(31+s) + uint64(d) - 1) / uint64(d)
	return int64(m) | int64(s)<<32
}
