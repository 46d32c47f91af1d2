package convert

import (
	"bytes"
	"context"
	"crypto/sha256"
	"maps"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/nvcodec/nvcodec/inference"
	"github.com/nvcodec/nvcodec/inference/safetensors"
)

func TestHalfOfEveryPattern(t *testing.T) {
	for h := range 1 << 16 {
		sign, exp, frac := h>>15, h>>10&31, h&1023
		got := half(uint16(h))
		if exp == 31 {
			if got-got == 0 {
				t.Fatalf("%#04x is %v, want no number", h, got)
			}
			continue
		}
		want := math.Ldexp(float64(1024+frac), exp-25)
		if exp == 0 {
			want = math.Ldexp(float64(frac), -24)
		}
		if sign != 0 {
			want = -want
		}
		if float64(got) != want || math.Signbit(float64(got)) != (sign != 0) {
			t.Fatalf("%#04x is %v, want %v", h, got, want)
		}
	}
}

func TestCheckpointTypes(t *testing.T) {
	f := &safetensors.File{Metadata: map[string]string{"k": "v"}, Tensors: []safetensors.Tensor{
		{Name: "bf16", Type: "BF16", Shape: []int{2}, Data: []byte{0x80, 0x3f, 0x00, 0xc0}},
		{Name: "f16", Type: "F16", Shape: []int{1}, Data: []byte{0x00, 0x3c}},
		{Name: "f32", Type: "F32", Shape: []int{1}, Data: []byte{0, 0, 0, 0x3f}},
		{Name: "i16", Type: "I16", Shape: []int{1}, Data: []byte{0xff, 0xff}},
		{Name: "i32", Type: "I32", Shape: []int{1}, Data: []byte{0xfe, 0xff, 0xff, 0xff}},
		{Name: "i8", Type: "I8", Shape: []int{1}, Data: []byte{0x80}},
		{Name: "u8", Type: "U8", Shape: []int{1}, Data: []byte{0x80}},
	}}
	b, err := safetensors.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	c, err := ParseCheckpoint(b)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(c.Tensors["bf16"].Float, []float32{1, -2}) || c.Tensors["f16"].Float[0] != 1 || c.Tensors["f32"].Float[0] != 0.5 {
		t.Errorf("floats %v %v %v", c.Tensors["bf16"].Float, c.Tensors["f16"].Float, c.Tensors["f32"].Float)
	}
	for name, want := range map[string]int32{"i16": -1, "i32": -2, "i8": -128, "u8": 128} {
		if got := c.Tensors[name].Int[0]; got != want {
			t.Errorf("%s is %d, want %d", name, got, want)
		}
	}
	for name, bad := range map[string]safetensors.Tensor{
		"a type for which there is no use": {Name: "x", Type: "F64", Shape: []int{1}, Data: make([]byte, 8)},
		"no number":                        {Name: "x", Type: "F32", Shape: []int{1}, Data: []byte{0, 0, 0xc0, 0x7f}},
		"infinity":                         {Name: "x", Type: "F16", Shape: []int{1}, Data: []byte{0x00, 0xfc}},
	} {
		b, err := safetensors.Marshal(&safetensors.File{Tensors: []safetensors.Tensor{bad}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ParseCheckpoint(b); err == nil {
			t.Errorf("%s was read", name)
		}
	}
}

func TestParamsRefuse(t *testing.T) {
	for _, c := range []struct {
		name, want string
		change     func(c *Checkpoint)
	}{
		{"another network", "network", func(c *Checkpoint) { c.Meta["network"] = "nvc2" }},
		{"motion between positions", "metadata align", func(c *Checkpoint) { c.Meta["align"] = "4" }},
		{"no width", "metadata ci", func(c *Checkpoint) { delete(c.Meta, "ci") }},
		{"an odd width", "multiple of 8", func(c *Checkpoint) { c.Meta["cp"] = "12" }},
		{"a missing tensor", "i.e1.pw1.bias is missing", func(c *Checkpoint) { delete(c.Tensors, "i.e1.pw1.bias") }},
		{"a tensor too many", "i.e9.weight is not part", func(c *Checkpoint) { c.Tensors["i.e9.weight"] = c.Tensors["i.e1.pw1.weight"] }},
		{"another shape", "has shape", func(c *Checkpoint) { c.Tensors["p.up.bias"] = c.Tensors["p.down.bias"] }},
		{"integers for floats", "is I8", func(c *Checkpoint) { c.Tensors["p.qe.a"] = &Tensor{Type: "I8", Shape: []int{8}, Int: make([]int32, 8)} }},
		{"fractions that are no JSON", "fractions", func(c *Checkpoint) { c.Meta["fractions"] = "11" }},
		{"fractions of no group", "no.group", func(c *Checkpoint) { c.Meta["fractions"] = `{"no.group": 11}` }},
		{"fractions out of range", "p.memory", func(c *Checkpoint) { c.Meta["fractions"] = `{"p.memory": 15}` }},
	} {
		ckpt := tiny(t, 8, 8, 1)
		c.change(ckpt)
		if _, err := NewParams(ckpt); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want an error with %q", c.name, err, c.want)
		}
	}
}

func TestStatedIntegersRefuse(t *testing.T) {
	c := tiny(t, 8, 8, 1)
	r, err := Run(context.Background(), c, Options{Name: "tiny", Clips: []Clip{noise(64, 64, 3, 1)}, QPs: []int{40}})
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		name, want string
		change     func(c *Checkpoint)
	}{
		{"no shifts", "shift", func(c *Checkpoint) { delete(c.Meta, "shifts") }},
		{"no fractions", "fractions must state", func(c *Checkpoint) { delete(c.Meta, "fractions") }},
		{"mul of 0", "mul", func(c *Checkpoint) { c.Tensors["i.e1.pw1.mul"].Int[3] = 0 }},
		{"a bias that no sum can hold", "2147483648", func(c *Checkpoint) { c.Tensors["i.e1.pw1.bias"].Int[3] = math.MaxInt32 }},
		{"weights beyond int8", "int8", func(c *Checkpoint) { c.Tensors["i.e1.pw1.w"].Int[3] = 128 }},
	} {
		kept := integers(t, c, r)
		x.change(kept)
		if _, err := Run(context.Background(), kept, Options{Name: "tiny", Clips: []Clip{noise(64, 64, 3, 1)}, QPs: []int{40}}); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v, want an error with %q", x.name, err, x.want)
		}
	}
}

