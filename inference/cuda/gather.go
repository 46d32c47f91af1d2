//go:build cuda

package cuda

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
		args := arg(dst, vectors, frame, h, w, total, to, sum)
		for i := range most {
			var p piece
			if i < len(here) {
				p = here[i]
			}
			args = append(args, arg(p.src, p.table, pack(p.count, p.c, int(p.kind), p.r), pack(p.scale, p.lo, p.hi, p.requant))...)
		}
		name, v := runs("gather", counts...)
		all = append(all, call{kernel: name, grid: blocks(int64(h) * int64(w) * int64(sum) / v), args: args})
		to += sum
	}
	return all
}
