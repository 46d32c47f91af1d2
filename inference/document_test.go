package inference

import (
	"encoding/hex"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/nvcodec/nvcodec/inference/kernel"
)

// TestDocument holds docs/MODEL.md against the code: it names every operator, and its worked example is right.
func TestDocument(t *testing.T) {
	b, err := os.ReadFile("../docs/MODEL.md")
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	for op := range operators {
		if !strings.Contains(text, "`"+op+"`") {
			t.Errorf("operator %s is not in the document", op)
		}
	}
	for _, taps := range kernel.LumaTaps {
		row := strings.ReplaceAll(strings.Trim(strings.Join(strings.Fields(fmt.Sprint(taps)), ", "), "[]"), "-", "−")
		if !strings.Contains(text, row) {
			t.Errorf("luma taps %s are not in the document", row)
		}
	}
	for _, taps := range kernel.ChromaTaps {
		row := strings.ReplaceAll(strings.Trim(strings.Join(strings.Fields(fmt.Sprint(taps)), ", "), "[]"), "-", "−")
		if !strings.Contains(text, row) {
			t.Errorf("chroma taps %s are not in the document", row)
		}
	}

	_, example, _ := strings.Cut(text, "## 7. Worked example")
	_, example, _ = strings.Cut(example, "```\n")
	graph, rest, _ := strings.Cut(example, "```\n")
	graphs, err := ParseGraphs(graph)
	if err != nil {
		t.Fatal(err)
	}
	m := &Model{Version: Version, Profile: Profile, Graphs: graphs, Tensors: map[string]*Tensor{
		"w": {Name: "w", Type: "I8", Shape: []int{96, 1}, I8: slices.Repeat([]int8{3}, 96)},
		"b": {Name: "b", Type: "I32", Shape: []int{96}, I32: slices.Repeat([]int32{-20}, 96)},
		"m": {Name: "m", Type: "I32", Shape: []int{96}, I32: slices.Repeat([]int32{5}, 96)},
	}}
	if _, err := Marshal(m); err != nil {
		t.Fatal(err)
	}
	if id := hex.EncodeToString(m.ID[:]); !strings.Contains(rest, "`"+id+"`") {
		t.Errorf("the example's identity is %s", id)
	}
	p, err := m.Prove()
	if err != nil || p.Layers[0].Bound != 98324 || p.Ranges["intra"]["y"] != (Range{-30726, 30713}) {
		t.Errorf("proof %+v, %v, range %v", p.Layers[0], err, p.Ranges["intra"]["y"])
	}
	y := make([]int16, 2*96)
	m.lin(ptr(kernel.Generic()), &graphs["intra"].Nodes[1])(y, []int16{100, -1}, nil)
	if y[0] != 88 || y[96] != -7 {
		t.Errorf("y is %d and %d", y[0], y[96])
	}
	planes := [3][]byte{make([]byte, 64), make([]byte, 16), make([]byte, 16)}
	kernel.Generic().Unpack(planes[0], planes[1], planes[2], y[:96], nil, 8, 8, 0, 1, 13)
	if planes[0][0] != 130 {
		t.Errorf("the sample is %d", planes[0][0])
	}
	table := make([]int32, ExpEntries)
	table[ExpLimit] = 65536
	k := symbol(2600, 0, -77, table, 18, 8)
	if yhat := latent(k, -77, 8); k != 3 || yhat != 691 || unstep(yhat, 0, table, 13) != 5528 {
		t.Errorf("k is %d, yhat %d", k, yhat)
	}
}

func ptr[T any](v T) *T { return &v }
