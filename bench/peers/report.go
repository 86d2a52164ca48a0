package main

import (
	"flag"
	"fmt"
	"io"

	"github.com/tablerock-db/tablerock/bench/peers/internal/report"
	"github.com/tablerock-db/tablerock/bench/peers/internal/results"
)

// fileOf parses the arguments of a command that reads files of results.
func fileOf(fs *flag.FlagSet, args []string, stderr io.Writer) (*results.File, error) {
	fs.SetOutput(stderr)
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	if fs.NArg() == 0 {
		return nil, fmt.Errorf("%s: name a file of results, or several", fs.Name())
	}
	all := &results.File{}
	for _, name := range fs.Args() {
		f, err := results.Read(name)
		if err != nil {
			return nil, err
		}
		all.Runs, all.Results = append(all.Runs, f.Runs...), append(all.Results, f.Results...)
	}
	return all, nil
}

// printGates compares a file of results with the goals.
func printGates(args []string, stdout, stderr io.Writer) error {
	f, err := fileOf(flag.NewFlagSet("gates", flag.ContinueOnError), args, stderr)
	if err != nil {
		return err
	}
	if missed := report.Gates(stdout, f); missed > 0 {
		return fmt.Errorf("%d goals are missed", missed)
	}
	return nil
}

// writeReport writes the page of a file of results.
func writeReport(args []string, stderr io.Writer) error {
	fs := flag.NewFlagSet("report", flag.ContinueOnError)
	page := fs.String("page", "../../BENCHMARKS.md", "`file` to write")
	pictures := fs.String("pictures", "../../docs/benchmarks", "`directory` for the pictures")
	f, err := fileOf(fs, args, stderr)
	if err != nil {
		return err
	}
	return report.Write(f, *page, *pictures)
}
