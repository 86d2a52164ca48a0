// Command compare compares the entities in two files, CSV, JSONL, JSON or Parquet: keys, names,
// types, and the bits of values. It ignores Timestamps, the order of lines and the
// order of properties. It exits with status 1 if the files differ.
package main

import (
	"bufio"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/transfer"
)

const usage = `usage: compare [flags] FILE FILE

The flags describe the first file, like those of tablerock import. The second file
has the form of tablerock export.
`

func main() {
	flag.Usage = func() {
		fmt.Fprint(flag.CommandLine.Output(), usage)
		flag.PrintDefaults()
	}
	partitionKey := flag.String("partition-key", "", "column that is the PartitionKey")
	rowKey := flag.String("row-key", "", "column that is the RowKey")
	delimiter := flag.String("delimiter", "", "character between the cells of CSV (default: by the file's name)")
	header := flag.String("header", "", "columns of a CSV file whose first line is data")
	format := flag.String("format", "", "csv, jsonl, json or parquet (default: by the file's name, csv if it tells none)")
	flag.Parse()
	if flag.NArg() != 2 || len(*delimiter) > 1 || *format != "" && formats[*format] == 0 {
		flag.Usage()
		os.Exit(2)
	}
	first, second := optionsOf(flag.Arg(0)), optionsOf(flag.Arg(1))
	first.PartitionKey, first.RowKey = *partitionKey, *rowKey
	if *delimiter != "" {
		first.Delimiter = (*delimiter)[0]
	}
	if *header != "" {
		first.Header = strings.Split(*header, ",")
	}
	if *format != "" {
		first.Format = formats[*format]
	}
	same, err := compare(os.Stdout, first, second)
	if err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
	if !same {
		os.Exit(1)
	}
}

// formats are the values of -format.
var formats = map[string]transfer.Format{"csv": transfer.CSV, "jsonl": transfer.JSONL, "json": transfer.JSON, "parquet": transfer.Parquet}

// optionsOf returns the options of the file called name.
func optionsOf(name string) transfer.ReadOptions {
	format, _ := transfer.FormatOf(name)
	return transfer.ReadOptions{Name: name, Format: cmp.Or(format, transfer.CSV), Delimiter: transfer.DelimiterOf(name)}
}

// digest is a hash of the properties of an entity.
type digest [sha256.Size]byte

// maxShown limits the differences that are printed.
const maxShown = 10

// compare prints the differences between the second file and the first.
func compare(out io.Writer, first, second transfer.ReadOptions) (same bool, err error) {
	entities := map[edm.Key]digest{}
	var types [edm.TypeGuid + 1]int
	lines := 0
	err = each(first, func(e *edm.Entity) {
		lines++
		entities[e.Key] = digestOf(e) // the last line of a key wins, as in an import
	})
	if err != nil {
		return false, err
	}
	total, differences := len(entities), 0
	show := func(format string, args ...any) {
		if differences++; differences <= maxShown {
			fmt.Fprintf(out, format+"\n", args...)
		}
	}
	err = each(second, func(e *edm.Entity) {
		want, ok := entities[e.Key]
		switch {
		case !ok:
			show("%q: not in %s, or twice in %s", e.Key, first.Name, second.Name)
		case want != digestOf(e):
			show("%q: differs; %s has %v", e.Key, second.Name, e.Properties)
		}
		for _, p := range e.Properties {
			types[p.Value.Type()]++
		}
		delete(entities, e.Key)
	})
	if err != nil {
		return false, err
	}
	if len(entities) > 0 {
		show("%d entities of %s are not in %s", len(entities), first.Name, second.Name)
	}
	if differences > 0 {
		fmt.Fprintf(out, "%d differences\n", differences)
		return false, nil
	}
	fmt.Fprintf(out, "equal: %d entities of %d lines, values by type:", total, lines)
	for t := edm.TypeString; t <= edm.TypeGuid; t++ {
		fmt.Fprintf(out, " %s %d", strings.TrimPrefix(t.String(), "Edm."), types[t])
	}
	fmt.Fprintln(out)
	return true, nil
}

// each calls use for each entity of a file.
func each(o transfer.ReadOptions, use func(e *edm.Entity)) error {
	f, err := os.Open(o.Name)
	if err != nil {
		return err
	}
	r := transfer.NewReader(bufio.NewReaderSize(f, 1<<20), o)
	if o.Format == transfer.Parquet {
		info, err := f.Stat()
		if err != nil {
			return errors.Join(err, f.Close())
		}
		r = transfer.NewParquetReader(f, info.Size(), o)
	}
	for {
		rec, err := r.Next()
		if err == io.EOF {
			return f.Close()
		}
		if err != nil {
			return errors.Join(err, f.Close())
		}
		use(&rec.Entity)
	}
}

// digestOf hashes names, types and values in the order of the names.
func digestOf(e *edm.Entity) digest {
	props := slices.Clone(e.Properties)
	slices.SortFunc(props, func(a, b edm.Property) int { return strings.Compare(a.Name, b.Name) })
	var b []byte
	text := func(p []byte) {
		b = binary.LittleEndian.AppendUint64(b, uint64(len(p)))
		b = append(b, p...)
	}
	for _, p := range props {
		text([]byte(p.Name))
		b = append(b, byte(p.Value.Type()))
		switch p.Value.Type() {
		case edm.TypeString, edm.TypeBinary:
			text(p.Value.Bytes())
		case edm.TypeGuid:
			g, _ := p.Value.Guid()
			text(g[:])
		default:
			b = binary.LittleEndian.AppendUint64(b, p.Value.Word())
		}
	}
	return sha256.Sum256(b)
}
