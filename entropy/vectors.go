package entropy

import (
	"fmt"
	"math/bits"

	"github.com/nvcodec/nvcodec/rans"
)

// MaxVector bounds both components of a vector.
const MaxVector = 2047

// Contexts of the vector coder's decisions; see the package documentation.
const (
	ctxUniform = 0
	ctxLeft    = ctxUniform + 1
	ctxUp      = ctxLeft + 64
	ctxRight   = ctxUp + 16
	ctxBefore  = ctxRight + 8
	ctxZero    = ctxBefore + 6
	ctxSign    = ctxZero + 3
	ctxTop     = ctxSign + 2
	ctxClass   = ctxTop + 11
	contexts   = ctxClass + 6*7*12

	maxClass  = 12 // a residual is at most 4094
	minProb   = 16
	maxWeight = 60
)

// A counter is the adaptive probability of a decision being 1: p/65536, with the weight of n observations behind it.
type counter struct{ p, n int32 }

// step moves p towards v by 1/(n+2.5).
func (c *counter) step(v int) {
	d := -c.p
	if v != 0 {
		d += 65536
	}
	c.p = min(65536-minProb, max(minProb, c.p+d*rate[c.n]>>16)) // |d·rate| < 2^16 · 26215 < 2^31
	c.n = min(c.n+1, maxWeight)
}

// rate[n] is ⌊2·65536 / (2n+5)⌋.
var rate = func() (r [maxWeight + 1]int32) {
	for n := range r {
		r[n] = int32(2 * 65536 / (2*n + 5))
	}
	return r
}()

// A modeller turns decisions into ranges with adaptive frequencies: into ops when it encodes, out of in when it decodes.
type modeller struct {
	c   [contexts]counter
	ops []op
	in  *rans.Decoder
	how []uint8 // of each block: see walk
}

// An op is a range to put, and the context of its decision, or none.
type op struct{ start, freq, ctx uint16 }

const noContext = contexts

func (m *modeller) reset(t *Tables) {
	m.c = t.start
	m.ops = m.ops[:0]
	m.in = nil
}

// bit codes the decision v in context x, or decodes and returns it.
func (m *modeller) bit(x, v int) int {
	c := &m.c[x]
	p := uint32(c.p)
	if m.in == nil {
		if v != 0 {
			m.ops = append(m.ops, op{0, uint16(p), uint16(x)})
		} else {
			m.ops = append(m.ops, op{uint16(p), uint16(65536 - p), uint16(x)})
		}
	} else if m.in.Slot() < p {
		m.in.Advance(0, p)
		v = 1
	} else {
		m.in.Advance(p, 65536-p)
		v = 0
	}
	c.step(v)
	return v
}

// bits codes n uniform bits, 0 ≤ n ≤ 15.
func (m *modeller) bits(v uint32, n int) uint32 {
	switch {
	case n == 0:
		return 0
	case m.in == nil:
		m.ops = append(m.ops, op{uint16(v << (16 - n)), 1 << (16 - n), noContext})
		return v
	default:
		return m.in.Bits(n)
	}
}

// vector of a block, (y, x)
type vector [2]int16

func vectorAt(f []int16, b int) vector {
	if f == nil {
		return vector{}
	}
	return vector{f[2*b], f[2*b+1]}
}

func (v vector) valid() bool {
	return v[0] >= -MaxVector && v[0] <= MaxVector && v[1] >= -MaxVector && v[1] <= MaxVector
}

// What later blocks want to know of how a block was coded.
const (
	isNew  = 1 // by its residual
	isKept = 2 // its vector is that of the field before
)

// walk codes or decodes (decode) the field, block by block in raster order. The same lines serve both directions, so
// that they cannot part ways.
func walk(m *modeller, field, before []int16, hb, wb int, decode bool) error {
	n := hb * wb
	if hb < 1 || wb < 1 || len(field) != 2*n || before != nil && len(before) != 2*n {
		return fmt.Errorf("vectors: %d and %d numbers for %d x %d blocks", len(field), len(before), hb, wb)
	}
	if !decode {
		for _, v := range field {
			if v < -MaxVector || v > MaxVector {
				return fmt.Errorf("vectors: component %d", v)
			}
		}
	}
	if done, err := uniform(m, field, before, decode); done || err != nil {
		return err
	}
	if cap(m.how) < n {
		m.how = make([]uint8, n)
	}
	how := m.how[:n]
	for i := range hb {
		for j := range wb {
			b := i*wb + j
			var nb neighbours
			switch {
			case i == 0 && j == 0:
			case i == 0:
				nb.set(field, how, b-1, b-1, b-1)
			case j == 0 && wb == 1:
				nb.set(field, how, b-wb, b-wb, b-wb)
			case j == 0:
				nb.set(field, how, b-wb, b-wb, b-wb+1)
			case j == wb-1:
				nb.set(field, how, b-1, b-wb, b-wb)
			default:
				nb.set(field, how, b-1, b-wb, b-wb+1)
			}
			kept := vectorAt(before, b)
			v := vector{}
			if !decode {
				v = vectorAt(field, b)
			}
			v, isMerge := merge(m, &nb, kept, v)
			how[b] = 0
			if !isMerge {
				how[b] = isNew
				v = residual(m, &nb, v)
				if decode {
					if !v.valid() {
						return corrupt("vectors", "block %d: vector (%d, %d)", b, v[0], v[1])
					}
					if v == nb.v[0] || v == nb.v[1] || v == nb.v[2] || v == kept || v == (vector{}) {
						return corrupt("vectors", "block %d: a merge coded as a residual", b)
					}
				}
			}
			if v == kept {
				how[b] |= isKept
			}
			if decode {
				field[2*b], field[2*b+1] = v[0], v[1]
			}
		}
	}
	return nil
}

