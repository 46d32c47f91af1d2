package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nvcodec/nvcodec/inference/backends"
	"github.com/nvcodec/nvcodec/models"
	"github.com/nvcodec/nvcodec/pipeio"
)

type versionResult struct {
	Version string   `json:"version"`
	Commit  string   `json:"commit,omitempty"`
	Go      string   `json:"go"`
	Machine string   `json:"machine"`
	FFmpeg  string   `json:"ffmpeg"`
	Kernels []string `json:"kernels"`
	Models  []string `json:"models"`
}

func newVersion(e *env) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version, and what this build and machine offer",
		Example: `  nvcodec version --json | jq .kernels`,
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			v := versionResult{
				Version: "devel", Go: runtime.Version(), Machine: runtime.GOOS + "/" + runtime.GOARCH,
				FFmpeg: pipeio.FFmpegVersions(), Kernels: backends.Kernels(), Models: models.Names(),
			}
			if b, ok := debug.ReadBuildInfo(); ok {
				if b.Main.Version != "" && b.Main.Version != "(devel)" {
					v.Version = b.Main.Version
				}
				for _, s := range b.Settings {
					if s.Key == "vcs.revision" {
						v.Commit = s.Value
					}
				}
			}
			if e.json {
				return e.printJSON(v)
			}
			ff := v.FFmpeg
			if ff == "" {
				ff = "none in this build (y4m and raw yuv only)"
			}
			_, err := fmt.Fprintf(e.stdout, "nvcodec %s %s\n%s %s\nFFmpeg: %s\nkernels: %s\nmodels: %s\n",
				v.Version, v.Commit, v.Go, v.Machine, ff, strings.Join(v.Kernels, " "), strings.Join(v.Models, " "))
			return err
		},
	}
}
