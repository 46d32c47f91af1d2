package inferencetest

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/nvcodec/nvcodec/inference"
)

// A DCVCRT says which P-frame network of DCVC-RT's shape to build. Its graph "inter" is the frame of the steady state,
// "reset" the one that takes the decoded picture instead of the feature, and "intra" a stand-in of a few layers that
// gives the first picture.
type DCVCRT struct {
	D, Y, Z, Recon int  // channels of features, y, z, and of the last stage; D is twice Y
	Wide           bool // int16 weights instead of int8
}

// DCVCRTFull has the published widths.
var DCVCRTFull = DCVCRT{D: 256, Y: 128, Z: 128, Recon: 320}

// NewDCVCRT returns a valid model with random weights: what it computes is noise, but the operators, their sizes and
// their order are those of the published network, with the layers as it lists them. In the place of its 72 rows of
// scales it has 64, of its 128 Gaussians 64; its quantiser's step and scales go through tables, as its activations do.
func NewDCVCRT(seed uint64, c DCVCRT) *inference.Model {
	m := &inference.Model{
		Version: inference.Version, Profile: inference.Profile, Name: fmt.Sprintf("random-dcvcrt-%d", seed),
		Meta:    map[string]string{"threshold": "0", "licence": "none: random numbers"},
		Tensors: map[string]*inference.Tensor{}, Graphs: map[string]*inference.Graph{},
	}
	b := &dcvcrt{builder: &builder{shared: &shared{m: m, rng: rand.New(rand.NewPCG(seed, 11))}}, c: c}
	b.tables()
	for _, name := range []string{"intra", "inter", "reset"} {
		b.g = &inference.Graph{Name: name}
		m.Graphs[name] = b.graph(name)
	}
	if _, err := inference.Marshal(m); err != nil { // sets the identity
		panic(err)
	}
	return m
}

type dcvcrt struct {
	*builder
	c DCVCRT
}

// Fixed points of the residual chains and inside the blocks.
const (
	chainF = 11
	innerF = 10
)

func (b *dcvcrt) tables() {
	b.shared.tables()
	// x·sigmoid(4x), by x + 32768
	b.tensor("wsilu", "I16", []int{1 << 16}, func(i int) int64 {
		x := float64(i-1<<15) / (1 << innerF)
		return int64(math.Round(x / (1 + math.Exp(-4*x)) * (1 << innerF)))
	})
	// A scale at F 10 becomes a log scale at F 11, whose eighth is a table's number; below 0.11 the first.
	b.tensor("logscale", "I16", []int{1 << 16}, func(i int) int64 {
		s := math.Max(float64(i-1<<15)/1024, 0.11)
		return int64(math.Round(math.Min((math.Log(s/0.11)*63/math.Log(16/0.11)-16)/8, 5.875) * (1 << 11)))
	})
	// The quantiser's step is 1/2 up to 3.5, linear over the table.
	step := func(i int) float64 { return 0.5 + 3*float64(i)/(inference.ExpEntries-1) }
	b.tensor("step", "I32", []int{inference.ExpEntries}, func(i int) int64 { return int64(math.Round(step(i) * 65536)) })
	b.tensor("step.r", "I32", []int{inference.ExpEntries}, func(i int) int64 { return int64(math.Round(65536 / step(i))) })
}

// layer names weights, bias, mul and shift of n, which sums k products of values with fromF fractional bits, and keeps
// the values' size times gain.
func (b *dcvcrt) layer(n *inference.Node, shape []int, k, fromF int, gain float64) {
	// A shift of 32 leaves the upper word of a product, where mul holds that.
	typ, shift, rms := "I8", 32, math.Min(40, 60000/float64(k))
	if b.c.Wide && len(shape) > 0 && shape[0] == n.C { // depthwise weights have 8 bits always
		typ, shift, rms = "I16", 30, 8000
	}
	weight := func(int) int64 {
		// Two uniform numbers: bell-shaped enough, the same on every machine.
		most := int64(rms * 1.2)
		return b.rng.Int64N(2*most+1) + b.rng.Int64N(2*most+1) - 2*most
	}
	if n.Tensors == nil {
		n.Tensors = map[string]string{}
	}
	n.Tensors["w"] = b.tensor(n.Out+".w", typ, shape, func(i int) int64 {
		w := weight(i)
		if typ == "I8" {
			w = min(max(w, -127), 127)
		}
		return w
	})
	scale := gain / (rms * math.Sqrt(float64(k))) * math.Exp2(float64(n.F-fromF))
	if shift == 32 && scale > 0.3 {
		shift = 24
	}
	if n.Ints == nil {
		n.Ints = map[string]int{}
	}
	n.Ints["shift"] = shift
	n.Tensors["bias"] = b.tensor(n.Out+".bias", "I32", []int{n.C}, func(int) int64 { return b.rng.Int64N(1<<16) - 1<<15 })
	n.Tensors["mul"] = b.tensor(n.Out+".mul", "I32", []int{n.C}, func(int) int64 { return 1 + int64(math.Exp2(float64(shift))*scale*jitter(b.rng, 0.7, 0.6)) })
}