// The same checkpoint gives the same bytes; integers that a checkpoint states come out as they went in, and so does
// the whole model.
func TestRunIsDeterministicAndKeepsIntegers(t *testing.T) {
	c := tiny(t, 16, 8, 3)
	o := Options{Name: "tiny", Clips: []Clip{noise(64, 64, 3, 1)}, QPs: []int{0, 63}}
	first, err := Run(context.Background(), c, o)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Run(context.Background(), c, o)
	if err != nil {
		t.Fatal(err)
	}
	if sha256.Sum256(first.File) != sha256.Sum256(again.File) {
		t.Error("a second conversion gives other bytes")
	}
	kept, err := Run(context.Background(), integers(t, c, first), o)
	if err != nil {
		t.Fatal(err)
	}
	if kept.Model.ID != first.Model.ID {
		t.Error("stated integers give another model")
	}
	m, err := inference.Load(first.File)
	if err != nil {
		t.Fatal(err)
	}
	if f, err := FractionsOf(m); err != nil || !maps.Equal(f, first.Fractions) {
		t.Errorf("fractions read from the model are %v (%v), want %v", f, err, first.Fractions)
	}
	if m.Name != "tiny" || m.Meta["threshold"] == "" || m.ID != first.Model.ID {
		t.Errorf("the file holds name %q, metadata %v", m.Name, m.Meta)
	}
	var report bytes.Buffer
	if err := first.WriteReport(&report); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"i.fusion.mean", "p.recon.2.dw", "p.fa_i.0.pw1", "p.fa_m.0.pw1"} {
		if strings.Count(report.String(), want+" ") != 1 {
			t.Errorf("the report has %d lines for %s, want 1", strings.Count(report.String(), want+" "), want)
		}
	}
}

