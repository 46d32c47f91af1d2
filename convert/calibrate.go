package convert

import (
	"fmt"
	"math"

	"github.com/nvcodec/nvcodec/inference"
	"github.com/nvcodec/nvcodec/yuv"
)

// Shift is what the trained network subtracts from the QP of inter frame k after an intra frame, by (k−1) mod 8.
var Shift = [8]int{0, 8, 0, 12, 0, 8, 0, 12}

// A Clip is a few pictures in order, all of one size.
type Clip struct {
	Name   string
	Frames []*yuv.Planes
}

// A Search finds the motion vectors of cur from ref, pictures at padded size; before is the field of the frame before.
type Search func(cur, ref *yuv.Planes, before []int16, qp int) []int16

// sequence calls f for each frame of a clip as an encoder at the given QP would code it: an intra frame, then inter
// frames, the first of them and every resetEvery-th after it a reset frame.
func (c *Clip) sequence(qp, resetEvery int, search Search, f func(k int, fr *Frame) error) error {
	var before []int16
	var last *yuv.Planes
	for k, p := range c.Frames {
		src := pad(p)
		fr := &Frame{Graph: "intra", QP: qp, Source: src}
		if k > 0 {
			fr.QP = max(0, qp-Shift[(k-1)%8])
			fr.Graph = "inter"
			if k == 1 || resetEvery > 0 && k%resetEvery == 0 {
				fr.Graph = "reset"
			}
			fr.Vectors = search(src, last, before, fr.QP)
			before = fr.Vectors
		}
		if err := f(k, fr); err != nil {
			return fmt.Errorf("convert: %s frame %d: %w", c.Name, k, err)
		}
		last = src
	}
	return nil
}

// Ranges holds the largest |x| seen of every group of values.
type Ranges map[string]float64

// calibrate runs the float network with rounded weights over the clips at each QP and records ranges.
func (t *Twin) calibrate(clips []Clip, qps []int, search Search) (Ranges, error) {
	r := Ranges{}
	seen := func(n *inference.Node, v *Value[float32]) {
		g := t.Network.Group[n.Out]
		if g == "" {
			return
		}
		m := r[g]
		for _, x := range v.Data {
			m = max(m, math.Abs(float64(x)))
		}
		r[g] = m
	}
	for i := range clips {
		for _, qp := range qps {
			var s State[float32]
			err := clips[i].sequence(qp, len(clips[i].Frames)-1, search, func(_ int, f *Frame) error {
				_, err := t.Frame(f, &s, seen)
				return err
			})
			if err != nil {
				return nil, err
			}
		}
	}
	return r, nil
}

// fractions chooses the largest F of each group at which headroom times its range fits int16.
func (r Ranges) fractions(net *Network, stated Fractions) Fractions {
	f := Fractions{}
	for _, g := range net.Groups() {
		if v, ok := stated[g]; ok {
			f[g] = v
			continue
		}
		lo, hi := 1, 13
		switch g {
		case "p.memory", "p.feature":
			hi = 12 // their saturation is the trained limit of ±16, or ±8
		case "i.mean", "p.mean":
			hi = 9
		}
		v := hi
		for v > lo && r[g]*headroom*math.Ldexp(1, v) > 32767 {
			v--
		}
		f[g] = v
	}
	return f
}

// headroom is how much larger than any value of the calibration a value may become before it saturates.
const headroom = 1.5
