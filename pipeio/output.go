package pipeio

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/nvcodec/nvcodec/internal/atomicfile"
)

// An output is a file under a temporary name beside the one it gets on close. Standard output, devices and FIFOs are
// written directly.
type output struct {
	name string // as the user wrote it
	w    io.Writer
	path string // where the data goes, for those who open it by name
	file *atomicfile.File
	raw  *os.File // of a device or FIFO
}

// createOutput refuses an existing file at once unless it may be replaced.
func createOutput(path string, overwrite bool) (*output, error) {
	target := path
	if p, err := filepath.EvalSymlinks(path); err == nil {
		target = p // a link stays a link
	}
	if s, err := os.Stat(target); err == nil && !s.Mode().IsRegular() && !s.IsDir() {
		f, err := os.OpenFile(target, os.O_WRONLY, 0)
		if err != nil {
			return nil, fileError(path, err)
		}
		return &output{name: path, w: f, path: target, raw: f}, nil
	}
	f, err := atomicfile.Create(target, overwrite)
	if err != nil {
		return nil, outputError(path, err)
	}
	return &output{name: path, w: f, path: f.Name(), file: f}, nil
}

// close makes the file durable and gives it its name.
func (o *output) close() error {
	switch {
	case o.file != nil:
		return outputError(o.name, o.file.Commit())
	case o.raw != nil:
		return outputError(o.name, o.raw.Close())
	}
	return nil
}

// abort leaves nothing.
func (o *output) abort() error {
	switch {
	case o.file != nil:
		return outputError(o.name, o.file.Abort())
	case o.raw != nil:
		return outputError(o.name, o.raw.Close())
	}
	return nil
}

func outputError(name string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrExist):
		return fmt.Errorf("%s: %w", name, ErrExists)
	}
	return fileError(name, err)
}
