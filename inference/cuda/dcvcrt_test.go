//go:build cuda

package cuda

import (
	"fmt"
	"os"
	"testing"

	"github.com/nvcodec/nvcodec/inference"
	"github.com/nvcodec/nvcodec/inference/inferencetest"
)

// A network of DCVC-RT's shape gives what the generic kernels give, with weights of both widths. Of these channel counts
// some are what the kernels for whole runs take, others are not.
func TestDCVCRT(t *testing.T) {
	for _, c := range []inferencetest.DCVCRT{{D: 32, Y: 16, Z: 8, Recon: 24}, {D: 32, Y: 16, Z: 8, Recon: 24, Wide: true}, {D: 12, Y: 6, Z: 5, Recon: 10}} {
		t.Run(fmt.Sprintf("d=%d/wide=%v", c.D, c.Wide), func(t *testing.T) {
			m := inferencetest.NewDCVCRT(3, c)
			size := inference.Size{W: 64, H: 64}
			all := takes(2, size, 3)
			for i := range all {
				all[i].frame.Threshold = 0
			}
			want := encode(t, generic(t), m, size, all)
			eachBackend(t, func(t *testing.T, b *backend) {
				compare(t, "encode", encode(t, b, m, size, all), want)
				compare(t, "decode", decode(t, b, m, size, all, want), want)
			})
		})
	}
}

// The same at the published widths, whose kernels are those that are timed; where there are kernels of warpgroups.
func TestDCVCRTFull(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	m := inferencetest.NewDCVCRT(4, inferencetest.DCVCRTFull)
	size := inference.Size{W: 128, H: 64}
	all := takes(3, size, 3)
	for i := range all {
		all[i].frame.Threshold = 0
	}
	reference, err := inference.CPU("auto")
	if err != nil {
		t.Fatal(err)
	}
	want := encode(t, reference, m, size, all)
	eachBackend(t, func(t *testing.T, b *backend) {
		if b.sm != 90 {
			t.Skip("no warpgroups")
		}
		compare(t, "encode", encode(t, b, m, size, all), want)
		compare(t, "decode", decode(t, b, m, size, all, want), want)
	})
}

// Where the kernels of warpgroups are, they compute every convolution of the published network, its tables with them, and
// with int8 weights nothing at its largest resolution is a pass of its own that only moves or scales.
func TestDCVCRTGroups(t *testing.T) {
	for _, wide := range []bool{false, true} {
		c := inferencetest.DCVCRTFull
		c.Wide = wide
		m := inferencetest.NewDCVCRT(1, c)
		g := m.Graphs["inter"]
		f := fuse(g, m.Tensors, 90)
		looks := 0
		for _, x := range f.groups {
			if x.layer.outcome == looked || x.layer.outcome == lookedSum {
				looks++
			}
		}
		blocks := 0
		for i := range g.Nodes {
			n := &g.Nodes[i]
			if n.Op == "sum2" {
				blocks++
			}
			if (n.Op == "lin" || n.Op == "conv3") && !grouped(f.groups, n) {
				t.Errorf("wide %v: %s is computed another way", wide, n.Out)
			}
		}
		p, err := newPlan(g, inference.Size{W: 128, H: 64}, true, f)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range p.values {
			if v.sources != nil && v.place != nowhere && v.node.Stride == 8 && !wide {
				t.Errorf("%s is computed for itself", v.node.Out)
			}
			if v.node.Op == "add" && v.group == nil {
				t.Errorf("wide %v: %s is computed for itself", wide, v.node.Out)
			}
		}
		if looks != 2*blocks {
			t.Errorf("wide %v: %d tables are looked up in %d blocks, want two in each", wide, looks, blocks)
		}
	}
}

// TestDCVCRTProfile prints, with NVCODEC_PROFILE set, how long each kernel of a frame of the published network takes at
// 1920x1088.
func TestDCVCRTProfile(t *testing.T) {
	if os.Getenv("NVCODEC_PROFILE") == "" {
		t.Skip("NVCODEC_PROFILE is not set")
	}
	for _, wide := range []bool{false, true} {
		c := inferencetest.DCVCRTFull
		if software {
			c = inferencetest.DCVCRT{D: 32, Y: 16, Z: 8, Recon: 24}
		}
		c.Wide = wide
		t.Run(fmt.Sprintf("wide=%v", wide), func(t *testing.T) {
			m := inferencetest.NewDCVCRT(1, c)
			eachDevice(t, func(t *testing.T, b *backend) {
				if wide && b.sm != 90 {
					t.Skip("no matrix unit computes int16 weights: one launch takes as long as a frame should")
				}
				profile(t, b, m, benchSizes()[1])
			})
		})
	}
}

// BenchmarkDCVCRT is the kernels of inter frames of DCVC-RT's network with random weights, frame behind frame: 404 G
// multiply-adds for 1920x1080 with the reconstruction, 346 G for the decoder's part.
func BenchmarkDCVCRT(b *testing.B) {
	n, err := count()
	if err != nil {
		b.Skip(err)
	}
	for _, wide := range []bool{false, true} {
		c, weights, sizes := inferencetest.DCVCRTFull, "w8", benchSizes()
		if software {
			c = inferencetest.DCVCRT{D: 32, Y: 16, Z: 8, Recon: 24}
		}
		if c.Wide = wide; wide {
			weights = "w16"
		}
		var m *inference.Model
		for d := range n {
			for _, name := range kernelNames(0) {
				if wide && name != familyName(90) {
					continue // no matrix unit computes them
				}
				back, err := New(d, name)
				if err != nil {
					continue
				}
				for _, size := range sizes {
					run := func(dir string, encode bool, given *[]coded) {
						b.Run(fmt.Sprintf("dir=%s/weights=%s/size=%dx%d/impl=cuda:%d,%s", dir, weights, size.W, size.H, d, name), func(b *testing.B) {
							if m == nil {
								m = inferencetest.NewDCVCRT(1, c)
							}
							benchNetwork(b, back, m, size, benchTakes(size), given, encode)
						})
					}
					var given []coded
					run("encode", true, &given)
					run("decode", false, &given)
				}
				if err := back.Close(); err != nil {
					b.Error(err)
				}
			}
		}
	}
}
