package transfer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/klauspost/compress/gzip"
	"github.com/tablerock-db/tablerock/internal/race"
	"github.com/tablerock-db/tablerock/internal/transfer"
	"github.com/tablerock-db/tablerock/internal/transfer/internal/textfile"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/store/storetest"
)

// compressed returns text in a compression.
func compressed(t testing.TB, c transfer.Compression, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := transfer.NewCompressor(&b, c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// manyLines returns JSONL of n entities that compresses badly.
func manyLines(n int) string {
	r := rand.New(rand.NewPCG(1, 2))
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "{\"PartitionKey\":\"p\",\"RowKey\":\"%08d\",\"N\":\"%x\"}\n", i, r.Uint64())
	}
	return b.String()
}

// rowsOf reads all records and returns their number, and the error that ended the file.
func rowsOf(r *transfer.Reader) (rows int, err error) {
	for {
		_, err := r.Next()
		var line *transfer.LineError
		switch {
		case err == io.EOF:
			return rows, nil
		case err != nil && !errors.As(err, &line):
			return rows, err
		case err == nil:
			rows++
		}
	}
}

var bothCompressions = []transfer.Compression{transfer.Gzip, transfer.Zstandard}

func TestReadCompressed(t *testing.T) {
	text := manyLines(5000)
	for _, c := range bothCompressions {
		data := compressed(t, c, "\ufeff"+text)
		for name, r := range map[string]io.Reader{"whole": bytes.NewReader(data), "byte by byte": iotest.OneByteReader(bytes.NewReader(data))} {
			reader := transfer.NewReader(r, transfer.ReadOptions{Name: "f", Format: transfer.JSONL})
			if rows, err := rowsOf(reader); rows != 5000 || err != nil {
				t.Errorf("%v, %s: %d rows, %v; want 5000", c, name, rows, err)
			}
			if got := reader.Bytes(); got != int64(len(data)) {
				t.Errorf("%v, %s: Bytes is %d, want the %d bytes of the file", c, name, got, len(data))
			}
		}
		// Members of a gzip file and frames of Zstandard are one text, as pigz and pzstd write them.
		parts := append(compressed(t, c, text), compressed(t, c, text)...)
		if c == transfer.Zstandard {
			parts = append([]byte("\x50\x2a\x4d\x18\x04\x00\x00\x00size"), parts...)
		}
		r := transfer.NewReader(bytes.NewReader(parts), transfer.ReadOptions{Format: transfer.JSONL, Compression: c})
		if rows, err := rowsOf(r); rows != 10000 || err != nil {
			t.Errorf("%v in two parts: %d rows, %v; want 10000", c, rows, err)
		}
	}
}

// TestReadTruncatedArchive cuts an archive everywhere: no prefix looks like a whole file,
// and no row is made of a part of a line.
func TestReadTruncatedArchive(t *testing.T) {
	race.SkipOneGoroutine(t)
	text := manyLines(8000) // several blocks of Zstandard
	for _, c := range bothCompressions {
		data := compressed(t, c, text)
		most := 0
		for cut := 0; cut < len(data); cut += 1 + len(data)/40 {
			r := transfer.NewReader(bytes.NewReader(data[:cut]), transfer.ReadOptions{Name: "f", Format: transfer.JSONL, Compression: c})
			rows, err := rowsOf(r)
			if err == nil {
				t.Fatalf("%v: the first %d of %d bytes gave %d rows and no error", c, cut, len(data), rows)
			}
			if cut > 8 && !strings.Contains(err.Error(), "is truncated; copy the file again") {
				t.Fatalf("%v: the first %d of %d bytes: %v", c, cut, len(data), err)
			}
			most = max(most, rows)
		}
		if most == 0 {
			t.Errorf("%v: no prefix gave any row", c)
		}
	}
}

