package tabletest

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/tablerock-db/tablerock/internal/transfer"
)

// Import writes the entities of a file to a table, which it creates if it is missing. An
// entity that exists is replaced. The name of the file tells its format: .csv, .tsv, .jsonl,
// .ndjson or .json, each also with .gz or .zst, or .parquet, as tablerock export writes them.
// The Timestamps rise in the order of the file. Import calls t.Fatalf, with the file and the
// line, if it fails.
func (s *Server) Import(table, file string) {
	s.t.Helper()
	if err := s.importFile(table, file); err != nil {
		s.t.Fatalf("tabletest: import: %v", err)
	}
}

func (s *Server) importFile(table, name string) (err error) {
	format, compression := transfer.FormatOf(name)
	if format == 0 {
		return fmt.Errorf("%s: its name does not end in .csv, .tsv, .jsonl, .ndjson or .json (with or without .gz or .zst) or .parquet", name)
	}
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	o := transfer.ReadOptions{Name: name, Format: format, Compression: compression, Delimiter: transfer.DelimiterOf(name)}
	r := transfer.NewReader(f, o)
	if format == transfer.Parquet {
		info, err := f.Stat()
		if err != nil {
			return err
		}
		r = transfer.NewParquetReader(f, info.Size(), o)
	}
	// One transaction at a time, so that the order of the Timestamps is that of the file.
	_, err = transfer.Import(context.Background(), s.Store, table, r, transfer.ImportOptions{Mode: transfer.Replace, InFlight: 1})
	return err
}
