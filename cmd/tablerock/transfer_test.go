package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/odata"
	"github.com/tablerock-db/tablerock/internal/transfer"
)

// randomText returns a text of any characters but those that keys cannot have, if key is set.
func randomText(r *rand.Rand, key bool) string {
	characters := []rune("aZ09 ,;'\"@.[]{}:_-+*!é\u00a0表\U0001F600\ufeff\ufffd")
	if !key {
		characters = append(characters, '\n', '\r', '\t', '\x00', '\x01', '\\', '/', '#', '?')
	}
	s := make([]rune, r.IntN(12))
	for i := range s {
		s[i] = characters[r.IntN(len(characters))]
	}
	return string(s)
}

// randomValue returns a value of any type, often at the limits of the type.
func randomValue(r *rand.Rand, t edm.Type) edm.Value {
	switch t {
	case edm.TypeBinary:
		b := make([]byte, r.IntN(20))
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		return edm.Binary(b)
	case edm.TypeBoolean:
		return edm.Boolean(r.IntN(2) == 0)
	case edm.TypeInt32:
		return edm.Int32([]int32{0, -1, math.MinInt32, math.MaxInt32, int32(r.Uint32())}[r.IntN(5)])
	case edm.TypeInt64:
		return edm.Int64([]int64{0, -1, math.MinInt64, math.MaxInt64, 1<<53 + 1, int64(r.Uint64())}[r.IntN(6)])
	case edm.TypeDouble:
		list := []float64{0, math.Copysign(0, -1), 5, 0.1, math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64, math.SmallestNonzeroFloat64, r.NormFloat64()}
		return edm.Double(list[r.IntN(len(list))])
	case edm.TypeDateTime:
		const year = 365 * 24 * 3600 * 10_000_000
		list := []edm.Ticks{edm.MinTicks, edm.MaxTicks, 420*year + edm.Ticks(r.Int64N(year)), (420*year + edm.Ticks(r.Int64N(year))) / 10_000_000 * 10_000_000}
		return edm.DateTime(list[r.IntN(len(list))])
	case edm.TypeGuid:
		return edm.GuidWords(r.Uint64(), r.Uint64())
	}
	return edm.String(randomText(r, false))
}

// randomEntities returns entities with distinct keys in the order of a table. Properties
// have one type in most columns and any type in some.
func randomEntities(r *rand.Rand, n int) []edm.Entity {
	columns := 1 + r.IntN(20)
	types := make([]edm.Type, columns)
	for i := range types {
		types[i] = edm.Type(r.IntN(int(edm.TypeGuid) + 1)) // 0 is any
	}
	seen := map[edm.Key]bool{}
	var all []edm.Entity
	for len(all) < n {
		e := edm.Entity{Key: edm.Key{Partition: []string{"", "p", randomText(r, true)}[r.IntN(3)], Row: randomText(r, true) + strconv.Itoa(len(all))}}
		if seen[e.Key] {
			continue
		}
		seen[e.Key] = true
		for i, t := range types {
			if r.IntN(3) == 0 {
				continue
			}
			if t == 0 {
				t = edm.Type(1 + r.IntN(int(edm.TypeGuid)))
			}
			e.Properties = append(e.Properties, edm.Property{Name: fmt.Sprintf("C%d_é", i), Value: randomValue(r, t)})
		}
		all = append(all, e)
	}
	return all
}

// described lists entities with the types and the values of their properties, sorted.
func described(t *testing.T, rows *transfer.Reader) []string {
	t.Helper()
	var list []string
	for {
		rec, err := rows.Next()
		if err == io.EOF {
			slices.Sort(list)
			return list
		}
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		fmt.Fprintf(&b, "%q %q", rec.Entity.Key.Partition, rec.Entity.Key.Row)
		slices.SortFunc(rec.Entity.Properties, func(a, b edm.Property) int { return strings.Compare(a.Name, b.Name) })
		for _, p := range rec.Entity.Properties {
			fmt.Fprintf(&b, " %s=%v %x %x", p.Name, p.Value.Type(), p.Value.Word(), p.Value.Bytes())
		}
		list = append(list, b.String())
	}
}

// TestTransferRoundTrips exports random entities in each format and imports the file
// elsewhere: values and types are the same, bit by bit.
func TestTransferRoundTrips(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("TABLEROCK_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("repeat: TABLEROCK_SEED=%d go test ./cmd/tablerock -run TestTransferRoundTrips", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for round := range 3 {
		dir := t.TempDir()
		entities := randomEntities(r, 1+r.IntN(700))
		var lines []byte
		for i := range entities {
			lines = append(odata.AppendEntity(lines, entities[i].View(), odata.Options{Level: odata.Minimal, OmitETag: true}), '\n')
		}
		first := filepath.Join(dir, "first.jsonl")
		if err := os.WriteFile(first, lines, 0o600); err != nil {
			t.Fatal(err)
		}
		want := described(t, transfer.NewReader(bytes.NewReader(lines), transfer.ReadOptions{Format: transfer.JSONL}))
		command := func(args ...string) {
			t.Helper()
			var stderr bytes.Buffer
			args = append(args, "-q")
			if code := run(context.Background(), args, strings.NewReader(""), io.Discard, &stderr); code != exitOK {
				t.Fatalf("tablerock %s: exit %d\n%s", strings.Join(args, " "), code, stderr.String())
			}
		}
		data := filepath.Join(dir, "data")
		command("import", "Tab", first, "--data", data)
		for _, end := range []string{"csv", "jsonl", "json", "parquet", "csv.gz", "json.zst"} {
			file, again := filepath.Join(dir, "file."+end), filepath.Join(dir, "again.jsonl")
			other := filepath.Join(dir, "data."+end)
			command("export", "Tab", file, "--data", data)
			command("import", "Tab", file, "--data", other)
			command("export", "Tab", again, "--data", other)
			text, err := os.ReadFile(again)
			if err != nil {
				t.Fatal(err)
			}
			got := described(t, transfer.NewReader(bytes.NewReader(text), transfer.ReadOptions{Format: transfer.JSONL}))
			if len(got) != len(want) {
				t.Errorf("round %d, %s: %d entities, want %d", round, end, len(got), len(want))
			}
			for i := range min(len(got), len(want)) {
				if got[i] != want[i] {
					t.Fatalf("round %d, %s:\ngot  %s\nwant %s", round, end, got[i], want[i])
				}
			}
		}
	}
}
