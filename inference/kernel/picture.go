package kernel

import "fmt"

// Packed is the number of channels of a packed picture: 64 of Y, 16 of U, 16 of V.
const Packed = 96

// LumaTaps holds the interpolation filters of a quarter sample, for positions -3..+4; they sum to 64.
var LumaTaps = [4][8]int32{
	{0, 0, 0, 64, 0, 0, 0, 0},
	{-1, 4, -10, 58, 17, -5, 1, 0},
	{-1, 4, -11, 40, 40, -11, 4, -1},
	{0, 1, -5, 17, 58, -10, 4, -1},
}

// ChromaTaps holds the interpolation filters of an eighth sample, for positions -1..+2; they sum to 64.
var ChromaTaps = [8][4]int32{
	{0, 64, 0, 0}, {-2, 58, 10, -2}, {-4, 54, 16, -2}, {-6, 46, 28, -4},
	{-4, 36, 36, -4}, {-4, 28, 46, -6}, {-2, 16, 54, -4}, {-2, 10, 58, -2},
}

// CheckCompensate panics unless the arguments of Compensate fit each other.
func CheckCompensate(dst, ref []byte, w, h, y0, y1 int, vectors []int16, wb int, luma bool) {
	block := 8
	if luma {
		block = 16
	}
	want("compensate dst", len(dst), w*h)
	want("compensate ref", len(ref), w*h)
	wantRows(y0, y1, h)
	hb := (h + block - 1) / block
	if wb*block < w || len(vectors) != 2*wb*hb {
		panic(fmt.Sprintf("kernel: compensate %d x %d with %d vectors, %d blocks a row", w, h, len(vectors)/2, wb))
	}
}

// compensateGeneric computes every sample alone: the sum of both filter passes, unrounded between them, then
// clamp((sum + 2048) >> 12, 0, 255). |sum| is at most 255*112*112 < 2^22.
func compensateGeneric(dst, ref []byte, w, h, y0, y1 int, vectors []int16, wb int, luma bool) {
	CheckCompensate(dst, ref, w, h, y0, y1, vectors, wb, luma)
	block, bits, lead := 8, 3, 1
	if luma {
		block, bits, lead = 16, 2, 3
	}
	taps := func(phase int) []int32 {
		if luma {
			return LumaTaps[phase][:]
		}
		return ChromaTaps[phase][:]
	}
	for y := y0; y < y1; y++ {
		for x := range w {
			v := vectors[2*(y/block*wb+x/block):]
			vy, vx := int(v[0]), int(v[1])
			sy, sx := y+vy>>bits-lead, x+vx>>bits-lead
			tx := taps(vx & (1<<bits - 1))
			var sum int32
			for i, ty := range taps(vy & (1<<bits - 1)) {
				row := ref[min(max(sy+i, 0), h-1)*w:][:w]
				for j, t := range tx {
					sum += ty * t * int32(row[min(max(sx+j, 0), w-1)])
				}
			}
			dst[y*w+x] = byte(min(max((sum+2048)>>12, 0), 255))
		}
	}
}

// CheckPicture panics unless the planes and the packed tensor of Pack and Unpack fit each other.
func CheckPicture(packed int, y, u, v []byte, w, h, y0, y1 int) {
	if w <= 0 || h <= 0 || w%8 != 0 || h%8 != 0 {
		panic(fmt.Sprintf("kernel: packed picture of %d x %d", w, h))
	}
	want("packed picture", packed, w/8*(h/8)*Packed)
	want("plane y", len(y), w*h)
	want("plane u", len(u), w/2*(h/2))
	want("plane v", len(v), w/2*(h/2))
	wantRows(y0, y1, h/8)
}

func packGeneric(dst []int16, y, u, v []byte, w, h, y0, y1 int, table []int16) {
	CheckPicture(len(dst), y, u, v, w, h, y0, y1)
	want("pack table", len(table), 256)
	for row := y0; row < y1; row++ {
		for col := range w / 8 {
			out := dst[(row*(w/8)+col)*Packed:][:Packed]
			for c := range out {
				out[c] = table[planeOf(c, y, u, v)[planeIndex(c, row, col, w)]]
			}
		}
	}
}

func unpackGeneric(y, u, v []byte, head, pred []int16, w, h, y0, y1 int, f uint) {
	CheckPicture(len(head), y, u, v, w, h, y0, y1)
	if pred != nil {
		want("unpack pred", len(pred), len(head))
	}
	if f < 1 || f > 15 {
		panic(fmt.Sprintf("kernel: unpack at F %d", f))
	}
	for row := y0; row < y1; row++ {
		for col := range w / 8 {
			at := (row*(w/8) + col) * Packed
			for c := range Packed {
				x := head[at+c]
				if pred != nil {
					x = Sat16(int64(pred[at+c]) + int64(x))
				}
				s := Rnd(255*int64(x)+255<<(f-1), f)
				planeOf(c, y, u, v)[planeIndex(c, row, col, w)] = byte(min(max(s, 0), 255))
			}
		}
	}
}

// planeOf returns the plane of packed channel c.
func planeOf(c int, y, u, v []byte) []byte {
	switch {
	case c < 64:
		return y
	case c < 80:
		return u
	}
	return v
}

// planeIndex returns the place in its plane of channel c at packed position (row, col) of a picture w luma samples wide.
func planeIndex(c, row, col, w int) int {
	if c < 64 {
		return (row*8+c/8)*w + col*8 + c%8
	}
	c = (c - 64) % 16
	return (row*4+c/4)*(w/2) + col*4 + c%4
}

// satd16Generic sums |H·D·H| over 4x4 blocks, D being their differences and H the Hadamard matrix of ones. No sum exceeds
// 256·1,020 = 261,120: coefficients of a block have 16 times the energy of its differences.
func satd16Generic(a []byte, strideA int, b []byte, strideB int) int32 {
	var sum int32
	for y := 0; y < 16; y += 4 {
		for x := 0; x < 16; x += 4 {
			var d [4][4]int32
			for r := range d {
				ra, rb := a[(y+r)*strideA+x:][:4], b[(y+r)*strideB+x:][:4]
				for c := range ra {
					d[r][c] = int32(ra[c]) - int32(rb[c])
				}
				d[r] = hadamard4(d[r])
			}
			for c := range 4 {
				for _, v := range hadamard4([4]int32{d[0][c], d[1][c], d[2][c], d[3][c]}) {
					sum += max(v, -v)
				}
			}
		}
	}
	return sum
}

func hadamard4(v [4]int32) [4]int32 {
	a, b, c, d := v[0]+v[1], v[0]-v[1], v[2]+v[3], v[2]-v[3]
	return [4]int32{a + c, b + d, a - c, b - d}
}
