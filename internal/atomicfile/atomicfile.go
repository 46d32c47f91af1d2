// Package atomicfile writes files that appear under their name only when they are whole: data goes to a temporary
// name in the same folder, is flushed to the disk and then renamed. A crash or an abort leaves no half-written
// output that a later run could take for a finished one.
package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// A File is an output in the making. Exactly one of Commit and Abort ends it; Abort after Commit does nothing.
type File struct {
	*os.File
	path      string
	overwrite bool
	done      bool
}

// Create opens a temporary file beside path, making missing folders. Without overwrite an existing path is refused,
// at once and again on Commit.
func Create(path string, overwrite bool) (*File, error) {
	if err := refuse(path, overwrite); err != nil {
		return nil, err
	}
	dir, name := filepath.Split(path)
	if err := os.MkdirAll(filepath.Clean(dir+"."), 0o777); err != nil {
		return nil, err
	}
	if len(name) > 200 { // file systems stop at 255 bytes
		name = strings.ToValidUTF8(name[:200], "")
	}
	f, err := os.CreateTemp(dir, "."+name+".part-*")
	if err != nil {
		return nil, err
	}
	return &File{File: f, path: path, overwrite: overwrite}, nil
}

// Commit flushes the data and gives the file its name. On any error the temporary file is removed.
func (f *File) Commit() (err error) {
	if f.done {
		return errors.New("atomicfile: already committed or aborted")
	}
	defer func() {
		if err != nil {
			f.Abort()
		}
	}()
	// CreateTemp makes private files; an output should be as readable as one made by any other program.
	if err := f.Chmod(0o666 &^ umask()); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if !f.overwrite {
		// A hard link fails when the name exists, so that two runs cannot replace each other's output.
		switch err := os.Link(f.Name(), f.path); {
		case err == nil:
			f.done = true
			return errors.Join(os.Remove(f.Name()), syncDir(filepath.Dir(f.path)))
		case errors.Is(err, fs.ErrExist):
			return refuse(f.path, false)
		}
		// File systems without hard links: the check is not atomic there, but still made.
		if err := refuse(f.path, false); err != nil {
			return err
		}
	}
	if err := os.Rename(f.Name(), f.path); err != nil {
		return err
	}
	f.done = true
	return syncDir(filepath.Dir(f.path))
}

// Abort removes the temporary file; nothing stays behind.
func (f *File) Abort() error {
	if f.done {
		return nil
	}
	f.done = true
	f.Close()
	return os.Remove(f.Name())
}

func refuse(path string, overwrite bool) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.IsDir():
		return fmt.Errorf("%s is a folder", path)
	case !overwrite:
		return fmt.Errorf("%s: %w", path, fs.ErrExist)
	}
	return nil
}
