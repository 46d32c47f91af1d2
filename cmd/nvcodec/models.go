package main

import (
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/nvcodec/nvcodec/models"
)

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

type modelResult struct {
	Name     string            `json:"name"`
	ID       string            `json:"id"`
	Profile  string            `json:"profile"`
	Weights  int               `json:"weights"`
	Layers   int               `json:"layers,omitempty"`
	Metadata map[string]string `json:"metadata"`
}

func newModels(e *env) *cobra.Command {
	var layers bool
	cmd := &cobra.Command{
		Use:   "models [NAME...]",
		Short: "List the shipped models, or describe some (names or .nvm files)",
		Example: `  nvcodec models
  nvcodec models --layers nvc1-lite
  nvcodec models --json my.nvm`,
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				args = models.Names()
			}
			for _, name := range args {
				if err := printModel(e, name, layers); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&layers, "layers", false, "print the proved bound of every layer's accumulator")
	return cmd
}

func printModel(e *env, name string, layers bool) error {
	m, err := findModel(name)
	if err != nil {
		return err
	}
	r := modelResult{Name: m.Name, ID: hex.EncodeToString(m.ID[:]), Profile: m.Profile, Metadata: map[string]string{}}
	for _, t := range m.Tensors {
		if len(t.Shape) == 2 && (t.Type == "I8" || t.Type == "I16") {
			r.Weights += t.Shape[0] * t.Shape[1]
		}
	}
	for k, v := range m.Meta {
		if k != "graphs" {
			r.Metadata[k] = v
		}
	}
	if e.json {
		return e.printJSON(r)
	}
	fmt.Fprintf(e.stdout, "%s\n  %-12s %s\n  %-12s %s\n  %-12s %d\n", r.Name, "id", r.ID, "profile", r.Profile, "weights", r.Weights)
	for _, k := range sortedKeys(r.Metadata) {
		fmt.Fprintf(e.stdout, "  %-12s %s\n", k, r.Metadata[k])
	}
	if !layers {
		return nil
	}
	p, err := m.Prove()
	if err != nil {
		return err
	}
	t := tabwriter.NewWriter(e.stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "graph\tlayer\tinput\tproved bound\tof the limit\tproduct bits\t")
	for _, l := range p.Layers {
		fmt.Fprintf(t, "%s\t%s\t%d..%d\t%d\t%.1f %%\t%d\t\n", l.Graph, l.Node, l.In.Lo, l.In.Hi, l.Bound, 100*float64(l.Bound)/float64(l.Limit), l.ProductBits)
	}
	return t.Flush()
}
