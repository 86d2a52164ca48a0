package main

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/openfile"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/output"
	"github.com/tablerock-db/tablerock/internal/transfer"
)

// interruptible returns a reader of r that fails when ctx ends, even while a Read of r
// blocks.
func interruptible(ctx context.Context, r io.Reader) io.Reader {
	out, in := io.Pipe()
	context.AfterFunc(ctx, func() { in.CloseWithError(ctx.Err()) })
	go func() {
		buf := make([]byte, 256<<10)
		_, err := io.CopyBuffer(struct{ io.Writer }{in}, struct{ io.Reader }{r}, buf)
		in.CloseWithError(err)
	}()
	return out
}

// source is a file to import, or standard input.
type source struct {
	io.Reader
	name  string // for messages
	bytes int64  // 0 if unknown
	file  *os.File
	info  fs.FileInfo // nil if unknown
}

func (s *source) close() error {
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}

// openSource opens the file called name, or standard input for "-".
func (a *app) openSource(ctx context.Context, name string) (*source, error) {
	if name == "-" {
		s := &source{Reader: interruptible(ctx, a.stdin), name: "standard input"}
		if f, ok := a.stdin.(*os.File); ok {
			s.info, _ = f.Stat()
		}
		return s, nil
	}
	f, err := openfile.Open(ctx, name, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("%w; %w", err, f.Close())
	}
	s := &source{Reader: f, name: name, file: f, info: info}
	switch {
	case info.IsDir():
		_ = f.Close()
		return nil, fmt.Errorf("%s is a directory; name a file of entities", name)
	case info.Mode().IsRegular():
		s.bytes = info.Size()
	default:
		s.Reader = interruptible(ctx, f)
	}
	return s, nil
}

// fileFormat is the format of a file of entities.
type fileFormat struct {
	text        transfer.Format
	compression transfer.Compression
	delimiter   byte // of CSV
}

// formatNames are the values of --format.
var formatNames = map[string]transfer.Format{
	output.CSV:    transfer.CSV,
	formatTSV:     transfer.CSV,
	output.JSONL:  transfer.JSONL,
	output.JSON:   transfer.JSON,
	formatParquet: transfer.Parquet,
}

const (
	formatTSV     = "tsv" // this and Parquet for import and export only
	formatParquet = "parquet"
	formatAzurite = "azurite" // for import only

	formatUsage = "`format` of the file: csv, tsv, jsonl, json or parquet (default: by its name, jsonl for -)"
	formatError = "must be csv, tsv, jsonl, json or parquet"

	importFormatUsage = "`format` of the file: csv, tsv, jsonl, json, parquet or azurite (default: by its name, jsonl for -)"
	importFormatError = "must be csv, tsv, jsonl, json, parquet or azurite"
)

// formatsOf returns the values of --format of a command.
func formatsOf(cmd *cobra.Command) []string {
	names := slices.Sorted(maps.Keys(formatNames))
	if cmd.Name() == "import" {
		names = append(names, formatAzurite)
	}
	return names
}

// formatOf returns the format of the file called name: that of --format, or else that of
// its name.
func formatOf(given, name string) (fileFormat, error) {
	text, c := transfer.FormatOf(name)
	f := fileFormat{text, c, transfer.DelimiterOf(name)}
	if given != "" {
		f.text, f.delimiter = formatNames[given], transfer.DelimiterOf("."+given)
	} else if name == "-" {
		f.text = transfer.JSONL
	}
	switch {
	case f.text == 0 && given != "":
		return f, usagef("--format %q: %s", given, formatError)
	case f.text == 0:
		return f, usagef("%s: its name does not end in .csv, .tsv, .jsonl, .json (with or without .gz or .zst) or .parquet; give its format with --format", name)
	case f.text == transfer.Parquet && c != transfer.Uncompressed:
		return f, usagef("%s: a Parquet file is compressed inside; leave out %s", name, filepath.Ext(name))
	}
	return f, nil
}

// reader returns a Reader of src.
func (s *source) reader(o transfer.ReadOptions) (*transfer.Reader, error) {
	switch {
	case o.Format != transfer.Parquet:
		return transfer.NewReader(s, o), nil
	case s.file == nil || s.Reader != io.Reader(s.file):
		return nil, usagef("%s: Parquet is not read from a pipe, because its columns are all over the file; give a file", s.name)
	}
	return transfer.NewParquetReader(s.file, s.bytes, o), nil
}
