package inference_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/nvcodec/nvcodec/inference"
	"github.com/nvcodec/nvcodec/inference/inferencetest"
)

// products counts the multiply-adds of a graph's convolutions for each luma sample, of all nodes or of those that a
// decoder runs.
func products(m *inference.Model, graph string, encode bool) float64 {
	nodes := m.Graphs[graph].Nodes
	at, live := map[string]int{}, make([]bool, len(nodes))
	for i, n := range nodes {
		at[n.Out] = i
	}
	total := 0.0
	for i := len(nodes) - 1; i >= 0; i-- {
		n := &nodes[i]
		needs := n.In
		switch n.Op {
		case "picture", "memory_out", "feature_out":
			live[i] = true
		case "code_z", "code_y":
			live[i] = true
			if !encode {
				needs = n.In[len(n.In)-1:]
				if n.Op == "code_z" {
					needs = nil
				}
			}
		}
		if !live[i] {
			continue
		}
		for _, name := range needs {
			live[at[name]] = true
		}
		switch n.Op {
		case "lin", "conv3", "dw":
			total += float64(len(m.Tensors[n.Tensors["w"]].I8)+len(m.Tensors[n.Tensors["w"]].I16)) / float64(n.Stride*n.Stride)
		}
	}
	return total
}

// The network of DCVC-RT's shape has the published network's work: 404 G multiply-adds for a P frame of 1920x1080 with
// its reconstruction, 346 G for decoding one (of 1920x1088, which is what is computed), and 16.5 G more where the frame
// before left no feature.
func TestDCVCRTProducts(t *testing.T) {
	m := inferencetest.NewDCVCRT(1, inferencetest.DCVCRTFull)
	for _, c := range []struct {
		graph  string
		encode bool
		lines  int
		want   float64
	}{{"inter", true, 1080, 404.2}, {"inter", false, 1080, 343.3}, {"inter", false, 1088, 345.8}, {"reset", true, 1080, 404.2 + 16.5}} {
		got := products(m, c.graph, c.encode) * 1920 * float64(c.lines) / 1e9
		if math.Abs(got-c.want) > 0.002*c.want {
			t.Errorf("%s, encode %v: %.2f G multiply-adds at 1920x%d, want %.1f", c.graph, c.encode, got, c.lines, c.want)
		}
	}
}

// Every backend, both directions and any number of threads agree on the imported network's operators, and what it
// computes is neither constant nor saturated.
func TestDCVCRT(t *testing.T) {
	for _, wide := range []bool{false, true} {
		m := inferencetest.NewDCVCRT(3, inferencetest.DCVCRT{D: 32, Y: 16, Z: 8, Recon: 24, Wide: wide})
		size := inference.Size{W: 128, H: 64}
		all := takes(2, size, 4)
		for i := range all {
			all[i].frame.Threshold = 0
		}
		backends := inference.Backends()
		want := encode(t, backends[0], m, size, 1, all)
		for i, c := range want {
			for _, s := range c.sections {
				kinds := map[int16]int{}
				for _, k := range s.Symbols {
					kinds[k]++
				}
				if len(kinds) < 4 && i > 0 {
					t.Errorf("wide %v: frame %d, section %s: symbols %v", wide, i, s.Name, kinds)
				}
			}
			ends := 0
			for _, y := range c.picture.Y {
				if y == 0 || y == 255 {
					ends++
				}
			}
			if ends > len(c.picture.Y)/2 {
				t.Errorf("wide %v: frame %d: %d of %d samples are at the ends", wide, i, ends, len(c.picture.Y))
			}
		}
		if levels := []int{want[2].sections[0].Level, want[2].sections[1].Level, want[2].sections[2].Level}; fmt.Sprint(levels) != "[0 1 2]" {
			t.Errorf("the sections' levels are %v", levels)
		}
		for _, b := range backends {
			compare(t, b.Kernels()+" encode", encode(t, b, m, size, 3, all), want)
			compare(t, b.Kernels()+" decode", decode(t, b, m, size, 2, all, want), want)
		}
	}
}
