// Package batch turns a command line's IN and OUT into jobs, a file each, and runs them on several workers. It knows
// paths and nothing of video.
package batch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A Job is one file to make from another.
type Job struct{ In, Out string }

// A Rule says which files of a folder are work and what their outputs are called.
type Rule struct {
	Accept func(name string) bool   // by name only
	Rename func(name string) string // base name of the output
}

// A Plan is what Make found.
type Plan struct {
	Jobs    []Job
	Ignored []string // files of the input folder that the rule did not accept
	Folder  bool     // IN is a folder
}

// Make plans IN → OUT. A file gives one job whatever its name; when OUT is an existing folder, the output goes into
// it under the rule's name. A folder is read recursively and mirrored under OUT; links are not followed. An output
// inside the input, equal to it, or made twice is refused.
func Make(in, out string, rule Rule) (*Plan, error) {
	info, err := os.Stat(in)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		if o, err := os.Stat(out); err == nil && o.IsDir() {
			out = filepath.Join(out, rule.Rename(filepath.Base(in)))
		}
		if same(in, out) {
			return nil, fmt.Errorf("input and output are one file: %s", in)
		}
		return &Plan{Jobs: []Job{{in, out}}}, nil
	}
	if o, err := os.Stat(out); err == nil && !o.IsDir() {
		return nil, fmt.Errorf("input %s is a folder, output %s is not", in, out)
	}
	if inside, err := within(in, out); err != nil {
		return nil, err
	} else if inside {
		return nil, fmt.Errorf("output %s lies inside input %s", out, in)
	}
	p, err := List(in, rule.Accept)
	if err != nil {
		return nil, err
	}
	made := map[string]string{}
	for i, job := range p.Jobs {
		rel, err := filepath.Rel(in, job.In)
		if err != nil {
			return nil, err
		}
		to := filepath.Join(out, filepath.Dir(rel), rule.Rename(filepath.Base(rel)))
		if other, ok := made[to]; ok {
			return nil, fmt.Errorf("%s and %s would both become %s", other, job.In, to)
		}
		made[to] = job.In
		p.Jobs[i].Out = to
	}
	return p, nil
}

// List plans work on the files of a folder, read recursively, that has no outputs.
func List(in string, accept func(name string) bool) (*Plan, error) {
	p := &Plan{Folder: true}
	err := filepath.WalkDir(in, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || !d.Type().IsRegular():
			return err
		case strings.HasPrefix(d.Name(), ".") || !accept(d.Name()):
			p.Ignored = append(p.Ignored, path)
		default:
			p.Jobs = append(p.Jobs, Job{In: path})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(p.Jobs, func(a, b Job) int { return strings.Compare(a.In, b.In) })
	return p, nil
}

// same reports whether two paths name one existing file, links resolved.
func same(a, b string) bool {
	ia, errA := os.Stat(a)
	ib, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(ia, ib)
}

// within reports whether path, which need not exist, is dir or lies below it.
func within(dir, path string) (bool, error) {
	for p := filepath.Clean(path); ; {
		if same(dir, p) {
			return true, nil
		}
		abs, err := filepath.Abs(p)
		if err != nil {
			return false, err
		}
		if r, err := filepath.EvalSymlinks(abs); err == nil {
			abs = r // a link's parent is where it points to
		} else if !errors.Is(err, fs.ErrNotExist) {
			return false, err
		}
		up := filepath.Dir(abs)
		if up == abs {
			return false, nil
		}
		p = up
	}
}
