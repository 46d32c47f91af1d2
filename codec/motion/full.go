package motion

import (
	"encoding/binary"
	"slices"
)

// displacement is one position of a full search.
type displacement struct{ y, x int }

// displacements lists all within r: by |y|+|x|, then y, then x, so that ties go to the nearer.
func displacements(r int) []displacement {
	var list []displacement
	for y := -r; y <= r; y++ {
		for x := -r; x <= r; x++ {
			list = append(list, displacement{y, x})
		}
	}
	size := func(d displacement) int { return max(d.y, -d.y) + max(d.x, -d.x) }
	slices.SortStableFunc(list, func(a, b displacement) int { return size(a) - size(b) })
	return list
}

// Displacements lists y and x of all displacements within r samples, in the order that decides between equals. Those
// within less are in the same order.
func Displacements(r int) []int8 {
	var list []int8
	for _, d := range displacements(r) {
		list = append(list, int8(d.y), int8(d.x))
	}
	return list
}

// A full search finds for each unit of 4x4 samples of a small picture two displacements into another: the one whose
// sum of absolute differences is least over the unit alone, and the one where it is least over the unit and its eight
// neighbours (outside: the nearest inside), weighted 1 2 1 in both directions. The first finds small things, the
// second is not easily fooled. Both sums are of the size of a SAD of 256 samples; every displacement but zero costs
// penalty more, and ties go to the earlier in list.
type full struct {
	list      []displacement
	hu, wu    int
	near      []winner // [hu][wu] over the neighbourhood
	own       []winner // [hu][wu] over the unit
	scratches [][]int32
	totals    [][]int64 // [thread][displacement] sums over all units, without the penalty
}

type winner struct {
	cost int32
	d    displacement
}

func newFull(hu, wu, r, threads int) *full {
	f := &full{list: displacements(r), hu: hu, wu: wu, near: make([]winner, hu*wu), own: make([]winner, hu*wu)}
	for range threads {
		f.scratches = append(f.scratches, make([]int32, 7*(wu+2)))
		f.totals = append(f.totals, make([]int64, len(f.list)))
	}
	return f
}

// run searches for all units, a band of rows on each thread.
func (f *full) run(threads int, cur, ref *small, penalty int32) {
	for _, t := range f.totals {
		clear(t)
	}
	bands(threads, f.hu, func(lo, hi, thread int) { // each band reads a row more on both sides
		f.search(cur, ref, penalty, lo, hi, thread)
	})
}

// overall returns the displacement that is best for the whole picture.
func (f *full) overall() displacement {
	best, least := 0, int64(1<<62)
	for i := range f.list {
		var sum int64
		for _, t := range f.totals {
			sum += t[i]
		}
		if sum < least {
			best, least = i, sum
		}
	}
	return f.list[best]
}

// search handles the units of rows u0..u1.
func (f *full) search(cur, ref *small, penalty int32, u0, u1, thread int) {
	wu, scratch := f.wu, f.scratches[thread]
	sums := scratch[:wu+2]
	var sides, alone [3][]int32 // of the last three rows: weighted along the row, and not
	for k := range 3 {
		sides[k] = scratch[(1+2*k)*(wu+2):][:wu]
		alone[k] = scratch[(2+2*k)*(wu+2):][:wu]
	}
	for i := u0 * wu; i < u1*wu; i++ {
		f.near[i].cost, f.own[i].cost = 1<<31-1, 1<<31-1
	}
	for i, d := range f.list {
		extra := penalty
		if i == 0 {
			extra = 0
		}
		for u := u0 - 1; u <= u1; u++ {
			c, mid := sides[(u+3)%3], alone[(u+3)%3]
			unitSums(sums[1:wu+1], cur, ref, 4*min(max(u, 0), f.hu-1), d)
			sums[0], sums[wu+1] = sums[1], sums[wu]
			for j := range c {
				c[j] = sums[j] + 2*sums[j+1] + sums[j+2]
				mid[j] = sums[j+1]
			}
			if u <= u0 {
				continue
			}
			a, b := sides[(u+1)%3][:wu], sides[(u+2)%3][:wu]
			mid = alone[(u+2)%3][:wu]
			var total int64
			near, own := f.near[(u-1)*wu:][:wu], f.own[(u-1)*wu:][:wu]
			for j := range near {
				if s := a[j] + 2*b[j] + c[j] + extra; s < near[j].cost {
					near[j] = winner{s, d}
				}
				if s := 16*mid[j] + extra; s < own[j].cost {
					own[j] = winner{s, d}
				}
				total += int64(mid[j])
			}
			f.totals[thread][i] += total
		}
	}
}

// unitSums computes the sums of a row of units, whose first sample row is y, at a displacement: two units a word.
func unitSums(sums []int32, cur, ref *small, y int, d displacement) {
	n := 4 * len(sums)
	var a, b [4][]byte
	for r := range a {
		a[r] = cur.row(y + r)[:n]
		b[r] = ref.p[(y+r+d.y+ref.pad)*ref.stride+ref.pad+d.x:][:n]
	}
	a0, a1, a2, a3 := a[0][:n], a[1][:n], a[2][:n], a[3][:n]
	b0, b1, b2, b3 := b[0][:n], b[1][:n], b[2][:n], b[3][:n]
	for i := 0; i+8 <= n; i += 8 {
		t := absDiff(binary.LittleEndian.Uint64(a0[i:]), binary.LittleEndian.Uint64(b0[i:]))
		s := t&low8 + t>>8&low8
		t = absDiff(binary.LittleEndian.Uint64(a1[i:]), binary.LittleEndian.Uint64(b1[i:]))
		s += t&low8 + t>>8&low8
		t = absDiff(binary.LittleEndian.Uint64(a2[i:]), binary.LittleEndian.Uint64(b2[i:]))
		s += t&low8 + t>>8&low8
		t = absDiff(binary.LittleEndian.Uint64(a3[i:]), binary.LittleEndian.Uint64(b3[i:]))
		s += t&low8 + t>>8&low8
		s = s&low16 + s>>16&low16
		sums[i/4], sums[i/4+1] = int32(s&0xffff), int32(s>>32)
	}
}

// absDiff returns the absolute differences of eight bytes.
func absDiff(x, y uint64) uint64 {
	const high = 0x8080808080808080
	e := x ^ y
	d := (x | high) - y&^high
	d ^= ^e & high               // x - y mod 256
	less := (^x&y | ^e&d) & high // its borrow
	mask := less<<1 - less>>7    // 255 where x < y
	return (d ^ mask) + less>>7  // the negative there
}
