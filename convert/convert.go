package convert

import (
	"github.com/nvcodec/nvcodec/inference"
)

// Build makes the integer model for the given fractional bits.
func (p *Params) Build(name string, f Fractions) (*inference.Model, map[string]int, error) {
	net, err := NVC1(p.CI, p.CP, f)
	if err != nil {
		return nil, nil, err
	}
	t, enlarged, err := p.weights(net)
	if err != nil {
		return nil, nil, err
	}
	e, r := tmpExp()
	t.put("exp.e", "I32", []int{len(e)}, e)
	t.put("exp.r", "I32", []int{len(r)}, r)
	t.put("pixels.in", "I16", []int{256}, tmpPixels(pixelF))
	t.put("i.z.scale", "U8", []int{64, hyperC}, tmpZ(p.ZPrior["i."]))
	t.put("p.z.scale", "U8", []int{64, hyperC}, tmpZ(p.ZPrior["p."]))
	for name, x := range t {
		x.Name = name
	}
	return &inference.Model{Version: inference.Version, Profile: inference.Profile, Name: name, Meta: map[string]string{"threshold": "0"}, Tensors: t, Graphs: net.Graphs}, enlarged, nil
}
