package batch

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

var toNVC = Rule{
	Accept: func(n string) bool { return strings.HasSuffix(n, ".mp4") || strings.HasSuffix(n, ".y4m") },
	Rename: func(n string) string { return n + ".nvc" },
}

func tree(t *testing.T, files ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, f := range files {
		p := filepath.Join(dir, f)
		if err := os.MkdirAll(filepath.Dir(p), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(f), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestMakeMirrorsAFolder(t *testing.T) {
	dir := tree(t, "in/b.mp4", "in/a.y4m", "in/sub/deep/c.mp4", "in/notes.txt", "in/.hidden.mp4")
	in, out := filepath.Join(dir, "in"), filepath.Join(dir, "out")
	p, err := Make(in, out, toNVC)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, j := range p.Jobs {
		rel, _ := filepath.Rel(out, j.Out)
		got = append(got, rel)
	}
	if want := []string{"a.y4m.nvc", "b.mp4.nvc", "sub/deep/c.mp4.nvc"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if len(p.Ignored) != 2 || !p.Folder {
		t.Errorf("%+v", p)
	}
}

func TestMakeOfAFile(t *testing.T) {
	dir := tree(t, "a.avi", "out/x")
	p, err := Make(filepath.Join(dir, "a.avi"), filepath.Join(dir, "out"), toNVC)
	if err != nil || p.Jobs[0].Out != filepath.Join(dir, "out", "a.avi.nvc") {
		t.Errorf("%+v, %v", p, err)
	}
	p, err = Make(filepath.Join(dir, "a.avi"), filepath.Join(dir, "new", "n.nvc"), toNVC)
	if err != nil || p.Jobs[0].Out != filepath.Join(dir, "new", "n.nvc") {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestMakeRefuses(t *testing.T) {
	dir := tree(t, "in/a.mp4", "file", "twice/a.mp4", "twice/b.mp4")
	at := func(s string) string { return filepath.Join(dir, s) }
	if err := os.Symlink(at("in"), at("link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(at("in/a.mp4"), at("alias.mp4")); err != nil {
		t.Fatal(err)
	}
	one := Rule{toNVC.Accept, func(string) string { return "same" }}
	for name, c := range map[string]struct {
		in, out string
		rule    Rule
	}{
		"missing":            {"nothing", "out", toNVC},
		"itself":             {"in", "in", toNVC},
		"inside":             {"in", "in/out", toNVC},
		"inside, deep":       {"in", "in/x/y/z", toNVC},
		"inside by a link":   {"in", "link/out", toNVC},
		"dots":               {"in", "in/../in/out", toNVC},
		"folder to file":     {"in", "file", toNVC},
		"one file":           {"in/a.mp4", "in/a.mp4", toNVC},
		"one file by a link": {"in/a.mp4", "alias.mp4", toNVC},
		"two to one":         {"twice", "out", one},
	} {
		if p, err := Make(at(c.in), at(c.out), c.rule); err == nil {
			t.Errorf("%s: planned %+v", name, p)
		}
	}
	if _, err := Make(at("in"), at("in2"), toNVC); err != nil {
		t.Errorf("a sibling whose name starts alike: %v", err)
	}
}

func TestRunCountsAndGoesOn(t *testing.T) {
	jobs := make([]Job, 40)
	for i := range jobs {
		jobs[i].In = string(rune('A' + i))
	}
	for _, workers := range []int{1, 3, 100} {
		var threads atomic.Int64
		s, err := Run(t.Context(), jobs, workers, 7, func(_ context.Context, j Job, n int) error {
			threads.Store(int64(n))
			switch j.In {
			case "C":
				return errors.New("broken")
			case "D", "E":
				return ErrSkipped
			}
			return nil
		})
		if err != nil || s.Done != 37 || s.Skipped != 2 || len(s.Failed) != 1 || s.Failed[0].In != "C" {
			t.Errorf("workers=%d: %+v, %v", workers, s, err)
		}
		if n := threads.Load(); n < 1 || n > 7 {
			t.Errorf("workers=%d: %d threads", workers, n)
		}
	}
}

func TestRunSharesThreads(t *testing.T) {
	var mu sync.Mutex
	total, busy := 0, make(chan struct{})
	_, err := Run(t.Context(), make([]Job, 3), 3, 8, func(_ context.Context, _ Job, n int) error {
		mu.Lock()
		if total += n; total == 8 {
			close(busy)
		}
		mu.Unlock()
		<-busy // all three at once, or this hangs
		return nil
	})
	if err != nil || total != 8 {
		t.Errorf("%d threads given out, %v", total, err)
	}
}

func TestRunStopsWhenCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var running atomic.Int64
	s, err := Run(ctx, make([]Job, 10), 2, 2, func(ctx context.Context, _ Job, _ int) error {
		if running.Add(1) == 2 {
			cancel()
		}
		<-ctx.Done()
		return ctx.Err()
	})
	if !errors.Is(err, context.Canceled) || len(s.Failed) < 2 || len(s.Failed) > 3 || s.Done != 0 {
		t.Errorf("%+v, %v", s, err)
	}
}
