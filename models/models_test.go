package models

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"testing"
	"testing/fstest"
)

func TestShippedModels(t *testing.T) {
	if os.Getenv("NVCODEC_MODELS") == "" {
		t.Setenv("NVCODEC_MODELS", ".") // for a noembed build
	}
	if got, want := Names(), []string{"nvc1-base", "nvc1-lite"}; !slices.Equal(got, want) {
		t.Fatalf("models %v, want %v", got, want)
	}
	for _, name := range Names() {
		m, err := ByName(name)
		if err != nil {
			t.Fatal(err)
		}
		if m.Name != name {
			t.Errorf("%s calls itself %q", name, m.Name)
		}
		for _, key := range []string{"threshold", "licence", "provenance", "command"} {
			if m.Meta[key] == "" {
				t.Errorf("%s has no metadata %s", name, key)
			}
		}
		again, err := ByID(m.ID)
		if err != nil || again != m {
			t.Errorf("%s by its identity: %v, %v", name, again, err)
		}
	}
}

func TestUnknownModels(t *testing.T) {
	t.Setenv("NVCODEC_MODELS", ".")
	for _, name := range []string{"", "nvc9", "../models/nvc1-base", "/nvc1-base", "src/nvc1-base"} {
		if _, err := ByName(name); !errors.Is(err, ErrUnknown) {
			t.Errorf("%q: %v, want ErrUnknown", name, err)
		}
	}
	if _, err := ByID([32]byte{1}); !errors.Is(err, ErrUnknown) {
		t.Errorf("an identity that nobody has: %v, want ErrUnknown", err)
	}
}

func TestBrokenModelHidesNoOther(t *testing.T) {
	b, err := os.ReadFile("nvc1-lite.nvm")
	if err != nil {
		t.Fatal(err)
	}
	dir := fstest.MapFS{"a.nvm": {Data: []byte("not a model")}, "b.nvm": {Data: b}}
	s := &shelf{files: func() (fs.FS, error) { return dir, nil }}
	lite, err := s.byName("b")
	if err != nil {
		t.Fatal(err)
	}
	if m, err := s.byID(lite.ID); err != nil || m != lite {
		t.Errorf("by identity: %v, %v", m, err)
	}
	if _, err := s.byName("a"); err == nil || errors.Is(err, ErrUnknown) {
		t.Errorf("a broken model: %v", err)
	}
}
