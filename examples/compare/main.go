// Command compare compares the entities in two files, CSV or JSONL: keys, names,
// types, and the bits of values. It ignores Timestamps, the order of lines and the
// order of properties. It exits with status 1 if the files differ.
package main

import (
	"bufio"
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
	var o transfer.ReadOptions
	flag.Usage = func() {
		fmt.Fprint(flag.CommandLine.Output(), usage)
		flag.PrintDefaults()
	}
	flag.StringVar(&o.PartitionKey, "partition-key", "", "column that is the PartitionKey")
	flag.StringVar(&o.RowKey, "row-key", "", "column that is the RowKey")
	delimiter := flag.String("delimiter", ",", "character between the cells of CSV")
	header := flag.String("header", "", "columns of a CSV file whose first line is data")
	format := flag.String("format", "", "csv or jsonl (default: by the file's name)")
	flag.Parse()
	if flag.NArg() != 2 || len(*delimiter) != 1 {
		flag.Usage()
		os.Exit(2)
	}
	o.Delimiter = (*delimiter)[0]
	if *header != "" {
		o.Header = strings.Split(*header, ",")
	}
	o.Name, o.Format = flag.Arg(0), formatOf(flag.Arg(0), *format)
	same, err := compare(os.Stdout, o, transfer.ReadOptions{Name: flag.Arg(1), Format: formatOf(flag.Arg(1), "")})
	if err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
	if !same {
		os.Exit(1)
	}
}

func formatOf(name, format string) transfer.Format {
	if format == "csv" || format == "" && !strings.HasSuffix(name, ".jsonl") {
		return transfer.CSV
	}
	return transfer.JSONL
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
