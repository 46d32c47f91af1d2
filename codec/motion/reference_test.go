package motion

import (
	"math"
	"math/bits"
	"slices"
	"testing"

	"github.com/nvcodec/nvcodec/inference/kernel"
	"github.com/nvcodec/nvcodec/yuv"
)

// reference is the search as the package documentation tells it, without any shortcut.
type reference struct {
	t        *Tables
	cur, ref *yuv.Planes
	hb, wb   int
	reach    int
	memo     map[[4]int]int
}

func (r *reference) satd(i, j int, v vector) int {
	key := [4]int{i, j, int(v.y), int(v.x)}
	if s, ok := r.memo[key]; ok {
		return s
	}
	var d [16][16]int
	for y := range 16 {
		for x := range 16 {
			p := plainLuma(r.ref.Y, r.ref.W, r.ref.H, 16*i+y, 16*j+x, int(v.y), int(v.x))
			d[y][x] = int(p) - int(r.cur.Y[(16*i+y)*r.cur.StrideY+16*j+x])
		}
	}
	hadamard := [4][4]int{{1, 1, 1, 1}, {1, -1, 1, -1}, {1, 1, -1, -1}, {1, -1, -1, 1}}
	s := 0
	for block := range 16 {
		for _, column := range hadamard {
			for _, row := range hadamard {
				c := 0
				for y, a := range column {
					for x, b := range row {
						c += a * b * d[block/4*4+y][block%4*4+x]
					}
				}
				s += max(c, -c)
			}
		}
	}
	r.memo[key] = s
	return s
}

func (r *reference) allowed(v vector) bool {
	return max(v.y, -v.y, v.x, -v.x) <= int16(4*r.reach)
}

type plainPicture struct {
	w, h int
	p    []int
}

func (p plainPicture) at(y, x int) int {
	return p.p[min(max(y, 0), p.h-1)*p.w+min(max(x, 0), p.w-1)]
}

func (p plainPicture) average(n int) plainPicture {
	a := plainPicture{w: p.w / n, h: p.h / n}
	for y := range a.h {
		for x := range a.w {
			sum := n * n / 2
			for k := range n * n {
				sum += p.at(y*n+k/n, x*n+k%n)
			}
			a.p = append(a.p, sum/(n*n))
		}
	}
	return a
}

func plain(p *yuv.Planes) plainPicture {
	a := plainPicture{w: p.W, h: p.H}
	for y := range p.H {
		for x := range p.W {
			a.p = append(a.p, int(p.Y[y*p.StrideY+x]))
		}
	}
	return a
}

func plainFull(cur, ref plainPicture, r, penalty int) (near, own []displacement, whole displacement) {
	var list []displacement
	for size := 0; size <= 2*r; size++ {
		for y := -r; y <= r; y++ {
			for x := -r; x <= r; x++ {
				if max(y, -y)+max(x, -x) == size {
					list = append(list, displacement{y, x})
				}
			}
		}
	}
	hu, wu := cur.h/4, cur.w/4
	diff := func(i, j int, d displacement) (sum int) {
		i, j = min(max(i, 0), hu-1), min(max(j, 0), wu-1)
		for k := range 16 {
			y, x := 4*i+k/4, 4*j+k%4
			e := cur.at(y, x) - ref.at(y+d.y, x+d.x)
			sum += max(e, -e)
		}
		return sum
	}
	least := math.MaxInt
	for _, d := range list {
		sum := 0
		for u := range hu * wu {
			sum += diff(u/wu, u%wu, d)
		}
		if sum < least {
			least, whole = sum, d
		}
	}
	for u := range hu * wu {
		leastNear, leastOwn := math.MaxInt, math.MaxInt
		var n, o displacement
		for k, d := range list {
			extra := min(k, 1) * penalty
			sum := extra
			for y := -1; y <= 1; y++ {
				for x := -1; x <= 1; x++ {
					sum += (2 - y*y) * (2 - x*x) * diff(u/wu+y, u%wu+x, d)
				}
			}
			if sum < leastNear {
				leastNear, n = sum, d
			}
			if s := 16*diff(u/wu, u%wu, d) + extra; s < leastOwn {
				leastOwn, o = s, d
			}
		}
		near, own = append(near, n), append(own, o)
	}
	return
}

