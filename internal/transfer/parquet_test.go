package transfer_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/race"
	"github.com/tablerock-db/tablerock/internal/transfer"
	"github.com/tablerock-db/tablerock/store"
)

// foreign returns a Parquet file of rows, written by another program.
func foreign[T any](t testing.TB, rows []T, o ...parquet.WriterOption) []byte {
	t.Helper()
	var b bytes.Buffer
	w := parquet.NewGenericWriter[T](&b, o...)
	if _, err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// readParquet lists the entities and errors of a file.
func readParquet(data []byte, o transfer.ReadOptions) (list []string) {
	o.Name = "f"
	r := transfer.NewParquetReader(bytes.NewReader(data), int64(len(data)), o)
	for range 100_000 {
		rec, err := r.Next()
		var line *transfer.LineError
		switch {
		case err == io.EOF:
			return list
		case err == nil:
			list = append(list, describe(rec.Entity))
		case errors.As(err, &line):
			list = append(list, err.Error())
		default:
			return append(list, "fatal: "+err.Error())
		}
	}
	return append(list, "too many rows")
}

// TestReadForeignParquet reads files of another writer in each codec and page version, with
// and without dictionaries, and with all types that become Edm types.
func TestReadForeignParquet(t *testing.T) {
	type row struct {
		P    string     `parquet:"PartitionKey,dict"`
		ID   int64      `parquet:"RowKey"`
		S    *string    `parquet:"S,optional,dict"`
		B    []byte     `parquet:"B"`
		Yes  bool       `parquet:"Yes"`
		I8   int8       `parquet:"I8"`
		U16  uint16     `parquet:"U16"`
		U32  uint32     `parquet:"U32"`
		U64  uint64     `parquet:"U64"`
		F    float32    `parquet:"F"`
		D    *float64   `parquet:"D,optional"`
		Day  int32      `parquet:"Day,date"`
		Ms   int64      `parquet:"Ms,timestamp(millisecond)"`
		Us   time.Time  `parquet:"Us,timestamp(microsecond)"`
		Ns   *time.Time `parquet:"Ns,optional,timestamp(nanosecond)"`
		Uuid [16]byte   `parquet:"Uuid,uuid"`
		E    string     `parquet:"E,enum"`
	}
	text, half := "x", 0.5
	at := time.Date(1969, 12, 31, 23, 59, 59, 999_999_000, time.UTC)
	rows := []row{
		{
			P: "p", ID: -7, S: &text, B: []byte{0, 1}, Yes: true, I8: -8, U16: 65535, U32: math.MaxUint32, U64: math.MaxInt64, F: 0.25, D: &half,
			Day: -1, Ms: -1, Us: at, Ns: &at, Uuid: [16]byte{0xa4, 15: 1}, E: "e",
		},
		{P: "p", ID: 8, B: []byte{}, U64: math.MaxInt64 + 1, Us: at},
		{P: "p", ID: 9, B: []byte{}, Us: at},
	}
	want := []string{
		`"p" "-7" S=Edm.String("x") B=Edm.Binary("\x00\x01") Yes=Edm.Boolean(true) I8=Edm.Int32(-8) U16=Edm.Int32(65535) U32=Edm.Int64(4294967295)` +
			` U64=Edm.Int64(9223372036854775807) F=Edm.Double(0.25) D=Edm.Double(0.5) Day=Edm.DateTime(1969-12-31T00:00:00Z)` +
			` Ms=Edm.DateTime(1969-12-31T23:59:59.999Z) Us=Edm.DateTime(1969-12-31T23:59:59.999999Z) Ns=Edm.DateTime(1969-12-31T23:59:59.999999Z)` +
			` Uuid=Edm.Guid(a4000000-0000-0000-0000-000000000001) E=Edm.String("e")`,
		`f: row 2: column "U64": 9223372036854775808 is above the largest Edm.Int64, 9223372036854775807`,
		`"p" "9" B=Edm.Binary("") Yes=Edm.Boolean(false) I8=Edm.Int32(0) U16=Edm.Int32(0) U32=Edm.Int64(0)` +
			` U64=Edm.Int64(0) F=Edm.Double(0) Day=Edm.DateTime(1970-01-01T00:00:00Z)` +
			` Ms=Edm.DateTime(1970-01-01T00:00:00Z) Us=Edm.DateTime(1969-12-31T23:59:59.999999Z)` +
			` Uuid=Edm.Guid(00000000-0000-0000-0000-000000000000) E=Edm.String("")`,
	}
	plain := parquet.DefaultEncoding(&parquet.Plain)
	for name, o := range map[string][]parquet.WriterOption{
		"plain":    {plain, parquet.DataPageVersion(1)},
		"snappy":   {plain, parquet.Compression(&parquet.Snappy)},
		"gzip":     {plain, parquet.Compression(&parquet.Gzip), parquet.DataPageVersion(1)},
		"zstd":     {plain, parquet.Compression(&parquet.Zstd), parquet.DataPageVersion(2)},
		"one page": {plain, parquet.PageBufferSize(1)},
	} {
		t.Run(name, func(t *testing.T) {
			if got := readParquet(foreign(t, rows, o...), transfer.ReadOptions{}); strings.Join(got, "\n") != strings.Join(want, "\n") {
				t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		})
	}
}

func TestReadParquetRefusals(t *testing.T) {
	type keys struct {
		P string `parquet:"PartitionKey"`
		R string `parquet:"RowKey"`
	}
	one := keys{"p", "r"}
	plain := parquet.DefaultEncoding(&parquet.Plain)
	for _, c := range []struct {
		name string
		data []byte
		want string
	}{
		{"empty", nil, "fatal: f: it is not a Parquet file, or a truncated one: it is too short"},
		{"text", []byte("PartitionKey,RowKey\n"), "fatal: f: it is not a Parquet file: it does not begin with PAR1"},
		{"encrypted", []byte("PARE0000PARE"), "fatal: f: the Parquet file is encrypted; decrypt it first"},
		{"long metadata", []byte("PAR1\xff\xff\xff\xffPAR1"), "fatal: f: the Parquet file is damaged: its metadata would have 4294967295 bytes"},
		{"nested", foreign(t, []struct {
			keys
			In struct{ A int32 }
		}{{keys: one}}), `fatal: f: column "In" is nested; a property has one value, so write its parts as columns of their own, or leave it out`},
		{"a list", foreign(t, []struct {
			keys
			L []int32
		}{{keys: one}}), `fatal: f: column "L" is a list; a property has one value, so write it as text, or leave it out`},
		{"a decimal", foreign(t, []struct {
			keys
			N int64 `parquet:"N,decimal(2:18)"`
		}{{keys: one}}), `fatal: f: column "N" has the type DECIMAL(18,2), which no Edm type holds; write it as text or as a number, or leave it out`},
		{"a time", foreign(t, []struct {
			keys
			T int32 `parquet:"T,time(millisecond)"`
		}{{keys: one}}), `fatal: f: column "T" has the type TIME(isAdjustedToUTC=true,unit=MILLIS), which no Edm type holds`},
		{"a name", foreign(t, []struct {
			keys
			A int32 `parquet:"a-b"`
		}{{keys: one}}), `fatal: f: column 3: property "a-b"`},
		{"no key", foreign(t, []struct{ RowKey string }{{}}), `fatal: f: no column "PartitionKey" (columns: "RowKey"); choose the column that has the PartitionKey`},
		{"a null key", foreign(t, []struct {
			P *string `parquet:"PartitionKey,optional"`
			R string  `parquet:"RowKey"`
		}{{}}, plain), `f: row 1: column "PartitionKey" is null, but every entity has that key`},
		{"a double as key", foreign(t, []struct {
			P float64 `parquet:"PartitionKey"`
			R string  `parquet:"RowKey"`
		}{{}}, plain), `f: row 1: column "PartitionKey": a key is text, a Guid or an integer`},
		{"nanoseconds", foreign(t, []struct {
			keys
			T int64 `parquet:"T,timestamp(nanosecond)"`
		}{{one, 150}}, plain), `f: row 1: column "T": 150 nanoseconds lose digits, because an Edm.DateTime has units of 100; round the times to microseconds`},
		{"nanoseconds as text", foreign(t, []struct {
			keys
			T string
			K string `parquet:"T@type"`
		}{{one, "2024-01-31T12:00:00.123456789Z", "Edm.DateTime"}}, plain), `f: row 1: column "T": ` + longTime},
		{"early times", foreign(t, []struct {
			keys
			T int64 `parquet:"T,timestamp(millisecond)"`
		}{{one, math.MinInt64}}, plain), `f: row 1: column "T": -9223372036854776 seconds since 1970 are no time from 1601 to 9999`},
		{
			"64 bits in 32", retyped(t, int32(7), func(e *format.SchemaElement) {
				e.LogicalType.Value = &format.IntType{BitWidth: 64}
			}), `fatal: f: the Parquet file is damaged: column "A" has integers of 64 bits of type INT32; `,
		},
		{
			"64 bits in 32, converted", retyped(t, int32(7), func(e *format.SchemaElement) {
				e.ConvertedType.Set(deprecated.Uint64)
			}), `fatal: f: the Parquet file is damaged: column "A" has integers of 64 bits of type INT32; `,
		},
		{
			"an interval", retyped(t, [12]byte{}, func(e *format.SchemaElement) {
				e.ConvertedType.Set(deprecated.Interval)
			}), `fatal: f: column "A" has the type INTERVAL, which no Edm type holds; `,
		},
		{
			"a later type", retyped(t, int32(7), func(e *format.SchemaElement) {
				e.ConvertedType.Set(99)
			}), `fatal: f: column "A" has the type 99 of ConvertedType, which no Edm type holds; `,
		},
		{
			"delta encoding", foreign(t, []keys{one}, parquet.DefaultEncodingFor(parquet.ByteArray, &parquet.DeltaByteArray)),
			`fatal: f: row group 0, column "PartitionKey": the encoding DELTA_BYTE_ARRAY is not supported`,
		},
		{
			"brotli", foreign(t, []keys{one}, parquet.Compression(&parquet.Brotli)),
			`fatal: f: row group 0: column "PartitionKey": it is compressed with BROTLI; write it with Snappy, gzip, Zstandard or none`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := strings.Join(readParquet(c.data, transfer.ReadOptions{}), "\n"); !strings.HasPrefix(got, c.want) {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// retyped returns a Parquet file of a row that has the property A, with another description of A.
func retyped[T any](t *testing.T, value T, change func(a *format.SchemaElement)) []byte {
	t.Helper()
	file := foreign(t, []struct {
		P string `parquet:"PartitionKey"`
		R string `parquet:"RowKey"`
		A T
	}{{"p", "r", value}}, parquet.DefaultEncoding(&parquet.Plain))
	end := len(file) - 8
	at := end - int(binary.LittleEndian.Uint32(file[end:]))
	meta := new(format.FileMetaData)
	if err := thrift.Unmarshal(new(thrift.CompactProtocol), file[at:end], meta); err != nil {
		t.Fatal(err)
	}
	for i := range meta.Schema {
		if e := &meta.Schema[i]; e.Name == "A" {
			e.LogicalType.Value = nil
			e.ConvertedType.Valid = false
			change(e)
		}
	}
	b, err := thrift.Marshal(new(thrift.CompactProtocol), meta)
	if err != nil {
		t.Fatal(err)
	}
	return append(binary.LittleEndian.AppendUint32(append(file[:at:at], b...), uint32(len(b))), "PAR1"...)
}

// parquetOf exports entities.
func parquetOf(t testing.TB, entities []edm.Entity) []byte {
	t.Helper()
	var b bytes.Buffer
	rows, err := transfer.ExportParquet(t.Context(), storeOf(t, entities), "Tab", store.Query{}, &b, transfer.ExportOptions{})
	if err != nil || rows != int64(len(entities)) {
		t.Fatalf("%d rows, %v; want %d", rows, err, len(entities))
	}
	return b.Bytes()
}

// TestParquetTimes exports and reads columns of up to three DateTimes, in every order: with and
// without a seventh digit, within the years of nanoseconds and outside. The unit of a column is
// that of all of them.
func TestParquetTimes(t *testing.T) {
	const near, far = edm.Ticks(1.2e17), edm.Ticks(1e16)
	kinds := []edm.Ticks{near, near + 1, far, far + 1}
	for n := range len(kinds) * len(kinds) * len(kinds) {
		var want []edm.Ticks
		var entities []edm.Entity
		for i, at := range []int{n % 4, n / 4 % 4, n / 16} {
			want = append(want, kinds[at])
			key := edm.Key{Partition: "p", Row: strconv.Itoa(i)}
			entities = append(entities, edm.Entity{Key: key, Properties: edm.Properties{{Name: "At", Value: edm.DateTime(kinds[at])}}})
		}
		var file bytes.Buffer
		if _, err := transfer.ExportParquet(t.Context(), storeOf(t, entities), "Tab", store.Query{}, &file, transfer.ExportOptions{}); err != nil {
			t.Errorf("%v: %v", want, err)
			continue
		}
		r := transfer.NewParquetReader(bytes.NewReader(file.Bytes()), int64(file.Len()), transfer.ReadOptions{})
		for i := range want {
			rec, err := r.Next()
			if err != nil {
				t.Fatalf("%v: row %d: %v", want, i, err)
			}
			if got, ok := rec.Entity.Properties.Get("At").DateTime(); !ok || got != want[i] {
				t.Errorf("%v: row %d has %v", want, i, got)
			}
		}
	}
}

// TestReadDamagedParquet changes bytes of files everywhere and cuts them: an error or other
// entities, but neither a panic nor much memory.
func TestReadDamagedParquet(t *testing.T) {
	race.SkipOneGoroutine(t)
	type row struct {
		P string  `parquet:"PartitionKey,dict"`
		R string  `parquet:"RowKey"`
		S *string `parquet:"S,optional,dict"`
		B bool    `parquet:"B"`
	}
	var rows []row
	for i := range 100 {
		s := strings.Repeat("s", i%7)
		rows = append(rows, row{"p", strings.Repeat("r", i), &s, i%2 == 0})
		if i%3 == 0 {
			rows[i].S = nil
		}
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	stride := 1
	if testing.Short() {
		stride = 8
	}
	plain := parquet.DefaultEncoding(&parquet.Plain)
	for name, whole := range map[string][]byte{
		"ours": parquetOf(t, unusualEntities(t)),
		"v1":   foreign(t, rows, plain, parquet.DataPageVersion(1)),
		"v2":   foreign(t, rows, plain, parquet.DataPageVersion(2), parquet.Compression(&parquet.Zstd)),
		"gzip": foreign(t, rows, plain, parquet.Compression(&parquet.Gzip)),
	} {
		for cut := 0; cut < len(whole); cut += 1 + len(whole)/100 {
			if got := readParquet(whole[:cut], transfer.ReadOptions{}); len(got) == 0 || !strings.HasPrefix(got[len(got)-1], "fatal: ") {
				t.Errorf("%s: the first %d of %d bytes gave no error", name, cut, len(whole))
			}
		}
		for at := 0; at < len(whole); at += stride {
			changed := bytes.Clone(whole)
			changed[at] ^= byte(1 + r.IntN(255))
			readParquet(changed, transfer.ReadOptions{})
		}
		for range 2000 / stride {
			changed := bytes.Clone(whole)
			for range 1 + r.IntN(8) {
				changed[r.IntN(len(changed))] = byte(r.Uint32())
			}
			readParquet(changed, transfer.ReadOptions{})
		}
	}
}

// TestParquetForOthers reads an export with another reader: names, order and logical types.
func TestParquetForOthers(t *testing.T) {
	data := parquetOf(t, unusualEntities(t))
	f, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	want := `message entities {
	required binary PartitionKey (STRING);
	required binary RowKey (STRING);
	required int64 Timestamp (TIMESTAMP(isAdjustedToUTC=true,unit=NANOS));
	optional boolean Boolean;
	optional int64 DateTime (INT(64,true));
	optional double Double;
	optional fixed_len_byte_array(16) Guid (UUID);
	optional int32 Int32 (INT(32,true));
	optional int64 Int64 (INT(64,true));
	optional binary Mixed (STRING);
	optional binary Mixed@type (STRING);
	optional binary Text (STRING);
	optional binary été;
}`
	if got := f.Schema().String(); got != want {
		t.Errorf("schema:\n%s\nwant:\n%s", got, want)
	}
	rows := int64(0)
	for _, g := range f.RowGroups() {
		list := g.Rows()
		buf := make([]parquet.Row, 7)
		for {
			n, err := list.ReadRows(buf)
			rows += int64(n)
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := list.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if rows != int64(len(unusualEntities(t))) || f.NumRows() != rows {
		t.Errorf("another reader finds %d rows, the metadata says %d; want %d", rows, f.NumRows(), len(unusualEntities(t)))
	}
}

// changing returns other entities in its second query.
type changing struct {
	store.Store
	then store.Store
	runs int
}

func (c *changing) Query(ctx context.Context, table string, q store.Query) store.Cursor {
	if c.runs++; c.runs > 1 {
		return c.then.Query(ctx, table, q)
	}
	return c.Store.Query(ctx, table, q)
}

func TestExportParquetOfChangingTable(t *testing.T) {
	of := func(name string, v edm.Value) store.Store {
		return storeOf(t, []edm.Entity{{Key: edm.Key{Partition: "p", Row: "r"}, Properties: edm.Properties{{Name: name, Value: v}}}})
	}
	for name, then := range map[string]store.Store{
		"another type":     of("A", edm.String("x")),
		"another property": of("B", edm.DateTime(1e17)),
		"an early time":    of("A", edm.DateTime(1)),
	} {
		src := &changing{Store: of("A", edm.DateTime(1.2e17)), then: then}
		_, err := transfer.ExportParquet(t.Context(), src, "Tab", store.Query{}, io.Discard, transfer.ExportOptions{})
		if err == nil || !strings.Contains(err.Error(), "changed") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// onePage returns a Parquet file whose columns have a page each. The page decompresses to text,
// and its header says that it has full bytes then, and has a bound of as many bytes.
func onePage(t *testing.T, text []byte, rows, full, bound int) []byte {
	t.Helper()
	z, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	page := z.EncodeAll(text, nil)
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	file.WriteString("PAR1")
	write := func(v any) (n int) {
		b, err := thrift.Marshal(new(thrift.CompactProtocol), v)
		if err != nil {
			t.Fatal(err)
		}
		file.Write(b)
		return len(b)
	}
	meta := format.FileMetaData{Version: 1, NumRows: int64(rows), Schema: []format.SchemaElement{{Name: "root"}}}
	group := format.RowGroup{NumRows: int64(rows)}
	for _, name := range []string{edm.PartitionKeyName, edm.RowKeyName, "A"} {
		e := format.SchemaElement{Name: name}
		e.Type.Set(format.ByteArray)
		e.ConvertedType.Set(0) // UTF-8
		e.RepetitionType.Set(format.Required)
		meta.Schema = append(meta.Schema, e)
		at := int64(file.Len())
		h := format.PageHeader{Type: format.DataPage, UncompressedPageSize: int32(full), CompressedPageSize: int32(len(page))}
		h.DataPageHeader.Set(format.DataPageHeader{
			NumValues: int32(rows), Encoding: format.Plain, DefinitionLevelEncoding: format.RLE, RepetitionLevelEncoding: format.RLE,
			Statistics: format.Statistics{MaxValue: make([]byte, bound)},
		})
		write(h)
		file.Write(page)
		c := format.ColumnChunk{MetaData: format.ColumnMetaData{
			Type: format.ByteArray, Codec: format.Zstd, NumValues: int64(rows), DataPageOffset: at,
			TotalCompressedSize: int64(file.Len()) - at, PathInSchema: []string{name},
		}}
		group.Columns = append(group.Columns, c)
	}
	meta.Schema[0].NumChildren.Set(int32(len(group.Columns)))
	meta.RowGroups = []format.RowGroup{group}
	n := write(meta)
	file.Write(binary.LittleEndian.AppendUint32(nil, uint32(n)))
	file.WriteString("PAR1")
	return file.Bytes()
}

// TestParquetMemory reads small files whose pages are long, with a limit and without, pages that
// are longer than their headers say, and headers that are long.
func TestParquetMemory(t *testing.T) {
	const rows, long = 10, 16 << 20
	value := append(binary.LittleEndian.AppendUint32(nil, 1), 'x')
	text := append(bytes.Repeat(value, rows), make([]byte, long)...)
	for _, c := range []struct {
		name  string
		full  int   // bytes of a page by its header
		bound int   // bytes in that header
		limit int64 // ReadOptions.PageBytes
		want  string
		most  uint64 // bytes allocated
	}{
		{"no limit", len(text), 0, 0, "", 8 * long},
		{"above the limit", len(text), 0, long, "column \"PartitionKey\": the pages of all columns have more than 16777216 bytes", long},
		{"one column within the limit", len(text), 0, 2 * long, "column \"RowKey\": the pages of all columns have more than 33554432 bytes", 2 * long},
		{"longer than its header says", rows * len(value), 0, long, "cannot decompress", long},
		{"long headers", rows * len(value), 3 << 20, 0, "", 18 << 20}, // the library copies each bound
	} {
		t.Run(c.name, func(t *testing.T) {
			text := text
			if c.bound > 0 {
				text = text[:c.full]
			}
			data := onePage(t, text, rows, c.full, c.bound)
			if len(data) > 64<<10+3*c.bound {
				t.Fatalf("the file has %d bytes", len(data))
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			list := readParquet(data, transfer.ReadOptions{PageBytes: c.limit})
			runtime.ReadMemStats(&after)
			if n := after.TotalAlloc - before.TotalAlloc; n > c.most+1<<20 {
				t.Errorf("%d bytes were allocated, at most %d are needed", n, c.most)
			}
			if last := list[len(list)-1]; c.want == "" && len(list) != rows || !strings.Contains(last, c.want) {
				t.Errorf("%d results, the last is %q, want %q", len(list), last, c.want)
			}
		})
	}
}
