package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nvcodec/nvcodec/batch"
)

// A folderError ends a run over a folder in which some files failed.
type folderError struct{ failed []batch.Failure }

func (f *folderError) Error() string {
	names := make([]string, len(f.failed))
	for i, x := range f.failed {
		names[i] = x.In
	}
	return fmt.Sprintf("%d of the files failed: %s", len(names), strings.Join(names, ", "))
}

// code is the failures' own exit code when they share one, else "another failure".
func (f *folderError) code() int {
	code := exitCode(f.failed[0].Err)
	for _, x := range f.failed[1:] {
		if exitCode(x.Err) != code {
			return codeOther
		}
	}
	return code
}

// summary is what a run over a folder prints at its end.
type summary struct {
	Done    int      `json:"done"`
	Skipped int      `json:"skipped"`
	Failed  int      `json:"failed"`
	Ignored []string `json:"ignored,omitempty"`
}

// runJobs carries out a plan: a single file's error is the command's; in a folder failures are named as they come, the
// rest goes on, and a summary ends the run.
func runJobs(ctx context.Context, e *env, plan *batch.Plan, workers, threads int, do func(context.Context, batch.Job, int) error) error {
	if !plan.Folder {
		err := do(ctx, plan.Jobs[0], threads)
		if errors.Is(err, batch.ErrSkipped) {
			e.note("%s: %v, skipped", plan.Jobs[0].Out, err)
			return nil
		}
		return err
	}
	s, err := batch.Run(ctx, plan.Jobs, workers, threads, func(ctx context.Context, j batch.Job, n int) error {
		err := do(ctx, j, n)
		if err != nil && !errors.Is(err, batch.ErrSkipped) && ctx.Err() == nil {
			if text := err.Error(); strings.Contains(text, j.In) || strings.Contains(text, j.Out) {
				e.warn("%s", text)
			} else {
				e.warn("%s: %s", j.In, text)
			}
		}
		return err
	})
	if err != nil {
		return err
	}
	sum := summary{s.Done, s.Skipped, len(s.Failed), plan.Ignored}
	if e.json {
		if err := e.printJSON(sum); err != nil {
			return err
		}
	} else if !e.quiet {
		fmt.Fprintf(e.stderr, "%d done, %d skipped (already there), %d failed, %d other files ignored\n", s.Done, s.Skipped, len(s.Failed), len(plan.Ignored))
	}
	if len(s.Failed) > 0 {
		return &folderError{s.Failed}
	}
	return nil
}
