package convert

import (
	"fmt"
	"sort"
	"strconv"

	"github.com/nvcodec/nvcodec/inference"
)

// Sizes that both networks share: channels of the packed picture, of z, and of y in the intra and inter network.
const (
	pictureC = 96
	hyperC   = 64
	intraY   = 128
	interY   = 96
)

// Fractional bits that the arithmetic fixes. Everything else is calibrated.
const (
	pixelF = 13 // packed pictures: ±0.5, and their sum with the head's residue
	stepF  = 9  // q and v: the exp tables and the scale index are defined at 9
)

// Limits of q and v, ±3 and −2..5.875, as raw values with stepF fractional bits.
const (
	stepLo, stepHi   = -3 << stepF, 3 << stepF
	scaleLo, scaleHi = -2 << stepF, 47 << (stepF - 3)
)

// Fractions gives the fractional bits of each group of values that must agree: a residual chain with all that is
// added to it, a state with its successor, everything a latent's mean touches. A group not listed has defaultF.
type Fractions map[string]int

const defaultF = 10

// fixed are the groups whose fractional bits the arithmetic fixes.
var fixed = map[string]int{"pixels": pixelF, "step": stepF, "symbols": 0}

func fixedGroup(group string) bool { _, ok := fixed[group]; return ok }

func (f Fractions) of(group string) int {
	if v, ok := fixed[group]; ok {
		return v
	}
	if v, ok := f[group]; ok {
		return v
	}
	return defaultF
}

// A Network is nvc1 at one pair of widths and one choice of fractional bits: the graphs and, for each value by its
// name, the group whose fractional bits it has.
type Network struct {
	Graphs map[string]*inference.Graph
	Group  map[string]string
}

// Groups lists the groups that are calibrated, in order.
func (n *Network) Groups() []string {
	seen := map[string]bool{}
	var groups []string
	for _, g := range n.Group {
		if !seen[g] && !fixedGroup(g) {
			seen[g] = true
			groups = append(groups, g)
		}
	}
	sort.Strings(groups)
	return groups
}

// NVC1 builds the three graphs of nvc1. Values are named as the modules of the float network that compute them:
// "i.e2" is the output of the intra network's stage e2, "i.e2.0.pw1" of a layer inside it. The same names in inter
// and reset are the same layers.
func NVC1(ci, cp int, f Fractions) (*Network, error) {
	for _, c := range []int{ci, cp} {
		if c < 8 || c > 1024 || c%8 != 0 {
			return nil, fmt.Errorf("convert: %d channels: want a multiple of 8 from 8 to 1024", c)
		}
	}
	n := &Network{Graphs: map[string]*inference.Graph{}, Group: map[string]string{}}
	n.Graphs["intra"] = &inference.Graph{Name: "intra", Nodes: n.intra(ci, f)}
	n.Graphs["inter"] = &inference.Graph{Name: "inter", Nodes: n.inter(cp, f, false)}
	n.Graphs["reset"] = &inference.Graph{Name: "reset", Nodes: n.inter(cp, f, true)}
	return n, nil
}

func (n *Network) intra(c int, f Fractions) []inference.Node {
	b := &builder{net: n, f: f, p: "i."}
	b.add("source", "source", inference.Picture, 0, 0, "")
	b.pack("src", "source")
	b.block("e1", "src", "e1", c, "e1")
	b.scale("f", "e1", "qe", "e2")
	b.chain("e2", "f", "e2", 4, c, "e2")
	b.s2d("e2.s2d", "e2", 2)
	b.lin("down", "e2.s2d", "down", intraY, "down")
	b.hyper("down", intraY, "fusion.in")
	b.block("fusion.0", "hq", "fusion.0", 2*intraY, "fusion")
	b.block("fusion.1", "fusion.0", "fusion.1", 2*intraY, "fusion")
	b.latent("fusion.1", intraY)
	b.lin("up", "yhat", "up", 4*c, "d1")
	b.d2s("up.d2s", "up", 2)
	b.chain("d1", "up.d2s", "d1", 6, c, "d1")
	b.scale("g", "d1", "qd", "g")
	b.lin("head", "g", "head", pictureC, "pixels")
	b.add("picture", "picture", inference.Picture, 0, 0, "", "head")
	return b.nodes
}

