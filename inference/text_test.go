package inference_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/nvcodec/nvcodec/inference"
	"github.com/nvcodec/nvcodec/inference/inferencetest"
)

const smallText = `graph g
x = memory_in() feature c=96 f=13 stride=8
i = index(x) index c=96 stride=8
y = lin(x, x) feature c=96 f=13 stride=8 bias=@b mul=@m w=@w.1 shift=12
p = picture(y) picture
`

func TestGraphText(t *testing.T) {
	graphs, err := inference.ParseGraphs(smallText)
	if err != nil {
		t.Fatal(err)
	}
	if got := inference.FormatGraphs(graphs); got != smallText {
		t.Errorf("got\n%s", got)
	}
	n := graphs["g"].Nodes[2]
	if n.Out != "y" || n.Op != "lin" || !slices.Equal(n.In, []string{"x", "x"}) || n.Kind != inference.Feature || n.C != 96 || n.F != 13 || n.Stride != 8 ||
		!maps.Equal(n.Tensors, map[string]string{"bias": "b", "mul": "m", "w": "w.1"}) || !maps.Equal(n.Ints, map[string]int{"shift": 12}) {
		t.Errorf("node %+v", n)
	}
	model := inference.FormatGraphs(inferencetest.TinyModel(1).Graphs)
	again, err := inference.ParseGraphs(model)
	if err != nil || inference.FormatGraphs(again) != model {
		t.Errorf("the text of a whole network does not come back: %v", err)
	}
}

func TestGraphTextRefused(t *testing.T) {
	for name, edit := range map[string][2]string{
		"no graph":         {"graph g\n", ""},
		"unnamed graph":    {"graph g\n", "graph \n"},
		"graph twice":      {"graph g\n", "graph g\ngraph g\n"},
		"no newline":       {"picture(y) picture\n", "picture(y) picture"},
		"empty line":       {"x = ", "\nx = "},
		"no kind":          {"x = memory_in() feature", "x = memory_in()"},
		"unknown kind":     {"() feature", "() tensor"},
		"no c":             {"c=96 f=13 stride=8\ni", "f=13 stride=8\ni"},
		"c twice":          {"c=96 f=13 stride=8\ni", "c=96 c=96 f=13 stride=8\ni"},
		"f of an index":    {"index c=96 stride=8", "index c=96 f=3 stride=8"},
		"c of a picture":   {"(y) picture", "(y) picture c=3"},
		"role twice":       {"mul=@m", "mul=@m mul=@m"},
		"key and role":     {"mul=@m", "mul=@m mul=5"},
		"empty tensor":     {"mul=@m", "mul=@"},
		"float":            {"shift=12", "shift=1.5"},
		"large integer":    {"shift=12", "shift=3000000000"},
		"no value":         {"shift=12", "shift"},
		"input with space": {"lin(x, x)", "lin(x x)"},
		"empty input":      {"lin(x, x)", "lin(x, )"},
		"control in name":  {"lin(x, x)", "lin(x, x\x00)"},
		"wrong bracket":    {"lin(x, x) ", "lin[x, x] "},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(smallText, edit[0], edit[1], 1)
			if text == smallText {
				t.Fatal("the edit changes nothing")
			}
			if _, err := inference.ParseGraphs(text); err == nil {
				t.Error("accepted")
			}
		})
	}
}

// FuzzGraphs: what parses has one canonical form, and validating it never panics.
func FuzzGraphs(f *testing.F) {
	f.Add(smallText)
	model := inferencetest.TinyModel(1)
	text := inference.FormatGraphs(model.Graphs)
	f.Add(text[:3000])
	f.Add(text[len(text)-3000:])
	f.Fuzz(func(t *testing.T, text string) {
		graphs, err := inference.ParseGraphs(text)
		if err != nil {
			return
		}
		canonical := inference.FormatGraphs(graphs)
		again, err := inference.ParseGraphs(canonical)
		if err != nil {
			t.Fatalf("canonical form refused: %v\n%s", err, canonical)
		}
		if second := inference.FormatGraphs(again); second != canonical {
			t.Fatalf("two canonical forms:\n%s\n%s", canonical, second)
		}
		m := &inference.Model{Tensors: model.Tensors, Graphs: graphs}
		if _, err := m.Prove(); err == nil && len(graphs) == 0 {
			t.Fatal("a model without graphs is proved")
		}
	})
}
