package motion

import (
	"bufio"
	"bytes"
	_ "embed"
	"flag"
	"fmt"
	"io"
	"math"
	"math/bits"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nvcodec/nvcodec/entropy"
	"github.com/nvcodec/nvcodec/inference/kernel"
	"github.com/nvcodec/nvcodec/yuv"
)

var clips = flag.String("clips", "", "folder of the clips of testdata/training.txt as NAME.y4m, to compare the fields with the training's")

//go:embed testdata/training.txt
var training string

// TestClips holds the fields of real clips against those that training chose, in bits and in the prediction they give.
// Rates are those of the vector coder; beside them stands what the training's own estimate makes of the same fields.
func TestClips(t *testing.T) {
	if *clips == "" {
		t.Skip("no -clips")
	}
	coder, err := entropy.NewTables(get(tensors()))
	if err != nil {
		t.Fatal(err)
	}
	set, err := kernel.ByName("")
	if err != nil {
		t.Fatal(err)
	}
	var rate, gain, lines float64
	for line := range strings.Lines(training) {
		var clip string
		var qp, n int
		var wantBits, wantPSNR float64
		if _, err := fmt.Sscan(line, &clip, &qp, &n, &wantBits, &wantPSNR); err != nil {
			continue // a comment
		}
		frames, w, h := readY4M(t, filepath.Join(*clips, clip+".y4m"), n+1)
		s := NewSearcher(testTables, set, frames[0].W, frames[0].H, 2, 128)
		var before []int16
		var coded, counted, psnr float64
		var spent time.Duration
		for k := 1; k <= n; k++ {
			q := max(0, qp-[8]int{0, 8, 0, 12, 0, 8, 0, 12}[(k-1)%8])
			start := time.Now()
			f := s.Search(frames[k], frames[k-1], before, q)
			spent += time.Since(start)
			v, _, _ := entropy.IdealBits(coder, &entropy.Payload{Vectors: f, VectorsBefore: before, HB: s.hb, WB: s.wb})
			coded += v
			counted += trainingBits(f, before, s.hb, s.wb)
			psnr += predictionPSNR(s.ref, frames[k], f, w, h) / float64(n)
			before = f
		}
		t.Logf("%-24s QP %2d: %7.1f bits a frame, %+6.1f %% (%+6.1f %% as training counts); %6.3f dB, %+6.3f; %5.1f ms",
			clip, qp, coded/float64(n), 100*(coded/wantBits-1), 100*(counted/wantBits-1), psnr, psnr-wantPSNR, 1000*spent.Seconds()/float64(n))
		if coded > 1.02*wantBits {
			t.Errorf("%s QP %d: the field costs too much", clip, qp)
		}
		if psnr < wantPSNR {
			t.Errorf("%s QP %d: the prediction is worse", clip, qp)
		}
		rate += coded / wantBits
		gain += psnr - wantPSNR
		lines++
	}
	t.Logf("mean: %+.1f %%, %+.3f dB", 100*(rate/lines-1), gain/lines)
}

func predictionPSNR(ref *phases, cur *yuv.Planes, f []int16, w, h int) float64 {
	var sse float64
	for y := range h {
		for x := range w {
			k := 2 * (y/16*(cur.W/16) + x/16)
			p := ref.at(y&^15, x&^15, int(f[k]), int(f[k+1]))[y%16*ref.stride+x%16]
			d := float64(p) - float64(cur.Y[y*cur.StrideY+x])
			sse += d * d
		}
	}
	return 10 * math.Log10(65025*float64(w*h)/max(sse, 1))
}

// readY4M returns n pictures at padded size, luma only, and the size without padding.
func readY4M(t *testing.T, path string, n int) (frames []*yuv.Planes, w, h int) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(bytes.NewReader(b))
	line, _ := r.ReadString('\n')
	for _, f := range strings.Fields(line) {
		fmt.Sscanf(f, "W%d", &w)
		fmt.Sscanf(f, "H%d", &h)
	}
	for range n {
		r.ReadString('\n')
		y := make([]byte, w*h)
		if _, err := io.ReadFull(r, y); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		io.CopyN(io.Discard, r, int64((w+1)/2*((h+1)/2)*2))
		p := yuv.New((w+63)/64*64, (h+63)/64*64)
		for i := range p.H {
			row := p.Y[i*p.StrideY:][:p.W]
			copy(row, y[min(i, h-1)*w:][:w])
			fill(row[w:], row[w-1])
		}
		frames = append(frames, p)
	}
	return frames, w, h
}

// trainingBits counts a field as the training does: with merges and residual classes whose frequencies adapt.
func trainingBits(f, before []int16, hb, wb int) float64 {
	merge, size := [3]counts{}, [2]counts{}
	for i := range merge {
		merge[i] = counts{8, 3, 2, 2, 2, 2}
	}
	for i := range size {
		for k := range 14 {
			size[i] = append(size[i], 8/float64(1+k))
		}
	}
	at := func(f []int16, k int) vector { return vector{f[2*k], f[2*k+1]} }
	fresh := make([]int, hb*wb)
	total := 0.0
	for k := range fresh {
		i, j := k/wb, k%wb
		var left, up, right, kept vector
		ctx := 0
		switch {
		case j > 0:
			left, ctx = at(f, k-1), fresh[k-1]
		case i > 0:
			left = at(f, k-wb)
		}
		up = left
		if i > 0 {
			up = at(f, k-wb)
			ctx += fresh[k-wb]
		}
		right = up
		if i > 0 && j+1 < wb {
			right = at(f, k-wb+1)
		}
		if before != nil {
			kept = at(before, k)
		}
		v := at(f, k)
		m := slices.Index([]vector{left, up, right, kept, {}, v}, v)
		total += merge[ctx].take(m, 4)
		if m < 5 {
			continue
		}
		fresh[k] = 1
		med := median(left, up, right)
		for a, d := range [2]int16{v.y - med.y, v.x - med.x} {
			c := bits.Len16(uint16(max(d, -d)))
			total += size[a].take(c, 2) + float64(max(0, c-1)+min(c, 1))
		}
	}
	return total
}

type counts []float64

// take returns the bits of symbol k and counts it w times.
func (c counts) take(k int, w float64) float64 {
	sum := 0.0
	for _, v := range c {
		sum += v
	}
	b := -math.Log2(c[k] / sum)
	c[k] += w
	return b
}

// The training's own count of two fields.
func TestTrainingBits(t *testing.T) {
	field := func(s, hb, wb int) (f []int16) {
		for i := range hb {
			for j := range wb {
				y, x := i/3*s, -s*(j/4)
				if (i+j)%4 == 0 {
					y = i*j*s%7 - 3
				}
				if i*j%6 == 5 {
					x = j * s % 5 * 40
				}
				f = append(f, int16(y), int16(x))
			}
		}
		return f
	}
	a, b := field(1, 9, 11), field(3, 9, 11)
	for _, c := range []struct{ got, want float64 }{
		{trainingBits(a, nil, 9, 11), 391.84388904380006},
		{trainingBits(b, a, 9, 11), 431.28726594482356},
	} {
		if math.Abs(c.got-c.want) > 1e-9*c.want {
			t.Errorf("%v bits, want %v", c.got, c.want)
		}
	}
}
