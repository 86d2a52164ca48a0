package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/bulk"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/hint"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/output"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/quantity"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/where"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/internal/transfer"
	"github.com/tablerock-db/tablerock/store"
)

func init() { commands = append(commands, newImport) }

// importFlags are the flags of import.
type importFlags struct {
	format, partitionKey, rowKey string
	delimiter, header, mode, ack string
	skipBad, delimiterGiven      bool
}

func newImport(a *app) *cobra.Command {
	var f importFlags
	cmd := &cobra.Command{
		Use:   "import [TABLE] FILE|-",
		Short: "Load entities from a CSV, JSONL, JSON or Parquet file",
		Long: `Load entities from a CSV, JSONL, JSON or Parquet file, or for "-" from standard input,
which Parquet does not allow. The table is created if it is missing, also for a file
without rows, but not if all rows of the file are invalid. In CSV, a header such as
Count@Edm.Int64 sets the type of its column, an empty cell means no property, and "" is
the empty string; the files of Storage Explorer are read too. A line of JSONL is an
entity as in "tablerock entity insert", and JSON is one array of them. Files compressed
with gzip or Zstandard (.gz, .zst) are decompressed, standard input too.

Into a directory, with the mode replace and without --ack, the rows are written as sorted
files, about 64 MiB at a time, and after an interruption those before some row are
stored. Otherwise they are written in transactions of up to 100 rows of one partition.

  tablerock import Orders orders.csv --partition-key country --row-key id

TABLE is needed unless FILE is Azurite's __azurite_db_table__.json (or --format is
azurite): its tables of all accounts are imported, or of one with --account or into a
server, or the one TABLE of that account.` + where.Help,
		Args: arguments(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.delimiterGiven = cmd.Flags().Changed("delimiter")
			if f.isAzurite(args[len(args)-1]) {
				return a.importAzurite(cmd, args, &f)
			}
			if len(args) < 2 {
				return usagef("TABLE is missing: %s", cmd.UseLine())
			}
			read, o, err := f.options(args[1])
			if err != nil {
				return err
			}
			if err := edm.CheckTableName(args[0]); err != nil {
				return err
			}
			src, err := a.openSource(cmd.Context(), args[1])
			if err != nil {
				return err
			}
			read.Name = src.name
			rows, err := src.reader(read)
			if err == nil {
				err = a.load(cmd.Context(), args[0], src, rows, o, f.ack)
			}
			return errors.Join(err, src.close())
		},
	}
	a.where.Add(cmd.PersistentFlags())
	flags := cmd.Flags()
	flags.StringVar(&f.format, "format", "", importFormatUsage)
	flags.StringVar(&f.partitionKey, "partition-key", edm.PartitionKeyName, "`column` or member with the PartitionKey")
	flags.StringVar(&f.rowKey, "row-key", edm.RowKeyName, "`column` or member with the RowKey")
	flags.StringVar(&f.delimiter, "delimiter", ",", "`character` between the cells of CSV; in a .tsv file the default is a tab")
	flags.StringVar(&f.header, "header", "", "`columns` of a CSV file without a header line, separated by commas")
	flags.StringVar(&f.mode, "mode", "replace", "`mode` for entities that exist: replace, merge, or insert, which fails")
	flags.BoolVar(&f.skipBad, "skip-bad", false, "skip invalid rows, print the first 20, and exit with 1 at the end")
	flags.StringVar(&f.ack, "ack", "", "write the line numbers of each stored transaction to this `file`, which is replaced")
	return cmd
}