// Weights lie within half a step, factors within 2^-30, and sums within int32, whatever a layer's channels are like.
func TestQuantise(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 5))
		l := &Layer{Depthwise: seed%3 == 0, In: 1 + r.IntN(300), Out: 1 + r.IntN(20)}
		if l.Depthwise {
			l.In = 9
		}
		l.W, l.Bias = make([]float32, l.In*l.Out), make([]float32, l.Out)
		for o := range l.Out {
			spread := math.Exp(r.NormFloat64() * 2)
			if r.IntN(4) == 0 {
				spread = []float64{0, 1e-9, 1e-6, 100}[r.IntN(4)]
			}
			l.row(o, func(i int) { l.W[i] = float32(r.NormFloat64() * spread) })
			l.Bias[o] = float32(r.NormFloat64() * math.Exp(r.NormFloat64()*2))
		}
		fin, fout := r.IntN(15), r.IntN(15)
		q, err := l.quantise(fin, fout)
		if err != nil {
			t.Fatalf("seed=%d: %v", seed, err)
		}
		for o := range l.Out {
			s := math.Ldexp(float64(q.mul[o]), fin-fout-q.shift)
			if q.mul[o] <= 0 || s < float64(l.Scale(o))*(1-1e-6)-math.Ldexp(1, fin-fout-q.shift) {
				t.Fatalf("seed=%d: channel %d has step %g, want at least %g", seed, o, s, l.Scale(o))
			}
			sum := math.Abs(float64(q.bias[o]))
			l.row(o, func(i int) {
				sum += 32768 * math.Abs(float64(q.w[i]))
				if d := math.Abs(float64(q.w[i])*s - float64(l.W[i])); d > s*0.5001 && q.mul[o] > 1e6 {
					t.Fatalf("seed=%d: channel %d weight %g became %d steps of %g", seed, o, l.W[i], q.w[i], s)
				}
			})
			if sum >= 1<<31 {
				t.Fatalf("seed=%d: channel %d can sum to %g", seed, o, sum)
			}
		}
	}
	l := &Layer{In: 2, Out: 1, W: []float32{0, 0}, Bias: []float32{0.5}}
	if _, err := l.quantise(12, 12); err != nil || l.enlarged != 1 {
		t.Errorf("a channel of zeros: %d enlarged, %v", l.enlarged, err)
	}
}

func TestFixedPoint(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 6))
		ratio := []float64{math.Exp(r.NormFloat64() * 8), math.Ldexp(1, r.IntN(60)-40)}
		if slices.Max(ratio) >= 1<<31 {
			continue
		}
		mul, shift, err := fixedPoint(ratio)
		if err != nil {
			t.Fatal(err)
		}
		unit := new(big.Rat).SetFrac(big.NewInt(1), new(big.Int).Lsh(big.NewInt(1), uint(shift)))
		for i, v := range ratio {
			got := new(big.Rat).Mul(new(big.Rat).SetInt64(int64(mul[i])), unit)
			d := new(big.Rat).Sub(got, new(big.Rat).SetFloat64(v))
			if d.Abs(d).Cmp(unit) > 0 {
				t.Fatalf("seed=%d: %g became %d/2^%d", seed, v, mul[i], shift)
			}
		}
		if top := slices.Max(mul); top < 1<<30 && shift < 62 {
			t.Fatalf("seed=%d: the largest mul is %d at shift %d, which wastes bits", seed, top, shift)
		}
	}
	if _, _, err := fixedPoint([]float64{math.Ldexp(1, 31)}); err == nil {
		t.Error("a factor of 2^31 was accepted")
	}
}

// What the graphs promise: they pass for every width, and inter and reset agree on the values that they share.
func TestNVC1(t *testing.T) {
	for _, c := range [][2]int{{8, 8}, {96, 192}, {128, 128}, {192, 96}} {
		net, err := NVC1(c[0], c[1], Fractions{"p.memory": 12, "p.up": 11, "p.e1": 13, "p.mean": 8})
		if err != nil {
			t.Fatal(err)
		}
		text := inference.FormatGraphs(net.Graphs)
		parsed, err := inference.ParseGraphs(text)
		if err != nil {
			t.Fatal(err)
		}
		if inference.FormatGraphs(parsed) != text {
			t.Errorf("%v: the graphs' text does not survive", c)
		}
		inter := map[string]inference.Node{}
		for _, n := range net.Graphs["inter"].Nodes {
			inter[n.Out] = n
		}
		for _, n := range net.Graphs["reset"].Nodes {
			if m, ok := inter[n.Out]; ok && (m.F != n.F || m.C != n.C || m.Op != n.Op) {
				t.Errorf("%v: %s is %v in inter and %v in reset", c, n.Out, m, n)
			}
		}
	}
	for _, c := range [][2]int{{0, 8}, {8, 4}, {1032, 8}, {8, 20}} {
		if _, err := NVC1(c[0], c[1], nil); err == nil {
			t.Errorf("widths %v were accepted", c)
		}
	}
}

