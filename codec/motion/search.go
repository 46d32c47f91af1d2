package motion

import (
	"math/bits"

	"github.com/nvcodec/nvcodec/inference/kernel"
	"github.com/nvcodec/nvcodec/yuv"
)

const (
	maxVector   = 2047
	passes      = 5 // of the choice
	quarterSide = 8 // samples at a quarter of the resolution that the finer full search reaches
	satdCost    = 6 // of 1 of SATD, in the unit of the tables' λ, in which 1 of SAD was 16: the best on eight clips
)

// A Searcher finds the vectors of a video's frames. It is not safe for concurrent use.
type Searcher struct {
	t              *Tables
	satd           func(a []byte, strideA int, b []byte, strideB int) int32
	w, h           int
	hb, wb         int
	threads, limit int

	cur   *yuv.Planes
	ref   *phases
	cur4  *small
	ref4  *small
	cur8  *small
	ref8  *small
	full4 *full
	full8 *full

	all         vector // what the whole picture does
	found, next *field
	foundSATD   []int32
	wave        *wavefront
	choice      choice
}

// NewSearcher returns a searcher for pictures of w x h luma samples, multiples of 64. No vector points farther than
// reach samples in y or x (at most 511). Neither k nor threads changes what is found.
func NewSearcher(t *Tables, k kernel.Set, w, h, threads, reach int) *Searcher {
	if w <= 0 || h <= 0 || w%64 != 0 || h%64 != 0 {
		panic("motion: the size of a picture must be a multiple of 64")
	}
	threads, reach = max(threads, 1), Reach(reach)
	s := &Searcher{t: t, satd: k.SATD16, w: w, h: h, hb: h / 16, wb: w / 16, threads: threads, limit: 4 * reach}
	s.ref = newPhases(w, h, threads)
	r4, r8 := FullReach(reach)
	s.cur4, s.ref4 = newSmall(w/4, h/4, 0), newSmall(w/4, h/4, r4)
	s.cur8, s.ref8 = newSmall(w/8, h/8, 0), newSmall(w/8, h/8, r8)
	s.full4, s.full8 = newFull(h/16, w/16, r4, threads), newFull(h/32, w/32, r8, threads)
	s.found, s.next = newField(s.hb, s.wb), newField(s.hb, s.wb)
	s.foundSATD = make([]int32, s.hb*s.wb)
	s.wave = newWavefront(s.hb, s.wb)
	s.choice.init(s.hb, s.wb)
	return s
}

// Reach returns how far vectors may point, in samples, when so much is asked for.
func Reach(reach int) int { return min(max(reach, 0), maxVector/4) }

// FullReach returns how far the full searches go, in samples at a quarter and at an eighth of the resolution.
func FullReach(reach int) (quarter, eighth int) { return min(quarterSide, reach/4), reach / 8 }

// Search returns the field (vy, vx)[h/16][w/16] that predicts cur from ref, the picture decoded before it, both at padded size, where
// before is the field of the frame before (nil: zero) and qp the frame's own.
func (s *Searcher) Search(cur, ref *yuv.Planes, before []int16, qp int) []int16 {
	if cur.W != s.w || cur.H != s.h || ref.W != s.w || ref.H != s.h || before != nil && len(before) != 2*s.hb*s.wb {
		panic("motion: a picture or field of another size")
	}
	s.cur = cur
	lambda := s.t.Search16[qp]
	s.prepare(ref)
	s.full4.run(s.threads, s.cur4, s.ref4, 2*lambda)
	s.full8.run(s.threads, s.cur8, s.ref8, 2*lambda)
	s.all = s.global()
	s.blocks(func(i, j int) (vector, int32) { return s.start(i, j, lambda) })
	for step := int16(8); step > 0; step /= 2 { // two samples, one, a half, a quarter
		s.blocks(func(i, j int) (vector, int32) { return s.refine(i, j, step, lambda) })
	}
	return s.choose(before, s.t.Lambda16[qp])
}

