package motion

import "encoding/binary"

// margin is the number of samples around a plane that stand for its clamped coordinates. A block whose origin lies
// 20 samples before an edge or 4 past it sees only repeated samples along that axis whatever its phase (16 samples
// and taps at -3..+4), so vectors that point farther read the same values from there.
const (
	margin        = 32
	outsideBefore = 20
	outsidePast   = 4

	reachable = 24 // rows and columns of the margin that such a block reads
)

// Words of eight samples are filtered as four lanes of 16 bits (samples 0 2 4 6 or 1 3 5 7), later two of 32.
const (
	ones16 = 0x0001000100010001
	ones32 = 0x0000000100000001
	low8   = 0x00ff00ff00ff00ff
	low16  = 0x0000ffff0000ffff

	// The first pass lies in -24*255 .. 88*255; with this added, a multiple of 64, it is positive and below 2^15.
	bias = 96 * 64
)

// phases holds a luma plane at all sixteen quarter-sample phases: p[4*fy+fx] is the plane read at (fy/4, fx/4),
// rounded and clamped as docs/MODEL.md says of motion compensation.
type phases struct {
	w, h, stride int
	p            [16][]byte
	rings        [][8][3][]uint64 // of each thread: the last eight rows of the horizontal pass, for fx = 1..3
}

func newPhases(w, h, threads int) *phases {
	s := &phases{w: w, h: h, stride: w + 2*margin, rings: make([][8][3][]uint64, threads)}
	for t := range s.rings {
		for i := range s.rings[t] {
			for f := range s.rings[t][i] {
				s.rings[t][i][f] = make([]uint64, s.stride/4)
			}
		}
	}
	for i := range s.p {
		s.p[i] = make([]byte, s.stride*(h+2*margin))
	}
	return s
}

// at returns the samples that a block with origin (y, x) and a vector (vy, vx) is compared with, in rows of stride.
func (s *phases) at(y, x, vy, vx int) []byte {
	y = min(max(y+vy>>2, -outsideBefore), s.h+outsidePast) + margin
	x = min(max(x+vx>>2, -outsideBefore), s.w+outsidePast) + margin
	return s.p[vy&3<<2|vx&3][y*s.stride+x:]
}

// extend copies a plane into the middle of phase 0 and repeats its edges into the margin.
func (s *phases) extend(src []byte, stride int) {
	d := s.p[0]
	for y := range s.h {
		row := d[(y+margin)*s.stride:][:s.stride]
		copy(row[margin:], src[y*stride:][:s.w])
		fill(row[:margin], row[margin])
		fill(row[margin+s.w:], row[margin+s.w-1])
	}
	for y := range margin {
		copy(d[y*s.stride:][:s.stride], d[margin*s.stride:])
		copy(d[(margin+s.h+y)*s.stride:][:s.stride], d[(margin+s.h-1)*s.stride:])
	}
}

// load takes the reference.
func (s *phases) load(threads int, src []byte, stride int) {
	s.extend(src, stride)
	bands(threads, s.h+2*reachable, func(y0, y1, thread int) {
		s.interpolate(margin-reachable+y0, margin-reachable+y1, &s.rings[thread])
	})
}

// interpolate computes rows y0..y1, counted from the margin's top, of phases 1..15.
func (s *phases) interpolate(y0, y1 int, ring *[8][3][]uint64) {
	for y := y0 - 3; y < y1+4; y++ {
		r := &ring[y&7]
		horizontal(r[0], r[1], r[2], s.p[0][y*s.stride:][:s.stride])
		if y >= y0 && y < y1 {
			for f := range 3 {
				narrow(s.p[1+f][y*s.stride:][:s.stride], r[f])
			}
		}
		c := y - 4 // the row whose taps end here
		if c < y0 {
			continue
		}
		var src [8][]byte
		for k := range src {
			src[k] = s.p[0][(c-3+k)*s.stride:][:s.stride]
		}
		vertical(s.p[4][c*s.stride:][:s.stride], s.p[8][c*s.stride:][:s.stride], s.p[12][c*s.stride:][:s.stride], &src)
		for f := range 3 {
			var h [8][]uint64
			for k := range h {
				h[k] = ring[(c-3+k)&7][f]
			}
			both(s.p[5+f][c*s.stride:][:s.stride], s.p[9+f][c*s.stride:][:s.stride], s.p[13+f][c*s.stride:][:s.stride], &h)
		}
	}
}

