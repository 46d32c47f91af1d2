package inference

import (
	"cmp"
	"slices"
)

// A lifetime is a block of memory that is needed from one moment to another, both inclusive.
type lifetime struct {
	first, last int
	size        int64
	offset      int64 // set by stack
}

// alignment keeps blocks on cache lines, in int16 values.
const alignment = 32

// stack gives every block an offset such that no two that live at the same moment overlap, and returns the size of
// the memory that holds them all. Larger blocks choose first and take the lowest gap.
func stack(blocks []*lifetime) int64 {
	order := slices.Clone(blocks)
	slices.SortStableFunc(order, func(a, b *lifetime) int { return cmp.Compare(b.size, a.size) })
	var placed []*lifetime // by offset
	var total int64
	for _, b := range order {
		for _, o := range placed {
			if o.last < b.first || b.last < o.first {
				continue
			}
			if o.offset-b.offset >= b.size {
				break
			}
			b.offset = max(b.offset, aligned(o.offset+o.size))
		}
		i, _ := slices.BinarySearchFunc(placed, b.offset, func(o *lifetime, at int64) int { return cmp.Compare(o.offset, at) })
		placed = slices.Insert(placed, i, b)
		total = max(total, aligned(b.offset+b.size))
	}
	return total
}

func aligned(n int64) int64 { return (n + alignment - 1) / alignment * alignment }
