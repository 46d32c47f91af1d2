// Package models holds the models that nvcodec ships: NAME.nvm files, inside the binary or, under the tag noembed, in
// a folder beside it. src holds the float weights that they are made from.
package models

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"

	"github.com/nvcodec/nvcodec/inference"
)

// ErrUnknown: no shipped model has the wanted name or identity.
var ErrUnknown = errors.New("models: no such model")

const extension = ".nvm"

// A shelf loads models from a folder, each once.
type shelf struct {
	files func() (fs.FS, error)

	mu     sync.Mutex
	loaded map[string]*inference.Model
}

var shipped = &shelf{files: files}

// Names lists the models there are, in order. It is empty when the folder of a noembed build is missing.
func Names() []string { return shipped.names() }

// ByName returns a model, loaded and proved the first time it is asked for.
func ByName(name string) (*inference.Model, error) { return shipped.byName(name) }

// ByID returns the model that a stream names.
func ByID(id [32]byte) (*inference.Model, error) { return shipped.byID(id) }

func (s *shelf) names() []string {
	dir, err := s.files()
	if err != nil {
		return nil
	}
	paths, err := fs.Glob(dir, "*"+extension)
	if err != nil {
		return nil
	}
	names := make([]string, len(paths))
	for i, p := range paths {
		names[i] = strings.TrimSuffix(p, extension)
	}
	return names
}

func (s *shelf) byName(name string) (*inference.Model, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.loaded[name]; m != nil {
		return m, nil
	}
	dir, err := s.files()
	if err != nil {
		return nil, err
	}
	b, err := fs.ReadFile(dir, name+extension)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrInvalid):
		return nil, fmt.Errorf("%w: %q", ErrUnknown, name)
	case err != nil:
		return nil, err
	}
	m, err := inference.Load(b)
	if err != nil {
		return nil, fmt.Errorf("models: %s: %w", name, err)
	}
	if s.loaded == nil {
		s.loaded = map[string]*inference.Model{}
	}
	s.loaded[name] = m
	return m, nil
}

// byID loads models until one has the identity. A model that cannot be loaded hides no other.
func (s *shelf) byID(id [32]byte) (*inference.Model, error) {
	var failed error
	for _, name := range s.names() {
		m, err := s.byName(name)
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		if m.ID == id {
			return m, nil
		}
	}
	return nil, errors.Join(fmt.Errorf("%w: identity %x", ErrUnknown, id), failed)
}