// uniform codes whether all vectors are one, and which. An encoder says so when they are, are not zero, and are not
// the field before, which the merges code for less.
func uniform(m *modeller, field, before []int16, decode bool) (bool, error) {
	v := vector{}
	yes := 0
	if !decode {
		v = vectorAt(field, 0)
		same, kept := v != vector{}, true
		for b := 0; b < len(field)/2 && same; b++ {
			same = vectorAt(field, b) == v
			kept = kept && vectorAt(before, b) == v
		}
		if same && !kept {
			yes = 1
		}
	}
	if m.bit(ctxUniform, yes) == 0 {
		return false, nil
	}
	for a := range v {
		v[a] = int16(m.bits(uint32(int(v[a])+MaxVector), 12)) - MaxVector
	}
	if decode {
		if !v.valid() || v == (vector{}) {
			return true, corrupt("vectors", "uniform vector (%d, %d)", v[0], v[1])
		}
		for b := range len(field) / 2 {
			field[2*b], field[2*b+1] = v[0], v[1]
		}
	}
	return true, nil
}

// neighbours are the blocks left, up and up-right.
type neighbours struct {
	v   [3]vector
	how [3]uint8
}

func (nb *neighbours) set(field []int16, how []uint8, left, up, right int) {
	for i, b := range [3]int{left, up, right} {
		nb.v[i], nb.how[i] = vectorAt(field, b), how[b]
	}
}

func one(b bool) int {
	if b {
		return 1
	}
	return 0
}

// merge codes which candidate v is, or that it is none: one decision for each candidate that differs from those before it.
func merge(m *modeller, nb *neighbours, kept, v vector) (vector, bool) {
	left, up, right, zero := nb.v[0], nb.v[1], nb.v[2], vector{}
	news := int(nb.how[0]&isNew + nb.how[1]&isNew + nb.how[2]&isNew)
	keeps := int(nb.how[0]&isKept+nb.how[1]&isKept) / isKept
	if m.bit(ctxLeft+one(left == up)+2*one(left == right)+4*one(left == kept)+8*news+32*one(keeps > 0), one(v == left)) != 0 {
		return left, true
	}
	if up != left {
		if m.bit(ctxUp+one(up == right)+2*one(up == kept)+4*news, one(v == up)) != 0 {
			return up, true
		}
	}
	if right != left && right != up {
		if m.bit(ctxRight+one(right == kept)+2*news, one(v == right)) != 0 {
			return right, true
		}
	}
	if kept != left && kept != up && kept != right {
		if m.bit(ctxBefore+one(kept == zero)+2*keeps, one(v == kept)) != 0 {
			return kept, true
		}
	}
	if left != zero && up != zero && right != zero && kept != zero {
		if m.bit(ctxZero+int(nb.how[0]&isNew+nb.how[1]&isNew), one(v == zero)) != 0 {
			return zero, true
		}
	}
	return v, false
}

// residual codes v against the median of the neighbours, each component as a class, a sign and the bits below the class's highest.
func residual(m *modeller, nb *neighbours, v vector) vector {
	before := 0 // context of the class: 0 for y, 1 + y's class (at most 4) for x
	for a := range v {
		p, q, r := int(nb.v[0][a]), int(nb.v[1][a]), int(nb.v[2][a])
		lo, hi := min(p, q, r), max(p, q, r)
		med := p + q + r - lo - hi
		d := int(v[a]) - med
		size := max(d, -d)
		class := bits.Len32(uint32(size))
		ctx := ctxClass + (before*7+min(6, bits.Len32(uint32(hi-lo))))*12
		u := 0
		for u < maxClass && m.bit(ctx+u, one(u < class)) != 0 {
			u++
		}
		class = u
		before = 1 + min(4, class)
		if class == 0 {
			v[a] = int16(med)
			continue
		}
		neg := m.bit(ctxSign+a, one(d < 0))
		s := 1
		if class > 1 {
			s = 2 | m.bit(ctxTop+class-2, size>>(class-2)&1)
			s = s<<(class-2) | int(m.bits(uint32(size)&(1<<(class-2)-1), class-2))
		}
		if neg != 0 {
			s = -s
		}
		v[a] = int16(med + s)
	}
	return v
}
