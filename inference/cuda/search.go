//go:build cuda

package cuda

import (
	"fmt"
	"unsafe"

	"github.com/nvcodec/nvcodec/codec/motion"
	"github.com/nvcodec/nvcodec/inference"
)

// The motion search of codec/motion on a device, with the same field. Pictures are at padded size, planes one behind
// the other with tight rows; fields are (vy, vx) in int16, [h/16][w/16].

// searchTables hold on a device what the model file and the order of displacements say to a search.
type searchTables struct {
	m                       machine
	base                    pointer
	lambda, search16, rates pointer // i32 [64] each; as kernels/motion_choose.cuh has its Rates
	list, places            pointer // of displacements: i8 (y, x) in their order, and u16 [127][127], the inverse
}

// listReach is how far the longest full search goes.
const listReach = 63

var displacements = motion.Displacements(listReach)

// places returns where in the list each displacement stands.
func places() []uint16 {
	const side = 2*listReach + 1
	p := make([]uint16, side*side)
	for n := 0; n < len(displacements); n += 2 {
		p[(int(displacements[n])+listReach)*side+int(displacements[n+1])+listReach] = uint16(n / 2)
	}
	return p
}

// listCount returns how much of the list holds all displacements within r.
func listCount(r int) int {
	for n := len(displacements)/2 - 1; ; n-- {
		if y, x := int(displacements[2*n]), int(displacements[2*n+1]); max(y, -y, x, -x) <= r {
			return n + 1
		}
	}
}

// Contexts of the vector coder, as codec/motion numbers them.
const (
	contextTop   = 100
	contextClass = 111
	classRows    = 42
	maxClass     = 12
)

// rates arranges costs for the kernels: of the flags both, and of a residual's class the sum that its unary code and
// the uniform bits behind it cost.
func rates(bits *motion.Rates) []uint16 {
	var out []uint16
	for _, c := range bits[:contextClass] {
		out = append(out, uint16(c[0]), uint16(c[1]))
	}
	for row := range classRows {
		c := bits[contextClass+row*maxClass:][:maxClass]
		var ones int32
		for class := range maxClass + 1 {
			cost := ones + 16*int32(max(0, class-2))
			if class < maxClass {
				cost += c[class][0]
				ones += c[class][1]
			}
			out = append(out, uint16(cost))
		}
	}
	return out
}

// newSearchTables uploads the tables of a model; the machine is left in sync. Close gives them back.
func newSearchTables(m machine, model *inference.Model) (*searchTables, error) {
	t, err := motion.NewTables(model.Ints)
	if err != nil {
		return nil, err
	}
	return uploadSearchTables(m, t)
}

func uploadSearchTables(m machine, t *motion.Tables) (*searchTables, error) {
	parts := [][]byte{raw(t.Lambda16[:]), raw(t.Search16[:]), raw(rates(&t.Bits16)), raw(displacements), raw(places())}
	var l layoutOf
	var at []int64
	for _, p := range parts {
		at = append(at, l.take(int64(len(p))))
	}
	base, err := loaded(m, l.bytes, l.bytes, func(image []byte) {
		for i, p := range parts {
			copy(image[at[i]:], p)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("cuda: tables of the motion search: %w", err)
	}
	return &searchTables{m: m, base: base, lambda: base + pointer(at[0]), search16: base + pointer(at[1]), rates: base + pointer(at[2]), list: base + pointer(at[3]), places: base + pointer(at[4])}, nil
}

// raw is the memory of a slice.
func raw[T int8 | uint16 | int32](x []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x))), len(x)*int(unsafe.Sizeof(x[0])))
}

func (t *searchTables) close() error { return t.m.free(t.base) }

// A layoutOf hands out aligned parts of one block of memory.
type layoutOf struct{ bytes int64 }

func (l *layoutOf) take(bytes int64) int64 {
	at := l.bytes
	l.bytes += aligned(bytes)
	return at
}

// smallBytes is the size of a picture of averages with a margin of r, as kernels/motion_small.cuh lays it out.
func smallBytes(w, h, r int) int64 { return int64(w+2*((r+3)&^3)+4) * int64(h+2*r) }

