package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

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
		return &source{Reader: interruptible(ctx, a.stdin), name: "standard input"}, nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("%w; %w", err, f.Close())
	}
	s := &source{Reader: f, name: name, file: f}
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

// formatOf returns the format of the file called name: that of --format, or else that of
// its extension.
func formatOf(given, name string) (transfer.Format, error) {
	ext := strings.ToLower(filepath.Ext(name))
	switch {
	case given == formatCSV:
		return transfer.CSV, nil
	case given == formatJSONL:
		return transfer.JSONL, nil
	case given != "":
		return 0, usagef("--format %q: must be csv or jsonl", given)
	case slices.Contains([]string{".csv", ".tsv"}, ext):
		return transfer.CSV, nil
	case name == "-" || slices.Contains([]string{".jsonl", ".ndjson"}, ext):
		return transfer.JSONL, nil
	}
	return 0, usagef("%s: its name does not end in .csv or .jsonl; give its format with --format csv or --format jsonl", name)
}

// splitList splits names at commas. It returns nil for none.
func splitList(s string) []string {
	var list []string
	for name := range strings.SplitSeq(s, ",") {
		if name = strings.TrimSpace(name); name != "" {
			list = append(list, name)
		}
	}
	return list
}
