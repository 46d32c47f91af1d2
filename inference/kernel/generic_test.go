package kernel_test

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/nvcodec/nvcodec/inference/kernel"
)

// Here Generic, the definition, is held against the formulas of docs/MODEL.md in integers without a width: if it ever
// left its 32 or 64 bits within the bounds that a model proves, it would differ.

func number(v int64) *big.Int { return big.NewInt(v) }

// bigRnd is rnd(a, s) as floor(a / 2^s + 1/2); big.Int's Rsh floors as an arithmetic shift does.
func bigRnd(a *big.Int, s uint) *big.Int {
	if s == 0 {
		return a
	}
	half := new(big.Int).Lsh(number(1), s-1)
	return half.Rsh(half.Add(half, a), s)
}

func bigClamp(a *big.Int, lo, hi int64) int64 {
	switch {
	case a.Cmp(number(lo)) < 0:
		return lo
	case a.Cmp(number(hi)) > 0:
		return hi
	}
	return a.Int64()
}

func bigSat16(a *big.Int) int64 { return bigClamp(a, -32768, 32767) }

func bigAct(x int16, f uint) int64 {
	t := bigClamp(number(int64(x)+1<<(f-1)), 0, 1<<f)
	return bigRnd(number(int64(x)*t), f).Int64()
}

func bigRequantise(acc *big.Int, mul int32, shift uint) int64 {
	return bigSat16(bigRnd(new(big.Int).Mul(acc, number(int64(mul))), shift))
}

// edge returns one of the extremes a third of the time, else any value of the range, small ones as often as large.
func edge(r *rand.Rand, lo, hi int64) int64 {
	if r.IntN(3) == 0 {
		e := [...]int64{lo, lo + 1, -1, 0, 1, hi - 1, hi}[r.IntN(7)]
		return min(max(e, lo), hi)
	}
	return min(max((lo+r.Int64N(hi-lo+1))>>r.IntN(16), lo), hi)
}

func edges16(r *rand.Rand, n int) []int16 {
	x := make([]int16, n)
	for i := range x {
		x[i] = int16(edge(r, -32768, 32767))
	}
	return x
}

// pushed moves bias away from zero until Σ|w|·max|x| + |bias| stands at the bound.
func pushed(r *rand.Rand, used, limit int64) int32 {
	room := min(limit-1-used, math.MaxInt32)
	if room < 0 {
		panic(fmt.Sprintf("weights use %d of %d", used, limit))
	}
	return int32(edge(r, -room, room))
}

// mul returns a multiplier and a shift; powers of two give ties.
func mulShift(r *rand.Rand, acc int64) (mul int32, shift uint) {
	most := int64(math.MaxInt32)
	if acc > 0 {
		most = min(most, (math.MaxInt64-1<<61)/acc)
	}
	if r.IntN(2) == 0 {
		mul = int32(1) << r.IntN(31)
		for int64(mul) > most {
			mul >>= 1
		}
	} else {
		mul = int32(edge(r, 1, most))
	}
	return mul, uint(r.IntN(63))
}

