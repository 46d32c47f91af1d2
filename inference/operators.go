package inference

import (
	"errors"
	"fmt"
	"slices"
)

// Limits of a feature.
const (
	maxChannels = 1 << 13
	maxF        = 15
)

// ExpEntries is the length of the tables of exp(q) and exp(-q): q from -ExpLimit to ExpLimit at F = ExpF.
const (
	ExpF       = 9
	ExpLimit   = 3 << ExpF
	ExpEntries = 2*ExpLimit + 1
)

// An operator says what a node of its name must look like.
type operator struct {
	in      []Kind   // the inputs' kinds
	more    int      // how many inputs may follow, of the last kind; -1 any number
	out     Kind     //
	tensors []string // roles, all required
	ints    []string // keys, all required
	once    bool     // at most one node of a graph
	sink    bool     // nothing may read it
	check   func(c *checker, n *Node, in []*Node) error
}

// operators holds every operator of docs/MODEL.md.
var operators = map[string]*operator{
	"source":      {out: Picture, once: true},
	"reference":   {out: Picture, once: true},
	"vectors":     {out: Field, once: true},
	"memory_in":   {out: Feature, once: true},
	"feature_in":  {out: Feature, once: true},
	"compensate":  {in: []Kind{Picture, Field}, out: Picture},
	"pack":        {in: []Kind{Picture}, out: Feature, tensors: []string{"table"}, check: checkPack},
	"move":        {in: []Kind{Feature, Field}, out: Feature, check: checkMove},
	"lin":         {in: []Kind{Feature}, more: 1, out: Feature, tensors: []string{"bias", "mul", "w"}, ints: []string{"shift"}, check: checkLin},
	"dwact":       {in: []Kind{Feature}, out: Feature, tensors: []string{"bias", "mul", "w"}, ints: []string{"shift"}, check: checkDWAct},
	"actsum4":     {in: []Kind{Feature}, out: Feature, check: checkActSum4},
	"conv3":       {in: []Kind{Feature}, out: Feature, tensors: []string{"bias", "mul", "w"}, ints: []string{"r", "shift"}, check: checkConv3},
	"dw":          {in: []Kind{Feature}, out: Feature, tensors: []string{"bias", "mul", "w"}, ints: []string{"shift"}, check: checkDW},
	"lookup":      {in: []Kind{Feature}, out: Feature, tensors: []string{"table"}, check: checkLookup},
	"sum2":        {in: []Kind{Feature}, out: Feature, check: checkSum2},
	"add":         {in: []Kind{Feature, Feature}, out: Feature, check: checkAdd},
	"scale":       {in: []Kind{Feature}, out: Feature, tensors: []string{"table"}, ints: []string{"shift"}, check: checkScale},
	"requant":     {in: []Kind{Feature}, out: Feature, check: checkRequant},
	"clamp":       {in: []Kind{Feature}, out: Feature, ints: []string{"hi", "lo"}, check: checkClamp},
	"concat":      {in: []Kind{Feature}, more: -1, out: Feature, check: checkConcat},
	"s2d":         {in: []Kind{Feature}, out: Feature, ints: []string{"r"}, check: checkS2D},
	"d2s":         {in: []Kind{Feature}, out: Feature, ints: []string{"r"}, check: checkD2S},
	"code_z":      {in: []Kind{Feature}, out: Feature, tensors: []string{"table"}, check: checkCodeZ},
	"index":       {in: []Kind{Feature}, out: Index, check: checkIndex},
	"code_y":      {in: []Kind{Feature, Feature, Feature, Index}, out: Symbols, tensors: []string{"rexp"}, ints: []string{"step"}, check: checkCodeY},
	"latent":      {in: []Kind{Symbols, Feature, Feature}, more: -2, out: Feature, ints: []string{"step"}, check: checkLatent},
	"unstep":      {in: []Kind{Feature, Feature}, out: Feature, tensors: []string{"exp"}, check: checkUnstep},
	"picture":     {in: []Kind{Feature}, more: 1, out: Picture, once: true, sink: true, check: checkPicture},
	"memory_out":  {in: []Kind{Feature}, out: Feature, once: true, sink: true, check: checkSame},
	"feature_out": {in: []Kind{Feature}, out: Feature, once: true, sink: true, check: checkSame},
}

// inputs returns the smallest and the largest number of inputs.
func (o *operator) inputs() (least, most int) {
	switch o.more {
	case -1:
		return len(o.in), maxInputs
	case -2: // the last one is optional
		return len(o.in) - 1, len(o.in)
	}
	return len(o.in), len(o.in) + o.more
}

