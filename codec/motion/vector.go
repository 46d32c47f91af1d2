package motion

// vector is (vy, vx) in quarter luma samples.
type vector struct{ y, x int16 }

func mid(a, b, c int16) int16 { return max(min(a, b), min(max(a, b), c)) }

func median(a, b, c vector) vector { return vector{mid(a.y, b.y, c.y), mid(a.x, b.x, c.x)} }

// field is a grid of vectors.
type field struct {
	hb, wb int
	v      []vector
}

func newField(hb, wb int) *field { return &field{hb, wb, make([]vector, hb*wb)} }

// at returns the vector of a block, of the nearest one past an edge.
func (f *field) at(i, j int) vector {
	return f.v[min(max(i, 0), f.hb-1)*f.wb+min(max(j, 0), f.wb-1)]
}
