package motion

import "math/bits"

// Contexts of the vector coder's decisions, as package entropy documents and numbers them.
const (
	ctxLeft  = 1
	ctxUp    = 65
	ctxRight = 81
	ctxKept  = 89
	ctxZero  = 95
	ctxSign  = 98
	ctxTop   = 100
	ctxClass = 111
	contexts = ctxClass + 6*7*12

	maxClass = 12 // a residual is at most 4094
)

// How a block is coded, as far as its neighbours' contexts want to know.
const (
	isNew  = 1 // by a residual
	isKept = 2 // its vector is that of the frame before
)

// A Rates holds what the decisions of the vector coder cost, 0 and 1, in 1/16 bit.
type Rates [contexts][2]int32

// around is what a block's cost depends on: its neighbours left, up and up-right, and its vector in the frame before.
type around struct {
	v    [3]vector
	how  [3]uint8
	kept vector
}

func one(b bool) int {
	if b {
		return 1
	}
	return 0
}

// bits returns the cost of v.
func (r *Rates) bits(a *around, v vector) int32 {
	left, up, right, kept := a.v[0], a.v[1], a.v[2], a.kept
	news := int(a.how[0]&isNew + a.how[1]&isNew + a.how[2]&isNew)
	keeps := int(a.how[0]&isKept+a.how[1]&isKept) / isKept
	c := &r[ctxLeft+one(left == up)+2*one(left == right)+4*one(left == kept)+8*news+32*one(keeps > 0)]
	if v == left {
		return c[1]
	}
	b := c[0]
	if up != left {
		c = &r[ctxUp+one(up == right)+2*one(up == kept)+4*news]
		if v == up {
			return b + c[1]
		}
		b += c[0]
	}
	if right != left && right != up {
		c = &r[ctxRight+one(right == kept)+2*news]
		if v == right {
			return b + c[1]
		}
		b += c[0]
	}
	zero := vector{}
	if kept != left && kept != up && kept != right {
		c = &r[ctxKept+one(kept == zero)+2*keeps]
		if v == kept {
			return b + c[1]
		}
		b += c[0]
	}
	if left != zero && up != zero && right != zero && kept != zero {
		c = &r[ctxZero+int(a.how[0]&isNew+a.how[1]&isNew)]
		if v == zero {
			return b + c[1]
		}
		b += c[0]
	}
	class, y := r.residual(0, 0, left.y, up.y, right.y, v.y)
	_, x := r.residual(1, 1+min(4, class), left.x, up.x, right.x, v.x)
	return b + y + x
}

// residual returns the class of v less the median of p, q and r, and what class, sign and lower bits cost.
func (r *Rates) residual(axis, before int, p, q, s, v int16) (class int, cost int32) {
	lo, hi := min(p, q, s), max(p, q, s)
	d := int(v) - (int(p) + int(q) + int(s) - int(lo) - int(hi))
	size := max(d, -d)
	class = bits.Len32(uint32(size))
	c := r[ctxClass+(before*7+min(6, bits.Len16(uint16(hi-lo))))*12:]
	for u := range class {
		cost += c[u][1]
	}
	if class < maxClass {
		cost += c[class][0]
	}
	if class > 0 {
		cost += r[ctxSign+axis][one(d < 0)]
	}
	if class > 1 {
		cost += r[ctxTop+class-2][size>>(class-2)&1] + 16*int32(class-2)
	}
	return class, cost
}

// coded returns how v is coded there.
func (a *around) coded(v vector) uint8 {
	var h uint8
	if v != a.v[0] && v != a.v[1] && v != a.v[2] && v != a.kept && v != (vector{}) {
		h = isNew
	}
	if v == a.kept {
		h |= isKept
	}
	return h
}