func TestLinAgainstBig(t *testing.T) {
	lin := kernel.Generic().Lin
	for seed := range uint64(600) {
		r := rand.New(rand.NewPCG(seed, 1))
		l := &kernel.Lin{In: 1 + r.IntN(40), Out: 1 + r.IntN(5)}
		if r.IntN(8) == 0 {
			l.In = 512
		}
		wide := r.IntN(3) == 0
		limit, top := int64(1)<<31, int64(127)
		if wide {
			limit, top = 1<<45, 32767
		}
		var worst int64
		for range l.Out {
			used := int64(0)
			for range l.In {
				w := edge(r, -top-1, top)
				if used+max(w, -w)*32768 >= limit {
					w = 0
				}
				used += max(w, -w) * 32768
				if wide {
					l.W16 = append(l.W16, int16(w))
				} else {
					l.W = append(l.W, int8(w))
				}
			}
			l.Bias = append(l.Bias, pushed(r, used, limit))
			worst = max(worst, used+int64(math.MaxInt32))
		}
		if !wide {
			worst = limit
		}
		for range l.Out {
			m, s := mulShift(r, worst)
			l.Mul, l.Shift = append(l.Mul, m), s
		}
		n := r.IntN(4)
		src := edges16(r, n*l.In)
		if r.IntN(2) == 0 && n > 0 { // every product as large as it can be, all of one sign
			for i := range l.In {
				src[i] = -32768
				if wide && l.W16[i] < 0 || !wide && l.W[i] < 0 {
					src[i] = 32767
				}
			}
		}
		var res []int16
		if r.IntN(2) == 0 {
			res = edges16(r, n*l.Out)
		}
		dst := make([]int16, n*l.Out)
		lin(l)(dst, src, res)
		for p := range n {
			for o := range l.Out {
				acc := number(int64(l.Bias[o]))
				for i := range l.In {
					w := number(0)
					if wide {
						w.SetInt64(int64(l.W16[o*l.In+i]))
					} else {
						w.SetInt64(int64(l.W[o*l.In+i]))
					}
					acc.Add(acc, w.Mul(w, number(int64(src[p*l.In+i]))))
				}
				want := bigRequantise(acc, l.Mul[o], l.Shift)
				if res != nil {
					want = bigSat16(number(want + int64(res[p*l.Out+o])))
				}
				if got := int64(dst[p*l.Out+o]); got != want {
					t.Fatalf("seed=%d %d to %d wide=%v position %d channel %d: got %d, want %d (acc %v mul %d shift %d)", seed, l.In, l.Out, wide, p, o, got, want, acc, l.Mul[o], l.Shift)
				}
			}
		}
	}
}

func TestDWActAgainstBig(t *testing.T) {
	dw := kernel.Generic().DWAct
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 2))
		d := &kernel.DWAct{C: 1 + r.IntN(5), F: uint(1 + r.IntN(14))}
		for range 9 * d.C {
			d.W = append(d.W, int8(edge(r, -128, 127)))
		}
		for range d.C {
			d.Bias = append(d.Bias, pushed(r, 9*128*32768, 1<<31))
			m, s := mulShift(r, 1<<31)
			d.Mul, d.Shift = append(d.Mul, m), s
		}
		h, w := r.IntN(5), 1+r.IntN(4)
		src := edges16(r, h*w*d.C)
		y0 := r.IntN(h + 1)
		y1 := y0 + r.IntN(h-y0+1)
		dst := make([]int16, len(src))
		for i := range dst {
			dst[i] = 12345
		}
		dw(d)(dst, src, h, w, y0, y1)
		for i, got := range dst {
			y, x, c := i/d.C/w, i/d.C%w, i%d.C
			want := int64(12345)
			if y >= y0 && y < y1 {
				acc := number(int64(d.Bias[c]))
				for dy := -1; dy <= 1; dy++ {
					for dx := -1; dx <= 1; dx++ {
						if y+dy >= 0 && y+dy < h && x+dx >= 0 && x+dx < w {
							a := bigAct(src[((y+dy)*w+x+dx)*d.C+c], d.F)
							acc.Add(acc, number(int64(d.W[((dy+1)*3+dx+1)*d.C+c])*a))
						}
					}
				}
				want = bigRequantise(acc, d.Mul[c], d.Shift)
			}
			if int64(got) != want {
				t.Fatalf("seed=%d %dx%d C=%d F=%d rows %d to %d: at (%d,%d,%d) got %d, want %d", seed, w, h, d.C, d.F, y0, y1, y, x, c, got, want)
			}
		}
	}
}

