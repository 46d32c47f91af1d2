// Package inferencetest builds models for tests: networks of nvc1's shape with random integer weights. Their pictures
// are noise, but everything that a trained network makes a codec do happens: memory, motion, resets, skipped symbols.
package inferencetest

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/nvcodec/nvcodec/inference"
)

// A Config gives the widths and depths of a network of nvc1's shape; C is a multiple of 8, the others of 4.
type Config struct {
	C, YIntra, YInter, Z int
	Deep                 bool // the depths of nvc1-base, else one block a stage
}

// Base has the size of nvc1-base: what it costs to run is what the shipped network costs.
var Base = Config{C: 192, YIntra: 128, YInter: 96, Z: 64, Deep: true}

// TinyModel returns a small model with graphs intra, inter and reset: enough for a codec, without entropy tables.
func TinyModel(seed uint64) *inference.Model {
	return New(seed, Config{C: 24, YIntra: 16, YInter: 12, Z: 8})
}

// New returns a valid model of that size. The same seed gives the same model.
func New(seed uint64, c Config) *inference.Model {
	m := &inference.Model{
		Version: inference.Version, Profile: inference.Profile, Name: fmt.Sprintf("random-%d", seed),
		Meta:    map[string]string{"threshold": "0", "licence": "none: random numbers"},
		Tensors: map[string]*inference.Tensor{}, Graphs: map[string]*inference.Graph{},
	}
	s := &shared{m: m, rng: rand.New(rand.NewPCG(seed, 7))}
	s.tables()
	m.Graphs["intra"] = s.intra(c)
	m.Graphs["inter"] = s.inter(c, "inter")
	m.Graphs["reset"] = s.inter(c, "reset")
	if _, err := inference.Marshal(m); err != nil { // sets the identity
		panic(err)
	}
	return m
}

// shared makes tensors; graphs that ask for the same name share it.
type shared struct {
	m   *inference.Model
	rng *rand.Rand
}

func (s *shared) tensor(name, typ string, shape []int, value func(i int) int64) string {
	if s.m.Tensors[name] != nil {
		return name
	}
	n := 1
	for _, d := range shape {
		n *= d
	}
	data := make([]int64, n)
	for i := range data {
		data[i] = value(i)
	}
	t, err := inference.NewTensor(name, typ, shape, data)
	if err != nil {
		panic(err)
	}
	s.m.Tensors[name] = t
	return name
}

func (s *shared) tables() {
	s.tensor("pixels.in", "I16", []int{256}, func(i int) int64 { return int64(math.Round((float64(i)/255 - 0.5) * 8192)) })
	exp := func(sign float64) func(int) int64 {
		return func(i int) int64 {
			return int64(math.Round(math.Exp(sign*float64(i-inference.ExpLimit)/512) * 65536))
		}
	}
	s.tensor("exp.e", "I32", []int{inference.ExpEntries}, exp(1))
	s.tensor("exp.r", "I32", []int{inference.ExpEntries}, exp(-1))
}

// A builder appends nodes to a graph. Values are referred to by their nodes.
type builder struct {
	*shared
	g *inference.Graph
}

type node = *inference.Node

func (b *builder) add(n inference.Node, in ...node) node {
	for _, x := range in {
		n.In = append(n.In, x.Out)
	}
	b.g.Nodes = append(b.g.Nodes, n)
	return &n
}

func (b *builder) feature(out, op string, c, f, stride int, in ...node) node {
	return b.add(inference.Node{Out: out, Op: op, Kind: inference.Feature, C: c, F: f, Stride: stride}, in...)
}

// jitter is base to base + width; the conversion keeps every machine from fusing the sum, which would round otherwise.
func jitter(r *rand.Rand, base, width float64) float64 { return base + float64(width*r.Float64()) }