// inter builds the inter graph, or the reset graph, which starts its memory from the prediction alone.
func (n *Network) inter(c int, f Fractions, reset bool) []inference.Node {
	b := &builder{net: n, f: f, p: "p."}
	b.add("source", "source", inference.Picture, 0, 0, "")
	b.add("reference", "reference", inference.Picture, 0, 0, "")
	b.add("vectors", "vectors", inference.Field, 0, 0, "")
	b.add("compensated", "compensate", inference.Picture, 0, 0, "", "reference", "vectors")
	b.pack("pred", "compensated")
	if reset {
		b.block("fa_i.0", "pred", "fa_i.0", c, "memory")
		b.block("fa_i.1", "fa_i.0", "fa_i.1", c, "memory")
		b.block("memory", "fa_i.1", "fa_i.2", c, "memory")
	} else {
		b.add("memory.in", "memory_in", inference.Feature, c, 8, "memory")
		b.add("feature.in", "feature_in", inference.Feature, c, 8, "feature")
		b.add("memory.moved", "move", inference.Feature, c, 8, "memory", "memory.in", "vectors")
		b.add("feature.moved", "move", inference.Feature, c, 8, "feature", "feature.in", "vectors")
		b.concat("fa_m.in", "fa_m.in", "memory.moved", "feature.moved", "pred")
		b.block("fa_m.0", "fa_m.in", "fa_m.0", c, "memory")
		b.block("fa_m.1", "fa_m.0", "fa_m.1", c, "memory")
		b.block("memory", "fa_m.1", "fa_m.2", c, "memory")
	}
	b.chain("ext", "memory", "ext", 3, c, "memory")
	b.pack("src", "source")
	b.concat("e1.in", "memory", "src", "pred", "ext")
	b.block("e1.0", "e1.in", "e1.0", c, "e1")
	b.block("e1.1", "e1.0", "e1.1", c, "e1")
	b.block("e1", "e1.1", "e1.2", c, "e1")
	b.scale("f", "e1", "qe", "f")
	b.s2d("f.s2d", "f", 2)
	b.lin("down", "f.s2d", "down", interY, "down")
	b.s2d("memory.s2d", "memory", 2)
	b.lin("tprior.conv", "memory.s2d", "tprior.conv", 2*interY, "tprior")
	b.block("tprior", "tprior.conv", "tprior.block", 2*interY, "tprior")
	b.scale("tq", "tprior", "qt", "fusion")
	b.hyper("down", interY, "fusion")
	b.concat("fusion.in", "fusion", "hq", "tq")
	b.block("fusion.0", "fusion.in", "fusion.0", 3*interY, "fusion")
	b.block("fusion.1", "fusion.0", "fusion.1", 3*interY, "fusion")
	b.latent("fusion.1", interY)
	b.lin("up", "yhat", "up", 4*c, "up")
	b.d2s("up.d2s", "up", 2)
	b.concat("d1.in", "up", "up.d2s", "ext")
	b.block("d1.0", "d1.in", "d1.0", c, "d1")
	b.block("d1.1", "d1.0", "d1.1", c, "d1")
	b.block("d1", "d1.1", "d1.2", c, "d1")
	b.scale("feature", "d1", "qd", "feature")
	b.chain("recon", "feature", "recon", 3, c, "feature")
	b.lin("head", "recon", "head", pictureC, "pixels")
	b.add("picture", "picture", inference.Picture, 0, 0, "", "head", "pred")
	b.add("memory.out", "memory_out", inference.Feature, c, 8, "memory", "memory")
	b.add("feature.out", "feature_out", inference.Feature, c, 8, "feature", "feature")
	return b.nodes
}

// A builder appends nodes; every name it takes stands behind its prefix.
type builder struct {
	net   *Network
	f     Fractions
	p     string
	nodes []inference.Node
}

func (b *builder) node(name string) *inference.Node {
	for i := range b.nodes {
		if b.nodes[i].Out == b.p+name {
			return &b.nodes[i]
		}
	}
	panic("convert: no value " + b.p + name) // only a slip in this file comes here
}

