package motion

import "github.com/nvcodec/nvcodec/yuv"

// SceneCut reports whether cur is better coded without ref: whether at an eighth of the resolution, after removing what
// is smooth (light and fades), few of the blocks of cur are found near their place in ref.
func SceneCut(cur, ref *yuv.Planes) bool {
	inter, intra := cutCosts(cur, ref)
	return cut(inter, intra)
}

// cut compares the cost of the best displacements with that of the blocks themselves.
func cut(inter, intra int64) bool { return 4*inter > 3*intra }

const cutReach = 8

func cutCosts(cur, ref *yuv.Planes) (inter, intra int64) {
	c, r := detail(cur, 0), detail(ref, cutReach)
	hu, wu := cur.H/32, cur.W/32
	moved, still := newFull(hu, wu, cutReach, 1), newFull(hu, wu, 0, 1)
	moved.search(c, r, 0, 0, hu, 0)
	flat := newSmall(cur.W/8, cur.H/8, 0)
	fill(flat.p, 128)
	still.search(c, flat, 0, 0, hu, 0)
	for i := range moved.near {
		m, s := int64(moved.near[i].cost), int64(still.near[i].cost)
		inter += min(m, s)
		intra += s
	}
	n := int64(len(moved.near)) * 256
	return inter + n/4, intra + n/2 // noise and rounding are no cut
}

// detail is a picture at an eighth of its resolution less the mean of 5x5 samples around each, plus 128.
func detail(p *yuv.Planes, pad int) *small {
	s := newSmall(p.W/8, p.H/8, 2)
	s.shrink(p.Y, p.StrideY, 8)
	d := newSmall(p.W/8, p.H/8, pad)
	for y := range d.h {
		for x := range d.w {
			sum := 0
			for r := -2; r <= 2; r++ {
				for _, v := range s.p[(y+r+s.pad)*s.stride+x:][:5] {
					sum += int(v)
				}
			}
			v := int(s.row(y)[x])
			d.row(y)[x] = byte(min(max(128+v-(2*sum+25)/50, 0), 255))
		}
	}
	d.extend()
	return d
}
