package yuv

import "testing"

func TestPadRepeatsTheEdges(t *testing.T) {
	for _, c := range [][4]int{{1, 1, 64, 64}, {3, 5, 4, 8}, {4, 2, 4, 2}, {65, 63, 128, 64}} {
		src, dst := New(c[0], c[1]), New(c[2], c[3])
		for i := range src.Y {
			src.Y[i] = byte(i * 7)
		}
		for i := range src.U {
			src.U[i], src.V[i] = byte(i*5+1), byte(i*3+2)
		}
		dst.Pad(src)
		for y := range dst.H {
			for x := range dst.W {
				if got, want := dst.Y[y*dst.StrideY+x], src.Y[min(y, src.H-1)*src.StrideY+min(x, src.W-1)]; got != want {
					t.Fatalf("%v: luma %d,%d is %d, want %d", c, y, x, got, want)
				}
			}
		}
		for y := range dst.CH() {
			for x := range dst.CW() {
				k := min(y, src.CH()-1)*src.StrideC + min(x, src.CW()-1)
				if dst.U[y*dst.StrideC+x] != src.U[k] || dst.V[y*dst.StrideC+x] != src.V[k] {
					t.Fatalf("%v: chroma %d,%d", c, y, x)
				}
			}
		}
	}
}

func TestCloneIsApart(t *testing.T) {
	p := &Planes{W: 2, H: 2, Y: []byte{1, 2, 9, 3, 4, 9}, U: []byte{5, 9}, V: []byte{6, 9}, StrideY: 3, StrideC: 2}
	c := p.Clone()
	p.Y[0] = 77
	if string(c.Y) != "\x01\x02\x03\x04" || c.U[0] != 5 || c.V[0] != 6 || c.StrideY != 2 {
		t.Errorf("%+v", c)
	}
}
