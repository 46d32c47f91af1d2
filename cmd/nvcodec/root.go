package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/nvcodec/nvcodec/codec"
	"github.com/nvcodec/nvcodec/inference/backends"
)

// env is what a command may touch of the world, so that tests can run commands in the process.
type env struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	tty            bool // stderr is a terminal
	json, quiet    bool
	verbose        bool
}

// Exit codes, part of the interface (see exitHelp); 2 is the Go runtime's own.
const (
	codeOther       = 1
	codeUsage       = 3
	codeCorrupt     = 10
	codeUnsupported = 11
	codeMismatch    = 12
	codeDevice      = 13
	codeInterrupted = 130
)

const exitHelp = `Exit codes:
  0    done
  1    another failure (a file that cannot be read or written, a failed file of a folder)
  3    wrong usage
  10   corrupt or truncated input
  11   unsupported stream version or feature, or a model that is not at hand
  12   mismatch: a decoded picture differs from its hash, or compared videos differ in size or length
  13   the device asked for is absent, does not run those kernels, or has too little memory
  130  interrupted`

// run executes one command line and returns the exit code.
func run(ctx context.Context, e *env, args []string) int {
	cmd := newRoot(e)
	cmd.SetArgs(args)
	cmd.SetIn(e.stdin)
	cmd.SetOut(e.stdout)
	cmd.SetErr(e.stderr)
	err := cmd.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	code := exitCode(err)
	if code == codeInterrupted {
		err = errors.New("interrupted")
	}
	if e.json {
		json.NewEncoder(e.stderr).Encode(struct {
			Code    int    `json:"code"`
			Message string `json:"message"`
		}{code, err.Error()})
	} else {
		fmt.Fprintf(e.stderr, "nvcodec: %v\n", err)
		if code == codeUsage {
			fmt.Fprintf(e.stderr, "see: %s --help\n", cmd.CommandPath())
		}
	}
	return code
}

func newRoot(e *env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "nvcodec",
		Short: "Neural video codec, bit-exact on every machine",
		Long: `nvcodec compresses video with a neural network that computes in integers only, so a stream (.nvc) made on one
machine decodes to the same pictures, bit for bit, on any other.

` + exitHelp,
		Example: `  nvcodec encode holiday.mp4 holiday.nvc
  nvcodec decode holiday.nvc holiday.mkv
  nvcodec decode holiday.nvc - | ffplay -
  nvcodec encode --qp 32 videos/ archive/`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	cmd.PersistentFlags().BoolVar(&e.json, "json", false, "print results as JSON, one object a line")
	cmd.PersistentFlags().BoolVarP(&e.quiet, "quiet", "q", false, "print errors only")
	cmd.PersistentFlags().BoolVarP(&e.verbose, "verbose", "v", false, "say where each file is computed, with how much memory")
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usagef("%w", err) })
	cmd.AddCommand(newEncode(e), newDecode(e), newInfo(e), newVerify(e), newCompare(e), newConvert(e), newModels(e), newDevices(e), newVersion(e))
	for _, c := range cmd.Commands() {
		if check := c.Args; check != nil {
			c.Args = func(cmd *cobra.Command, args []string) error {
				if err := check(cmd, args); err != nil {
					return usagef("%w", err)
				}
				return nil
			}
		}
	}
	cmd.Args = func(_ *cobra.Command, args []string) error {
		if len(args) > 0 {
			return usagef("unknown command %q", args[0])
		}
		return nil
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	return cmd
}

// A usageError is a command line that cannot be carried out as written.
type usageError struct{ err error }

func (u *usageError) Error() string { return u.err.Error() }
func (u *usageError) Unwrap() error { return u.err }

func usagef(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

// errMismatch marks results of verify and compare that are not what they should be.
var errMismatch = errors.New("mismatch")

// exitCode maps an error to the documented code; the only place that does.
func exitCode(err error) int {
	var (
		usage   *usageError
		corrupt *codec.CorruptError
		hash    *codec.HashError
		folder  *folderError
		choice  *backends.ChoiceError
		absent  *backends.UnavailableError
		memory  *backends.MemoryError
	)
	switch {
	case err == nil:
		return 0
	case errors.As(err, &folder):
		return folder.code()
	case errors.Is(err, context.Canceled):
		return codeInterrupted
	case errors.As(err, &usage), errors.As(err, &choice):
		return codeUsage
	case errors.As(err, &hash), errors.Is(err, errMismatch):
		return codeMismatch
	case errors.As(err, &absent), errors.As(err, &memory):
		return codeDevice
	case errors.Is(err, codec.ErrUnsupported), errors.Is(err, codec.ErrModelMismatch):
		return codeUnsupported
	case errors.As(err, &corrupt), errors.Is(err, codec.ErrTruncated):
		return codeCorrupt
	}
	return codeOther
}