func TestReadDamagedArchive(t *testing.T) {
	for _, c := range bothCompressions {
		whole := compressed(t, c, manyLines(500))
		for at := 4; at < len(whole); at += 397 {
			data := bytes.Clone(whole)
			data[at] ^= 0x55
			// Any error is right, and so is none, for bytes without meaning such as a time.
			_, _ = rowsOf(transfer.NewReader(bytes.NewReader(data), transfer.ReadOptions{Format: transfer.JSONL}))
		}
		data := bytes.Clone(whole)
		data[len(data)/2] ^= 0x55
		_, err := rowsOf(transfer.NewReader(bytes.NewReader(data), transfer.ReadOptions{Name: "f", Format: transfer.JSONL}))
		if err == nil || !strings.Contains(err.Error(), "data is damaged") {
			t.Errorf("%v: a changed byte gave the error %v", c, err)
		}
	}
}

// TestImportDamagedArchive changes each of many bytes of archives: the error says that the data
// is damaged, also where a row is not valid before the reader has seen the damage.
func TestImportDamagedArchive(t *testing.T) {
	for _, c := range bothCompressions {
		whole := compressed(t, c, manyLines(2000))
		badRows := 0
		for at := 20; at < len(whole); at += 1009 {
			data := bytes.Clone(whole)
			data[at] ^= 0x55
			o := transfer.ReadOptions{Name: "f", Format: transfer.JSONL}
			line := (*transfer.LineError)(nil)
			for r := transfer.NewReader(bytes.NewReader(data), o); ; {
				_, err := r.Next()
				if errors.As(err, &line) {
					badRows++
				}
				if err != nil {
					break
				}
			}
			for _, skip := range []bool{false, true} {
				_, err := transfer.Import(t.Context(), storetest.NewMap(nil), "Tab", transfer.NewReader(bytes.NewReader(data), o), transfer.ImportOptions{SkipBad: skip})
				if damage := (*transfer.DamageError)(nil); !errors.As(err, &damage) || errors.As(err, &line) || !errors.Is(err, store.ErrInvalid) {
					t.Fatalf("%v, byte %d of %d, skip %v: %v, want that the data is damaged", c, at, len(data), skip, err)
				}
			}
		}
		if badRows == 0 && c == transfer.Gzip { // a block of Zstandard is not read if its length is wrong
			t.Errorf("%v: no damage looked like a bad row", c)
		}
	}
}