// TestActFits: act keeps to int16 for every input and F, as its kernels rely on, and is the float function to half a unit.
func TestActFits(t *testing.T) {
	for f := uint(1); f <= 14; f++ {
		for x := -32768; x <= 32767; x++ {
			got := int64(kernel.Act(int16(x), f))
			if want := bigAct(int16(x), f); got != want {
				t.Fatalf("F=%d x=%d: got %d, want %d", f, x, got, want)
			}
			v := float64(x) / math.Exp2(float64(f))
			real := v * min(max(v+0.5, 0), 1)
			if d := float64(got)/math.Exp2(float64(f)) - real; math.Abs(d) > 0.5/math.Exp2(float64(f)) {
				t.Fatalf("F=%d x=%d: %d is off by %g", f, x, got, d)
			}
		}
	}
}

func TestPointwiseAgainstBig(t *testing.T) {
	g := kernel.Generic()
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 3))
		n, c := r.IntN(4), 1+r.IntN(6)
		check := func(op string, dst []int16, want func(p, j int) int64) {
			t.Helper()
			for i, got := range dst {
				if want := want(i/c, i%c); int64(got) != want {
					t.Fatalf("seed=%d %s: position %d channel %d: got %d, want %d", seed, op, i/c, i%c, got, want)
				}
			}
		}
		dst := make([]int16, n*c)

		wide, f := edges16(r, n*4*c), uint(1+r.IntN(14))
		g.ActSum4(dst, wide, c, f)
		check("actsum4", dst, func(p, j int) int64 {
			sum := int64(0)
			for k := range 4 {
				sum += bigAct(wide[p*4*c+k*c+j], f)
			}
			return bigSat16(number(sum))
		})

		src := edges16(r, n*c)
		m := make([]int32, c)
		for i := range m {
			m[i] = int32(edge(r, math.MinInt32, math.MaxInt32))
		}
		shift := uint(r.IntN(63))
		g.Scale(dst, src, m, shift)
		check("scale", dst, func(p, j int) int64 { return bigRequantise(number(int64(src[p*c+j])), m[j], shift) })

		move := r.IntN(31) - 15
		g.Requant(dst, src, move)
		check("requant", dst, func(p, j int) int64 {
			x := number(int64(src[p*c+j]))
			if move < 0 {
				return bigSat16(x.Lsh(x, uint(-move)))
			}
			return bigSat16(bigRnd(x, uint(move)))
		})

		lo := int16(edge(r, -32768, 32767))
		hi := int16(edge(r, int64(lo), 32767))
		g.Clamp(dst, src, lo, hi)
		check("clamp", dst, func(p, j int) int64 { return bigClamp(number(int64(src[p*c+j])), int64(lo), int64(hi)) })
	}
}

// TestCompensateReference computes each sample in two passes over a padded copy of the plane, as a filter bank would.
func TestCompensateReference(t *testing.T) {
	g := kernel.Generic()
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 4))
		luma := seed%2 == 0
		block, bits, lead, taps := 8, 3, 1, 4
		if luma {
			block, bits, lead, taps = 16, 2, 3, 8
		}
		tap := func(phase, i int) int64 {
			if luma {
				return int64(kernel.LumaTaps[phase][i])
			}
			return int64(kernel.ChromaTaps[phase][i])
		}
		w, h := block*(1+r.IntN(4)), block*(1+r.IntN(3))
		ref := make([]byte, w*h)
		for i := range ref {
			ref[i] = byte(edge(r, 0, 255))
		}
		vectors := make([]int16, 2*(w/block)*(h/block))
		for i := range vectors {
			vectors[i] = int16(edge(r, -2047, 2047))
		}
		dst := make([]byte, w*h)
		g.Compensate(dst, ref, w, h, 0, h, vectors, w/block, luma)
		at := func(y, x int) int64 { return int64(ref[min(max(y, 0), h-1)*w+min(max(x, 0), w-1)]) }
		for i, got := range dst {
			y, x := i/w, i%w
			v := vectors[2*((y/block)*(w/block)+x/block):]
			py, px := int(v[0])&(1<<bits-1), int(v[1])&(1<<bits-1)
			sum := int64(0)
			for a := range taps {
				row := int64(0)
				for b := range taps {
					row += tap(px, b) * at(y+int(v[0])>>bits-lead+a, x+int(v[1])>>bits-lead+b)
				}
				sum += tap(py, a) * row
			}
			want := byte(min(max((sum+2048)>>12, 0), 255))
			if got != want {
				t.Fatalf("seed=%d luma=%v %dx%d: at (%d,%d) vector (%d,%d): got %d, want %d", seed, luma, w, h, y, x, v[0], v[1], got, want)
			}
		}
	}
}

