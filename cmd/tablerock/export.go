package main

import (
	"context"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/atomicfile"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/bulk"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/progress"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/quantity"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/where"
	"github.com/tablerock-db/tablerock/internal/transfer"
	"github.com/tablerock-db/tablerock/store"
)

func init() { commands = append(commands, newExport) }

// exportFlags are the flags of export.
type exportFlags struct{ format, where, selected string }

// query returns the query of the flags.
func (f *exportFlags) query() (store.Query, error) {
	selected, err := splitList("--select", f.selected)
	if err != nil {
		return store.Query{}, err
	}
	e, err := parseFilter("--where", f.where)
	return store.Query{Filter: e, Select: selected}, err
}

func newExport(a *app) *cobra.Command {
	var f exportFlags
	cmd := &cobra.Command{
		Use:   "export TABLE [FILE|-]",
		Short: "Write the entities of a table to a CSV, JSONL, JSON or Parquet file",
		Long: `Write a table to a CSV, JSONL, JSON or Parquet file or, if FILE is missing or "-", to
standard output. The name or --format selects the format, and --output is refused. A file
whose name ends in .gz or .zst is compressed. "tablerock import" restores it with all
types. From a directory it is a consistent snapshot; from a server each page of 1,000
entities is read when it is written.

  tablerock export Orders eu.csv.gz --where "PartitionKey eq 'eu'" --select Total,Paid` + where.Help,
		Args: arguments(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if a.isTyped("output") {
				return usagef("--output %s: export writes a file; select its format with --format csv, tsv, jsonl, json or parquet", a.output)
			}
			name := "-"
			if len(args) > 1 {
				name = args[1]
			}
			format, err := formatOf(f.format, name)
			if err != nil {
				return err
			}
			q, err := f.query()
			if err != nil {
				return err
			}
			return a.ofTable(args[0], a.snapshot(func(s reader) error {
				return a.export(cmd.Context(), s, args[0], q, name, format)
			}))
		},
	}
	a.where.Add(cmd.PersistentFlags())
	flags := cmd.Flags()
	flags.StringVar(&f.format, "format", "", formatUsage)
	flags.StringVar(&f.where, "where", "", "write only entities that match this OData `expression`")
	flags.StringVar(&f.selected, "select", "", "write only these `properties`, separated by commas, beside the keys and Timestamp")
	return cmd
}

// exporters write the entities of a query by format.
var exporters = map[transfer.Format]func(context.Context, transfer.Querier, string, store.Query, io.Writer, transfer.ExportOptions) (int64, error){
	transfer.CSV:   transfer.ExportCSV,
	transfer.JSONL: transfer.ExportJSONL,
	transfer.JSON:  transfer.ExportJSON,

	transfer.Parquet: transfer.ExportParquet,
}

// export writes the entities of q to the file called name. If the export fails, an existing
// file stays as it was.
func (a *app) export(ctx context.Context, s reader, table string, q store.Query, name string, format fileFormat) error {
	write, src := exporters[format.text], bulk.Watch(s, q.Select)
	o := transfer.ExportOptions{Delimiter: format.delimiter}
	if name == "-" {
		_, err := write(ctx, src, table, q, a.stdout, o)
		if err == nil {
			a.unseen(ctx, src, table, q)
		}
		return err
	}
	out, err := atomicfile.Create(ctx, name)
	if err != nil {
		return err
	}
	begin := time.Now()
	bar := a.newBar("export", 0)
	counter := &progress.Counter{W: out}
	o.Searched = func(rows int64) { bar.Counts("entities read for the columns").Set(rows, 0) }
	o.Progress = func(rows, _ int64) { bar.Counts("entities").Set(rows, counter.N) }
	rows, err := writeCompressed(counter, format.compression, func(w io.Writer) (int64, error) { return write(ctx, src, table, q, w, o) })
	bar.Done()
	if err := out.Close(err); err != nil {
		return err
	}
	elapsed := time.Since(begin)
	a.note("exported %s of table %s in %.2f s: %s entities/s, %s written to %s",
		quantity.Plural(rows, "entity"), table, elapsed.Seconds(), quantity.PerSecond(rows, elapsed), quantity.Bytes(counter.N), name)
	a.unseen(ctx, src, table, q)
	return nil
}

// writeCompressed calls write with a writer that compresses to w.
func writeCompressed(w io.Writer, c transfer.Compression, write func(io.Writer) (int64, error)) (int64, error) {
	compressor, err := transfer.NewCompressor(w, c)
	if err != nil {
		return 0, err
	}
	rows, err := write(compressor)
	if err == nil {
		err = compressor.Close()
	}
	return rows, err
}
