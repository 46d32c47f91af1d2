// nvcodec compresses video with a neural codec whose streams decode to the same bits on every machine.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/term"
)

func main() {
	os.Exit(mainCode())
}

func mainCode() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// A second signal ends the process at once, but not when it comes with the first: timeout(1) and some shells send
	// two, and the files in the making are still to be removed.
	context.AfterFunc(ctx, func() { time.AfterFunc(2*time.Second, stop) })
	return run(ctx, &env{
		stdin:  os.Stdin,
		stdout: os.Stdout,
		stderr: os.Stderr,
		tty:    term.IsTerminal(int(os.Stderr.Fd())),
	}, os.Args[1:])
}
