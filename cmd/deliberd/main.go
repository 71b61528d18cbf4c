// Command deliberd runs a node of a deliberation cluster and speaks to one:
// see `deliberd help`.
//
// Exit codes: 0 done, 1 refused or failed, 2 wrong usage. Errors go to
// standard error as a sentence with its stable code and what to try, or with
// --json as one object.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
