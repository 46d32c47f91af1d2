package convert

import (
	"context"
	"fmt"
	"math"

	"github.com/nvcodec/nvcodec/inference"
	"github.com/nvcodec/nvcodec/yuv"
)

// Shift is what the trained network subtracts from the QP of inter frame k after an intra frame, by (k−1) mod 8.
var Shift = [8]int{0, 14, 8, 14, 4, 14, 8, 14}

// A Clip is a few pictures in order, all of one size.
type Clip struct {
	Name    string
	Frames  []*yuv.Planes
	Extreme bool // reaches further than almost any video: calibration leaves no room above it, and cuts its peaks
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

// A Seen is what calibration saw of one value: its largest |x|, and how many of its elements had each exponent
// (element i: 2^(i-127) ≤ |x| < 2^(i-126)).
type Seen struct {
	Max       float64
	need      float64 // the same with headroom
	exponents [256]int64
}

func (s *Seen) add(data []float32, headroom float64) {
	top := float32(0)
	for _, x := range data {
		top = max(top, x, -x)
		s.exponents[math.Float32bits(x)>>23&255]++
	}
	s.Max = max(s.Max, float64(top))
	s.need = max(s.need, float64(top)*headroom)
}

// Saturated counts the elements that F fractional bits cannot hold, |x| ≥ 2^(15-F), and all of them.
func (s *Seen) Saturated(f int) (n, of int64) {
	for i, c := range s.exponents {
		of += c
		if i-127 >= 15-f {
			n += c
		}
	}
	return n, of
}

// calibrate runs the float network with rounded weights over the clips at each QP and records what every value came
// to. All vectors are zero: predictions are worse than an encoder's, and ranges larger for it.
func (t *Twin) calibrate(ctx context.Context, clips []Clip, qps []int) (map[string]*Seen, error) {
	all := map[string]*Seen{}
	room := float64(headroom)
	seen := func(n *inference.Node, v *Value[float32]) {
		if n.Kind != inference.Feature {
			return
		}
		if all[n.Out] == nil {
			all[n.Out] = &Seen{}
		}
		all[n.Out].add(v.Data, room)
	}
	still := func(cur, _ *yuv.Planes, _ []int16, _ int) []int16 { return make([]int16, cur.W/16*(cur.H/16)*2) }
	for i := range clips {
		if room = headroom; clips[i].Extreme {
			room = extremeHeadroom
		}
		for _, qp := range qps {
			var s State[float32]
			err := clips[i].sequence(qp, 0, still, func(_ int, f *Frame) error {
				if err := ctx.Err(); err != nil {
					return err
				}
				_, err := t.Frame(f, &s, seen)
				return err
			})
			if err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// Ranges holds what every group of values must have room for.
type Ranges map[string]float64

func ranges(net *Network, seen map[string]*Seen) Ranges {
	r := Ranges{}
	for value, s := range seen {
		r[net.Group[value]] = max(r[net.Group[value]], s.need)
	}
	return r
}

// Limits of fractional bits. The activation needs 1..14. Calibrated ones stay within 5..12: above 12 nothing is gained,
// and values of up to ±8 stay possible in layers that calibration saw little of; below 5 all other values would be
// coarse for the sake of those that a flash of light takes beyond ±1024.
const (
	minF, maxF    = 1, 14
	bottomF, topF = 5, 12
)

// headroom is how much larger than in the calibration a value may become before it saturates. Over 24 other clips most
// groups stay below 2 times the shipped frames' range and the worst reaches 4, in layers whose F is held down by topF.
// Extreme clips leave none: what they alone take to the rails costs nothing that their pictures show.
const (
	headroom        = 2.5
	extremeHeadroom = 0.8
)

// fractions chooses the largest F of each group at which its range fits int16; stated ones stay.
func (r Ranges) fractions(net *Network, stated Fractions) Fractions {
	f := Fractions{}
	for _, g := range net.Groups() {
		if v, ok := stated[g]; ok {
			f[g] = v
			continue
		}
		lo, v := bottomF, topF
		switch g {
		case "i.mean", "p.mean":
			v = stepF // q and v join the mean at its F, and gain nothing above their own
		case "p.memory", "p.feature":
			lo = 11 // their saturation is the limit of ±16 that they were trained with
		}
		for v > lo && r[g] > math.Ldexp(32767, -v) {
			v--
		}
		f[g] = v
	}
	return f
}
