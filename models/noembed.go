//go:build noembed

package models

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// files is the folder that NVCODEC_MODELS names; else the first of the executable's folder, models in it, and ./models
// that holds a model.
func files() (fs.FS, error) {
	if dir := os.Getenv("NVCODEC_MODELS"); dir != "" {
		return os.DirFS(dir), nil
	}
	candidates := []string{"models"}
	if exe, err := os.Executable(); err == nil {
		dir := filepath.Dir(exe)
		candidates = []string{dir, filepath.Join(dir, "models"), "models"}
	}
	for _, dir := range candidates {
		if found, _ := filepath.Glob(filepath.Join(dir, "*"+extension)); len(found) > 0 {
			return os.DirFS(dir), nil
		}
	}
	return nil, fmt.Errorf("models: no *%s in %v; NVCODEC_MODELS can name their folder", extension, candidates)
}
