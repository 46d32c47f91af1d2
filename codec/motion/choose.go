package motion

// choice is the field being chosen and what is known about it.
type choice struct {
	hb, wb  int
	v       []vector
	how     []uint8
	kept    []vector // the field of the frame before
	changed []uint8  // bit p%2: whether pass p changed the block
	satds   []cache
}

// cache remembers the SATD of vectors tried for a block: later passes try the same again.
type cache struct {
	n    int
	v    [12]vector
	satd [12]int32
}

func (c *choice) init(hb, wb int) {
	c.hb, c.wb = hb, wb
	c.v, c.kept = make([]vector, hb*wb), make([]vector, hb*wb)
	c.how, c.changed = make([]uint8, hb*wb), make([]uint8, hb*wb)
	c.satds = make([]cache, hb*wb)
}

// choose makes the field from what was found.
func (s *Searcher) choose(before []int16, lambda int32) []int16 {
	c := &s.choice
	for k := range c.kept {
		c.kept[k] = vector{}
		if before != nil {
			c.kept[k] = vector{before[2*k], before[2*k+1]}
		}
		c.satds[k].n = 0
	}
	for pass := range passes {
		s.wave.run(s.threads, func(i, j int) { s.decide(pass, i, j, lambda) })
	}
	out := make([]int16, 2*len(c.v))
	for k, v := range c.v {
		out[2*k], out[2*k+1] = v.y, v.x
	}
	return out
}

// around collects what the cost of block (i, j) depends on.
func (c *choice) around(i, j int) around {
	k := i*c.wb + j
	a := around{kept: c.kept[k]}
	var left, up, right int
	switch {
	case i == 0 && j == 0:
		return a
	case i == 0:
		left, up, right = k-1, k-1, k-1
	default:
		left, up, right = k-1, k-c.wb, k-c.wb+1
		if j == 0 {
			left = up
		}
		if j == c.wb-1 {
			right = up
		}
	}
	a.v = [3]vector{c.v[left], c.v[up], c.v[right]}
	a.how = [3]uint8{c.how[left], c.how[up], c.how[right]}
	return a
}

// decide chooses the vector of a block. From the second pass on it also counts what its neighbours to come cost if
// they stay with what they have from the pass before.
func (s *Searcher) decide(pass, i, j int, lambda int32) {
	c := &s.choice
	if pass > 1 && c.settled(pass, i, j) {
		c.changed[i*c.wb+j] &^= 1 << (pass & 1)
		return
	}
	k := i*c.wb + j
	a := c.around(i, j)
	rates := &s.t.Bits16
	known := &c.satds[k]

	var tried [20]vector
	n := 0
	var best vector
	bestCost := int32(1<<31 - 1)
	try := func(v vector) {
		for _, t := range tried[:n] {
			if t == v {
				return
			}
		}
		tried[n] = v
		n++
		if !s.inside(v) {
			return
		}
		// The parts of a cost are not negative, so a partial sum can already lose.
		b := rates.bits(&a, v)
		if pass == 0 && v == s.all {
			b = min(b, rates.bits(&a, vector{}))
		}
		cost := lambda * b
		if cost >= bestCost {
			return
		}
		if pass > 0 {
			if cost += lambda * c.ahead(rates, i, j, v, a.coded(v)); cost >= bestCost {
				return
			}
		}
		if cost += satdCost * s.cached(known, i, j, v); cost < bestCost {
			best, bestCost = v, cost
		}
	}
	try(a.v[0])
	try(a.v[1])
	try(a.v[2])
	try(a.kept)
	try(vector{})
	try(median(a.v[0], a.v[1], a.v[2]))
	try(s.found.v[k])
	if pass == 0 {
		try(s.all)
	}
	if pass > 0 {
		try(c.v[k])
		if j+1 < c.wb {
			try(c.v[k+1])
		}
		if i+1 < c.hb {
			try(c.v[k+c.wb])
		}
	}
	base := best
	for _, d := range around8 {
		try(vector{base.y + d.y, base.x + d.x})
	}
	how := a.coded(best)
	c.changed[k] &^= 1 << (pass & 1)
	if pass == 0 || best != c.v[k] || how != c.how[k] {
		c.changed[k] |= 1 << (pass & 1)
	}
	c.v[k], c.how[k] = best, how
}

// cached returns the SATD of v for a block.
func (s *Searcher) cached(c *cache, i, j int, v vector) int32 {
	for n, t := range c.v[:c.n] {
		if t == v {
			return c.satd[n]
		}
	}
	satd := s.satdAt(i, j, v)
	if c.n < len(c.v) {
		c.v[c.n], c.satd[c.n] = v, satd
		c.n++
	}
	return satd
}

// settled says that nothing a decision depends on has changed since the pass before, so that it would come out the same.
func (c *choice) settled(pass, i, j int) bool {
	this, last := uint8(1)<<(pass&1), uint8(2)>>(pass&1)
	for r := max(i-1, 0); r <= min(i+1, c.hb-1); r++ {
		for q := max(j-2, 0); q <= min(j+1, c.wb-1); q++ {
			m := last
			if r < i || r == i && q < j { // blocks of this pass already
				m = this
			}
			if c.changed[r*c.wb+q]&m != 0 {
				return false
			}
		}
	}
	return true
}

// ahead estimates what the blocks to the right, below to the left and below cost if block (i, j) takes v, coded so. The
// first takes its own upper block for the upper right one too, which is not known better without waiting for it.
func (c *choice) ahead(rates *Rates, i, j int, v vector, how uint8) int32 {
	k := i*c.wb + j
	var sum int32
	if j+1 < c.wb {
		a := around{v: [3]vector{v, v, v}, how: [3]uint8{how, how, how}, kept: c.kept[k+1]}
		if i > 0 {
			u := k + 1 - c.wb
			a.v[1], a.v[2] = c.v[u], c.v[u]
			a.how[1], a.how[2] = c.how[u], c.how[u]
		}
		sum += rates.bits(&a, c.v[k+1])
	}
	if i+1 == c.hb {
		return sum
	}
	below := k + c.wb
	a := around{v: [3]vector{v, v, v}, how: [3]uint8{how, how, how}, kept: c.kept[below]}
	if j > 0 {
		a.v[0], a.how[0] = c.v[below-1], c.how[below-1]
	}
	if j+1 < c.wb {
		a.v[2], a.how[2] = c.v[k+1], c.how[k+1]
	}
	sum += rates.bits(&a, c.v[below])
	if j > 0 {
		a = around{v: [3]vector{c.v[k-1], c.v[k-1], v}, how: [3]uint8{c.how[k-1], c.how[k-1], how}, kept: c.kept[below-1]}
		if j > 1 {
			a.v[0], a.how[0] = c.v[below-2], c.how[below-2]
		}
		sum += rates.bits(&a, c.v[below-1])
	}
	return sum
}