// TestImportBadRowOfArchive imports archives with a bad row: a whole one, damaged ones, and one
// without an end until ctx ends.
func TestImportBadRowOfArchive(t *testing.T) {
	text := "{\"PartitionKey\":\"p\",\"RowKey\":\"1\"}\n{}\n"
	load := func(ctx context.Context, r io.Reader) error {
		rows := transfer.NewReader(r, transfer.ReadOptions{Name: "f", Format: transfer.JSONL})
		_, err := transfer.Import(ctx, storetest.NewMap(nil), "Tab", rows, transfer.ImportOptions{})
		return err
	}
	for _, c := range bothCompressions {
		data := compressed(t, c, text+manyLines(20_000))
		line := (*transfer.LineError)(nil)
		if err := load(t.Context(), bytes.NewReader(data)); !errors.As(err, &line) || line.Line != 2 {
			t.Errorf("%v: %v, want the error of line 2", c, err)
		}
		if err := load(t.Context(), bytes.NewReader(data[:len(data)/2])); err == nil || !strings.HasPrefix(err.Error(), "f: the "+c.String()+" data is truncated") {
			t.Errorf("%v: %v, want that it is truncated", c, err)
		}
		broken := errors.New("disk on fire")
		if err := load(t.Context(), io.MultiReader(bytes.NewReader(data[:len(data)/2]), iotest.ErrReader(broken))); !errors.Is(err, broken) {
			t.Errorf("%v: %v, want the error of the file", c, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		again, reads := compressed(t, c, manyLines(1000)), 0
		endless := readerFunc(func(p []byte) (int, error) {
			if reads++; reads == 50 {
				cancel()
			}
			n := copy(p, data)
			if data = data[n:]; len(data) == 0 {
				data = again
			}
			return n, nil
		})
		if err := load(ctx, endless); err != context.Canceled {
			t.Errorf("%v: %v, want %v", c, err, context.Canceled)
		}
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func TestReadCompressedRefusals(t *testing.T) {
	for _, c := range bothCompressions {
		for name, in := range map[string]struct {
			data  []byte
			named transfer.Compression
			want  string
		}{
			"not compressed":   {[]byte("{}\n"), c, "the file is not in the format " + c.String()},
			"empty":            {nil, c, "the file is empty; a " + c.String() + " file "},
			"compressed twice": {compressed(t, transfer.Gzip, string(compressed(t, c, "{}"))), transfer.Uncompressed, "the file is compressed twice"},
			"a large window":   {[]byte("\x28\xb5\x2f\xfd\x00\x90\x01\x00\x00"), transfer.Uncompressed, "has a window of more than 128 MiB, as by zstd --long=28"},
		} {
			_, err := rowsOf(transfer.NewReader(bytes.NewReader(in.data), transfer.ReadOptions{Name: "f", Format: transfer.JSONL, Compression: in.named}))
			if err == nil || !strings.Contains(err.Error(), in.want) {
				t.Errorf("%v, %s: %v, want %q", c, name, err, in.want)
			}
		}
	}
	// An error of the file is not called damage.
	broken := errors.New("disk on fire")
	r := io.MultiReader(bytes.NewReader(compressed(t, transfer.Gzip, manyLines(10))[:40]), iotest.ErrReader(broken))
	if _, err := rowsOf(transfer.NewReader(r, transfer.ReadOptions{Format: transfer.JSONL})); !errors.Is(err, broken) {
		t.Errorf("error %v, want that of the file", err)
	}
}

// TestReadCompressedBomb reads a small archive of a huge line.
func TestReadCompressedBomb(t *testing.T) {
	race.SkipOneGoroutine(t)
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	zeros := make([]byte, 1<<20)
	for range 200 {
		if _, err := w.Write(zeros); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r := transfer.NewReader(&b, transfer.ReadOptions{Name: "f", Format: transfer.JSONL})
	if _, err := r.Next(); err == nil || !strings.Contains(err.Error(), "the record is longer than") {
		t.Errorf("error %v", err)
	}
}

func TestReadJSONArray(t *testing.T) {
	const a, b = `{"PartitionKey":"p","RowKey":"1","T":"],}\"{["}`, `{"PartitionKey":"p","RowKey":"2"}`
	for _, c := range []struct {
		name, in string
		want     []string
	}{
		{"empty", " [\n ]\n", nil},
		{"two", "[" + a + "," + b + "]", []string{`1-1 "p" "1" T=Edm.String("],}\"{[")`, `1-1 "p" "2"`}},
		{"with lines", "\n[\n" + a + "\n,\n  {\n\"PartitionKey\":\"p\",\n\"RowKey\":\"2\"}\n]\n", []string{`3-3 "p" "1" T=Edm.String("],}\"{[")`, `5-7 "p" "2"`}},
		{
			"a bad entity", "[\n{\"PartitionKey\":\"p\"},\n5,\n" + b + "]",
			[]string{`f:2: RowKey is missing; every entity has one`, `f:3: offset 0: found "5", want an object`, `4-4 "p" "2"`},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, f := range []transfer.Format{transfer.JSON, transfer.JSONL} {
				got := readAll(t, c.in, transfer.ReadOptions{Format: f})
				if strings.Join(got, "\n") != strings.Join(c.want, "\n") {
					t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
				}
			}
		})
	}
}

// TestReadJSONArrayTooLong reads an entity above the limit between others.
func TestReadJSONArrayTooLong(t *testing.T) {
	huge := `{"PartitionKey":"p","RowKey":"2","T":"` + strings.Repeat("x", textfile.MaxRecordBytes) + `\n"}`
	got := readAll(t, `[{"PartitionKey":"p","RowKey":"1"},`+huge+",\n"+`{"PartitionKey":"p","RowKey":"3"}]`, transfer.ReadOptions{Format: transfer.JSON})
	want := []string{`1-1 "p" "1"`, `f:1: the record is longer than 16777216 bytes`, `2-2 "p" "3"`}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
