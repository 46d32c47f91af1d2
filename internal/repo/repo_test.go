package repo

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = "../.."

// goList runs go list for all packages and returns its lines.
func goList(t *testing.T, tags, format string) []string {
	t.Helper()
	cmd := exec.Command("go", "list", "-e", "-tags", tags, "-f", format, "./...")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=1")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, stderr.String())
	}
	return strings.Fields(string(out))
}

// C is used where ARCHITECTURE.md says, and nowhere under noffmpeg.
func TestCgoOnlyAtTheEdge(t *testing.T) {
	const format = "{{if .CgoFiles}}{{.ImportPath}}{{end}}"
	for _, p := range goList(t, "cuda", format) {
		rel := strings.TrimPrefix(p, "github.com/nvcodec/nvcodec/")
		if rel != "internal/av" && rel != "inference/cuda" && !strings.HasPrefix(rel, "inference/cuda/") {
			t.Errorf("%s uses cgo", rel)
		}
	}
	for _, p := range goList(t, "noffmpeg", format) {
		t.Errorf("%s uses cgo under noffmpeg", p)
	}
}

func TestNoAssemblyUnderPurego(t *testing.T) {
	for _, f := range goList(t, "purego,noffmpeg", "{{range .SFiles}}{{$.ImportPath}}/{{.}} {{end}}") {
		t.Errorf("%s is built under purego", f)
	}
}

// go.ff7.mod is go.mod with another go-astiav. scripts/sync-ff7.sh makes it so.
func TestModuleFilesAgree(t *testing.T) {
	astiav := regexp.MustCompile(`(?m)(github\.com/asticode/go-astiav) v\S+`)
	read := func(name string) string {
		b, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	a, b := read("go.mod"), read("go.ff7.mod")
	if !astiav.MatchString(a) || astiav.FindString(a) == astiav.FindString(b) {
		t.Errorf("go.mod has %q, go.ff7.mod %q", astiav.FindString(a), astiav.FindString(b))
	}
	if astiav.ReplaceAllString(a, "$1") != astiav.ReplaceAllString(b, "$1") {
		t.Error("go.ff7.mod requires other things than go.mod: run scripts/sync-ff7.sh")
	}
	// and its sums hold everything but go-astiav's that go.sum does
	sums := read("go.ff7.sum")
	for line := range strings.Lines(read("go.sum")) {
		if !strings.Contains(line, "go-astiav") && !strings.Contains(sums, line) {
			t.Fatalf("go.ff7.sum lacks %s (perhaps more): run scripts/sync-ff7.sh", strings.TrimSpace(line))
		}
	}
}

// The repository stays small enough to clone without thinking about it.
func TestTrackedSize(t *testing.T) {
	cmd := exec.Command("git", "ls-files", "-z")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Skip("no git here: ", err)
	}
	var total int64
	for name := range strings.SplitSeq(strings.TrimRight(string(out), "\x00"), "\x00") {
		st, err := os.Lstat(filepath.Join(root, name))
		if err != nil {
			continue // removed, not committed yet
		}
		total += st.Size()
	}
	if limit := int64(50 << 20); total >= limit {
		t.Errorf("tracked files have %d bytes, limit %d", total, limit)
	}
}

// Scripts run where their first line says, and only those that are meant to.
func TestScripts(t *testing.T) {
	names, err := filepath.Glob(filepath.Join(root, "scripts", "*.sh"))
	if err != nil || len(names) == 0 {
		t.Fatal(err)
	}
	for _, name := range append(names, filepath.Join(root, ".ci", "run")) {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		st, _ := os.Stat(name)
		script := bytes.HasPrefix(b, []byte("#!/usr/bin/env bash\n"))
		if script != (st.Mode()&0o111 != 0) {
			t.Errorf("%s: first line and permission do not agree", name)
		}
		if script && !bytes.Contains(b, []byte("set -euo pipefail")) {
			t.Errorf("%s does not stop at errors", name)
		}
		if _, err := exec.LookPath("bash"); err == nil {
			if out, err := exec.Command("bash", "-n", name).CombinedOutput(); err != nil {
				t.Errorf("%s: %s", name, out)
			}
		}
	}
}
