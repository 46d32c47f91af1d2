package pipeio

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// An output is a file under a temporary name beside the one it gets on close. Standard output, devices and FIFOs are
// written directly.
type output struct {
	name      string // as the user wrote it
	w         io.Writer
	file      *os.File // nil for standard output
	temp      string   // "" when written directly
	target    string   // name with symbolic links followed
	overwrite bool
}

// createOutput refuses an existing file at once unless it may be replaced.
func createOutput(path string, overwrite bool) (*output, error) {
	o := &output{name: path, target: path, overwrite: overwrite}
	if p, err := filepath.EvalSymlinks(path); err == nil {
		o.target = p // a link stays a link
	}
	switch s, err := os.Stat(o.target); {
	case err == nil && s.IsDir():
		return nil, fmt.Errorf("%s: is a folder", path)
	case err == nil && !s.Mode().IsRegular():
		f, err := os.OpenFile(o.target, os.O_WRONLY, 0)
		if err != nil {
			return nil, fileError(path, err)
		}
		o.file, o.w = f, f
		return o, nil
	case err == nil && !overwrite:
		return nil, fmt.Errorf("%s: %w", path, ErrExists)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, fileError(path, err)
	}
	dir, base := filepath.Split(o.target)
	if len(base) > 200 { // file systems stop at 255 bytes
		base = base[:200]
	}
	for range 100 {
		var r [4]byte
		rand.Read(r[:])
		o.temp = dir + "." + base + "." + hex.EncodeToString(r[:]) + ".part"
		f, err := os.OpenFile(o.temp, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
		if err == nil {
			o.file, o.w = f, f
			return o, nil
		}
		if !errors.Is(err, fs.ErrExist) {
			return nil, fileError(path, err)
		}
	}
	return nil, fmt.Errorf("%s: no free temporary name in its folder", path)
}

// close makes the file durable and gives it its name.
func (o *output) close() error {
	if o.file == nil {
		return nil
	}
	if o.temp == "" {
		return wrap(o.name, o.file.Close())
	}
	err := o.file.Sync()
	if e := o.file.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = o.rename()
	}
	if err != nil {
		os.Remove(o.temp)
		return wrap(o.name, err)
	}
	if d, err := os.Open(filepath.Dir(o.target)); err == nil {
		d.Sync() // the name too; file systems without this have nothing to sync
		d.Close()
	}
	return nil
}

func (o *output) rename() error {
	if o.overwrite {
		return os.Rename(o.temp, o.target)
	}
	// a link, unlike a rename, fails if another process made the file in the meantime
	if err := os.Link(o.temp, o.target); err == nil {
		return os.Remove(o.temp)
	} else if errors.Is(err, fs.ErrExist) {
		return ErrExists
	}
	if _, err := os.Lstat(o.target); err == nil { // a file system without links
		return ErrExists
	}
	return os.Rename(o.temp, o.target)
}

// abort leaves nothing.
func (o *output) abort() error {
	if o.file == nil {
		return nil
	}
	o.file.Close()
	if o.temp == "" {
		return nil
	}
	return wrap(o.name, os.Remove(o.temp))
}

func wrap(name string, err error) error {
	if err == nil {
		return nil
	}
	return fileError(name, err)
}
