package motion

import (
	"math/rand/v2"
	"testing"
)

// plainLuma is the definition of a luma prediction sample: clamped coordinates, both passes unrounded.
func plainLuma(src []byte, w, h, y, x, vy, vx int) byte {
	taps := [4][8]int{{0, 0, 0, 64}, {-1, 4, -10, 58, 17, -5, 1}, {-1, 4, -11, 40, 40, -11, 4, -1}, {0, 1, -5, 17, 58, -10, 4, -1}}
	sum := 0
	for r, ty := range taps[vy&3] {
		yy := min(max(y+vy>>2-3+r, 0), h-1)
		for c, tx := range taps[vx&3] {
			sum += ty * tx * int(src[yy*w+min(max(x+vx>>2-3+c, 0), w-1)])
		}
	}
	return byte(min(max((sum+2048)>>12, 0), 255))
}

func TestPhasesEqualTheDefinition(t *testing.T) {
	const w, h = 128, 64
	for seed := range uint64(6) {
		rng := rand.New(rand.NewPCG(seed, 1))
		src := make([]byte, w*h)
		for i := range src {
			src[i] = byte(rng.Uint32())
			if seed%2 == 1 { // rails: the sums at their bounds
				src[i] = byte(rng.Uint32N(2) * 255)
			}
		}
		s := newPhases(w, h, 3)
		s.load(1+int(seed)%3, src, w)
		for range 400 {
			y, x := 16*rng.IntN(h/16), 16*rng.IntN(w/16)
			vy, vx := rng.IntN(4095)-2047, rng.IntN(4095)-2047
			if rng.IntN(2) == 0 {
				vy, vx = vy/8, vx/8
			}
			got := s.at(y, x, vy, vx)
			for r := range 16 {
				for c := range 16 {
					if want := plainLuma(src, w, h, y+r, x+c, vy, vx); got[r*s.stride+c] != want {
						t.Fatalf("seed %d: block (%d,%d) vector (%d,%d) sample (%d,%d): %d, want %d", seed, y, x, vy, vx, r, c, got[r*s.stride+c], want)
					}
				}
			}
		}
	}
}

func BenchmarkPhases(b *testing.B) {
	s := newPhases(640, 384, 1)
	src := make([]byte, 640*384)
	for i := range src {
		src[i] = byte(i * i >> 3)
	}
	for b.Loop() {
		s.load(1, src, 640)
	}
}