func (b *dcvcrt) lin(name string, x node, c, f int, gain float64, res ...node) node {
	n := inference.Node{Out: name, Op: "lin", Kind: inference.Feature, C: c, F: f, Stride: x.Stride}
	b.layer(&n, []int{c, x.C}, x.C, x.F, gain)
	return b.add(n, append([]node{x}, res...)...)
}

func (b *dcvcrt) conv3(name string, x node, c, f, r int) node {
	n := inference.Node{Out: name, Op: "conv3", Kind: inference.Feature, C: c, F: f, Stride: x.Stride * r, Ints: map[string]int{"r": r}}
	b.layer(&n, []int{c, 9, x.C}, 9*x.C, x.F, 1)
	return b.add(n, x)
}

func (b *dcvcrt) table(name string, x node, table string, f int) node {
	return b.add(inference.Node{Out: name, Op: "lookup", Kind: inference.Feature, C: x.C, F: f, Stride: x.Stride, Tensors: map[string]string{"table": table}}, x)
}

func (b *dcvcrt) wsilu(name string, x node) node { return b.table(name, x, "wsilu", innerF) }

// block is the depth convolution block; with outer its input is added once more at the end.
func (b *dcvcrt) block(name string, x node, o int, outer bool) node {
	if x.C != o || x.F != chainF {
		x = b.lin(name+".adaptor", x, o, chainF, 1)
	}
	h := b.wsilu(name+".dc.1", b.lin(name+".dc.0", x, o, innerF, 1))
	d := inference.Node{Out: name + ".dc.2", Op: "dw", Kind: inference.Feature, C: o, F: innerF, Stride: x.Stride}
	b.layer(&d, []int{9, o}, 9, innerF, 1.5)
	y := b.lin(name+".dc.3", b.add(d, h), o, chainF, 0.4, x)
	h = b.wsilu(name+".ffn.1", b.lin(name+".ffn.0", y, 4*o, innerF, 1))
	h = b.feature(name+".ffn.sum", "sum2", 2*o, innerF, x.Stride, h)
	y = b.lin(name+".ffn.2", h, o, chainF, 0.3, y)
	if outer {
		y = b.feature(name+".outer", "add", o, chainF, x.Stride, y, x)
	}
	return y
}

func (b *dcvcrt) blocks(name string, x node, o, count int) node {
	for i := range count {
		x = b.block(fmt.Sprintf("%s.%d", name, i), x, o, false)
	}
	return x
}

// down is a 2x2 convolution of stride 2 and a block.
func (b *dcvcrt) down(name string, x node, o int) node {
	return b.block(name, b.lin(name+".down", b.s2d(name+".s2d", x), o, chainF, 1), o, true)
}

func (b *dcvcrt) up(name string, x node, o int) node {
	gain := 1.0
	if x.F == 0 {
		gain = 1.0 / 16 // z, whose integers are large
	}
	return b.block(name, b.d2s(name+".shuffle", b.lin(name+".up", x, 4*o, chainF, gain)), o, true)
}

func (b *dcvcrt) pack(name string, picture node) node {
	return b.add(inference.Node{Out: name, Op: "pack", Kind: inference.Feature, C: 192, F: 13, Stride: 8, Tensors: map[string]string{"table": "pixels.in"}}, picture)
}

