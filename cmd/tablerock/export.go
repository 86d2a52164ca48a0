package main

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/internal/transfer"
	"github.com/tablerock-db/tablerock/store"
)

func init() { commands = append(commands, newExport) }

func newExport(a *app) *cobra.Command {
	var given string
	cmd := &cobra.Command{
		Use:   "export TABLE [FILE|-]",
		Short: "Write all entities of a table to a CSV or JSONL file",
		Long: `Write all entities of a table, as they are at one moment, to a CSV or JSONL file,
or without one or for "-" to standard output. "tablerock import" reads the file
back with all types.`,
		Args: arguments(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			name := "-"
			if len(args) > 1 {
				name = args[1]
			}
			format, err := formatOf(given, name)
			if err != nil {
				return err
			}
			return ofTable(args[0], a.snapshot(func(s *engine.Snapshot) error {
				return a.export(cmd.Context(), s, args[0], name, format)
			}))
		},
	}
	cmd.Flags().StringVar(&given, "format", "", "`format` of the file: csv or jsonl (default: by its name; jsonl for -)")
	return cmd
}

// export writes the table to the file called name, which is there whole or, if
// the export fails, as it was before.
func (a *app) export(ctx context.Context, s *engine.Snapshot, table, name string, format transfer.Format) error {
	write := transfer.ExportJSONL
	if format == transfer.CSV {
		write = transfer.ExportCSV
	}
	if name == "-" {
		_, err := write(ctx, s, table, store.Query{}, a.stdout, transfer.ExportOptions{})
		return err
	}
	out, err := newTarget(name)
	if err != nil {
		return err
	}
	begin := time.Now()
	bar := a.newBar("export", 0)
	counter := &counter{w: out.file}
	rows, err := write(ctx, s, table, store.Query{}, counter, transfer.ExportOptions{Progress: bar.set})
	bar.done()
	if err := out.close(err); err != nil {
		return err
	}
	elapsed := time.Since(begin).Seconds()
	a.note("exported %s rows of table %s in %.2f s: %s rows/s, %s written to %s",
		count(rows), table, elapsed, count(int64(float64(rows)/max(elapsed, 1e-9))), size(counter.n), name)
	return nil
}

// counter counts what goes through it.
type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

// target is a file that takes its name once it is whole. What is no regular
// file, such as a pipe, is written in place.
type target struct {
	file *os.File
	name string
	temp bool
}

func newTarget(name string) (*target, error) {
	info, err := os.Stat(name)
	if err == nil && !info.Mode().IsRegular() {
		f, err := os.OpenFile(name, os.O_WRONLY, 0)
		return &target{file: f, name: name}, err
	}
	partial := filepath.Join(filepath.Dir(name), "."+filepath.Base(name)+".partial")
	if err := os.Remove(partial); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	// Nothing that is there by now is followed or written over.
	f, err := os.OpenFile(partial, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	return &target{file: f, name: name, temp: true}, err
}

// close ends the file after a write that gave err.
func (t *target) close(err error) error {
	err = errors.Join(err, t.file.Close())
	switch {
	case !t.temp:
		return err
	case err != nil:
		return errors.Join(err, os.Remove(t.file.Name()))
	}
	return os.Rename(t.file.Name(), t.name)
}
