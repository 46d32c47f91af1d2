package tile

import (
	"slices"
	"testing"

	"github.com/nvcodec/nvcodec/yuv"
)

func TestFrame(t *testing.T) {
	var got []int
	for n := range 9 {
		got = append(got, Frame(n, 4))
	}
	if want := []int{0, 1, 2, 3, 2, 1, 0, 1, 2}; !slices.Equal(got, want) {
		t.Errorf("order %v, want %v", got, want)
	}
	if Frame(7, 1) != 0 || Frame(3, 2) != 1 {
		t.Error("clips of one and two frames")
	}
}

func TestFill(t *testing.T) {
	src := yuv.New(4, 2)
	copy(src.Y, []byte{1, 2, 3, 4, 5, 6, 7, 8})
	copy(src.U, []byte{20, 21})
	copy(src.V, []byte{30, 31})
	dst := yuv.New(10, 5)
	if err := Fill(dst, src); err != nil {
		t.Fatal(err)
	}
	rows := func(b []byte, stride, w, h int) (all []byte) {
		for y := range h {
			all = append(all, b[y*stride:][:w]...)
		}
		return all
	}
	a, b := []byte{1, 2, 3, 4, 4, 3, 2, 1, 1, 2}, []byte{5, 6, 7, 8, 8, 7, 6, 5, 5, 6}
	if got := rows(dst.Y, dst.StrideY, 10, 5); !slices.Equal(got, slices.Concat(a, b, b, a, a)) {
		t.Errorf("luma %v", got)
	}
	c := []byte{20, 21, 21, 20, 20}
	if got := rows(dst.U, dst.StrideC, 5, 3); !slices.Equal(got, slices.Concat(c, c, c)) {
		t.Errorf("chroma %v", got)
	}
	if err := Fill(dst, yuv.New(3, 2)); err == nil {
		t.Error("odd sides are taken")
	}
}
