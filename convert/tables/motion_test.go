package tables

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"testing"
)

func TestMotion(t *testing.T) {
	m := motionTables()
	bits, choose, search := m[0], m[1], m[2]
	for q := range 64 {
		if want := 0.875 * math.Sqrt(65025/(24*math.Pow(100, float64(q)/63))); math.Abs(float64(choose.Data[q])-want) > 0.5+1e-9 {
			t.Errorf("lambda16[%d] = %d, want %g", q, choose.Data[q], want)
		}
		if want := 192 * math.Pow(0.1, float64(q)/63); math.Abs(float64(search.Data[q])-want) > 0.5+1e-9 {
			t.Errorf("search16[%d] = %d, want %g", q, search.Data[q], want)
		}
	}
	prob := vectorTables()[0].Data
	if len(bits.Data) != 2*len(prob) || bits.Shape[0] != len(prob) || bits.Shape[1] != 2 {
		t.Fatalf("bits16 has shape %v and %d values for %d decisions", bits.Shape, len(bits.Data), len(prob))
	}
	for i, b := range bits.Data {
		p := float64(prob[i/2]) / 65536
		if i%2 == 0 {
			p = 1 - p
		}
		if want := -16 * math.Log2(p); math.Abs(float64(b)-want) > 0.5+1e-9 {
			t.Errorf("bits16[%d][%d] = %d, want %g", i/2, i%2, b, want)
		}
	}
	h := sha256.New()
	fmt.Fprintln(h, m)
	const want = "c6cd699b4fb88b593f39c380a694770e94dfd574e81318713def3dfd6380bc48"
	if got := hex.EncodeToString(h.Sum(nil)); got != want {
		t.Errorf("tables hash to %s, want %s", got, want)
	}
}
