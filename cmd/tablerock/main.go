// Command tablerock keeps Azure tables on this machine: it makes and queries
// them, moves entities in and out, and looks after the files.
//
// Every verb works on the directory that --data names. What is asked for goes to
// standard output, everything else to standard error. The exit code is 0 for
// success, 1 for failure, 2 for a wrong command line, 3 if a thing is not there,
// 4 if one is there already or has another ETag, 5 if stored bytes are damaged,
// 6 if the database is locked, 7 if it cannot be used here, 130 if interrupted.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() { os.Exit(mainCode()) }

// mainCode is main as a function that returns.
func mainCode() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// A second signal ends the program at once.
	context.AfterFunc(ctx, stop)
	return run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
}
