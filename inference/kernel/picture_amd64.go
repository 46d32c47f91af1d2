//go:build !purego

package kernel

// compensateVector computes block by block. A block that reads past the plane, or nearly so, gets a copy of its
// surroundings made with clamped coordinates first, so one kernel serves all.
func compensateVector(dst, ref []byte, w, h, y0, y1 int, vectors []int16, wb int, luma bool) {
	CheckCompensate(dst, ref, w, h, y0, y1, vectors, wb, luma)
	c := compensator{dst: dst, ref: ref, w: w, h: h, block: 8, bits: 3, taps: 4}
	if luma {
		c.block, c.bits, c.taps = 16, 2, 8
	}
	for y := y0; y < y1; {
		rows := min(c.block-y%c.block, y1-y)
		row := vectors[y/c.block*wb*2:]
		for x := 0; x < w; x += c.block {
			c.compensate(x, y, rows, int(row[0]), int(row[1]))
			row = row[2:]
		}
		y += rows
	}
}

type compensator struct {
	dst, ref          []byte
	w, h              int
	block, bits, taps int
	around            [24 * 24]byte // surroundings of a block at the edge
}

// tapBytes and tapWords hold the filters as the kernels read them, [0] chroma's and [1] luma's.
var (
	tapBytes [2][8][8]int8
	tapWords [2][8][8]int16
)

func init() {
	set := func(luma, phase int, taps []int32) {
		for i, t := range taps {
			tapBytes[luma][phase][i], tapWords[luma][phase][i] = int8(t), int16(t)
		}
	}
	for phase := range ChromaTaps {
		set(0, phase, ChromaTaps[phase][:])
	}
	for phase := range LumaTaps {
		set(1, phase, LumaTaps[phase][:])
	}
}

// compensate computes rows of the block whose first sample is (y, x), from a vector (vy, vx).
func (c *compensator) compensate(x, y, rows, vy, vx int) {
	sy, sx := y+vy>>c.bits, x+vx>>c.bits
	mask := 1<<c.bits - 1
	py, px := vy&mask, vx&mask
	if py|px == 0 && sy >= 0 && sy+rows <= c.h && sx >= 0 && sx+c.block <= c.w {
		for i := range rows { // 64*64*sample is rounded back to the sample
			copy(c.dst[(y+i)*c.w+x:][:c.block], c.ref[(sy+i)*c.w+sx:])
		}
		return
	}
	sy, sx = sy-(c.taps/2-1), sx-(c.taps/2-1)
	high, wide := rows+c.taps-1, c.block+8
	src, stride := &c.around[0], wide
	if sy >= 0 && sy+high <= c.h && sx >= 0 && sx+wide <= c.w {
		src, stride = &c.ref[sy*c.w+sx], c.w
	} else {
		for i := range high {
			row := c.ref[min(max(sy+i, 0), c.h-1)*c.w:][:c.w]
			to := c.around[i*wide:][:wide]
			for j := range to {
				to[j] = row[min(max(sx+j, 0), c.w-1)]
			}
		}
	}
	out := &c.dst[y*c.w+x]
	if c.taps == 8 {
		compensate16AVX2(out, src, c.w, stride, rows, &tapBytes[1][px][0], &tapWords[1][py][0])
	} else {
		compensate8AVX2(out, src, c.w, stride, rows, &tapBytes[0][px][0], &tapWords[0][py][0])
	}
}

// packRows is packGeneric by rows of samples.
func packRows(dst []int16, y, u, v []byte, w, h, y0, y1 int, table []int16) {
	CheckPicture(len(dst), y, u, v, w, h, y0, y1)
	want("pack table", len(table), 256)
	t := (*[256]int16)(table)
	for row := y0; row < y1; row++ {
		to := dst[row*(w/8)*Packed:][:w/8*Packed]
		for dy := range 8 {
			from := y[(row*8+dy)*w:][:w]
			for at := dy * 8; len(from) >= 8; at += Packed {
				o := (*[8]int16)(to[at:])
				s := (*[8]byte)(from)
				o[0], o[1], o[2], o[3] = t[s[0]], t[s[1]], t[s[2]], t[s[3]]
				o[4], o[5], o[6], o[7] = t[s[4]], t[s[5]], t[s[6]], t[s[7]]
				from = from[8:]
			}
		}
		for i, plane := range [2][]byte{u, v} {
			for dy := range 4 {
				from := plane[(row*4+dy)*(w/2):][:w/2]
				for at := 64 + 16*i + dy*4; len(from) >= 4; at += Packed {
					o := (*[4]int16)(to[at:])
					s := (*[4]byte)(from)
					o[0], o[1], o[2], o[3] = t[s[0]], t[s[1]], t[s[2]], t[s[3]]
					from = from[4:]
				}
			}
		}
	}
}

func unpackVector(y, u, v []byte, head, pred []int16, w, h, y0, y1 int, f uint) {
	CheckPicture(len(head), y, u, v, w, h, y0, y1)
	if pred != nil {
		want("unpack pred", len(pred), len(head))
	}
	if f < 1 || f > 15 {
		unpackGeneric(y, u, v, head, pred, w, h, y0, y1, f)
		return
	}
	for row := y0; row < y1; row++ {
		at := row * (w / 8) * Packed
		var p *int16
		if pred != nil {
			p = &pred[at]
		}
		c := row * 4 * (w / 2)
		unpackAVX2(&y[row*8*w], &u[c], &v[c], &head[at], p, w, w/2, w/8, f)
	}
}

func satd16Vector(a []byte, strideA int, b []byte, strideB int) int32 {
	if strideA < 0 || strideB < 0 || len(a) < 15*strideA+16 || len(b) < 15*strideB+16 {
		return satd16Generic(a, strideA, b, strideB) // panics
	}
	return satd16AVX2(&a[0], strideA, &b[0], strideB)
}
