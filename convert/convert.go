package convert

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"text/tabwriter"

	"github.com/nvcodec/nvcodec/inference"
)

// Options says how a checkpoint becomes a model file.
type Options struct {
	Name  string            // in the model's metadata: "nvc1-base"
	Clips []Clip            // to calibrate on; nil: ShippedClips
	QPs   []int             // to calibrate at; nil: 0, 21, 42, 63
	Meta  map[string]string // the model's metadata, above what meta makes by itself
}

// A Layer's report: what calibration saw of its output, and what is proved for every input.
type LayerReport struct {
	inference.LayerProof
	F         int
	Range     float64 // largest |x| of the output in calibration
	Saturated int64   // elements of the output, of Of, that F cannot hold
	Of        int64
	Enlarged  int // channels with a scale above max|w|/127
}

// A Result is a converted model.
type Result struct {
	Model     *inference.Model
	File      []byte // the model file: the same bytes for the same checkpoint and options
	Fractions Fractions
	Layers    []LayerReport // of all graphs, in the order of computation; inter and reset share most layers
}

// Run converts a checkpoint of nvc1: it calibrates fractional bits where the checkpoint does not state them, rounds
// weights, makes the tables, and proves every sum. A model that cannot be proved is refused.
func Run(ctx context.Context, c *Checkpoint, o Options) (*Result, error) {
	if o.Name == "" {
		return nil, errors.New("convert: the model needs a name")
	}
	p, err := NewParams(c)
	if err != nil {
		return nil, err
	}
	if o.Clips == nil {
		if o.Clips, err = ShippedClips(); err != nil {
			return nil, err
		}
	}
	if o.QPs == nil {
		o.QPs = []int{0, 21, 42, 63}
	}
	twin, err := NewTwin(p, true)
	if err != nil {
		return nil, err
	}
	seen, err := twin.calibrate(ctx, o.Clips, o.QPs)
	if err != nil {
		return nil, err
	}
	r := &Result{Fractions: ranges(twin.Network, seen).fractions(twin.Network, p.Fractions)}
	if r.Model, err = p.Build(o.Name, r.Fractions, meta(c, o)); err != nil {
		return nil, err
	}
	if r.File, err = inference.Marshal(r.Model); err != nil {
		return nil, fmt.Errorf("convert: the model is refused: %w", err)
	}
	proof, err := r.Model.Prove()
	if err != nil {
		return nil, err
	}
	r.report(p, proof, seen)
	return r, nil
}

// FractionsOf reads from a model of nvc1 the fractional bits of its groups, for a checkpoint to state.
func FractionsOf(m *inference.Model) (Fractions, error) {
	net, err := NVC1(8, 8, nil) // names and groups do not depend on the widths
	if err != nil {
		return nil, err
	}
	f := Fractions{}
	for _, g := range m.Graphs {
		for _, n := range g.Nodes {
			if group, ok := net.Group[n.Out]; ok && !fixedGroup(group) {
				f[group] = n.F
			}
		}
	}
	return f, nil
}

// threshold is the default below which a symbol's scale index keeps it from being coded (MODEL.md, code_y). Against 2, BD-rate
// over seven clips, 4 to 8 give −0.3 to −1.5 % and 10 nothing: what was nearly certain and comes otherwise costs more than it
// mends. 6 codes a third to a half of the symbols less than 2, which a GPU decodes one behind the other (docs/BENCH.md).
const threshold = "6"

// meta makes the model's metadata: the checkpoint's licence and provenance, the command that converts it so, and the
// default threshold.
func meta(c *Checkpoint, o Options) map[string]string {
	m := map[string]string{
		"threshold":  threshold,
		"licence":    "not stated",
		"provenance": "not stated",
		"command":    fmt.Sprintf("nvcodec convert %s.safetensors %[1]s.nvm", o.Name),
	}
	for _, key := range []string{"licence", "provenance"} {
		if v := c.Meta[key]; v != "" {
			m[key] = v
		}
	}
	maps.Copy(m, o.Meta)
	return m
}

func (r *Result) report(p *Params, proof *inference.Proof, seen map[string]*Seen) {
	nodes := map[[2]string]*inference.Node{}
	for name, g := range r.Model.Graphs {
		for i := range g.Nodes {
			nodes[[2]string{name, g.Nodes[i].Out}] = &g.Nodes[i]
		}
	}
	for _, l := range proof.Layers {
		n := nodes[[2]string{l.Graph, l.Node}]
		layer := LayerReport{LayerProof: l, F: n.F, Enlarged: p.Layers[layerOf(n)].enlarged}
		if s := seen[l.Node]; s != nil {
			layer.Range = s.Max
			layer.Saturated, layer.Of = s.Saturated(n.F)
		}
		r.Layers = append(r.Layers, layer)
	}
}

// WriteReport prints a line for each layer. Layers that reset shares with inter are printed once.
func (r *Result) WriteReport(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "layer\trange\tF\tsaturated\tbound\tof 2^31\tnote\t")
	printed := map[string]bool{}
	for _, l := range r.Layers {
		if printed[l.Node] {
			continue
		}
		printed[l.Node] = true
		note := ""
		if l.Enlarged > 0 {
			note = fmt.Sprintf("%d channels with a larger scale", l.Enlarged)
		}
		fmt.Fprintf(t, "%s\t%.3f\t%d\t%d/%d\t%d\t%.1f %%\t%s\t\n", l.Node, l.Range, l.F, l.Saturated, l.Of, l.Bound, 100*float64(l.Bound)/float64(l.Limit), note)
	}
	return t.Flush()
}