// The taps of docs/MODEL.md as positive and negative parts; quarter with its arguments reversed is phase 3.
func quarter(a, b, c, d, e, f, g uint64) (pos, neg uint64) {
	return 4*b + 58*d + 17*e + g, a + 10*c + 5*f
}

func half(a, b, c, d uint64) (pos, neg uint64) { // sums of the four symmetric pairs, the outer first
	return 4*b + 40*d, a + 11*c
}

// horizontal filters one row with three phases. Each group of 8 samples becomes two words, biased.
func horizontal(q1, q2, q3 []uint64, src []byte) {
	n := len(src) / 8
	q1, q2, q3 = q1[:2*n], q2[:2*n], q3[:2*n]
	for i := 1; i < n-1; i++ {
		s := src[8*i-3 : 8*i+13]
		l0 := binary.LittleEndian.Uint64(s)
		l1 := binary.LittleEndian.Uint64(s[2:])
		l2 := binary.LittleEndian.Uint64(s[4:])
		l3 := binary.LittleEndian.Uint64(s[6:])
		l4 := binary.LittleEndian.Uint64(s[8:])
		a0, a1 := l0&low8, l0>>8&low8
		a2, a3 := l1&low8, l1>>8&low8
		a4, a5 := l2&low8, l2>>8&low8
		a6, a7 := l3&low8, l3>>8&low8
		a8 := l4 & low8

		p, m := quarter(a0, a1, a2, a3, a4, a5, a6)
		q1[2*i] = p + bias*ones16 - m
		p, m = quarter(a1, a2, a3, a4, a5, a6, a7)
		q1[2*i+1] = p + bias*ones16 - m
		p, m = quarter(a7, a6, a5, a4, a3, a2, a1)
		q3[2*i] = p + bias*ones16 - m
		p, m = quarter(a8, a7, a6, a5, a4, a3, a2)
		q3[2*i+1] = p + bias*ones16 - m
		p, m = half(a0+a7, a1+a6, a2+a5, a3+a4)
		q2[2*i] = p + bias*ones16 - m
		p, m = half(a1+a8, a2+a7, a3+a6, a4+a5)
		q2[2*i+1] = p + bias*ones16 - m
	}
}

// clamp8 limits four lanes q+offset to q in 0..255, for -offset <= q < 2^14.
func clamp8(t uint64, offset uint64) uint64 {
	u := t + (0x8000-offset)*ones16
	ge := u >> 15 & ones16
	over := (u&(0x7fff*ones16) + 0x7f00*ones16) >> 15 & ones16
	return (u | (over<<8 - over)) & (ge<<8 - ge)
}

// round6 is clamp8((v + 32) >> 6) of biased lanes.
func round6(v uint64) uint64 {
	return clamp8((v+32*ones16)>>6&(0x03ff*ones16), bias/64)
}

// narrow finishes a phase that only the horizontal pass makes.
func narrow(dst []byte, h []uint64) {
	for i := 1; i < len(dst)/8-1; i++ {
		binary.LittleEndian.PutUint64(dst[8*i:], round6(h[2*i])|round6(h[2*i+1])<<8)
	}
}