// requantise names bias, mul and shift that keep the values' size through a sum of k products, times gain.
func (b *builder) requantise(n *inference.Node, k, fromF int, gain float64) {
	const shift = 22
	const rms = 50 // of the weights
	scale := gain / (rms * math.Sqrt(float64(k))) * math.Exp2(float64(n.F-fromF))
	n.Ints = map[string]int{"shift": shift}
	n.Tensors["bias"] = b.tensor(n.Out+".bias", "I32", []int{n.C}, func(int) int64 { return b.rng.Int64N(1<<16) - 1<<15 })
	n.Tensors["mul"] = b.tensor(n.Out+".mul", "I32", []int{n.C}, func(int) int64 { return 1 + int64(math.Exp2(shift)*scale*jitter(b.rng, 0.7, 0.6)) })
}

func (b *builder) weight(int) int64 {
	sum := int64(-2 * 86) // of four uniform numbers: bell-shaped, the same on every machine
	for range 4 {
		sum += b.rng.Int64N(87)
	}
	return min(max(sum, -127), 127)
}

func (b *builder) lin(name string, x node, c, f int, gain float64, res ...node) node {
	n := inference.Node{Out: name, Op: "lin", Kind: inference.Feature, C: c, F: f, Stride: x.Stride, Tensors: map[string]string{}}
	n.Tensors["w"] = b.tensor(name+".w", "I8", []int{c, x.C}, b.weight)
	b.requantise(&n, x.C, x.F, gain)
	return b.add(n, append([]node{x}, res...)...)
}

// block is nvc1's Block(i, o): the residual chain at F 11, its inside at F 10.
func (b *builder) block(name string, x node, o int) node {
	const chainF, innerF = 11, 10
	if x.C != o || x.F != chainF {
		x = b.lin(name+".adaptor", x, o, chainF, 1)
	}
	h := b.lin(name+".pw1", x, o/2, innerF, 1)
	d := inference.Node{Out: name + ".dw", Op: "dwact", Kind: inference.Feature, C: o / 2, F: innerF, Stride: x.Stride, Tensors: map[string]string{}}
	d.Tensors["w"] = b.tensor(d.Out+".w", "I8", []int{9, o / 2}, b.weight)
	b.requantise(&d, 9, innerF, 1.5)
	x = b.lin(name+".pw2", b.add(d, h), o, chainF, 0.4, x)
	h = b.lin(name+".ff1", x, 2*o, innerF, 1)
	h = b.feature(name+".sum4", "actsum4", o/2, innerF, x.Stride, h)
	return b.lin(name+".ff2", h, o, chainF, 0.3, x)
}

func (b *builder) blocks(name string, x node, o, count int) node {
	for i := range count {
		x = b.block(fmt.Sprintf("%s.%d", name, i), x, o)
	}
	return x
}

func (b *builder) s2d(name string, x node) node {
	n := inference.Node{Out: name, Op: "s2d", Kind: inference.Feature, C: 4 * x.C, F: x.F, Stride: 2 * x.Stride, Ints: map[string]int{"r": 2}}
	return b.add(n, x)
}

func (b *builder) d2s(name string, x node) node {
	n := inference.Node{Out: name, Op: "d2s", Kind: inference.Feature, C: x.C / 4, F: x.F, Stride: x.Stride / 2, Ints: map[string]int{"r": 2}}
	return b.add(n, x)
}

func (b *builder) down(name string, x node, o int) node {
	return b.block(name+".block", b.lin(name+".conv", b.s2d(name+".s2d", x), o, 11, 1), o)
}

func (b *builder) up(name string, x node, o int) node {
	return b.block(name+".block", b.d2s(name+".d2s", b.lin(name+".conv", x, 4*o, 11, 1)), o)
}