func (b *builder) add(out, op string, kind inference.Kind, c, stride int, group string, in ...string) *inference.Node {
	n := inference.Node{Out: b.p + out, Op: op, Kind: kind, C: c, Stride: stride}
	for _, v := range in {
		n.In = append(n.In, b.p+v)
	}
	if kind == inference.Feature {
		if !fixedGroup(group) {
			group = b.p + group
		}
		n.F = b.f.of(group)
		b.net.Group[n.Out] = group
	}
	b.nodes = append(b.nodes, n)
	return &b.nodes[len(b.nodes)-1]
}

func (b *builder) pack(out, pic string) {
	b.add(out, "pack", inference.Feature, pictureC, 8, "pixels", pic).Tensors = map[string]string{"table": "pixels.in"}
}

func (b *builder) weighted(op, out, in, layer string, c int, group string, res ...string) {
	n := b.add(out, op, inference.Feature, c, b.node(in).Stride, group, append([]string{in}, res...)...)
	layer = b.p + layer
	n.Tensors = map[string]string{"w": layer + ".w", "bias": layer + ".bias", "mul": layer + ".mul"}
	n.Ints = map[string]int{"shift": 0}
}

func (b *builder) lin(out, in, layer string, c int, group string, res ...string) {
	b.weighted("lin", out, in, layer, c, group, res...)
}

// block is the network's Block: x += pw2(dw(act(pw1(x)))), then x += ff2(sum4(act(ff1(x)))), with an adaptor before
// where the number of channels changes.
func (b *builder) block(out, in, layer string, c int, group string) {
	x := in
	if n := b.node(in); n.C != c {
		x = layer + ".adaptor"
		b.lin(x, in, layer+".adaptor", c, group)
	} else if n.F != b.f.of(b.p+group) {
		x = layer + ".in"
		b.add(x, "requant", inference.Feature, c, n.Stride, group, in)
	}
	b.lin(layer+".pw1", x, layer+".pw1", c/2, layer+".pw1")
	b.weighted("dwact", layer+".dw", layer+".pw1", layer+".dw", c/2, layer+".dw")
	b.lin(layer+".pw2", layer+".dw", layer+".pw2", c, group, x)
	b.lin(layer+".ff1", layer+".pw2", layer+".ff1", 2*c, layer+".ff1")
	b.add(layer+".sum", "actsum4", inference.Feature, c/2, b.node(in).Stride, layer+".ff1", layer+".ff1")
	b.lin(out, layer+".sum", layer+".ff2", c, group, layer+".pw2")
}

// chain is a stage of n equal blocks; its last value has the stage's name.
func (b *builder) chain(out, in, layer string, n, c int, group string) {
	for k := range n {
		name := layer + "." + strconv.Itoa(k)
		next := name
		if k == n-1 {
			next = out
		}
		b.block(next, in, name, c, group)
		in = next
	}
}

func (b *builder) scale(out, in, layer, group string) {
	x := b.node(in)
	n := b.add(out, "scale", inference.Feature, x.C, x.Stride, group, in)
	n.Tensors = map[string]string{"table": b.p + layer + ".table"}
	n.Ints = map[string]int{"shift": 0}
}

func (b *builder) s2d(out, in string, r int) {
	x := b.node(in)
	b.same(out, "s2d", x.C*r*r, x.Stride*r, in).Ints = map[string]int{"r": r}
}

func (b *builder) d2s(out, in string, r int) {
	x := b.node(in)
	b.same(out, "d2s", x.C/(r*r), x.Stride/r, in).Ints = map[string]int{"r": r}
}

// same adds a node whose values have the group, and so the fractional bits, of its first input.
func (b *builder) same(out, op string, c, stride int, in ...string) *inference.Node {
	n := b.add(out, op, inference.Feature, c, stride, "symbols", in...)
	b.net.Group[n.Out], n.F = b.net.Group[b.p+in[0]], b.node(in[0]).F
	return n
}

