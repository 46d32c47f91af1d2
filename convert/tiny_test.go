package convert

import (
	"encoding/json"
	"maps"
	"math"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/nvcodec/nvcodec/yuv"
)

// tiny is a random checkpoint of nvc1 with few channels, whose values stay within what training gives.
func tiny(t testing.TB, ci, cp int, seed uint64) *Checkpoint {
	t.Helper()
	net, err := NVC1(ci, cp, nil)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(seed, 1))
	c := &Checkpoint{Meta: map[string]string{"network": "nvc1", "ci": strconv.Itoa(ci), "cp": strconv.Itoa(cp)}, Tensors: map[string]*Tensor{}}
	put := func(name string, spread float64, shape ...int) {
		x := &Tensor{Type: "F32", Shape: shape}
		n := 1
		for _, d := range shape {
			n *= d
		}
		x.Float = make([]float32, n)
		for i := range x.Float {
			x.Float[i] = float32(r.NormFloat64() * spread)
		}
		c.Tensors[name] = x
	}
	for _, graph := range []string{"intra", "inter", "reset"} {
		channels := map[string]int{}
		for _, n := range net.Graphs[graph].Nodes {
			channels[n.Out] = n.C
			switch n.Op {
			case "lin":
				name, out, in := layerOf(&n), n.C, channels[n.In[0]]
				for _, part := range fusionParts {
					if suffix := ".fusion.2." + part; len(name) > len(suffix) && name[1:] == suffix {
						name, out = name[:1]+".fusion.2", 3*n.C
					}
				}
				put(name+".weight", 0.5/math.Sqrt(float64(in)), out, in)
				put(name+".bias", 0.1, out)
			case "dwact":
				put(layerOf(&n)+".weight", 0.3, 9, n.C)
				put(layerOf(&n)+".bias", 0.1, n.C)
			case "scale":
				for _, part := range []string{".a", ".b", ".c"} {
					put(tableOf(&n)+part, 0.3, n.C)
				}
			case "code_z":
				put(prefix(graph)+"zprior.ls", 0.5, 3, n.C)
			}
		}
	}
	return c
}

// noise is a clip of random pictures that resemble each other a little.
func noise(w, h, frames int, seed uint64) Clip {
	r := rand.New(rand.NewPCG(seed, 2))
	c := Clip{Name: "noise"}
	for k := range frames {
		p := yuv.New(w, h)
		for _, plane := range [][]byte{p.Y, p.U, p.V} {
			for i := range plane {
				plane[i] = byte(i*(k+3)%200 + r.IntN(56))
			}
		}
		c.Frames = append(c.Frames, p)
	}
	return c
}

// randomVectors is a search that finds anything.
func randomVectors(seed uint64) Search {
	r := rand.New(rand.NewPCG(seed, 3))
	return func(cur, _ *yuv.Planes, _ []int16, _ int) []int16 {
		v := make([]int16, cur.W/16*(cur.H/16)*2)
		for i := range v {
			v[i] = int16(r.IntN(401) - 200)
			if r.IntN(8) == 0 {
				v[i] = []int16{-2047, 2047, 0, 15, 16, -16, -17}[r.IntN(7)]
			}
		}
		return v
	}
}

// integers is the checkpoint that states what a conversion made of another one.
func integers(t *testing.T, c *Checkpoint, r *Result) *Checkpoint {
	t.Helper()
	out := &Checkpoint{Meta: maps.Clone(c.Meta), Tensors: map[string]*Tensor{}}
	shifts := map[string]int{}
	for _, g := range r.Model.Graphs {
		for _, n := range g.Nodes {
			if n.Op != "lin" && n.Op != "dwact" {
				continue
			}
			shifts[layerOf(&n)] = n.Ints["shift"]
			for _, name := range n.Tensors {
				x := r.Model.Tensors[name]
				v := &Tensor{Type: x.Type, Shape: x.Shape}
				for _, e := range x.Int64s() {
					v.Int = append(v.Int, int32(e))
				}
				out.Tensors[name] = v
			}
		}
	}
	for name, x := range c.Tensors {
		switch name[len(name)-2:] {
		case ".a", ".b", ".c", "ls":
			out.Tensors[name] = x
		}
	}
	for key, v := range map[string]any{"shifts": shifts, "fractions": r.Fractions} {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		out.Meta[key] = string(b)
	}
	return out
}