// phaseRows and phaseStrips are the size of a phase of the reference, in rows of strips of 16 samples.
func phaseRows(h int) int   { return h + 40 }
func phaseStrips(w int) int { return (w + 64) / 16 }

// phaseChunk returns how many rows a thread makes of the phases, and how many threads that takes: as many as can run at
// once, two blocks of them on a multiprocessor.
func phaseChunk(w, h, processors int) (rows, columns int) {
	for rows = 16; ; rows += 8 {
		columns = 4 * 4 * phaseStrips(w) * ((phaseRows(h) + rows - 1) / rows)
		if columns <= 2*threads*processors || rows >= phaseRows(h) {
			return rows, columns
		}
	}
}

// fullTiles returns how many tiles a full search has, and how many warps share the displacements of one: as many as leave
// each six times four, but no more in all than a device has use for.
func fullTiles(r, unitsAcross, unitsDown int) (tiles, warps int) {
	tiles = (unitsAcross + 29) / 30 * ((unitsDown + 3) / 4)
	fours := (2*r + 1) * (((r+3)&^3+r)/4 + 1)
	return tiles, max(1, min(fours/6, 8192/tiles))
}

const (
	choosePasses  = 5
	chooseThreads = 128
	wholeSteps    = 6
	wholeBytes    = 8*6*8 + 16*7 + 2*8 // of a WholeSearch
)

// A searchLayout says where everything lies in the memory that a search works in.
type searchLayout struct {
	w, h, limit                 int
	r4, r8                      int
	nodes, keys, totals         int64 // cleared by the first launch, with
	whole, ticket, cleared      int64
	small, found, satds, phases int64
	bytes                       int64
}

func newSearchLayout(w, h, reach int) *searchLayout {
	reach = motion.Reach(reach)
	l := &searchLayout{w: w, h: h, limit: 4 * reach}
	l.r4, l.r8 = motion.FullReach(reach)
	units := int64(w/16) * int64(h/16)
	var m layoutOf
	l.nodes = m.take(choosePasses * 8 * units)
	l.keys = m.take(4 * (2*units + units/2))
	l.totals = m.take(4 * int64(listCount(l.r4)+listCount(l.r8)))
	l.whole = m.take(wholeBytes)
	l.ticket = m.take(4)
	l.cleared = m.bytes
	l.small = m.take(2*smallBytes(w/4, h/4, l.r4) + 2*smallBytes(w/8, h/8, l.r8))
	l.found = m.take(2 * 4 * units)
	l.satds = m.take(2 * 4 * units)
	l.phases = m.take(16 * 16 * int64(phaseStrips(w)) * int64(phaseRows(h)))
	l.bytes = m.bytes
	return l
}

// searchBytes is the size of the memory that a search works in.
func searchBytes(w, h, reach int) int64 { return newSearchLayout(w, h, reach).bytes }

// chooseGrid returns how many blocks of threads take rows of the choice: some more than are busy on average while the
// wavefront passes. More would hardly be faster and keep others from the multiprocessors.
func chooseGrid(across, down int) int {
	busy := choosePasses * down * across / (across + 2*down + 3*choosePasses)
	return 1 + busy*5/3*32/chooseThreads
}