func plainDistance(a, b vector) int {
	sum := 0
	for _, d := range [2]int{int(a.y) - int(b.y), int(a.x) - int(b.x)} {
		if d != 0 {
			sum += 16 + 32*bits.Len(uint(max(d, -d)))
		}
	}
	return sum
}

// least returns the first of list with the least cost.
func least(list []vector, cost func(v vector) int) vector {
	return slices.MinFunc(list, func(a, b vector) int { return cost(a) - cost(b) })
}

func (r *reference) eight(v vector, step int) (list []vector) {
	for y := -1; y <= 1; y++ {
		for x := -1; x <= 1; x++ {
			if u := (vector{v.y + int16(y*step), v.x + int16(x*step)}); u != v && r.allowed(u) {
				list = append(list, u)
			}
		}
	}
	return list
}

func (r *reference) search(before []vector, qp int) []vector {
	S, L := int(r.t.Search16[qp]), int(r.t.Lambda16[qp])
	hb, wb := r.hb, r.wb
	cur4, ref4 := plain(r.cur).average(4), plain(r.ref).average(4)
	near4, own4, whole4 := plainFull(cur4, ref4, min(8, r.reach/4), 2*S)
	near8, own8, whole8 := plainFull(cur4.average(2), ref4.average(2), r.reach/8, 2*S)
	times := func(n int, d displacement) vector { return vector{int16(n * d.y), int16(n * d.x)} }

	sum := func(v vector) (s int) {
		for i := 0; i < hb; i += 2 {
			for j := 0; j < wb; j += 2 {
				s += r.satd(i, j, v)
			}
		}
		return s
	}
	G := least([]vector{{}, times(16, whole4), times(32, whole8)}, sum)
	for step := 16; step > 0; step /= 2 {
		G = least(append([]vector{G}, r.eight(G, step)...), sum)
	}

	inside := func(i, j int) int { return min(max(i, 0), hb-1)*wb + min(max(j, 0), wb-1) }
	found := make([]vector, hb*wb)
	for k := range found {
		i, j := k/wb, k%wb
		u := i/2*(wb/2) + j/2
		found[k] = least([]vector{
			times(16, near4[k]), {}, G, times(16, near4[inside(i, j-1)]), times(16, near4[inside(i-1, j)]),
			times(16, near4[inside(i, j+1)]), times(16, near4[inside(i+1, j)]),
			times(16, own4[k]), times(32, near8[u]), times(32, own8[u]),
		}, func(v vector) int {
			return 6*r.satd(i, j, v) + S*min(plainDistance(v, vector{}), plainDistance(v, G))
		})
	}
	for step := 8; step > 0; step /= 2 {
		old := slices.Clone(found)
		for k := range found {
			i, j := k/wb, k%wb
			left, above := old[inside(i, j-1)], old[inside(i-1, j)]
			found[k] = least(append([]vector{old[k]}, r.eight(old[k], step)...), func(v vector) int {
				return 6*r.satd(i, j, v) + S*(plainDistance(v, left)+plainDistance(v, above))>>1
			})
		}
	}

	out := make([]vector, hb*wb)
	how := make([]uint8, hb*wb)
	// the blocks left, up and up-right of (i, j), or false in block 0
	around3 := func(i, j int) (n [3]int, ok bool) {
		k := i*wb + j
		switch {
		case k == 0:
			return n, false
		case i == 0:
			return [3]int{k - 1, k - 1, k - 1}, true
		}
		n = [3]int{k - 1, k - wb, k - wb + 1}
		if j == 0 {
			n[0] = n[1]
		}
		if j == wb-1 {
			n[2] = n[1]
		}
		return n, true
	}
	bitsOf := func(i, j int, v vector, upForRight bool) int {
		a := around{kept: before[i*wb+j]}
		if n, ok := around3(i, j); ok {
			if upForRight {
				n[2] = n[1]
			}
			for x := range n {
				a.v[x], a.how[x] = out[n[x]], how[n[x]]
			}
		}
		return int(r.t.Bits16.bits(&a, v))
	}
	flags := func(i, j int, v vector) (h uint8) {
		k := i*wb + j
		if v == before[k] {
			h = isKept
		}
		near := [3]vector{}
		if n, ok := around3(i, j); ok {
			near = [3]vector{out[n[0]], out[n[1]], out[n[2]]}
		}
		if !slices.Contains([]vector{near[0], near[1], near[2], before[k], {}}, v) {
			h |= isNew
		}
		return h
	}
	for pass := range 5 {
		for k := range out {
			i, j := k/wb, k%wb
			cost := func(v vector) int {
				b := bitsOf(i, j, v, false)
				if pass == 0 && v == G {
					b = min(b, bitsOf(i, j, vector{}, false))
				}
				if pass > 0 {
					was, flag := out[k], how[k]
					how[k] = flags(i, j, v)
					out[k] = v
					if j+1 < wb {
						b += bitsOf(i, j+1, out[k+1], true)
					}
					if i+1 < hb {
						b += bitsOf(i+1, j, out[k+wb], false)
						if j > 0 {
							b += bitsOf(i+1, j-1, out[k+wb-1], false)
						}
					}
					out[k], how[k] = was, flag
				}
				return 6*r.satd(i, j, v) + L*b
			}
			var left, up, right vector
			if n, ok := around3(i, j); ok {
				left, up, right = out[n[0]], out[n[1]], out[n[2]]
			}
			median := vector{
				y: left.y + up.y + right.y - min(left.y, up.y, right.y) - max(left.y, up.y, right.y),
				x: left.x + up.x + right.x - min(left.x, up.x, right.x) - max(left.x, up.x, right.x),
			}
			list := []vector{left, up, right, before[k], {}, median, found[k]}
			if pass == 0 {
				list = append(list, G)
			} else {
				list = append(list, out[k])
				if j+1 < wb {
					list = append(list, out[k+1])
				}
				if i+1 < hb {
					list = append(list, out[k+wb])
				}
			}
			list = slices.DeleteFunc(list, func(v vector) bool { return !r.allowed(v) })
			best := least(list, cost)
			best = least(append([]vector{best}, r.eight(best, 1)...), cost)
			how[k] = flags(i, j, best)
			out[k] = best
		}
	}
	return out
}