// isCoding reports whether the decoder takes the node's value from the bitstream.
func (n *Node) isCoding() bool { return n.Op == "code_z" || n.Op == "code_y" }

// section names the run of symbols of a coding node.
func (n *Node) section() string {
	if n.Op == "code_z" {
		return "z"
	}
	return fmt.Sprintf("y%d", n.Ints["step"])
}

// tensor returns the tensor that plays a role and checks its type (one of several) and shape.
func (c *checker) tensor(n *Node, role string, types []string, shape ...int) (*Tensor, error) {
	t := c.tensors[n.Tensors[role]]
	if t == nil {
		return nil, fmt.Errorf("%s: no tensor %q", role, n.Tensors[role])
	}
	if !slices.Contains(types, t.Type) || !slices.Equal(t.Shape, shape) {
		return nil, fmt.Errorf("%s: tensor %s is %s %v, want %v %v", role, t.Name, t.Type, t.Shape, types, shape)
	}
	return t, nil
}

func within(what string, v, lo, hi int) error {
	if v < lo || v > hi {
		return fmt.Errorf("%s is %d, want %d..%d", what, v, lo, hi)
	}
	return nil
}

// same reports how a feature differs from the shape that it must have.
func same(what string, n *Node, c, f, stride int) error {
	if n.C != c || n.F != f || n.Stride != stride {
		return fmt.Errorf("%s is c=%d f=%d stride=%d, want c=%d f=%d stride=%d", what, n.C, n.F, n.Stride, c, f, stride)
	}
	return nil
}

func checkSame(_ *checker, n *Node, in []*Node) error {
	return same("output", n, in[0].C, in[0].F, in[0].Stride)
}

func checkPack(c *checker, n *Node, _ []*Node) error {
	if err := same("output", n, packedChannels(n), n.F, 8); err != nil {
		return err
	}
	_, err := c.tensor(n, "table", []string{"I16"}, 256)
	return err
}

func checkMove(c *checker, n *Node, in []*Node) error {
	if in[0].Stride != 8 { // vectors move by eighths of the picture
		return fmt.Errorf("input has stride %d, want 8", in[0].Stride)
	}
	return checkSame(c, n, in)
}

func checkLin(c *checker, n *Node, in []*Node) error {
	if err := same("output", n, n.C, n.F, in[0].Stride); err != nil {
		return err
	}
	if len(in) == 2 {
		if err := same("residual", in[1], n.C, n.F, n.Stride); err != nil {
			return err
		}
	}
	if _, err := c.tensor(n, "w", []string{"I8", "I16"}, n.C, in[0].C); err != nil {
		return err
	}
	return c.checkRequantise(n)
}

func checkDWAct(c *checker, n *Node, in []*Node) error {
	if err := same("output", n, in[0].C, n.F, in[0].Stride); err != nil {
		return err
	}
	if err := within("f of the input", in[0].F, 1, 14); err != nil {
		return err
	}
	if _, err := c.tensor(n, "w", []string{"I8"}, 9, n.C); err != nil {
		return err
	}
	return c.checkRequantise(n)
}

// checkRequantise checks bias, mul and shift of a layer with n.C outputs.
func (c *checker) checkRequantise(n *Node) error {
	if _, err := c.tensor(n, "bias", []string{"I32"}, n.C); err != nil {
		return err
	}
	mul, err := c.tensor(n, "mul", []string{"I32"}, n.C)
	if err != nil {
		return err
	}
	for i, m := range mul.I32 {
		if m <= 0 {
			return fmt.Errorf("mul of channel %d is %d, want 1..2^31-1", i, m)
		}
	}
	return within("shift", n.Ints["shift"], 0, 62)
}

func checkActSum4(_ *checker, n *Node, in []*Node) error {
	if in[0].C%4 != 0 {
		return fmt.Errorf("input has %d channels, want a multiple of 4", in[0].C)
	}
	if err := within("f", in[0].F, 1, 14); err != nil {
		return err
	}
	return same("output", n, in[0].C/4, in[0].F, in[0].Stride)
}

func checkScale(c *checker, n *Node, in []*Node) error {
	if err := same("output", n, in[0].C, n.F, in[0].Stride); err != nil {
		return err
	}
	if _, err := c.tensor(n, "table", []string{"I32"}, 64, n.C); err != nil {
		return err
	}
	return within("shift", n.Ints["shift"], 0, 62)
}