func TestSequence(t *testing.T) {
	c := noise(64, 64, 11, 1)
	var graphs, qps []string
	err := c.sequence(9, 4, randomVectors(1), func(k int, f *Frame) error {
		graphs = append(graphs, f.Graph)
		qps = append(qps, string(rune('0'+f.QP)))
		if (f.Vectors == nil) != (k == 0) {
			t.Errorf("frame %d has %d vectors", k, len(f.Vectors))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(graphs, " "), "intra reset inter inter reset inter inter inter reset inter inter"; got != want {
		t.Errorf("graphs %s, want %s", got, want)
	}
	if got, want := strings.Join(qps, ""), "99010501090"; got != want {
		t.Errorf("QPs %s, want %s", got, want)
	}
}

// Ideal bits are those of a distribution: the masses of all symbols sum to 1, plus what stands for the escape.
func TestIdealBits(t *testing.T) {
	escape := 0.0
	for k := -4000; k <= 4000; k++ {
		escape += 1e-5 * math.Exp(-math.Abs(float64(k))/8)
	}
	for i := range 64 {
		sum, logistic := 0.0, 0.0
		for k := -4000; k <= 4000; k++ {
			sum += math.Exp2(-GaussBits(k, i))
			logistic += math.Exp2(-LogisticBits(k, logisticScale(i)))
		}
		if math.Abs(sum-1-escape) > 1e-9 || math.Abs(logistic-1-escape) > 1e-9 {
			t.Errorf("index %d: masses sum to %v and %v, want %v", i, sum, logistic, 1+escape)
		}
		if a, b := gaussBits(31, uint8(i)), GaussBits(-31, i); a != b {
			t.Errorf("index %d: %v bits from the table, %v computed", i, a, b)
		}
	}
	if math.Abs(Sigma(0)-0.11) > 1e-12 || math.Abs(Sigma(63)-24) > 1e-12 {
		t.Errorf("sigma runs from %v to %v", Sigma(0), Sigma(63))
	}
}

func TestShippedClips(t *testing.T) {
	clips, err := ShippedClips()
	if err != nil {
		t.Fatal(err)
	}
	if len(clips) != 8 {
		t.Fatalf("%d clips, want 8", len(clips))
	}
	for _, c := range clips {
		if len(c.Frames) != 3 || c.Frames[0].W != 128 || c.Frames[0].H != 128 {
			t.Errorf("%s has %d frames of %dx%d", c.Name, len(c.Frames), c.Frames[0].W, c.Frames[0].H)
		}
	}
}

// The loss of a model against its own network is small where nothing saturates, and its two sides see the same frames.
func TestMeasureLoss(t *testing.T) {
	c := tiny(t, 8, 8, 5)
	clip := noise(100, 60, 4, 2)
	r, err := Run(context.Background(), c, Options{Name: "tiny", Clips: []Clip{clip}, QPs: []int{0, 63}})
	if err != nil {
		t.Fatal(err)
	}
	p, err := NewParams(c)
	if err != nil {
		t.Fatal(err)
	}
	twin, err := NewTwin(p, true)
	if err != nil {
		t.Fatal(err)
	}
	backend, err := inference.CPU("generic")
	if err != nil {
		t.Fatal(err)
	}
	o := LossOptions{QPs: []int{0, 63}, Search: randomVectors(1), Backend: backend, Threads: 1}
	all, err := MeasureLoss(context.Background(), twin, r.Model, &clip, o)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 2 || all[0].QP != 0 || all[1].QP != 63 || all[0].Frames != 4 || all[0].Clip != "noise" {
		t.Fatalf("rows %+v", all)
	}
	for _, l := range all {
		if math.Abs(l.Bits()) > 0.05 || math.Abs(l.Decibel()) > 0.2 || l.FloatBits == 0 {
			t.Errorf("QP %d: bits change by %g, PSNR by %g dB of %g", l.QP, l.Bits(), l.Decibel(), l.FloatPSNR)
		}
	}
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := MeasureLoss(cancelled, twin, r.Model, &clip, o); err == nil {
		t.Error("a cancelled measurement went on")
	}
}