func (b *builder) scale(name string, x node, f int, slope float64) node {
	const shift = 12
	n := inference.Node{Out: name, Op: "scale", Kind: inference.Feature, C: x.C, F: f, Stride: x.Stride, Ints: map[string]int{"shift": shift}}
	n.Tensors = map[string]string{"table": b.tensor(name+".m", "I32", []int{64, x.C}, func(i int) int64 {
		t := (float64(i/x.C) - 31.5) / 31.5
		return int64(math.Exp2(float64(shift+f-x.F)) * math.Exp(slope*t) * jitter(b.rng, 0.8, 0.4))
	})}
	return b.add(n, x)
}

func (b *builder) concat(name string, f int, in ...node) node {
	c := 0
	for i, x := range in {
		if x.F != f {
			in[i] = b.feature(fmt.Sprintf("%s.%d", name, i), "requant", x.C, f, x.Stride, x)
		}
		c += x.C
	}
	return b.feature(name, "concat", c, f, in[0].Stride, in...)
}

func (b *builder) clamp(name string, x node, lo, hi int) node {
	return b.add(inference.Node{Out: name, Op: "clamp", Kind: inference.Feature, C: x.C, F: x.F, Stride: x.Stride, Ints: map[string]int{"lo": lo, "hi": hi}}, x)
}

func (b *builder) pack(name string, picture node) node {
	return b.add(inference.Node{Out: name, Op: "pack", Kind: inference.Feature, C: 96, F: 13, Stride: 8, Tensors: map[string]string{"table": "pixels.in"}}, picture)
}

// hyper is henc, z and hdec.
func (b *builder) hyper(p string, y node, c int, z int) node {
	h := b.block(p+"henc.0", y, z)
	h = b.down(p+"henc.1", h, z)
	h = b.down(p+"henc.2", h, z)
	code := inference.Node{Out: p + "z", Op: "code_z", Kind: inference.Feature, C: z, Stride: 64}
	code.Tensors = map[string]string{"table": b.tensor(p+"entropy.z.scale", "U8", []int{64, z}, func(int) int64 { return b.rng.Int64N(64) })}
	h = b.add(code, h)
	h = b.up(p+"hdec.0", h, z)
	h = b.up(p+"hdec.1", h, z)
	return b.scale(p+"qh", b.block(p+"hdec.2", h, c), 11, 0)
}

// latent is the two-step coding of y; params is what q, v and the mean are made of.
func (b *builder) latent(p string, y, params node) node {
	const fm = 8
	c := y.C
	q := b.clamp(p+"q", b.lin(p+"params.q", params, c, inference.ExpF, 0.5), -inference.ExpLimit, inference.ExpLimit)
	v := b.clamp(p+"v", b.lin(p+"params.v", params, c, 11, 1), -2<<11, 47<<8)
	mean := b.lin(p+"params.mean", params, c, fm, 1)
	index := b.add(inference.Node{Out: p + "index", Op: "index", Kind: inference.Index, C: c, Stride: 16}, v)
	code := func(step int, mean node) node {
		n := inference.Node{Out: fmt.Sprintf("%sk%d", p, step), Op: "code_y", Kind: inference.Symbols, C: c / 2, Stride: 16, Ints: map[string]int{"step": step}, Tensors: map[string]string{"rexp": "exp.r"}}
		return b.add(n, y, q, mean, index)
	}
	yhat := func(step int, in ...node) node {
		n := inference.Node{Out: fmt.Sprintf("%syhat%d", p, step), Op: "latent", Kind: inference.Feature, C: c, F: fm, Stride: 16, Ints: map[string]int{"step": step}}
		return b.add(n, in...)
	}
	y0 := yhat(0, code(0, mean), mean)
	x := b.concat(p+"spatial.in", 10, y0, q, v, mean)
	x = b.blocks(p+"spatial", x, 2*c, 2)
	mean1 := b.lin(p+"spatial.2", x, c, fm, 1)
	y1 := yhat(1, code(1, mean1), mean1, y0)
	n := inference.Node{Out: p + "yhat", Op: "unstep", Kind: inference.Feature, C: c, F: 11, Stride: 16, Tensors: map[string]string{"exp": "exp.e"}}
	return b.add(n, y1, q)
}