func (b *dcvcrt) graph(name string) *inference.Graph {
	c := b.c
	if name == "intra" {
		x := b.pack("i.src", b.add(inference.Node{Out: "source", Op: "source", Kind: inference.Picture}))
		x = b.lin("i.in", x, 8, chainF, 1)
		x = b.lin("i.y", b.s2d("i.s2d.2", b.s2d("i.s2d.1", b.s2d("i.s2d.0", x))), c.Z, 4, 1)
		code := inference.Node{Out: "i.z", Op: "code_z", Kind: inference.Feature, C: c.Z, Stride: 64}
		code.Tensors = map[string]string{"table": b.tensor("entropy.z.scale", "U8", []int{64, c.Z}, func(int) int64 { return b.rng.Int64N(64) })}
		x = b.lin("i.up", b.add(code, x), 64*8, chainF, 1)
		for i := range 3 {
			x = b.d2s(fmt.Sprintf("i.d2s.%d", i), x)
		}
		return b.finish(b.lin("i.head", x, 192, 13, 0.02))
	}
	src := b.pack("src", b.add(inference.Node{Out: "source", Op: "source", Kind: inference.Picture}))
	var f node
	if name == "inter" {
		f = b.lin("adaptor_p", b.feature("feature", "feature_in", c.D, chainF, 8), c.D, chainF, 1)
	} else {
		f = b.block("adaptor_i", b.pack("ref", b.add(inference.Node{Out: "reference", Op: "reference", Kind: inference.Picture})), c.D, false)
	}
	f = b.blocks("extractor.1", f, c.D, 2)
	temporal := b.scale("q_feature", f, chainF, 0)
	ctx := b.blocks("extractor.2", f, c.D, 4)

	x := b.concat("encoder.in", chainF, b.lin("encoder.1", src, c.D, chainF, 1), ctx)
	x = b.block("encoder.3", b.blocks("encoder.2", x, c.D, 2), c.D, false)
	y := b.conv3("encoder.down", b.scale("q_encoder", x, chainF, 1), c.Y, chainF, 2)

	h := b.block("hyper_encoder.0", y, c.Z, false)
	h = b.down("hyper_encoder.2", b.down("hyper_encoder.1", h, c.Z), c.Z)
	code := inference.Node{Out: "z", Op: "code_z", Kind: inference.Feature, C: c.Z, Stride: 64, Tensors: map[string]string{"table": "entropy.z.scale"}}
	h = b.up("hyper_decoder.1", b.up("hyper_decoder.0", b.add(code, h), c.Z), c.Z)
	h = b.block("hyper_decoder.2", h, c.Y, false)
	temporal = b.down("temporal_prior", temporal, c.D)
	yhat := b.latent(y, b.concat("prior.in", chainF, h, temporal))

	x = b.d2s("decoder.up.shuffle", b.conv3("decoder.up", yhat, 4*c.D, chainF, 1))
	x = b.blocks("decoder.1", b.concat("decoder.in", chainF, x, ctx), c.D, 3)
	x = b.scale("q_decoder", b.lin("decoder.2", x, c.D, chainF, 1), chainF, -1)
	b.feature("feature_out", "feature_out", c.D, chainF, 8, x)
	x = b.scale("q_recon", b.blocks("recon", x, c.Recon, 4), chainF, 0)
	return b.finish(b.lin("head", x, 192, 13, 0.05))
}

// latent is the coding of y in two steps: the second has means and scales of its own, made with what the first coded.
func (b *dcvcrt) latent(y, in node) node {
	const fm = 8
	c := y.C
	params := b.blocks("prior", in, 3*c, 3)
	// One layer of 3c outputs in the published network: step, scale and mean have fixed points of their own.
	q := b.clamp("step_q", b.lin("prior.step", params, c, inference.ExpF, 1), -inference.ExpLimit, inference.ExpLimit)
	scale := b.lin("prior.scale", params, c, 10, 1)
	mean := b.lin("prior.mean", params, c, fm, 1)
	step := func(s int, scale, mean node, base ...node) node {
		v := b.table(fmt.Sprintf("v%d", s), scale, "logscale", 11)
		index := b.add(inference.Node{Out: fmt.Sprintf("index%d", s), Op: "index", Kind: inference.Index, C: c, Stride: 16}, v)
		k := b.add(inference.Node{Out: fmt.Sprintf("k%d", s), Op: "code_y", Kind: inference.Symbols, C: c / 2, Stride: 16,
			Ints: map[string]int{"step": s}, Tensors: map[string]string{"rexp": "step.r"}}, y, q, mean, index)
		return b.add(inference.Node{Out: fmt.Sprintf("yhat%d", s), Op: "latent", Kind: inference.Feature, C: c, F: fm, Stride: 16, Ints: map[string]int{"step": s}},
			append([]node{k, mean}, base...)...)
	}
	y0 := step(0, scale, mean)
	x := b.concat("spatial.in", chainF, y0, b.concat("spatial.params", 10, q, scale, mean))
	x = b.blocks("spatial", x, 3*c, 2)
	y1 := step(1, b.lin("spatial.scale", x, c, 10, 1), b.lin("spatial.mean", x, c, fm, 1), y0)
	n := inference.Node{Out: "yhat", Op: "unstep", Kind: inference.Feature, C: c, F: chainF, Stride: 16, Tensors: map[string]string{"exp": "step"}}
	return b.add(n, y1, q)
}
