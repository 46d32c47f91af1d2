package inference

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/nvcodec/nvcodec/inference/kernel"
)

// TestActRange: the range of the activation is exact for every F: no narrower interval holds its values.
func TestActRange(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for f := uint(1); f <= 14; f++ {
		for range 150 {
			a, b := int32(edge(r, -32768, 32767)), int32(edge(r, -32768, 32767))
			if r.IntN(2) == 0 { // around the dip below zero
				a, b = int32(r.IntN(1<<f)-1<<f), int32(r.IntN(1<<f)-1<<(f-1))
			}
			in := Range{min(a, b), max(a, b)}
			want := Range{32767, -32768}
			for x := in.Lo; x <= in.Hi; x++ {
				y := int32(kernel.Act(int16(x), f))
				want = Range{min(want.Lo, y), max(want.Hi, y)}
			}
			if got := in.act(f); got != want {
				t.Fatalf("F=%d %v: got %v, want %v", f, in, got, want)
			}
		}
	}
}

// smallModel is a graph with one layer x of c inputs and one output channel; edit changes what is to be proved.
func smallModel(t *testing.T, c int, weights string, edit func(w []int64, bias, mul, shift *int64)) *Model {
	t.Helper()
	w, bias, mul, shift := make([]int64, c), int64(0), int64(1), int64(0)
	edit(w, &bias, &mul, &shift)
	all := make([]int64, 96*c)
	copy(all[95*c:], w) // the last channel, so that a loop that ends early is seen
	biases, muls := make([]int64, 96), make([]int64, 96)
	for i := range muls {
		muls[i] = 1
	}
	biases[95], muls[95] = bias, mul
	m := &Model{Version: Version, Profile: Profile, Name: "small", Tensors: map[string]*Tensor{}, Graphs: map[string]*Graph{}}
	for name, x := range map[string]struct {
		typ   string
		shape []int
		data  []int64
	}{"w": {weights, []int{96, c}, all}, "b": {"I32", []int{96}, biases}, "m": {"I32", []int{96}, muls}} {
		tensor, err := NewTensor(name, x.typ, x.shape, x.data)
		if err != nil {
			t.Fatal(err)
		}
		m.Tensors[name] = tensor
	}
	m.Graphs["intra"] = &Graph{Name: "intra", Nodes: []Node{
		{Out: "x", Op: "memory_in", C: c, F: 10, Stride: 8},
		{Out: "y", Op: "lin", In: []string{"x"}, C: 96, F: 10, Stride: 8, Tensors: map[string]string{"w": "w", "bias": "b", "mul": "m"}, Ints: map[string]int{"shift": int(shift)}},
		{Out: "p", Op: "picture", Kind: Picture, In: []string{"y"}},
	}}
	return m
}

// TestProveBounds stands on both sides of every bound.
func TestProveBounds(t *testing.T) {
	fill := func(w []int64, v int64) {
		for i := range w {
			w[i] = v
		}
	}
	const k = 512 // 512·127·32768 = 2130706432
	for _, c := range []struct {
		name    string
		c       int
		weights string
		edit    func(w []int64, bias, mul, shift *int64)
		want    string // part of the error, "" for proved
	}{
		{"int32 just fits", k, "I8", func(w []int64, bias, _, _ *int64) { fill(w, 127); *bias = 1<<31 - 1 - k*127*32768 }, ""},
		{"int32 by one", k, "I8", func(w []int64, bias, _, _ *int64) { fill(w, 127); *bias = 1<<31 - k*127*32768 }, "can reach 2147483648"},
		{"int32 negative bias", k, "I8", func(w []int64, bias, _, _ *int64) { fill(w, -127); *bias = k*127*32768 - 1<<31 }, "channel 95"},
		{"signs do not cancel", 1024, "I8", func(w []int64, _, _, _ *int64) {
			for i := range w {
				w[i] = int64(127 * (1 - i%2*2))
			}
		}, "can reach 2147483648"},
		{"least bias", 1, "I8", func(_ []int64, bias, _, _ *int64) { *bias = -1 << 31 }, "can reach"},
		{"product fits", k, "I8", func(w []int64, bias, mul, shift *int64) {
			fill(w, 127)
			*bias, *mul, *shift = 1<<31-1-k*127*32768, 1<<31-1, 62
		}, ""},
		{"int16 fits", 1000, "I16", func(w []int64, _, mul, shift *int64) { fill(w, 32767); *mul, *shift = 6400000, 62 }, ""},
		{"int16 product by mul", 1000, "I16", func(w []int64, _, mul, _ *int64) { fill(w, 32767); *mul = 8600000 }, "can reach 2^63"},
		{"int16 product by rounding", 1000, "I16", func(w []int64, _, mul, shift *int64) { fill(w, 32767); *mul, *shift = 8500000, 62 }, "can reach 2^63"},
		{"mul 0", 1, "I8", func(_ []int64, _, mul, _ *int64) { *mul = 0 }, "mul of channel 95 is 0"},
		{"mul negative", 1, "I8", func(_ []int64, _, mul, _ *int64) { *mul = -5 }, "mul of channel 95 is -5"},
		{"shift 63", 1, "I8", func(_ []int64, _, _, shift *int64) { *shift = 63 }, "shift is 63"},
		{"shift -1", 1, "I8", func(_ []int64, _, _, shift *int64) { *shift = -1 }, "shift is -1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := smallModel(t, c.c, c.weights, c.edit).Prove()
			switch {
			case c.want == "" && err != nil:
				t.Fatal(err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Fatalf("error %v, want one with %q", err, c.want)
			}
			if err == nil && p.Layers[0].Channel != 95 {
				t.Errorf("the largest bound is said to be channel %d's", p.Layers[0].Channel)
			}
		})
	}
}

// TestProveTighter: a clamp in front lets a layer pass that the range of int16 alone would not.
func TestProveTighter(t *testing.T) {
	m := smallModel(t, 1024, "I8", func(w []int64, _, _, _ *int64) {
		for i := range w {
			w[i] = 127
		}
	})
	if _, err := m.Prove(); err == nil {
		t.Fatal("proved with the full range")
	}
	nodes := m.Graphs["intra"].Nodes
	clamped := Node{Out: "c", Op: "clamp", In: []string{"x"}, C: 1024, F: 10, Stride: 8, Ints: map[string]int{"lo": -1000, "hi": 2000}}
	nodes[1].In = []string{"c"}
	m.Graphs["intra"].Nodes = []Node{nodes[0], clamped, nodes[1], nodes[2]}
	p, err := m.Prove()
	if err != nil {
		t.Fatal(err)
	}
	if l := p.Layers[0]; l.Bound != 1024*127*2000 || l.In != (Range{-1000, 2000}) {
		t.Errorf("layer %+v", l)
	}
}
