package main

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/explorer"
	"github.com/tablerock-db/tablerock/internal/transfer"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/store/storetest"
)

// exported returns the same table as files of all formats, by the ends of their names. The bytes
// are always the same, Timestamps included, so that a damage always has the same effect.
func exported(t *testing.T, ends ...string) map[string][]byte {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	s := storetest.NewMap(nil)
	if err := s.CreateTable(t.Context(), "Rows"); err != nil {
		t.Fatal(err)
	}
	for i := range 400 {
		e := edm.Entity{Key: edm.Key{Partition: "p", Row: fmt.Sprintf("%04d", i)}, Properties: edm.Properties{
			{Name: "Count", Value: edm.Int32(int32(i))}, {Name: "Text", Value: edm.String(fmt.Sprintf("%x", r.Uint64()))},
		}}
		if _, err := s.Apply(t.Context(), "Rows", store.Insert(e)); err != nil {
			t.Fatal(err)
		}
	}
	files := map[string][]byte{}
	for _, end := range ends {
		format, err := formatOf("", "whole."+end)
		if err != nil {
			t.Fatal(err)
		}
		var file bytes.Buffer
		_, err = writeCompressed(&file, format.compression, func(w io.Writer) (int64, error) {
			return exporters[format.text](t.Context(), s, "Rows", store.Query{}, w, transfer.ExportOptions{Delimiter: format.delimiter})
		})
		if err != nil {
			t.Fatal(err)
		}
		files[end] = file.Bytes()
	}
	return files
}

// explorePages returns the pages over a new directory with a table Pages.
func explorePages(t *testing.T, data string) *pages {
	t.Helper()
	if code := run(t.Context(), []string{"table", "create", "Pages", "--data", data, "-q"}, nil, io.Discard, os.Stderr); code != exitOK {
		t.Fatalf("table create exits with %d", code)
	}
	return explore(t, "--data", data)
}