// TestTaps: every filter passes a flat plane unchanged, and the mirrored phases mirror.
func TestTaps(t *testing.T) {
	for p, taps := range kernel.LumaTaps {
		sum := int32(0)
		for i, v := range taps {
			sum += v
			if m := (4 - p) % 4; p != 0 && kernel.LumaTaps[m][7-i] != v {
				t.Errorf("luma phase %d does not mirror phase %d", p, m)
			}
		}
		if sum != 64 {
			t.Errorf("luma phase %d sums to %d", p, sum)
		}
	}
	for p, taps := range kernel.ChromaTaps {
		sum := int32(0)
		for i, v := range taps {
			sum += v
			if m := (8 - p) % 8; p != 0 && kernel.ChromaTaps[m][3-i] != v {
				t.Errorf("chroma phase %d does not mirror phase %d", p, m)
			}
		}
		if sum != 64 {
			t.Errorf("chroma phase %d sums to %d", p, sum)
		}
	}
}

// TestPackUnpack: with the table of F = 13 the way there and back is the identity on 8-bit planes, the channels lie as
// MODEL.md says, and every int16 comes out as the formula has it.
func TestPackUnpack(t *testing.T) {
	g := kernel.Generic()
	const w, h, f = 16, 24, 13
	table := make([]int16, 256)
	for i := range table {
		table[i] = int16(math.Round((float64(i)/255 - 0.5) * (1 << f)))
	}
	r := rand.New(rand.NewPCG(1, 5))
	planes := func() (y, u, v []byte) { return make([]byte, w*h), make([]byte, w*h/4), make([]byte, w*h/4) }
	y, u, v := planes()
	for _, p := range [][]byte{y, u, v} {
		for i := range p {
			p[i] = byte(r.IntN(256))
		}
	}
	packed := make([]int16, w/8*h/8*kernel.Packed)
	g.Pack(packed, y, u, v, w, h, 0, h/8, table)
	for i, got := range packed {
		row, col, c := i/96/(w/8), i/96%(w/8), i%96
		var want int16
		switch {
		case c < 64:
			want = table[y[(row*8+c/8)*w+col*8+c%8]]
		case c < 80:
			want = table[u[(row*4+(c-64)/4)*w/2+col*4+c%4]]
		default:
			want = table[v[(row*4+(c-80)/4)*w/2+col*4+c%4]]
		}
		if got != want {
			t.Fatalf("position (%d,%d) channel %d: got %d, want %d", row, col, c, got, want)
		}
	}
	y2, u2, v2 := planes()
	zero := make([]int16, len(packed))
	g.Unpack(y2, u2, v2, zero, packed, w, h, 0, h/8, f)
	for i, p := range [][2][]byte{{y2, y}, {u2, u}, {v2, v}} {
		if string(p[0]) != string(p[1]) {
			t.Errorf("plane %d does not come back", i)
		}
	}
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 6))
		f := uint(1 + r.IntN(15))
		head, pred := edges16(r, len(packed)), edges16(r, len(packed))
		if seed%3 == 0 {
			pred = nil
		}
		g.Unpack(y2, u2, v2, head, pred, w, h, 0, h/8, f)
		for i := range h / 8 * (w / 8) {
			x := int64(head[i*96])
			if pred != nil {
				x = bigSat16(number(x + int64(pred[i*96])))
			}
			want := bigClamp(bigRnd(number(255*x+255<<(f-1)), f), 0, 255)
			if got := y2[i/(w/8)*8*w+i%(w/8)*8]; int64(got) != want {
				t.Fatalf("seed=%d F=%d x=%d: got %d, want %d", seed, f, x, got, want)
			}
		}
	}
}

