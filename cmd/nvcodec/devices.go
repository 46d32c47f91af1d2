package main

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/nvcodec/nvcodec/inference/backends"
)

// devicesResult is what devices prints with --json.
type devicesResult struct {
	Devices []backends.Device `json:"devices"`
	Absent  map[string]string `json:"absent"` // kinds of devices that are not here, and why
}

func newDevices(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "devices",
		Short: "List what there is to compute on",
		Long: `List the processor and every GPU, with the kernel families that each runs; a star marks what --kernels auto takes.
Where there is no GPU the reason is printed; that is no failure.`,
		Example: `  nvcodec devices
  nvcodec devices --json | jq '.devices[].name'`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return runDevices(e) },
	}
}

func runDevices(e *env) error {
	all, absent := backends.Devices()
	if !slices.Contains(backends.Kinds(), "cuda") {
		absent["cuda"] = "not in this build (tag cuda)"
	}
	if e.json {
		return e.printJSON(devicesResult{all, absent})
	}
	t := tabwriter.NewWriter(e.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "DEVICE\tNAME\tCAPABILITY\tMEMORY\tFREE\tDRIVER\tKERNELS")
	for _, d := range all {
		memory, free := "", ""
		if d.Memory > 0 {
			memory, free = fmt.Sprintf("%d MiB", d.Memory>>20), fmt.Sprintf("%d MiB", d.Free>>20)
		}
		if d.Problem != "" {
			free = d.Problem
		}
		names := slices.Clone(d.Kernels)
		if i := slices.Index(names, d.Default); i >= 0 {
			names[i] += "*"
		}
		kernels := strings.Join(names, " ")
		if kernels == "" {
			kernels = "none: too old"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", d.ID, d.Name, d.Capability, memory, free, d.Driver, kernels)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, kind := range sortedKeys(absent) {
		fmt.Fprintf(e.stdout, "%s: none: %s\n", kind, absent[kind])
	}
	return nil
}