func checkRequant(_ *checker, n *Node, in []*Node) error {
	return same("output", n, in[0].C, n.F, in[0].Stride)
}

func checkClamp(c *checker, n *Node, in []*Node) error {
	lo, hi := n.Ints["lo"], n.Ints["hi"]
	if lo < -32768 || hi > 32767 || lo > hi {
		return fmt.Errorf("limits %d..%d are no range of int16", lo, hi)
	}
	return checkSame(c, n, in)
}

func checkConcat(_ *checker, n *Node, in []*Node) error {
	sum := 0
	for _, x := range in {
		if err := same("input "+x.Out, x, x.C, n.F, n.Stride); err != nil {
			return err
		}
		sum += x.C
	}
	return within("c", n.C, sum, sum)
}

func checkS2D(_ *checker, n *Node, in []*Node) error {
	r := n.Ints["r"]
	if err := within("r", r, 2, 8); err != nil {
		return err
	}
	return same("output", n, in[0].C*r*r, in[0].F, in[0].Stride*r)
}

func checkD2S(_ *checker, n *Node, in []*Node) error {
	r := n.Ints["r"]
	if err := within("r", r, 2, 8); err != nil {
		return err
	}
	if in[0].C%(r*r) != 0 || in[0].Stride%r != 0 {
		return fmt.Errorf("input is c=%d stride=%d, not divisible by r=%d", in[0].C, in[0].Stride, r)
	}
	return same("output", n, in[0].C/(r*r), in[0].F, in[0].Stride/r)
}

func checkCodeZ(c *checker, n *Node, in []*Node) error {
	if err := same("output", n, in[0].C, 0, in[0].Stride); err != nil {
		return err
	}
	table, err := c.tensor(n, "table", []string{"U8"}, 64, n.C)
	if err != nil {
		return err
	}
	if top := slices.Max(table.U8); top > 63 {
		return fmt.Errorf("table: logistic table %d, want 0..63", top)
	}
	return nil
}

func checkIndex(_ *checker, n *Node, in []*Node) error {
	return same("output", n, in[0].C, 0, in[0].Stride)
}

func checkCodeY(c *checker, n *Node, in []*Node) error {
	y, q, mean, index := in[0], in[1], in[2], in[3]
	if err := same("q", q, y.C, ExpF, y.Stride); err != nil {
		return err
	}
	if err := same("mean", mean, y.C, mean.F, y.Stride); err != nil {
		return err
	}
	if err := same("index", index, y.C, 0, y.Stride); err != nil {
		return err
	}
	if y.C%2 != 0 {
		return fmt.Errorf("y has %d channels, want an even number", y.C)
	}
	if err := same("output", n, y.C/2, 0, y.Stride); err != nil {
		return err
	}
	if err := within("step", n.Ints["step"], 0, 1); err != nil {
		return err
	}
	if err := within("16 + F of y - F of mean", 16+y.F-mean.F, 0, 62); err != nil {
		return err
	}
	_, err := c.tensor(n, "rexp", []string{"I32"}, ExpEntries)
	return err
}

func checkLatent(_ *checker, n *Node, in []*Node) error {
	k, mean := in[0], in[1]
	if err := same("mean", mean, 2*k.C, mean.F, k.Stride); err != nil {
		return err
	}
	if k.Ints["step"] != n.Ints["step"] {
		return fmt.Errorf("step is %d, its symbols' step %d", n.Ints["step"], k.Ints["step"])
	}
	if len(in) == 3 {
		if err := same("base", in[2], mean.C, mean.F, mean.Stride); err != nil {
			return err
		}
	}
	return same("output", n, mean.C, mean.F, mean.Stride)
}

func checkUnstep(c *checker, n *Node, in []*Node) error {
	if err := same("q", in[1], in[0].C, ExpF, in[0].Stride); err != nil {
		return err
	}
	if err := same("output", n, in[0].C, n.F, in[0].Stride); err != nil {
		return err
	}
	if err := within("16 + F of yhat - F", 16+in[0].F-n.F, 0, 62); err != nil {
		return err
	}
	_, err := c.tensor(n, "exp", []string{"I32"}, ExpEntries)
	return err
}

func checkPicture(_ *checker, n *Node, in []*Node) error {
	for _, x := range in {
		if err := same("input "+x.Out, x, packedChannels(in[0]), in[0].F, 8); err != nil {
			return err
		}
	}
	if in[0].F < 1 {
		return errors.New("f of the input is 0, want 1..15")
	}
	return nil
}