// prepare computes the averages of both pictures and the reference at all phases.
func (s *Searcher) prepare(ref *yuv.Planes) {
	each(s.threads, 2, func(i, _ int) {
		if i == 0 {
			s.cur4.shrink(s.cur.Y, s.cur.StrideY, 4)
			s.cur8.shrink(s.cur4.row(0), s.cur4.stride, 2)
		} else {
			s.ref4.shrink(ref.Y, ref.StrideY, 4)
			s.ref8.shrink(s.ref4.row(0), s.ref4.stride, 2)
		}
	})
	s.ref.load(s.threads, ref.Y, ref.StrideY)
}

// blocks replaces the field found by f of every block.
func (s *Searcher) blocks(f func(i, j int) (vector, int32)) {
	each(s.threads, s.hb, func(i, _ int) {
		for j := range s.wb {
			k := i*s.wb + j
			s.next.v[k], s.foundSATD[k] = f(i, j)
		}
	})
	s.found, s.next = s.next, s.found
}

func (s *Searcher) inside(v vector) bool {
	l := int16(s.limit)
	return -l <= v.y && v.y <= l && -l <= v.x && v.x <= l
}

// satdAt compares block (i, j) with where v points.
func (s *Searcher) satdAt(i, j int, v vector) int32 {
	return s.satd(s.cur.Y[16*i*s.cur.StrideY+16*j:], s.cur.StrideY, s.ref.at(16*i, 16*j, int(v.y), int(v.x)), s.ref.stride)
}

// start takes the best of what the full searches found for the block, zero, and what they found for its neighbours.
func (s *Searcher) start(i, j int, lambda int32) (vector, int32) {
	at4 := func(w []winner, i, j int) vector {
		d := w[min(max(i, 0), s.hb-1)*s.wb+min(max(j, 0), s.wb-1)].d
		return vector{int16(16 * d.y), int16(16 * d.x)}
	}
	at8 := func(w []winner) vector {
		d := w[i/2*(s.wb/2)+j/2].d
		return vector{int16(32 * d.y), int16(32 * d.x)}
	}
	near, own := s.full4.near, s.full4.own
	candidates := [10]vector{
		at4(near, i, j), {}, s.all, at4(near, i, j-1), at4(near, i-1, j), at4(near, i, j+1), at4(near, i+1, j),
		at4(own, i, j), at8(s.full8.near), at8(s.full8.own),
	}
	var best vector
	var bestSATD int32
	bestCost := int32(1<<31 - 1)
next:
	for n, v := range candidates {
		for _, earlier := range candidates[:n] {
			if v == earlier {
				continue next
			}
		}
		satd := s.satdAt(i, j, v)
		if c := satdCost*satd + lambda*min(distance(v, vector{}), distance(v, s.all)); c < bestCost {
			best, bestSATD, bestCost = v, satd, c
		}
	}
	return best, bestSATD
}

// refine compares the vector found with the eight around it. What a vector costs is guessed from its distance to what
// was found for the left and the upper block.
func (s *Searcher) refine(i, j int, step int16, lambda int32) (vector, int32) {
	base, left, up := s.found.at(i, j), s.found.at(i, j-1), s.found.at(i-1, j)
	rate := func(v vector) int32 { return lambda * (distance(v, left) + distance(v, up)) / 2 }
	best, bestSATD := base, s.foundSATD[i*s.wb+j]
	bestCost := satdCost*bestSATD + rate(base)
	for _, d := range around8 {
		v := vector{base.y + d.y*step, base.x + d.x*step}
		c := rate(v)
		if !s.inside(v) || c >= bestCost {
			continue
		}
		satd := s.satdAt(i, j, v)
		if c += satdCost * satd; c < bestCost {
			best, bestSATD, bestCost = v, satd, c
		}
	}
	return best, bestSATD
}

// distance is a rough guess of what a vector costs next to another, in 1/16 bit.
func distance(a, b vector) int32 { return distance1(a.y-b.y) + distance1(a.x-b.x) }

func distance1(d int16) int32 {
	if d == 0 {
		return 0
	}
	return 16 + 32*int32(bits.Len16(uint16(max(d, -d))))
}

// around8 are the neighbours of a vector in raster order.
var around8 = [8]vector{{-1, -1}, {-1, 0}, {-1, 1}, {0, -1}, {0, 1}, {1, -1}, {1, 0}, {1, 1}}
