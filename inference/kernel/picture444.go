package kernel

import "fmt"

// PackedFull is the number of channels of a packed picture whose chroma has luma's resolution: 64 of each plane.
const PackedFull = 192

// PackFull is Pack with every chroma sample repeated for the 2x2 luma samples that share it.
func PackFull(dst []int16, y, u, v []byte, w, h, y0, y1 int, table []int16) {
	checkFull(len(dst), y, u, v, w, h, y0, y1)
	want("pack table", len(table), 256)
	for row := y0; row < y1; row++ {
		for col := range w / 8 {
			out := dst[(row*(w/8)+col)*PackedFull:][:PackedFull]
			for c := range out {
				r, s := row*8+c%64/8, col*8+c%8
				sample := y[r*w+s : r*w+s+1]
				if c >= 64 {
					sample = [][]byte{u, v}[c/64-1][r/2*(w/2)+s/2:]
				}
				out[c] = table[sample[0]]
			}
		}
	}
}

// UnpackFull is Unpack of such a picture: a chroma sample is the mean of its 2x2 values, each limited to ±2^(F-1).
func UnpackFull(y, u, v []byte, head, pred []int16, w, h, y0, y1 int, f uint) {
	checkFull(len(head), y, u, v, w, h, y0, y1)
	if pred != nil {
		want("unpack pred", len(pred), len(head))
	}
	if f < 1 || f > 15 {
		panic(fmt.Sprintf("kernel: unpack at F %d", f))
	}
	half := int64(1) << (f - 1)
	for row := y0; row < y1; row++ {
		for col := range w / 8 {
			at := (row*(w/8) + col) * PackedFull
			value := func(c int) int64 {
				x := head[at+c]
				if pred != nil {
					x = Sat16(int64(pred[at+c]) + int64(x))
				}
				return int64(x)
			}
			for c := range 64 {
				s := Rnd(255*value(c)+255*half, f)
				y[(row*8+c/8)*w+col*8+c%8] = byte(min(max(s, 0), 255))
			}
			for c := range 32 { // 16 samples of u, then of v
				i, j := c%16/4, c%4
				var sum int64
				for d := range 4 {
					sum += min(max(value(64+c/16*64+(2*i+d/2)*8+2*j+d%2), -half), half)
				}
				s := Rnd(255*sum+255*4*half, f+2)
				[][]byte{u, v}[c/16][(row*4+i)*(w/2)+col*4+j] = byte(min(max(s, 0), 255))
			}
		}
	}
}

func checkFull(packed int, y, u, v []byte, w, h, y0, y1 int) {
	CheckPicture(packed/2, y, u, v, w, h, y0, y1)
	want("packed picture", packed, w/8*(h/8)*PackedFull)
}
