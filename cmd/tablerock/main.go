// Command tablerock stores Azure tables on this machine: it creates and queries tables,
// imports and exports entities, serves clients of Azure Tables, and maintains the files.
//
// Every subcommand uses the database in the directory of --data. Results go to standard
// output, messages to standard error. The exit codes are
//
//	0    success
//	1    failure
//	2    invalid command line
//	3    table, entity or file not found
//	4    table, entity or file exists, or the entity has another ETag
//	5    damaged data
//	6    the database is locked
//	7    the database cannot be used here
//	130  interrupted
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() { os.Exit(mainCode()) }

// mainCode runs the command line and returns the exit code.
func mainCode() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// The second signal ends the program.
	context.AfterFunc(ctx, stop)
	return run(ctx, argumentsOf(os.Args), os.Stdin, os.Stdout, os.Stderr)
}
