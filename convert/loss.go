package convert

import (
	"context"
	"fmt"
	"math"

	"github.com/nvcodec/nvcodec/codec/motion"
	"github.com/nvcodec/nvcodec/inference"
	"github.com/nvcodec/nvcodec/inference/kernel"
	"github.com/nvcodec/nvcodec/metrics"
	"github.com/nvcodec/nvcodec/yuv"
)

// LossOptions says how the integer model and the float network are compared.
type LossOptions struct {
	QPs        []int  // 0, 21, 42, 63 when empty
	ResetEvery int    // frames between resets; 0: only after an intra frame
	Search     Search // motion vectors, the same for both; nil: the encoder's search, by the model's tables
	Backend    inference.Backend
	Threads    int
}

// A Loss compares the two over one clip at one QP. Bits are ideal lengths of z and y by the formula of training,
// without vectors, headers and lane states; PSNR is the mean over frames of luma's.
type Loss struct {
	Clip                   string
	QP, Frames             int
	FloatBits, IntegerBits float64
	FloatPSNR, IntegerPSNR float64
}

// Bits is the relative change of bits, Decibel the loss of PSNR.
func (l *Loss) Bits() float64    { return l.IntegerBits/l.FloatBits - 1 }
func (l *Loss) Decibel() float64 { return l.FloatPSNR - l.IntegerPSNR }

// MeasureLoss codes the clip with the integer model m and with the float network twin (float features, int8-rounded
// weights), frame after frame, each on its own results, with the same vectors.
func MeasureLoss(ctx context.Context, twin *Twin, m *inference.Model, clip *Clip, o LossOptions) ([]Loss, error) {
	if len(clip.Frames) == 0 {
		return nil, fmt.Errorf("convert: clip %s has no frames", clip.Name)
	}
	qps := o.QPs
	if len(qps) == 0 {
		qps = []int{0, 21, 42, 63}
	}
	if o.Search == nil {
		var err error
		if o.Search, err = encoderSearch(m, pad(clip.Frames[0]), o); err != nil {
			return nil, err
		}
	}
	var all []Loss
	for _, qp := range qps {
		l, err := measure(ctx, twin, m, clip, qp, o)
		if err != nil {
			return nil, err
		}
		all = append(all, *l)
	}
	return all, nil
}

// reach is how far the encoder's search looks by default, in samples.
const reach = 128

func encoderSearch(m *inference.Model, padded *yuv.Planes, o LossOptions) (Search, error) {
	t, err := motion.NewTables(func(name string) ([]int, []int32, bool) {
		x := m.Tensors[name]
		if x == nil || x.Type != "I32" {
			return nil, nil, false
		}
		return x.Shape, x.I32, true
	})
	if err != nil {
		return nil, err
	}
	k, err := kernel.ByName(o.Backend.Kernels())
	if err != nil {
		return nil, err
	}
	return motion.NewSearcher(t, k, padded.W, padded.H, o.Threads, reach).Search, nil
}

func measure(ctx context.Context, twin *Twin, m *inference.Model, clip *Clip, qp int, o LossOptions) (*Loss, error) {
	first := pad(clip.Frames[0])
	session, err := o.Backend.Open(m, inference.Size{W: first.W, H: first.H}, o.Threads, true)
	if err != nil {
		return nil, err
	}
	defer session.Close()
	l := &Loss{Clip: clip.Name, QP: qp, Frames: len(clip.Frames)}
	var state State[float32]
	err = clip.sequence(qp, o.ResetEvery, o.Search, func(k int, f *Frame) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		r, err := twin.Frame(f, &state, nil)
		if err != nil {
			return err
		}
		sections, err := session.Encode(&inference.Frame{Graph: f.Graph, QP: f.QP, Vectors: f.Vectors}, f.Source)
		if err != nil {
			return err
		}
		l.FloatBits += r.ZBits + r.YBits
		l.IntegerBits += sectionBits(sections)
		l.FloatPSNR += luma(clip.Frames[k], r.Picture) / float64(l.Frames)
		l.IntegerPSNR += luma(clip.Frames[k], session.Picture()) / float64(l.Frames)
		return nil
	})
	return l, err
}

// sectionBits is the ideal length of symbols by their tables: the same formula as the float network's, at the scales
// that the tables stand for.
func sectionBits(sections []inference.Section) float64 {
	bits := 0.0
	for _, s := range sections {
		for i, k := range s.Symbols {
			if t := s.Tables[i]; t < 64 {
				bits += gaussBits(k, t)
			} else {
				bits += LogisticBits(int(k), logisticScale(int(t)-64))
			}
		}
	}
	return bits
}

// logisticScale is the scale of z's table i: 0.02 to 50 in 64 equal ratios.
func logisticScale(i int) float64 {
	return 0.02 * math.Exp(float64(i)*math.Log(50/0.02)/63)
}

// luma is the PSNR of decoded, which may be larger by padding, against source.
func luma(source, decoded *yuv.Planes) float64 {
	sse := metrics.SSE(source.Y, source.StrideY, decoded.Y, decoded.StrideY, source.W, source.H)
	return metrics.PSNR(sse, source.W*source.H)
}