// concat joins its inputs at the fractional bits of group, moving those that have others.
func (b *builder) concat(out, group string, in ...string) {
	c := 0
	var at []string
	for _, name := range in {
		x := *b.node(name)
		c += x.C
		if f := b.f.of(b.p + group); x.F != f {
			name = fmt.Sprintf("%s.%s", out, name)
			b.add(name, "requant", inference.Feature, x.C, x.Stride, group, x.Out[len(b.p):])
		}
		at = append(at, name)
	}
	b.add(out, "concat", inference.Feature, c, b.node(in[0]).Stride, group, at...)
}

// hyper codes z from y and rebuilds the hyperprior's features, scaled for the frame's QP, as "hq".
func (b *builder) hyper(y string, yc int, group string) {
	b.block("henc.0", y, "henc.0", hyperC, "henc.0")
	b.s2d("henc.1.s2d", "henc.0", 2)
	b.lin("henc.1.conv", "henc.1.s2d", "henc.1.conv", hyperC, "henc.1")
	b.block("henc.1", "henc.1.conv", "henc.1.block", hyperC, "henc.1")
	b.s2d("henc.2.s2d", "henc.1", 2)
	b.lin("henc.2.conv", "henc.2.s2d", "henc.2.conv", hyperC, "henc.2")
	b.block("henc", "henc.2.conv", "henc.2.block", hyperC, "henc.2")
	n := b.add("z", "code_z", inference.Feature, hyperC, 64, "symbols", "henc")
	n.Tensors = map[string]string{"table": b.p + "z.scale"}
	b.lin("hdec.0.conv", "z", "hdec.0.conv", 4*hyperC, "hdec.0")
	b.d2s("hdec.0.d2s", "hdec.0.conv", 2)
	b.block("hdec.0", "hdec.0.d2s", "hdec.0.block", hyperC, "hdec.0")
	b.lin("hdec.1.conv", "hdec.0", "hdec.1.conv", 4*hyperC, "hdec.1")
	b.d2s("hdec.1.d2s", "hdec.1.conv", 2)
	b.block("hdec.1", "hdec.1.d2s", "hdec.1.block", hyperC, "hdec.1")
	b.block("hdec", "hdec.1", "hdec.2", yc, "hdec.2")
	b.scale("hq", "hdec", "qh", group)
}

// latent codes y in two steps of a checkerboard and leaves the decoded latent in "yhat". The last layer of fusion is
// three layers here, one for each of its parts, since q, v and the mean differ in range.
func (b *builder) latent(params string, yc int) {
	b.lin("fusion.q", params, "fusion.2.q", yc, "step")
	b.lin("fusion.v", params, "fusion.2.v", yc, "step")
	b.lin("fusion.mean", params, "fusion.2.mean", yc, "mean")
	b.same("q", "clamp", yc, 16, "fusion.q").Ints = map[string]int{"lo": stepLo, "hi": stepHi}
	b.same("v", "clamp", yc, 16, "fusion.v").Ints = map[string]int{"lo": scaleLo, "hi": scaleHi}
	b.add("index", "index", inference.Index, yc, 16, "", "v")
	b.code("k0", 0, yc, "fusion.mean")
	b.add("yhat.0", "latent", inference.Feature, yc, 16, "mean", "k0", "fusion.mean").Ints = map[string]int{"step": 0}
	b.concat("spatial.in", "mean", "yhat.0", "q", "v", "fusion.mean")
	b.block("spatial.0", "spatial.in", "spatial.0", 2*yc, "spatial")
	b.block("spatial.1", "spatial.0", "spatial.1", 2*yc, "spatial")
	b.lin("spatial", "spatial.1", "spatial.2", yc, "mean")
	b.code("k1", 1, yc, "spatial")
	b.add("yhat.1", "latent", inference.Feature, yc, 16, "mean", "k1", "spatial", "yhat.0").Ints = map[string]int{"step": 1}
	n := b.add("yhat", "unstep", inference.Feature, yc, 16, "yhat", "yhat.1", "q")
	n.Tensors = map[string]string{"exp": "exp.e"}
}

func (b *builder) code(out string, step, yc int, mean string) {
	n := b.add(out, "code_y", inference.Symbols, yc/2, 16, "", "down", "q", mean, "index")
	n.Tensors = map[string]string{"rexp": "exp.r"}
	n.Ints = map[string]int{"step": step}
}