// searchCalls finds the field that predicts cur from ref, where before is the field of the frame before, all zero
// after a frame without one, and frame[0] the QP. The launches leave nothing in scratch for the next search.
func searchCalls(t *searchTables, vectors, cur, ref, before, frame, scratch pointer, w, h, reach int) []call {
	l := newSearchLayout(w, h, reach)
	at := func(offset int64) pointer { return scratch + pointer(offset) }
	units := w / 16 * (h / 16)
	count4, count8 := listCount(l.r4), listCount(l.r8)
	tiles4, warps4 := fullTiles(l.r4, w/16, h/16)
	tiles8, warps8 := fullTiles(l.r8, w/32, h/32)
	small := 2*smallBytes(w/4, h/4, l.r4) + 2*smallBytes(w/8, h/8, l.r8)
	calls := []call{
		{kernel: "search_begin", grid: blocks(l.cleared/16 + small), args: arg(at(0), l.cleared/16, at(l.small), cur, ref, w, h, l.r4, l.r8)},
		{kernel: "search_full", grid: blocks(32 * int64(tiles4*warps4+tiles8*warps8)), args: arg(at(l.keys), at(l.totals), at(l.small), t.places, t.search16, frame, w, h, l.r4, l.r8, count4, warps4, warps8)},
	}
	chunk, columns := phaseChunk(w, h, t.m.processors())
	calls = append(calls, call{kernel: "search_phases", grid: blocks(int64(columns)), args: arg(at(l.phases), ref, w, h, chunk)})

	grid := min((units/4+7)/8, 512)
	for step := range wholeSteps {
		calls = append(calls, call{kernel: "search_whole", grid: grid,
			args: arg(at(l.whole), at(l.totals), t.list, cur, at(l.phases), w, h, l.r4, l.r8, count4, count8, l.limit, step, 8*grid)})
	}
	found := func(n int) pointer { return at(l.found + int64(n%2*4*units)) }
	satds := func(n int) pointer { return at(l.satds + int64(n%2*4*units)) }
	calls = append(calls, call{kernel: "search_start", grid: blocks(int64(32 * units)),
		args: arg(found(0), satds(0), at(l.whole), at(l.keys), t.list, cur, at(l.phases), t.search16, frame, w, h, l.limit)})
	n := 0
	for step := 8; step > 0; step /= 2 { // two samples, one, a half, a quarter
		calls = append(calls, call{kernel: "search_refine", grid: blocks(int64(32 * units)),
			args: arg(found(n+1), satds(n+1), found(n), satds(n), cur, at(l.phases), t.search16, frame, w, h, l.limit, step)})
		n++
	}
	return append(calls, call{kernel: "search_choose", grid: chooseGrid(w/16, h/16), threads: chooseThreads,
		args: arg(vectors, at(l.nodes), at(l.ticket), found(n), before, at(l.whole), t.rates, cur, at(l.phases), t.lambda, frame, w, h, l.limit)})
}

// cutReach is how far scene cuts compare, in samples at an eighth of the resolution.
const cutReach = 8

// cutBytes is the size of the memory that cutCalls work in.
func cutBytes(w, h int) int64 {
	var m layoutOf
	m.take(2 * int64(w/8) * int64(h/8))
	m.take(2 * smallBytes(w/8, h/8, cutReach))
	m.take(4 * int64(w/32) * int64(h/32))
	return m.bytes
}

// cutCalls leave at dst the two int64 of codec/motion's CutCosts.
func cutCalls(t *searchTables, dst, cur, ref, scratch pointer, w, h int) []call {
	var m layoutOf
	eighth := scratch + pointer(m.take(2*int64(w/8)*int64(h/8)))
	detail := scratch + pointer(m.take(2*smallBytes(w/8, h/8, cutReach)))
	near := scratch + pointer(m.take(4*int64(w/32)*int64(h/32)))
	tiles, warps := fullTiles(cutReach, w/32, h/32)
	return []call{
		{kernel: "cut_eighth", grid: blocks(2 * int64(w/8) * int64(h/8)), args: arg(eighth, near, cur, ref, w, h)},
		{kernel: "cut_detail", grid: blocks(2 * smallBytes(w/8, h/8, cutReach)), args: arg(detail, eighth, w, h)},
		{kernel: "cut_full", grid: blocks(32 * int64(tiles*warps)), args: arg(near, detail, t.places, w, h, warps)},
		{kernel: "cut_sum", grid: 1, args: arg(dst, near, detail, w, h)},
	}
}

// padCalls make a picture of padded size from one of w x h luma samples, both with tight rows, repeating the last
// column and row of each plane.
func padCalls(dst, src pointer, w, h, paddedW, paddedH int) []call {
	return []call{{kernel: "pad", grid: blocks(int64(paddedW) * int64(paddedH) * 3 / 2 / 16), args: arg(dst, src, w, h, paddedW, paddedH)}}
}