func TestSearchEqualsTheDocumentation(t *testing.T) {
	cases := []struct{ w, h, reach, qp int }{
		{64, 64, 128, 42}, {128, 64, 40, 63}, {64, 128, 5, 63}, {64, 64, 0, 20}, {192, 128, 24, 30}, {128, 128, 16, 0},
	}
	if testing.Short() {
		cases = cases[:4]
	}
	for _, c := range cases {
		var before []int16
		for n := range 2 {
			cur, ref := moving(c.w, c.h, n+1), moving(c.w, c.h, n)
			r := &reference{testTables, cur, ref, c.h / 16, c.w / 16, c.reach, map[[4]int]int{}}
			kept := make([]vector, r.hb*r.wb)
			for k := range kept {
				if before != nil {
					kept[k] = vector{before[2*k], before[2*k+1]}
				}
			}
			want := r.search(kept, c.qp)
			got := NewSearcher(testTables, kernel.Generic(), c.w, c.h, 2, c.reach).Search(cur, ref, before, c.qp)
			for k, v := range want {
				if got[2*k] != v.y || got[2*k+1] != v.x {
					t.Fatalf("%+v frame %d: block %d has (%d,%d), want %v", c, n, k, got[2*k], got[2*k+1], v)
				}
			}
			before = got
		}
	}
}
