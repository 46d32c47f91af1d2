package motion

import "testing"

func TestAbsDiff(t *testing.T) {
	for x := range uint64(256) {
		for y := range uint64(256) {
			// neighbours that borrow or not must not matter
			for _, n := range []uint64{0x00, 0xff} {
				a, b := x<<24|n|n<<56, y<<24|(n^0xff)|n<<16|(n^0xff)<<56
				got := absDiff(a, b) >> 24 & 255
				if want := max(x, y) - min(x, y); got != want {
					t.Fatalf("|%d-%d| = %d", x, y, got)
				}
			}
		}
	}
}