// vertical makes the three phases of fx = 0 for one row from the eight rows around it.
func vertical(d1, d2, d3 []byte, src *[8][]byte) {
	n := len(d1)
	d2, d3 = d2[:n], d3[:n]
	s0, s1, s2, s3 := src[0][:n], src[1][:n], src[2][:n], src[3][:n]
	s4, s5, s6, s7 := src[4][:n], src[5][:n], src[6][:n], src[7][:n]
	for i := 0; i+8 <= n; i += 8 {
		a0 := binary.LittleEndian.Uint64(s0[i:])
		a1 := binary.LittleEndian.Uint64(s1[i:])
		a2 := binary.LittleEndian.Uint64(s2[i:])
		a3 := binary.LittleEndian.Uint64(s3[i:])
		a4 := binary.LittleEndian.Uint64(s4[i:])
		a5 := binary.LittleEndian.Uint64(s5[i:])
		a6 := binary.LittleEndian.Uint64(s6[i:])
		a7 := binary.LittleEndian.Uint64(s7[i:])
		e1, e2, e3 := column(a0&low8, a1&low8, a2&low8, a3&low8, a4&low8, a5&low8, a6&low8, a7&low8)
		o1, o2, o3 := column(a0>>8&low8, a1>>8&low8, a2>>8&low8, a3>>8&low8, a4>>8&low8, a5>>8&low8, a6>>8&low8, a7>>8&low8)
		binary.LittleEndian.PutUint64(d1[i:], e1|o1<<8)
		binary.LittleEndian.PutUint64(d2[i:], e2|o2<<8)
		binary.LittleEndian.PutUint64(d3[i:], e3|o3<<8)
	}
}

func column(a0, a1, a2, a3, a4, a5, a6, a7 uint64) (q1, q2, q3 uint64) {
	p, m := quarter(a0, a1, a2, a3, a4, a5, a6)
	q1 = round6(p + bias*ones16 - m)
	p, m = half(a0+a7, a1+a6, a2+a5, a3+a4)
	q2 = round6(p + bias*ones16 - m)
	p, m = quarter(a7, a6, a5, a4, a3, a2, a1)
	q3 = round6(p + bias*ones16 - m)
	return
}

// both makes the three phases of one fx > 0 for one row from eight rows of the horizontal pass. A sum of products is
// at least -24*22440 - 88*6120 > -2^21 and below 2^22, so a lane of 32 bits holds it with 2^21 added.
func both(d1, d2, d3 []byte, h *[8][]uint64) {
	n := len(d1) / 8
	h0, h1, h2, h3 := h[0][:2*n], h[1][:2*n], h[2][:2*n], h[3][:2*n]
	h4, h5, h6, h7 := h[4][:2*n], h[5][:2*n], h[6][:2*n], h[7][:2*n]
	for i := 1; i < n-1; i++ {
		var r1, r2, r3 [2]uint64
		for k := range 2 {
			j := 2*i + k
			a0, a1, a2, a3, a4, a5, a6, a7 := h0[j], h1[j], h2[j], h3[j], h4[j], h5[j], h6[j], h7[j]
			x1, x2, x3 := column2(a0&low16, a1&low16, a2&low16, a3&low16, a4&low16, a5&low16, a6&low16, a7&low16)
			y1, y2, y3 := column2(a0>>16&low16, a1>>16&low16, a2>>16&low16, a3>>16&low16, a4>>16&low16, a5>>16&low16, a6>>16&low16, a7>>16&low16)
			r1[k] = clamp8(x1|y1<<16, 512)
			r2[k] = clamp8(x2|y2<<16, 512)
			r3[k] = clamp8(x3|y3<<16, 512)
		}
		binary.LittleEndian.PutUint64(d1[8*i:], r1[0]|r1[1]<<8)
		binary.LittleEndian.PutUint64(d2[8*i:], r2[0]|r2[1]<<8)
		binary.LittleEndian.PutUint64(d3[8*i:], r3[0]|r3[1]<<8)
	}
}

// column2 returns two lanes of ((sum + 2048) >> 12) + 512 for each phase; the taps sum to 64, which removes the bias.
func column2(a0, a1, a2, a3, a4, a5, a6, a7 uint64) (q1, q2, q3 uint64) {
	const add = (1<<21 + 2048 - 64*bias) * ones32
	p, m := quarter(a0, a1, a2, a3, a4, a5, a6)
	q1 = (p + add - m) >> 12 & (0x7ff * ones32)
	p, m = half(a0+a7, a1+a6, a2+a5, a3+a4)
	q2 = (p + add - m) >> 12 & (0x7ff * ones32)
	p, m = quarter(a7, a6, a5, a4, a3, a2, a1)
	q3 = (p + add - m) >> 12 & (0x7ff * ones32)
	return
}