// damages are faults of a file by name, with what they make of a whole file and of one of
// another format.
var damages = map[string]func(whole, other []byte) []byte{
	"empty":          func(_, _ []byte) []byte { return nil },
	"one byte":       func(whole, _ []byte) []byte { return whole[:1] },
	"its start":      func(whole, _ []byte) []byte { return whole[:15] },
	"its first half": func(whole, _ []byte) []byte { return whole[:len(whole)/2] },
	"without an end": func(whole, _ []byte) []byte { return whole[:len(whole)-3] },
	"another format": func(_, other []byte) []byte { return other },
	"a picture": func(_, _ []byte) []byte {
		return append([]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\x0dIHDR"), make([]byte, 100)...)
	},
	"a changed byte": func(whole, _ []byte) []byte {
		whole = bytes.Clone(whole)
		whole[len(whole)/2] ^= 0x55
		return whole
	},
}

// TestDamagedFiles imports files with faults by the command and by the pages: both say what is
// wrong with the file, in the same words, and neither calls it an error of the program.
func TestDamagedFiles(t *testing.T) {
	const (
		gzipCut, zstdCut = `the gzip data is truncated; copy the file again`, `the Zstandard data is truncated; copy the file again`
		jsonCut          = `the JSON text ends before its end: the file is truncated; copy it again`
		noHeader         = `header: no column "PartitionKey" \(columns: `
		parquetCut       = `the Parquet file is truncated: it does not end with PAR1; copy it again`
	)
	anything := `.*` // without a checksum, a change can make another valid value
	dir := t.TempDir()
	// The wanted messages; "" is a success.
	cases := map[string]map[string]string{
		"csv": {
			"empty": `the file is empty; the first line must name the columns`, "one byte": noHeader, "its start": `header: no column "RowKey" \(columns: `,
			"its first half": anything, "without an end": "", "another format": `the file is in the format Parquet; rename it, or choose that format`,
			"a picture": `header: column 1: property "\\x89PNG": `, "a changed byte": anything,
		},
		"jsonl": {
			"empty": "", "one byte": `bad\.jsonl:1: `, "its start": `bad\.jsonl:1: `, "its first half": `bad\.jsonl:[0-9]+: `, "without an end": `bad\.jsonl:400: `,
			"another format": `the file is in the format Parquet; rename it, or choose that format`, "a picture": `bad\.jsonl:1: `, "a changed byte": anything,
		},
		"json": {
			"empty": "", "one byte": jsonCut, "its start": jsonCut, "its first half": jsonCut, "without an end": jsonCut,
			"another format": `the file is in the format Parquet; rename it, or choose that format`, "a picture": `bad\.json:1: `, "a changed byte": anything,
		},
		"csv.gz": {
			"empty": `the file is empty; a gzip file \(\.gz\) has a header at least`, "one byte": `the file is not in the format gzip \(\.gz\)`, "its start": gzipCut,
			"its first half": gzipCut, "without an end": gzipCut, "another format": `the file is not in the format gzip \(\.gz\); rename it, or copy it again`,
			"a picture":      `the file is not in the format gzip \(\.gz\)`,
			"a changed byte": `the gzip data is damaged: .*; copy the file again|bad\.csv\.gz:[0-9]+: `, // its checksum is at the end
		},
		"jsonl.zst": {
			"empty": `the file is empty; a Zstandard file \(\.zst\) has a header at least`, "one byte": `the file is not in the format Zstandard \(\.zst\)`,
			"its start": zstdCut, "its first half": zstdCut, "without an end": zstdCut, "another format": `the file is not in the format Zstandard \(\.zst\)`,
			"a picture": `the file is not in the format Zstandard \(\.zst\)`, "a changed byte": `the Zstandard data is damaged: .*; copy the file again`,
		},
		"parquet": {
			"empty": `it is not a Parquet file, or a truncated one: it is too short`, "one byte": `it is too short`, "its start": parquetCut,
			"its first half": parquetCut, "without an end": parquetCut, "another format": `it is not a Parquet file: it does not begin with PAR1`,
			"a picture": `it is not a Parquet file: it does not begin with PAR1`, "a changed byte": `the Parquet file is damaged: .*; write or copy it again`,
		},
	}
	whole := exported(t, "csv", "jsonl", "json", "csv.gz", "jsonl.zst", "parquet")
	p := explorePages(t, filepath.Join(dir, "pages"))
	for end, wants := range cases {
		for name, change := range damages {
			t.Run(end+" of "+name, func(t *testing.T) {
				other := whole["parquet"]
				if strings.HasSuffix(end, ".gz") || end == "jsonl.zst" || end == "parquet" {
					other = whole["csv"]
				}
				want, bad := wants[name], change(whole[end], other)
				file := filepath.Join(t.TempDir(), "bad."+end)
				if err := os.WriteFile(file, bad, 0o600); err != nil {
					t.Fatal(err)
				}
				var stderr bytes.Buffer
				code := run(t.Context(), []string{"import", "Bad", file, "--data", filepath.Join(dir, "command"), "-q"}, nil, io.Discard, &stderr)
				message := strings.TrimSpace(stderr.String())
				if code != exitOK && code != exitFailure || (code == exitOK) != (message == "") || want != anything && (code == exitOK) != (want == "") {
					t.Fatalf("the command exits with %d: %s; want %q", code, message, want)
				}
				if !regexp.MustCompile(want).MatchString(message) {
					t.Errorf("the command says %q, want %q", message, want)
				}
				job := p.importFile("devstoreaccount1", "Pages", "bad."+end, bad)
				if code == exitOK {
					if job.State != "done" {
						t.Errorf("the pages end with %+v %+v", job, job.Failure)
					}
					return
				}
				if job.State != "failed" || job.Failure == nil {
					t.Fatalf("the pages end with %+v %+v", job, job.Failure)
				}
				checkFailure(t, job.Failure)
				if !strings.Contains(message, strings.TrimPrefix(job.Failure.Message, "bad."+end)) {
					t.Errorf("the pages say %q, the command %q", job.Failure.Message, message)
				}
			})
		}
	}
}

// TestChangedParquet imports a Parquet file with a changed byte, at many offsets, by the pages.
func TestChangedParquet(t *testing.T) {
	whole := exported(t, "parquet")["parquet"]
	p := explorePages(t, t.TempDir())
	refused := 0
	for at := 0; at < len(whole); at += 1 + len(whole)/90 {
		bad := bytes.Clone(whole)
		bad[at] ^= 0x55
		if job := p.importFile("devstoreaccount1", "Pages", "bad.parquet", bad); job.Failure != nil {
			checkFailure(t, job.Failure)
			refused++
		}
	}
	if refused < 60 {
		t.Errorf("%d of 90 files are refused", refused)
	}
}

// checkFailure checks that a failure of the pages is one of the file, in words that fit a page.
func checkFailure(t *testing.T, f *explorer.Failure) {
	t.Helper()
	if f.Code != "InvalidFile" && f.Code != "InvalidRow" {
		t.Errorf("the code is %s: %s", f.Code, f.Message)
	}
	if strings.Contains(f.Message, "--") {
		t.Errorf("the page shows a flag: %s", f.Message)
	}
}
