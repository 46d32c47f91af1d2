// Command stamp sets metadata of a safetensors file, such as a checkpoint's licence and provenance, which conversion
// hands on to the model:
//
//	go run ./convert/internal/stamp FILE key=value …
package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/nvcodec/nvcodec/inference/safetensors"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: stamp FILE key=value …")
		os.Exit(3)
	}
	if err := run(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "stamp:", err)
		os.Exit(1)
	}
}

func run(path string, pairs []string) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	f, err := safetensors.Parse(b)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	for _, p := range pairs {
		key, value, ok := strings.Cut(p, "=")
		if !ok {
			return fmt.Errorf("%q is not key=value", p)
		}
		f.Metadata[key] = value
	}
	if b, err = safetensors.Marshal(f); err != nil {
		return err
	}
	return os.WriteFile(path, b, 0o666)
}
