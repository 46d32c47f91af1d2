package inference_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/nvcodec/nvcodec/inference"
	"github.com/nvcodec/nvcodec/inference/inferencetest"
	"github.com/nvcodec/nvcodec/inference/safetensors"
)

func marshal(t testing.TB, m *inference.Model) []byte {
	t.Helper()
	b, err := inference.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestModelRoundTrip(t *testing.T) {
	m := inferencetest.TinyModel(3)
	m.Meta["provenance"] = "a <test> & more"
	b := marshal(t, m)
	if !bytes.Equal(b, marshal(t, m)) {
		t.Error("the same model gives other bytes")
	}
	got, err := inference.Load(b)
	if err != nil {
		t.Fatal(err)
	}
	if got.ID != m.ID || got.Name != m.Name || got.Version != m.Version || got.Profile != m.Profile || fmt.Sprint(got.Meta) != fmt.Sprint(m.Meta) {
		t.Errorf("got %x %+v", got.ID, got.Meta)
	}
	if !bytes.Equal(b, marshal(t, got)) {
		t.Error("a loaded model is written otherwise")
	}
}

// TestIdentity: everything that decides pictures moves the identity, and nothing else does.
func TestIdentity(t *testing.T) {
	base := inferencetest.TinyModel(1)
	if again := inferencetest.TinyModel(1); again.ID != base.ID {
		t.Fatal("the same model has two identities")
	}
	seen := map[[32]byte]string{base.ID: "the model itself"}
	edits := map[string]func(m *inference.Model){
		"weight":          func(m *inference.Model) { m.Tensors["i.head.w"].I8[7] ^= 1 },
		"table":           func(m *inference.Model) { m.Tensors["exp.r"].I32[0]++ },
		"F":               func(m *inference.Model) { n := &m.Graphs["intra"].Nodes[4]; n.F-- },
		"shift":           func(m *inference.Model) { m.Graphs["intra"].Nodes[2].Ints["shift"]++ },
		"tensor added":    func(m *inference.Model) { addTensor(m, "extra", "U8", []int{1}) },
		"tensor's type":   func(m *inference.Model) { addTensor(m, "extra", "I8", []int{1}) },
		"tensor's shape":  func(m *inference.Model) { addTensor(m, "extra", "U8", []int{1, 1}) },
		"tensor's name":   func(m *inference.Model) { addTensor(m, "extrb", "U8", []int{1}) },
		"profile":         func(m *inference.Model) { m.Profile += "x" },
		"version":         func(m *inference.Model) { m.Version++ },
		"graph's absence": func(m *inference.Model) { delete(m.Graphs, "reset") },
	}
	for name, edit := range edits {
		m := inferencetest.TinyModel(1)
		edit(m)
		id := inference.Identity(m)
		if other, ok := seen[id]; ok {
			t.Errorf("%s gives the identity of %s", name, other)
		}
		seen[id] = name
	}
	m := inferencetest.TinyModel(1)
	m.Name, m.Meta = "other", map[string]string{"licence": "x"}
	if inference.Identity(m) != base.ID {
		t.Error("name or provenance moves the identity")
	}
}

func addTensor(m *inference.Model, name, typ string, shape []int) {
	t, err := inference.NewTensor(name, typ, shape, []int64{1})
	if err != nil {
		panic(err)
	}
	m.Tensors[name] = t
}

// nodeOf returns the first node of that operator.
func nodeOf(g *inference.Graph, op string) *inference.Node {
	i := slices.IndexFunc(g.Nodes, func(n inference.Node) bool { return n.Op == op })
	return &g.Nodes[i]
}

func TestModelRefused(t *testing.T) {
	type edit func(m *inference.Model)
	intra := func(op string, f func(n *inference.Node)) edit {
		return func(m *inference.Model) { f(nodeOf(m.Graphs["intra"], op)) }
	}
	inter := func(op string, f func(n *inference.Node)) edit {
		return func(m *inference.Model) { f(nodeOf(m.Graphs["inter"], op)) }
	}
	for name, c := range map[string]struct {
		edit edit
		want string // part of the error, with the place it names
	}{
		"unknown operator": {intra("dwact", func(n *inference.Node) { n.Op = "conv9" }), `intra/i.e1.dw: operator "conv9" is not supported`},
		"undefined input":  {intra("dwact", func(n *inference.Node) { n.In[0] = "nowhere" }), `intra/i.e1.dw: input "nowhere" is not a node before`},
		"cycle":            {intra("dwact", func(n *inference.Node) { n.In[0] = "i.e1.dw" }), "is not a node before this one"},
		"later input":      {intra("dwact", func(n *inference.Node) { n.In[0] = "i.head" }), "is not a node before this one"},
		"name twice":       {intra("dwact", func(n *inference.Node) { n.Out = "src" }), "occurs twice"},
		"bad name":         {intra("dwact", func(n *inference.Node) { n.Out = "a b" }), "not allowed"},
		"too few inputs":   {inter("move", func(n *inference.Node) { n.In = n.In[:1] }), "has 1 inputs, want 2 to 2"},
		"too many inputs":  {intra("dwact", func(n *inference.Node) { n.In = append(n.In, "src") }), "has 2 inputs, want 1 to 1"},
		"kind of input":    {intra("dwact", func(n *inference.Node) { n.In[0] = "source" }), "input source is a picture, dwact wants a feature"},
		"kind of output":   {intra("index", func(n *inference.Node) { n.Kind = inference.Feature }), "kind is feature, index makes a index"},
		"output read": {func(m *inference.Model) {
			g := m.Graphs["inter"]
			n := g.Nodes[len(g.Nodes)-1]
			n.Out, n.Op, n.In, n.Kind = "z", "clamp", []string{"p.mem.out"}, inference.Feature
			g.Nodes = append(g.Nodes, n)
		}, "input p.mem.out is an output of the graph"},
		"role missing":      {intra("dwact", func(n *inference.Node) { delete(n.Tensors, "mul") }), "wants [bias mul w]"},
		"role unknown":      {intra("dwact", func(n *inference.Node) { n.Tensors["x"] = "exp.e" }), "wants [bias mul w]"},
		"attribute missing": {intra("dwact", func(n *inference.Node) { delete(n.Ints, "shift") }), "wants [shift]"},
		"tensor absent":     {intra("dwact", func(n *inference.Node) { n.Tensors["w"] = "gone" }), `w: no tensor "gone"`},
		"tensor's type":     {intra("dwact", func(n *inference.Node) { n.Tensors["bias"] = "pixels.in" }), "want [I32] [12]"},
		"weights' shape":    {intra("lin", func(n *inference.Node) { n.Tensors["w"] = "i.head.w" }), "tensor i.head.w is I8 [96 24], want [I8 I16] [24 96]"},
		"channels":          {intra("dwact", func(n *inference.Node) { n.C++ }), "output is c=13"},
		"channels 0":        {inter("memory_in", func(n *inference.Node) { n.C = 0 }), "c is 0"},
		"channels too many": {inter("memory_in", func(n *inference.Node) { n.C = 1 << 20 }), "c is 1048576"},
		"F 16":              {inter("memory_in", func(n *inference.Node) { n.F = 16 }), "f is 16, want 0..15"},
		"F negative":        {inter("memory_in", func(n *inference.Node) { n.F = -1 }), "f is -1"},
		"stride 12":         {inter("memory_in", func(n *inference.Node) { n.Stride = 12 }), "stride is 12"},
		"stride 128":        {inter("memory_in", func(n *inference.Node) { n.Stride = 128 }), "stride is 128"},
		"picture with c":    {intra("source", func(n *inference.Node) { n.C = 3 }), "a picture has no c"},
		"move at stride 16": {inter("memory_in", func(n *inference.Node) { n.Stride = 16 }), "input has stride 16, want 8"},
		"memory's F":        {inter("memory_in", func(n *inference.Node) { n.F = 10 }), "f=10"},
		"activation without F": {func(m *inference.Model) {
			g := m.Graphs["intra"]
			g.Nodes[slices.IndexFunc(g.Nodes, func(n inference.Node) bool { return n.Out == "i.e1.pw1" })].F = 15
		}, "intra/i.e1.dw: f of the input is 15, want 1..14"},
		"concat of two F":   {inter("concat", func(n *inference.Node) { n.F = 10 }), "want c=24 f=10"},
		"concat's channels": {inter("concat", func(n *inference.Node) { n.C = 7 }), "c is 7, want 144..144"},
		"clamp reversed":    {intra("clamp", func(n *inference.Node) { n.Ints["lo"] = 2000 }), "no range of int16"},
		"clamp too wide":    {intra("clamp", func(n *inference.Node) { n.Ints["hi"] = 32768 }), "no range of int16"},
		"s2d by 3":          {intra("s2d", func(n *inference.Node) { n.Ints["r"] = 3 }), "i.e2.s2d"},
		"s2d by 1":          {intra("s2d", func(n *inference.Node) { n.Ints["r"] = 1 }), "r is 1"},
		"d2s by 5":          {intra("d2s", func(n *inference.Node) { n.Ints["r"] = 5 }), "not divisible"},
		"scale's shift":     {intra("scale", func(n *inference.Node) { n.Ints["shift"] = 63 }), "shift is 63"},
		"z's F":             {intra("code_z", func(n *inference.Node) { n.F = 1 }), "want c=8 f=0"},
		"z's table":         {func(m *inference.Model) { m.Tensors["i.entropy.z.scale"].U8[9] = 64 }, "logistic table 64"},
		"z twice":           {intra("code_y", func(n *inference.Node) { *n = *nodeOfCopy("intra", "code_z"); n.Out = "again" }), "a second section z"},
		"q's F":             {intra("clamp", func(n *inference.Node) { n.F = 10 }), "f=10"},
		"step 2":            {intra("code_y", func(n *inference.Node) { n.Ints["step"] = 2 }), "step is 2"},
		"latent's step":     {intra("latent", func(n *inference.Node) { n.Ints["step"] = 1 }), "step is 1, its symbols' step 0"},
		"exp too short":     {func(m *inference.Model) { t := m.Tensors["exp.e"]; t.I32, t.Shape = t.I32[1:], []int{3072} }, "want [I32] [3073]"},
		"no picture":        {func(m *inference.Model) { g := m.Graphs["intra"]; g.Nodes = g.Nodes[:len(g.Nodes)-1] }, "no node of operator picture"},
		"two pictures": {func(m *inference.Model) {
			g := m.Graphs["intra"]
			n := g.Nodes[len(g.Nodes)-1]
			n.Out = "again"
			g.Nodes = append(g.Nodes, n)
		}, "a second picture"},
		"picture at stride 16": {intra("picture", func(n *inference.Node) { n.In[0] = "i.params.q" }), "want c=96"},
		"decoder needs source": {func(m *inference.Model) { g := m.Graphs["intra"]; g.Nodes[len(g.Nodes)-1].In[0] = "src" }, "the decoder would need it"},
		"bound":                {func(m *inference.Model) { m.Tensors["i.head.bias"].I32[3] = -1 << 31 }, "intra/i.head: channel 3: Σ|w|·max|x| + |bias|"},
		"graph's name":         {func(m *inference.Model) { m.Graphs["intra"].Name = "other" }, "not the name that the graph states"},
		"no graphs":            {func(m *inference.Model) { m.Graphs = nil }, "0 graphs"},
		"tensor's length":      {func(m *inference.Model) { t := m.Tensors["exp.e"]; t.I32 = t.I32[1:] }, "tensor exp.e: 3072 values"},
		"tensor's name":        {func(m *inference.Model) { m.Tensors["exp.e"].Name = "x" }, "the name that the tensor states"},
		"reserved metadata":    {func(m *inference.Model) { m.Meta["graphs"] = "" }, "field of its own"},
		"other version":        {func(m *inference.Model) { m.Version = 2 }, `format "2" is not supported`},
		"other profile":        {func(m *inference.Model) { m.Profile = "nvc-int-9" }, `profile "nvc-int-9" is not supported`},
	} {
		t.Run(name, func(t *testing.T) {
			m := inferencetest.TinyModel(1)
			c.edit(m)
			_, err := inference.Marshal(m)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
}

func nodeOfCopy(graph, op string) *inference.Node {
	n := *nodeOf(inferencetest.TinyModel(1).Graphs[graph], op)
	return &n
}

// TestFileRefused edits the file where Marshal would not write it.
func TestFileRefused(t *testing.T) {
	good := marshal(t, inferencetest.TinyModel(1))
	for name, c := range map[string]struct {
		edit func(f *safetensors.File)
		want string
	}{
		"not canonical": {func(f *safetensors.File) {
			f.Metadata["graphs"] = strings.Replace(f.Metadata["graphs"], "shift=22", "shift=022", 1)
		}, "graphs: not in canonical form"},
		"graphs broken": {func(f *safetensors.File) { f.Metadata["graphs"] = "graph" }, "line 1"},
		"no graphs":     {func(f *safetensors.File) { delete(f.Metadata, "graphs") }, "graphs: metadata has no such key"},
		"no profile":    {func(f *safetensors.File) { delete(f.Metadata, "profile") }, "profile: metadata has no such key"},
		"future format": {func(f *safetensors.File) { f.Metadata["format"] = "2" }, `format "2" is not supported`},
		"format 01":     {func(f *safetensors.File) { f.Metadata["format"] = "01" }, `format "01" is not supported`},
		"float tensor": {func(f *safetensors.File) {
			f.Tensors[0].Type = "F16"
			f.Tensors[0].Shape = []int{len(f.Tensors[0].Data) / 2}
		}, `"F16" is not an integer type`},
		"name with space": {func(f *safetensors.File) { f.Tensors[0].Name = "a b" }, `"a b" is not allowed`},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := safetensors.Parse(good)
			if err != nil {
				t.Fatal(err)
			}
			c.edit(f)
			b, err := safetensors.Marshal(f)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := inference.Load(b); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
	for n := 0; n < len(good); n += 1 + n/9 {
		if _, err := inference.Load(good[:n]); err == nil {
			t.Errorf("a file cut to %d bytes of %d is accepted", n, len(good))
		}
	}
	var unsupported *inference.UnsupportedError
	if _, err := inference.Load(bytes.Replace(good, []byte(`"profile":"nvc-int-1"`), []byte(`"profile":"nvc-int-2"`), 1)); !errors.As(err, &unsupported) || unsupported.Value != "nvc-int-2" {
		t.Errorf("error %v, want an UnsupportedError", err)
	}
}

// FuzzLoad: no bytes panic; what loads is written back to the same bytes but for the container's freedom, and keeps
// its identity.
func FuzzLoad(f *testing.F) {
	// Small seeds: the fuzzer spends its time on shrinking large ones.
	graphs, err := inference.ParseGraphs("graph g\nx = memory_in() feature c=2 f=10 stride=8\n" +
		"y = lin(x) feature c=96 f=13 stride=8 bias=@b mul=@m w=@w shift=3\np = picture(y) picture\n")
	if err != nil {
		f.Fatal(err)
	}
	m := &inference.Model{Version: 1, Profile: inference.Profile, Name: "fuzz", Tensors: map[string]*inference.Tensor{}, Graphs: graphs}
	for name, t := range map[string]*inference.Tensor{
		"w": {Type: "I8", Shape: []int{96, 2}, I8: make([]int8, 192)},
		"b": {Type: "I32", Shape: []int{96}, I32: make([]int32, 96)},
		"m": {Type: "I32", Shape: []int{96}, I32: slices.Repeat([]int32{5}, 96)},
	} {
		t.Name = name
		m.Tensors[name] = t
	}
	f.Add(marshal(f, m))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := inference.Load(b)
		if err != nil {
			return
		}
		again, err := inference.Load(marshal(t, m))
		if err != nil || again.ID != m.ID {
			t.Fatalf("%s comes back as %s, %v", hex.EncodeToString(m.ID[:4]), hex.EncodeToString(again.ID[:4]), err)
		}
	})
}
