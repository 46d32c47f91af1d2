package motion

import "github.com/nvcodec/nvcodec/yuv"

// SceneCut reports whether cur is better coded without ref: whether at an eighth of the resolution, after removing what
// is smooth (light and fades), few of the blocks of cur are found near their place in ref.
func SceneCut(cur, ref *yuv.Planes) bool {
	return Cut(CutCosts(cur, ref))
}

// Cut compares the two sums of CutCosts.
func Cut(inter, intra int64) bool { return 3*inter > 2*intra }

const cutReach = 8

// CutCosts returns both sides of the rule for scene cuts: the cost of the best displacements and that of the blocks
// themselves.
func CutCosts(cur, ref *yuv.Planes) (inter, intra int64) {
	c, r := detail(cur, 0), detail(ref, cutReach)
	hu, wu := cur.H/32, cur.W/32
	moved, still := newFull(hu, wu, cutReach, 1), newFull(hu, wu, 0, 1)
	moved.run(1, c, r, 0)
	flat := newSmall(cur.W/8, cur.H/8, 0)
	fill(flat.p, 128)
	still.run(1, c, flat, 0)
	for i := range moved.near {
		m, s := int64(moved.near[i].cost), int64(still.near[i].cost)
		inter += min(m, s)
		intra += s
	}
	n := int64(len(moved.near)) * 256
	return inter + n/4, intra + n/2 // noise and rounding are no cut
}

// detail is a picture at an eighth of its resolution: the mean of 3x3 samples less that of 7x7, doubled, plus 128. The one
// removes what an eighth of a motion would change, the other light and fades.
func detail(p *yuv.Planes, pad int) *small {
	const fine, coarse = 1, 3
	s := newSmall(p.W/8, p.H/8, coarse)
	s.shrink(p.Y, p.StrideY, 8)
	d := newSmall(p.W/8, p.H/8, pad)
	for y := range d.h {
		row := d.row(y)
		for x := range d.w {
			v := s.mean16(y, x, fine) - s.mean16(y, x, coarse)
			row[x] = byte(min(max(128+(2*v+8)>>4, 0), 255))
		}
	}
	d.extend()
	return d
}

// mean16 returns 16 times the mean of the samples at most r rows and columns away, half up.
func (s *small) mean16(y, x, r int) int {
	n, sum := 2*r+1, 0
	for k := -r; k <= r; k++ {
		for _, v := range s.p[(y+k+s.pad)*s.stride+x-r+s.pad:][:n] {
			sum += int(v)
		}
	}
	return (16*sum + n*n/2) / (n * n)
}
