package main

import (
	"context"
	"io"
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
		Long: `Write a consistent snapshot of a table to a CSV or JSONL file or, if FILE is missing
or "-", to standard output. "tablerock import" restores it with all types.`,
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
			return a.ofTable(args[0], a.snapshot(func(s *engine.Snapshot) error {
				return a.export(cmd.Context(), s, args[0], name, format)
			}))
		},
	}
	cmd.Flags().StringVar(&given, "format", "", "`format` of the file: csv or jsonl (default: by its extension, jsonl for -)")
	return cmd
}

// export writes the table to the file called name. If the export fails, an existing file
// stays as it was.
func (a *app) export(ctx context.Context, s *engine.Snapshot, table, name string, format transfer.Format) error {
	write := transfer.ExportJSONL
	if format == transfer.CSV {
		write = transfer.ExportCSV
	}
	if name == "-" {
		_, err := write(ctx, s, table, store.Query{}, a.stdout, transfer.ExportOptions{})
		return err
	}
	out, err := createAtomic(name)
	if err != nil {
		return err
	}
	begin := time.Now()
	bar := a.newBar("export", 0)
	counter := &counter{w: out}
	rows, err := write(ctx, s, table, store.Query{}, counter, transfer.ExportOptions{Progress: bar.Set})
	bar.Done()
	if err := out.Close(err); err != nil {
		return err
	}
	elapsed := time.Since(begin).Seconds()
	a.note("exported %s of table %s in %.2f s: %s rows/s, %s written to %s",
		formatPlural(rows, "row"), table, elapsed, formatCount(int64(float64(rows)/max(elapsed, 1e-9))), formatSize(counter.n), name)
	return nil
}

// counter counts the bytes written through it.
type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}
