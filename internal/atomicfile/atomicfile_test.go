package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

func write(t *testing.T, path string, overwrite bool) *File {
	t.Helper()
	f, err := Create(path, overwrite)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("new"); err != nil {
		t.Fatal(err)
	}
	return f
}

func TestCommitShowsTheWholeFileOnly(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a", "b.nvc")
	f := write(t, path, false)
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("visible before Commit: %v", err)
	}
	if err := f.Commit(); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != "new" {
		t.Fatalf("%q, %v", b, err)
	}
	if got := names(t, filepath.Dir(path)); len(got) != 1 {
		t.Fatalf("left over: %v", got)
	}
	if info, _ := os.Stat(path); info.Mode().Perm()&0o400 == 0 {
		t.Fatalf("mode %v", info.Mode())
	}
	if f.Abort() != nil {
		t.Fatal("Abort after Commit")
	}
}

func TestAbortLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	if err := write(t, filepath.Join(dir, "x"), false).Abort(); err != nil {
		t.Fatal(err)
	}
	if got := names(t, dir); len(got) != 0 {
		t.Fatalf("left over: %v", got)
	}
}

func TestExistingFiles(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x")
	late := write(t, path, false)
	os.WriteFile(path, []byte("old"), 0o600)
	if _, err := Create(path, false); !errors.Is(err, fs.ErrExist) {
		t.Errorf("Create over an existing file: %v", err)
	}
	if err := late.Commit(); !errors.Is(err, fs.ErrExist) {
		t.Errorf("Commit over a file that came meanwhile: %v", err)
	}
	if b, _ := os.ReadFile(path); string(b) != "old" {
		t.Errorf("lost the old file: %q", b)
	}
	if got := names(t, dir); len(got) != 1 {
		t.Errorf("left over: %v", got)
	}
	if err := write(t, path, true).Commit(); err != nil {
		t.Error(err)
	}
	if b, _ := os.ReadFile(path); string(b) != "new" {
		t.Errorf("overwrite kept %q", b)
	}
	if _, err := Create(dir, true); err == nil {
		t.Error("a folder was taken for a file")
	}
}