func (b *builder) finish(head ...node) *inference.Graph {
	b.add(inference.Node{Out: "out", Op: "picture", Kind: inference.Picture}, head...)
	return b.g
}

func (c Config) depth(n int) int {
	if c.Deep {
		return n
	}
	return 1
}

func (s *shared) intra(c Config) *inference.Graph {
	b := &builder{s, &inference.Graph{Name: "intra"}}
	src := b.pack("src", b.add(inference.Node{Out: "source", Op: "source", Kind: inference.Picture}))
	f := b.scale("i.qe", b.block("i.e1", src, c.C), 11, 1)
	f = b.blocks("i.e2", f, c.C, c.depth(4))
	y := b.lin("i.down", b.s2d("i.e2.s2d", f), c.YIntra, 10, 1.5)
	params := b.hyper("i.", y, c.YIntra, c.Z)
	params = b.blocks("i.fusion", params, 2*c.YIntra, c.depth(2))
	x := b.d2s("i.up.d2s", b.lin("i.up", b.latent("i.", y, params), 4*c.C, 11, 1))
	x = b.scale("i.qd", b.blocks("i.d1", x, c.C, c.depth(6)), 11, -1)
	return b.finish(b.lin("i.head", x, 96, 13, 0.1))
}

func (s *shared) inter(c Config, name string) *inference.Graph {
	b := &builder{s, &inference.Graph{Name: name}}
	source := b.add(inference.Node{Out: "source", Op: "source", Kind: inference.Picture})
	ref := b.add(inference.Node{Out: "reference", Op: "reference", Kind: inference.Picture})
	mv := b.add(inference.Node{Out: "vectors", Op: "vectors", Kind: inference.Field})
	src := b.pack("src", source)
	pred := b.pack("pred", b.add(inference.Node{Out: "moved", Op: "compensate", Kind: inference.Picture}, ref, mv))
	var m node
	if name == "inter" {
		mem := b.feature("p.mem.move", "move", c.C, 11, 8, b.feature("p.mem", "memory_in", c.C, 11, 8), mv)
		feat := b.feature("p.feat.move", "move", c.C, 11, 8, b.feature("p.feat", "feature_in", c.C, 11, 8), mv)
		m = b.blocks("p.fa_m", b.concat("p.fa_m.in", 11, mem, feat, pred), c.C, c.depth(3))
	} else {
		m = b.blocks("p.fa_i", pred, c.C, c.depth(3))
	}
	b.feature("p.mem.out", "memory_out", c.C, 11, 8, m)
	ctx := b.blocks("p.ext", m, c.C, c.depth(3))
	f := b.blocks("p.e1", b.concat("p.e1.in", 11, src, pred, ctx), c.C, c.depth(3))
	f = b.scale("p.qe", f, 11, 1)
	y := b.lin("p.down", b.s2d("p.e1.s2d", f), c.YInter, 10, 1.5)
	prior := b.scale("p.qt", b.down("p.tprior", m, 2*c.YInter), 11, 0)
	params := b.concat("p.fusion.in", 11, b.hyper("p.", y, c.YInter, c.Z), prior)
	params = b.blocks("p.fusion", params, 3*c.YInter, c.depth(2))
	x := b.d2s("p.up.d2s", b.lin("p.up", b.latent("p.", y, params), 4*c.C, 11, 1))
	x = b.blocks("p.d1", b.concat("p.d1.in", 11, x, ctx), c.C, c.depth(3))
	x = b.scale("p.qd", x, 11, -1)
	b.feature("p.feat.out", "feature_out", c.C, 11, 8, x)
	head := b.lin("p.head", b.blocks("p.recon", x, c.C, c.depth(3)), 96, 13, 0.05)
	return b.finish(head, b.feature("p.pred", "requant", 96, 13, 8, pred))
}
