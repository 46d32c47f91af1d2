package kernel

import (
	"math/rand/v2"
	"testing"
)

// any16 returns int16 values of which a third are ends and their neighbours.
func any16(r *rand.Rand, n int) []int16 {
	x := make([]int16, n)
	for i := range x {
		x[i] = int16(r.Uint32()) >> r.IntN(15)
		if r.IntN(3) == 0 {
			x[i] = [...]int16{-32768, -32767, -1, 0, 1, 32766, 32767}[r.IntN(7)]
		}
	}
	return x
}

// TestConv3: a 3x3 convolution is a lin over the nine positions' channels, zero outside, with either type of weights;
// a depthwise one is a convolution whose other weights are 0.
func TestConv3(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 60 {
		stride, in, out := 1+r.IntN(2), 1+r.IntN(5), 1+r.IntN(5)
		h, w := stride*(1+r.IntN(4)), stride*(1+r.IntN(4))
		wide := make([]int16, out*9*in)
		c := &Conv3{In: in, Out: out, R: stride, W: make([]int8, len(wide)), Bias: make([]int32, out), Mul: make([]int32, out), Shift: uint(r.IntN(40))}
		for i := range wide {
			c.W[i] = int8(r.Uint32())
			wide[i] = int16(c.W[i])
		}
		for o := range out {
			c.Bias[o], c.Mul[o] = r.Int32N(1<<20)-1<<19, 1+r.Int32N(1<<20)
		}
		src := any16(r, h*w*in)
		got := make([]int16, h/stride*(w/stride)*out)
		c.Apply(got, src, h, w, 0, h/stride/2)
		c.Apply(got, src, h, w, h/stride/2, h/stride)
		lin := linGeneric(&Lin{In: 9 * in, Out: out, W: c.W, Bias: c.Bias, Mul: c.Mul, Shift: c.Shift})
		for p := range len(got) / out {
			patch := make([]int16, 9*in)
			for tap := range 9 {
				y, x := p/(w/stride)*stride+tap/3-1, p%(w/stride)*stride+tap%3-1
				if y >= 0 && y < h && x >= 0 && x < w {
					copy(patch[tap*in:], src[(y*w+x)*in:][:in])
				}
			}
			want := make([]int16, out)
			lin(want, patch, nil)
			for o := range want {
				if got[p*out+o] != want[o] {
					t.Fatalf("position %d channel %d: got %d, want %d", p, o, got[p*out+o], want[o])
				}
			}
		}
		again := make([]int16, len(got))
		c.W, c.W16 = nil, wide
		c.Apply(again, src, h, w, 0, h/stride)
		d := &DW{C: in, W: make([]int8, 9*in), Bias: make([]int32, in), Mul: make([]int32, in), Shift: c.Shift}
		diagonal := &Conv3{In: in, Out: in, R: 1, W: make([]int8, in*9*in), Bias: d.Bias, Mul: d.Mul, Shift: d.Shift}
		for ch := range in {
			d.Bias[ch], d.Mul[ch] = r.Int32N(1<<20)-1<<19, 1+r.Int32N(1<<20)
			for tap := range 9 {
				d.W[tap*in+ch] = int8(r.Uint32())
				diagonal.W[(ch*9+tap)*in+ch] = d.W[tap*in+ch]
			}
		}
		one, two := make([]int16, len(src)), make([]int16, len(src))
		d.Check()
		d.Apply(one, src, h, w, 0, h)
		diagonal.Apply(two, src, h, w, 0, h)
		for i := range got {
			if again[i] != got[i] {
				t.Fatalf("int16 weights: at %d got %d, want %d", i, again[i], got[i])
			}
		}
		for i := range one {
			if one[i] != two[i] {
				t.Fatalf("depthwise: at %d got %d, want %d", i, one[i], two[i])
			}
		}
	}
}

func TestTables(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	table, x := any16(r, 1<<16), any16(r, 600)
	y := make([]int16, len(x))
	Lookup(y, x, table)
	sum, half := make([]int16, len(x)), make([]int16, len(x)/2)
	Add(sum, x, y)
	Sum2(half, x, 3)
	for i := range x {
		if y[i] != table[uint16(x[i])^0x8000] {
			t.Fatalf("lookup of %d is %d", x[i], y[i])
		}
		if want := min(max(int(x[i])+int(y[i]), -32768), 32767); int(sum[i]) != want {
			t.Fatalf("%d + %d is %d", x[i], y[i], sum[i])
		}
	}
	for i := range half {
		a, b := int(x[i/3*6+i%3]), int(x[i/3*6+3+i%3])
		if want := min(max(a+b, -32768), 32767); int(half[i]) != want {
			t.Fatalf("sum2 of %d and %d is %d", a, b, half[i])
		}
	}
}

// TestPackFull: the four values of a chroma sample are the same, so that a packed picture comes back as it was, and
// every plane's channels lie as luma's do.
func TestPackFull(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 2))
	const w, h, f = 24, 16, 13
	table := make([]int16, 256)
	for i := range table {
		table[i] = int16(Rnd(int64(2*i-255)<<32/510, 32-f))
	}
	var in, out [3][]byte
	for i, n := range []int{w * h, w * h / 4, w * h / 4} {
		in[i], out[i] = make([]byte, n), make([]byte, n)
		for j := range in[i] {
			in[i][j] = byte(r.Uint32())
		}
	}
	x := make([]int16, w/8*(h/8)*PackedFull)
	PackFull(x, in[0], in[1], in[2], w, h, 0, 1, table)
	PackFull(x, in[0], in[1], in[2], w, h, 1, 2, table)
	for row := range h {
		for col := range w {
			at := (row/8*(w/8)+col/8)*PackedFull + row%8*8 + col%8
			c := row/2*(w/2) + col/2
			if x[at] != table[in[0][row*w+col]] || x[at+64] != table[in[1][c]] || x[at+128] != table[in[2][c]] {
				t.Fatalf("sample (%d, %d) is %d, %d, %d", row, col, x[at], x[at+64], x[at+128])
			}
		}
	}
	UnpackFull(out[0], out[1], out[2], x, nil, w, h, 0, 2, f)
	for i := range in {
		for j := range in[i] {
			if out[i][j] != in[i][j] {
				t.Fatalf("plane %d, sample %d: %d comes back as %d", i, j, in[i][j], out[i][j])
			}
		}
	}
	// Of a sample's four values those past the ends count as the ends, behind the sum with what is predicted.
	pred := make([]int16, len(x))
	clear(x)
	x[64], x[65], x[72], x[73] = 32767, 32767, -1<<(f-1), -1<<(f-1)
	pred[64], pred[65] = 32767, -32768+1<<(f-2)
	UnpackFull(out[0], out[1], out[2], x, pred, w, h, 0, 2, f)
	if want := byte(Rnd(255*(4096+2047-4096-4096)+255*4*4096, f+2)); out[1][0] != want {
		t.Errorf("the sample is %d, want %d", out[1][0], want)
	}
}