// TestMisuse: a kernel that is given slices of the wrong length panics, whatever the set.
func TestMisuse(t *testing.T) {
	one := []int32{1}
	for _, set := range kernel.Available() {
		calls := map[string]func(){
			"lin weights": func() { set.Lin(&kernel.Lin{In: 2, Out: 1, W: make([]int8, 1), Bias: one, Mul: one}) },
			"lin both": func() {
				set.Lin(&kernel.Lin{In: 1, Out: 1, W: make([]int8, 1), W16: make([]int16, 1), Bias: one, Mul: one})
			},
			"lin dst": func() {
				set.Lin(&kernel.Lin{In: 1, Out: 1, W: make([]int8, 1), Bias: one, Mul: one})(make([]int16, 1), make([]int16, 2), nil)
			},
			"dwact F": func() { set.DWAct(&kernel.DWAct{C: 1, F: 15, W: make([]int8, 9), Bias: one, Mul: one}) },
			"dwact rows": func() {
				set.DWAct(&kernel.DWAct{C: 1, F: 9, W: make([]int8, 9), Bias: one, Mul: one})(make([]int16, 4), make([]int16, 4), 2, 2, 1, 3)
			},
			"actsum4": func() { set.ActSum4(make([]int16, 2), make([]int16, 7), 2, 10) },
			"scale":   func() { set.Scale(make([]int16, 2), make([]int16, 3), one, 10) },
			"requant": func() { set.Requant(make([]int16, 2), make([]int16, 2), 16) },
			"clamp":   func() { set.Clamp(make([]int16, 2), make([]int16, 2), 2, 1) },
			"compensate": func() {
				set.Compensate(make([]byte, 256), make([]byte, 256), 16, 16, 0, 16, make([]int16, 1), 1, true)
			},
			"pack": func() {
				set.Pack(make([]int16, 96), make([]byte, 64), make([]byte, 16), make([]byte, 15), 8, 8, 0, 1, make([]int16, 256))
			},
			"unpack": func() {
				set.Unpack(make([]byte, 64), make([]byte, 16), make([]byte, 16), make([]int16, 96), make([]int16, 95), 8, 8, 0, 1, 13)
			},
		}
		for name, call := range calls {
			t.Run("impl="+set.Name+"/"+name, func(t *testing.T) {
				defer func() {
					if recover() == nil {
						t.Error("no panic")
					}
				}()
				call()
			})
		}
	}
}

// TestByName: the environment lowers the level and never raises it.
func TestByName(t *testing.T) {
	t.Setenv(kernel.Env, "")
	all := kernel.Available()
	if all[0].Name != "generic" {
		t.Fatalf("first set is %s", all[0].Name)
	}
	if s, err := kernel.ByName("auto"); err != nil || s.Name != all[len(all)-1].Name {
		t.Errorf("auto gives %q, %v; want the last of the list", s.Name, err)
	}
	if _, err := kernel.ByName("sse1"); err == nil {
		t.Error("an unknown name gives no error")
	}
	t.Setenv(kernel.Env, "generic")
	if n := len(kernel.Available()); n != 1 {
		t.Errorf("%d sets under %s=generic, want 1", n, kernel.Env)
	}
	if len(all) > 1 {
		if _, err := kernel.ByName(all[1].Name); err == nil {
			t.Errorf("%s is available under %s=generic", all[1].Name, kernel.Env)
		}
	}
	t.Setenv(kernel.Env, "generik")
	if _, err := kernel.ByName("auto"); err == nil {
		t.Error("a mistyped level goes unnoticed")
	}
}