// options checks the flags for importing the file called name.
func (f *importFlags) options(name string) (transfer.ReadOptions, transfer.ImportOptions, error) {
	read := transfer.ReadOptions{PartitionKey: f.partitionKey, RowKey: f.rowKey}
	o := transfer.ImportOptions{SkipBad: f.skipBad}
	delimiter := strings.ReplaceAll(f.delimiter, `\t`, "\t")
	if len(delimiter) != 1 || strings.ContainsAny(delimiter, "\"\r\n\x00") || delimiter[0] >= 0x80 {
		return read, o, usagef("--delimiter %q: must be one ASCII character other than a quote or a line feed", f.delimiter)
	}
	format := f.format
	if format != "" && formatNames[format] == 0 {
		return read, o, usagef("--format %q: %s", format, importFormatError)
	}
	if named, _ := transfer.FormatOf(name); named == 0 && format == "" && (f.delimiterGiven || f.header != "") {
		format = output.CSV
	}
	file, err := formatOf(format, name)
	if err != nil {
		return read, o, err
	}
	read.Format, read.Compression, read.Delimiter = file.text, file.compression, file.delimiter
	if f.delimiterGiven {
		read.Delimiter = delimiter[0]
	}
	if read.Format != transfer.CSV && (f.delimiterGiven || f.header != "") {
		return read, o, usagef("--delimiter and --header are for CSV only: remove them, or give --format csv")
	}
	if f.header != "" {
		read.Header = strings.Split(f.header, ",")
	}
	var ok bool
	if o.Mode, ok = bulk.Modes[f.mode]; !ok {
		return read, o, usagef("--mode %q: must be replace, merge or insert", f.mode)
	}
	return read, o, nil
}

// load imports the rows of src into table.
func (a *app) load(ctx context.Context, table string, src *source, rows *transfer.Reader, o transfer.ImportOptions, ackFile string) error {
	if bulk.IsFile(ackFile, src.info) {
		return usagef("--ack %s is the file to import: name another one", ackFile)
	}
	var done transfer.Progress
	skipped := bulk.Skipped{W: a.stderr, Hold: rows.Compressed}
	begin := time.Now()
	err := a.createStore(engine.Options{}, func(s store.Store) (err error) {
		if ackFile != "" {
			ack, err := bulk.NewAckFile(ctx, ackFile)
			if err != nil {
				return err
			}
			defer ack.Close()
			o.Ack = func(first, last int64) error {
				_, err := fmt.Fprintf(ack, "{\"first\":%d,\"last\":%d}\n", first, last)
				return err
			}
		}
		bar := a.newBar("import", src.bytes).Counts("rows read")
		o.Bad = skipped.Row
		o.Progress = func(p transfer.Progress) { bar.Set(p.Read, p.Bytes) }
		db, local := s.(*engine.DB)
		if local {
			o.Load, o.Apply, o.CheapReads = bulk.LoadOf(db), bulk.ApplyOf(db), true
		} else {
			o.TransactionBytes = bulk.BatchBytes
			if o.Mode != transfer.Insert {
				s = &bulk.Retrying{Store: s}
			}
		}
		done, err = transfer.Import(ctx, s, table, rows, o)
		bar.Done()
		skipped.End(err)
		if err != nil || !local {
			return err
		}
		return db.Flush(ctx)
	})
	elapsed := time.Since(begin)
	if errors.Is(err, store.ErrEntityExists) {
		err = hint.With(err, "use --mode replace or merge to overwrite it, or --skip-bad to keep it")
	}
	if err != nil {
		skipped.Summary(done)
		stored := bulk.Stopped(done.Rows, table, o.Mode, err)
		if errors.Is(err, context.Canceled) {
			a.note("%s", stored)
		} else if done.Rows > 0 || bulk.IsBadRow(err) || errors.Is(err, store.ErrOutcomeUnknown) {
			err = hint.Repeatable(fmt.Errorf("%w (%s)", err, stored))
		}
		return err
	}
	a.note("imported %s into table %s in %.2f s: %s entities/s, %s read",
		quantity.Plural(done.Rows, "entity"), table, elapsed.Seconds(), quantity.PerSecond(done.Rows, elapsed), quantity.Bytes(done.Bytes))
	if skipped.Summary(done); done.Skipped > 0 {
		return &quietError{exitFailure}
	}
	return nil
}
