package entropy

import (
	"encoding/binary"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var fit = flag.String("fit", "", "folder of *.fld files to fit convert/tables/vectors.txt to: for each frame hb, wb (int32), 8 bytes unused, the field as int16 (vy, vx), all little-endian")

// TestFit writes the start probabilities of the vector coder. A context's counts in one frame are beta-binomial if its
// probability varies from frame to frame as a beta distribution does, and an adaptive counter of weight n that starts at p is the
// predictor for the beta distribution (p(n+1.5), (1-p)(n+1.5)). So p and n are those that make all frames' counts likeliest.
func TestFit(t *testing.T) {
	if *fit == "" {
		t.Skip("no -fit folder")
	}
	counts := make([][][2]float64, contexts) // [context][frame][decision]
	paths, _ := filepath.Glob(filepath.Join(*fit, "*.fld"))
	clips, frames := map[string]bool{}, 0
	for _, path := range paths {
		clips[filepath.Base(path)[:strings.IndexByte(filepath.Base(path), '.')]] = true
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var before []int16
		for ; len(b) > 0; frames++ {
			hb, wb := int(binary.LittleEndian.Uint32(b)), int(binary.LittleEndian.Uint32(b[4:]))
			f := make([]int16, 2*hb*wb)
			for i := range f {
				f[i] = int16(binary.LittleEndian.Uint16(b[16+2*i:]))
			}
			b = b[16+2*len(f):]
			var m modeller
			m.reset(testTables)
			if err := walk(&m, f, before, hb, wb, false); err != nil {
				t.Fatal(err)
			}
			before = f
			here := map[uint16]*[2]float64{}
			for _, o := range m.ops {
				if here[o.ctx] == nil {
					here[o.ctx] = new([2]float64)
				}
				if o.start == 0 {
					here[o.ctx][1]++
				} else {
					here[o.ctx][0]++
				}
			}
			for x := range counts {
				if c := here[uint16(x)]; c != nil {
					counts[x] = append(counts[x], *c)
				}
			}
		}
	}
	var out strings.Builder
	fmt.Fprintf(&out, "# Start probabilities (of 65536) and weights of the vector coder's %d contexts, in the order of package entropy's\n# documentation, by: go test ./entropy -run TestFit -fit DIR\n# Fitted to %d motion fields of %d training clips at QP 0, 21, 42 and 63. The first line, uniform fields, is set by hand.\n", contexts, frames, len(clips))
	for x := range counts {
		p, n := 4096, 60
		if x != ctxUniform {
			p, n = likeliest(counts[x])
		}
		fmt.Fprintln(&out, p, n)
	}
	if err := os.WriteFile("../convert/tables/vectors.txt", []byte(out.String()), 0o666); err != nil {
		t.Fatal(err)
	}
}

func likeliest(frames [][2]float64) (p, n int) {
	// Two made-up frames keep contexts with little data away from certainty, and their weight stays low.
	frames = append(frames, [2]float64{1, 0}, [2]float64{0, 1})
	best := math.Inf(1)
	for _, w := range []int{0, 1, 2, 3, 5, 8, 13, 20, 30, 40, 60} {
		if w > max(1, (len(frames)-2)/4) {
			break
		}
		cost := func(logit float64) float64 {
			q, s := 1/(1+math.Exp(-logit)), float64(w)+1.5
			sum := 0.02 * math.Abs(logit)
			for _, c := range frames {
				sum += betaBinomial(q*s, (1-q)*s, c[1], c[0])
			}
			return sum
		}
		lo, hi := -9.0, 9.0
		for range 25 {
			if a, b := lo+(hi-lo)/3, hi-(hi-lo)/3; cost(a) < cost(b) {
				hi = b
			} else {
				lo = a
			}
		}
		if c := cost(lo); c < best {
			best = c
			p, n = int(65536/(1+math.Exp(-lo))+0.5), w
		}
	}
	return min(65536-minProb, max(minProb, p)), n
}

// betaBinomial returns -log2 of the chance of n1 ones and n0 zeros in one order.
func betaBinomial(a, b, n1, n0 float64) float64 {
	g := func(x float64) float64 { v, _ := math.Lgamma(x); return v }
	return (g(a) + g(b) - g(a+b) + g(a+b+n1+n0) - g(a+n1) - g(b+n0)) / math.Ln2
}
