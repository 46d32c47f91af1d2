package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/nvcodec/nvcodec/batch"
)

type verifyOptions struct {
	machine
	model   string
	workers int
}

func newVerify(e *env) *cobra.Command {
	var o verifyOptions
	cmd := &cobra.Command{
		Use:   "verify IN...",
		Short: "Decode streams and check every picture's hash, writing nothing",
		Long: `Decode each IN (.nvc, a folder, or - for standard input) completely and compare every picture with the hash that its
encoder stored. Exit code 0 says that this machine reproduces every bit and that the stream is whole.`,
		Example: `  nvcodec verify clip.nvc
  nvcodec verify --kernels generic --json archive/`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runVerify(cmd.Context(), e, &o, args)
		},
	}
	cmd.Flags().StringVar(&o.model, "model", "", "a .nvm file to use for streams that name it")
	cmd.Flags().IntVar(&o.workers, "workers", 0, "files verified at once, in turn on the devices; they share --threads (0: one for each device)")
	o.machine.deviceFlags(cmd)
	return cmd
}

func runVerify(ctx context.Context, e *env, o *verifyOptions, args []string) error {
	if o.workers < 0 {
		return usagef("--workers must not be negative")
	}
	closeAll, err := o.open()
	if err != nil {
		return err
	}
	defer closeAll()
	d, err := o.decoding(o.model)
	if err != nil {
		return err
	}
	plan := &batch.Plan{Folder: len(args) > 1}
	for _, a := range args {
		info, err := os.Stat(a)
		if a == "-" || err == nil && !info.IsDir() {
			plan.Jobs = append(plan.Jobs, batch.Job{In: a})
			continue
		}
		if err != nil {
			return err
		}
		p, err := batch.List(a, isStream)
		if err != nil {
			return err
		}
		plan.Folder = true
		plan.Jobs = append(plan.Jobs, p.Jobs...)
		plan.Ignored = append(plan.Ignored, p.Ignored...)
	}
	workers := o.machine.workers(o.workers)
	return runJobs(ctx, e, plan, workers, o.threads, func(ctx context.Context, j batch.Job, threads int) error {
		d := d
		d.Threads = threads
		r, total, err := openStream(e, j.In)
		if err != nil {
			return err
		}
		defer r.Close()
		bar := e.newProgress(filepath.Base(j.In), total, workers == 1)
		defer bar.done()
		res, err := decodeStream(ctx, e, &o.machine, j.In, r, d, 0, nil, bar)
		if err != nil {
			return fmt.Errorf("%s: %w", j.In, err)
		}
		res.Input = j.In
		return e.printDecoded(res, false)
	})
}
