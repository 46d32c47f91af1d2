package models

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/nvcodec/nvcodec/convert"
)

// The repository alone can rebuild what it ships: the float weights in src, converted on the shipped frames, give the
// same files to the byte.
func TestRebuild(t *testing.T) {
	if testing.Short() {
		t.Skip("converts every model")
	}
	sources, err := filepath.Glob("src/*.safetensors")
	if err != nil || len(sources) != 2 {
		t.Fatalf("float weights: %v (%v), want two", sources, err)
	}
	for _, source := range sources {
		name := filepath.Base(source[:len(source)-len(".safetensors")])
		t.Run(name, func(t *testing.T) {
			c, err := convert.ReadCheckpoint(source)
			if err != nil {
				t.Fatal(err)
			}
			if runtime.GOARCH != "amd64" {
				state(t, c, name)
			}
			r, err := convert.Run(context.Background(), c, convert.Options{Name: name})
			if err != nil {
				t.Fatal(err)
			}
			b, err := os.ReadFile(name + extension)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := sha256.Sum256(r.File), sha256.Sum256(b); got != want {
				t.Errorf("%s does not follow from %s: identity %x converted now", name+extension, source, r.Model.ID)
			}
		})
	}
}

// state fixes the fractional bits that calibration chose: compilers for other architectures fuse the multiplications
// and additions of the float network, and a range within the last bits of a power of two could fall on its other side.
func state(t *testing.T, c *convert.Checkpoint, name string) {
	m, err := ByName(name)
	if err != nil {
		t.Fatal(err)
	}
	f, err := convert.FractionsOf(m)
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	c.Meta["fractions"] = string(b)
}
