package main

import (
	"bytes"
	"context"

	"github.com/nvcodec/nvcodec/codec"
	"github.com/nvcodec/nvcodec/inference"
	"github.com/nvcodec/nvcodec/metrics"
	"github.com/nvcodec/nvcodec/yuv"
)

// ours encodes a clip with one intra frame and takes PSNR from the encoder's reconstruction, which tests show to be
// the decoder's. each, if not nil, gets every frame's PSNR-Y.
func (s *settings) ours(ctx context.Context, m *inference.Model, f yuv.Format, video []*yuv.Frame, qp, qpI, reset int, each func(psnrY float64)) (point, error) {
	o := codec.DefaultOptions()
	o.Model, o.Backend, o.Threads = m, s.backend, s.threads
	o.QPI, o.QPP = qpI, qp
	o.IntraPeriod, o.SceneCut = 1<<20, false
	o.Threshold = s.threshold
	if reset >= 0 {
		o.ResetInterval = reset
	}
	var stream bytes.Buffer
	enc, err := codec.NewEncoder(&stream, f, o)
	if err != nil {
		return point{}, err
	}
	p := point{Setting: itoa(qp)}
	var mean metrics.Mean
	for _, frame := range video {
		info, err := enc.Write(ctx, frame)
		if err != nil {
			return point{}, err
		}
		q, err := metrics.Compare(&frame.Planes, info.Decoded)
		if err != nil {
			return point{}, err
		}
		mean.Add(q)
		if each != nil {
			each(q.Y)
		}
		p.Payload += int64(info.PayloadBytes)
	}
	if _, err := enc.Close(); err != nil {
		return point{}, err
	}
	p.Bytes, p.PSNRY = int64(stream.Len()), mean.Value().Y
	return p, nil
}
