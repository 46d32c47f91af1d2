// Command trim cuts the float network's fixtures, as its training wrote them, to what fits a repository:
//
//	go run ./convert/internal/trim FULL_FOLDER convert/testdata/fixtures
//
// Of the hard fixture it keeps the second reset frame and the inter frame after it; of one lite fixture the intra
// frame; of the frames in front of the kept ones what they read. What follows from others is left
// out: fa_i and fa_m are the memory before its limit, the output is the head or the sum of pred and the head. The
// metadata then lists the reset frames, which the presence of fa_i told.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/nvcodec/nvcodec/inference/safetensors"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: trim FULL_FOLDER OUT_FOLDER")
		os.Exit(3)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "trim:", err)
		os.Exit(1)
	}
}

func run(from, to string) error {
	if err := os.MkdirAll(to, 0o777); err != nil {
		return err
	}
	for _, cut := range []struct {
		pattern string
		frames  []int
	}{{"*-hard.safetensors", []int{5, 6}}, {"*-lite-*.safetensors", []int{0}}} {
		paths, err := filepath.Glob(filepath.Join(from, cut.pattern))
		if err != nil || len(paths) == 0 {
			return fmt.Errorf("%s: no %s", from, cut.pattern)
		}
		if err := trim(paths[0], filepath.Join(to, filepath.Base(paths[0])), cut.frames); err != nil {
			return fmt.Errorf("%s: %w", paths[0], err)
		}
	}
	return nil
}

var frameName = regexp.MustCompile(`^f(\d+)\.(.+)$`)

func trim(from, to string, frames []int) error {
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	full, err := safetensors.Parse(b)
	if err != nil {
		return err
	}
	whole, before := map[int]bool{}, map[int]bool{}
	for _, k := range frames {
		whole[k], before[k-1] = true, true
	}
	cut := &safetensors.File{Metadata: full.Metadata}
	resets := ""
	for _, t := range full.Tensors {
		m := frameName.FindStringSubmatch(t.Name)
		if m == nil {
			return fmt.Errorf("tensor %s belongs to no frame", t.Name)
		}
		k, err := strconv.Atoi(m[1])
		if err != nil {
			return err
		}
		if whole[k] && m[2] == "p.fa_i" {
			resets += " " + m[1]
		}
		if whole[k] && !equalsAnother(m[2]) || before[k] && strings.HasPrefix(m[2], "picture_") {
			cut.Tensors = append(cut.Tensors, t)
		}
	}
	cut.Metadata["resets"] = strings.TrimSpace(resets)
	if b, err = safetensors.Marshal(cut); err != nil {
		return err
	}
	fmt.Printf("%s: %d bytes\n", to, len(b))
	return os.WriteFile(to, b, 0o666)
}

func equalsAnother(name string) bool {
	return name == "p.fa_i" || name == "p.fa_m" || name == "output"
}
