package transfer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/transfer"
	"github.com/tablerock-db/tablerock/internal/transfer/internal/textfile"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// recorder is a store that records its batches.
type recorder struct {
	store.Store
	mu      sync.Mutex
	batches []string
	busy    map[string]bool // partitions with a batch in progress
	overlap []string
	fail    func(ops []store.Op) error
}

func newRecorder() *recorder { return &recorder{Store: storetest.NewMap(nil), busy: map[string]bool{}} }

func (r *recorder) Apply(ctx context.Context, table string, ops ...store.Op) ([]store.Result, error) {
	partition := ops[0].Entity.Key.Partition
	r.mu.Lock()
	if r.busy[partition] {
		r.overlap = append(r.overlap, partition)
	}
	r.busy[partition] = true
	if r.fail != nil {
		if err := r.fail(ops); err != nil {
			r.busy[partition] = false
			r.mu.Unlock()
			return nil, err
		}
	}
	r.mu.Unlock()
	result, err := r.Store.Apply(ctx, table, ops...)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.busy[partition] = false
	if err == nil {
		r.batches = append(r.batches, fmt.Sprintf("%s %s-%s", partition, ops[0].Entity.Key.Row, ops[len(ops)-1].Entity.Key.Row))
	}
	return result, err
}

// importResult is the result of an import.
type importResult struct {
	acks     []string
	skipped  []string
	progress transfer.Progress
	err      error
}

func importText(ctx context.Context, st store.Store, text string, o transfer.ImportOptions) importResult {
	var got importResult
	o.Ack = func(first, last int64) error {
		got.acks = append(got.acks, fmt.Sprintf("%d-%d", first, last))
		return nil
	}
	o.Bad = func(e *transfer.LineError) { got.skipped = append(got.skipped, e.Error()) }
	r := transfer.NewReader(strings.NewReader(text), transfer.ReadOptions{Name: "f", Format: transfer.CSV})
	got.progress, got.err = transfer.Import(ctx, st, "Tab", r, o)
	slices.Sort(got.acks)
	return got
}

const head = "PartitionKey,RowKey,n@Edm.Int32\n"

// rows returns one row for each key such as a/1. Its n is the index, from 1.
func rows(keys ...string) string {
	var b strings.Builder
	b.WriteString(head)
	for i, k := range keys {
		fmt.Fprintf(&b, "%s,%d\n", strings.ReplaceAll(k, "/", ","), i+1)
	}
	return b.String()
}

func contents(t *testing.T, st store.Store) []string {
	t.Helper()
	var got []string
	for e, err := range store.Entities(st.Query(t.Context(), "Tab", store.Query{})) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%s/%s=%v", e.Key.Partition, e.Key.Row, e.Properties.Get("n")))
	}
	return got
}

func TestImportTransactions(t *testing.T) {
	many := []string{}
	for i := range 250 {
		many = append(many, fmt.Sprintf("p/%03d", i))
	}
	big := strings.Builder{}
	big.WriteString("PartitionKey,RowKey,a,b,c,d,e,f,g,h,i,j\n")
	for i := range 8 {
		fmt.Fprintf(&big, "p,%d%s\n", i, strings.Repeat(","+strings.Repeat("x", 32000), 10))
	}
	for _, c := range []struct {
		name string
		in   string
		want []string // acknowledged lines, sorted as text
	}{
		{"nothing", rows(), nil},
		{"one partition", rows("a/1", "a/2", "a/3"), []string{"2-4"}},
		{"descending rows", rows("a/3", "a/2", "a/1"), []string{"2-4"}},
		{"runs", rows("a/1", "a/2", "b/1", "a/3", "a/4"), []string{"2-3", "4-4", "5-6"}},
		{"a key twice", rows("a/1", "a/2", "a/1", "a/2"), []string{"2-3", "4-5"}},
		{"a key twice, unordered", rows("a/3", "a/1", "a/4", "a/3"), []string{"2-4", "5-5"}},
		{"a hundred", rows(many...), []string{"102-201", "2-101", "202-251"}},
		{"four megabytes", big.String(), []string{"2-7", "8-9"}},
		{"rows of several lines", "PartitionKey,RowKey,s\n\np,1,\"a\nb\"\n\np,2,\"c\n\"\nq,1,x\n", []string{"3-7", "8-8"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRecorder()
			got := importText(t.Context(), r, c.in, transfer.ImportOptions{})
			if got.err != nil {
				t.Fatal(got.err)
			}
			if d := cmp.Diff(c.want, got.acks); d != "" {
				t.Errorf("%.200q is acknowledged (-want +got):\n%s", c.in, d)
			}
			if int(got.progress.Transactions) != len(c.want) || got.progress.Bytes != int64(len(c.in)) {
				t.Errorf("progress is %+v, want %d transactions and %d bytes", got.progress, len(c.want), len(c.in))
			}
			if n := len(contents(t, r)); int64(n) > got.progress.Rows {
				t.Errorf("%d entities of %d rows", n, got.progress.Rows)
			}
		})
	}
}

// TestImportOrder writes keys many times over many transactions: the last row
// wins, and no two transactions of a partition overlap.
func TestImportOrder(t *testing.T) {
	var keys []string
	want := map[string]int{}
	for i := range 5000 {
		k := fmt.Sprintf("%c/%d", 'a'+i%7, i%3)
		keys = append(keys, k)
		want[k] = i + 1
	}
	r := newRecorder()
	if got := importText(t.Context(), r, rows(keys...), transfer.ImportOptions{}); got.err != nil || got.progress.Rows != 5000 {
		t.Fatalf("%+v, %v", got.progress, got.err)
	}
	for _, line := range contents(t, r) {
		key, n, _ := strings.Cut(line, "=")
		if n != fmt.Sprint(want[key]) {
			t.Errorf("%s has %s, want %d", key, n, want[key])
		}
	}
	if len(r.overlap) > 0 {
		t.Errorf("transactions of the partitions %q overlap", r.overlap)
	}
}

func TestImportModes(t *testing.T) {
	for _, c := range []struct {
		mode transfer.Mode
		want []string
		err  string
	}{
		{transfer.Replace, []string{"a=2"}, ""},
		{transfer.Merge, []string{"a=2", "b=1"}, ""},
		{transfer.Insert, []string{"a=1", "b=1"}, `f:2: entity already exists (PartitionKey "p", RowKey "r")`},
	} {
		t.Run(fmt.Sprint(c.mode), func(t *testing.T) {
			st := storetest.NewMap(nil)
			if got := importText(t.Context(), st, "PartitionKey,RowKey,a,b\np,r,1,1\n", transfer.ImportOptions{}); got.err != nil {
				t.Fatal(got.err)
			}
			got := importText(t.Context(), st, "PartitionKey,RowKey,a,b\np,r,2,\n", transfer.ImportOptions{Mode: c.mode})
			if fmt.Sprint(got.err) != c.err && (got.err != nil || c.err != "") {
				t.Errorf("error %v, want %q", got.err, c.err)
			}
			e, err := st.Get(t.Context(), "Tab", edm.Key{Partition: "p", Row: "r"})
			if err != nil {
				t.Fatal(err)
			}
			var props []string
			for _, p := range e.Properties {
				props = append(props, p.Name+"="+p.Value.String())
			}
			if d := cmp.Diff(c.want, props); d != "" {
				t.Errorf("properties (-want +got):\n%s", d)
			}
		})
	}
}

func TestImportStopsAtInvalidRow(t *testing.T) {
	in := rows("a/1", "a/2", "b/1") + "c,1,x\n" + "d,1,5\n"
	st := storetest.NewMap(nil)
	got := importText(t.Context(), st, in, transfer.ImportOptions{})
	const want = `f:5: column "n": "x": an Edm.Int32 is a whole number from -2147483648 to 2147483647`
	if got.err == nil || got.err.Error() != want || !errors.Is(got.err, store.ErrInvalid) {
		t.Errorf("error %v, want %s", got.err, want)
	}
	if d := cmp.Diff([]string{"2-3", "4-4"}, got.acks); d != "" {
		t.Errorf("acknowledged (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]string{"a/1=1", "a/2=2", "b/1=3"}, contents(t, st)); d != "" {
		t.Errorf("stored (-want +got):\n%s", d)
	}
}

func TestImportSkipsInvalidRows(t *testing.T) {
	st := storetest.NewMap(nil)
	if got := importText(t.Context(), st, rows("a/2"), transfer.ImportOptions{}); got.err != nil {
		t.Fatal(got.err)
	}
	in := rows("a/1", "a/2", "a/3") + "a,4,x\n" + "a,5,5\n\"a\",6\"6,6\na,7,7\n"
	got := importText(t.Context(), st, in, transfer.ImportOptions{Mode: transfer.Insert, SkipBad: true})
	if got.err != nil {
		t.Fatal(got.err)
	}
	slices.Sort(got.skipped)
	want := []string{
		`f:3: entity already exists (PartitionKey "a", RowKey "2")`,
		`f:5: column "n": "x": an Edm.Int32 is a whole number from -2147483648 to 2147483647`,
		`f:7: a quote inside unquoted cell 2; quote the whole cell and write "" for each quote`,
	}
	if d := cmp.Diff(want, got.skipped); d != "" {
		t.Errorf("skipped (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]string{"2-2", "4-4", "6-6", "8-8"}, got.acks); d != "" {
		t.Errorf("acknowledged (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]string{"a/1=1", "a/2=1", "a/3=3", "a/5=5", "a/7=7"}, contents(t, st)); d != "" {
		t.Errorf("stored (-want +got):\n%s", d)
	}
	if got.progress.Rows != 4 || got.progress.Skipped != 3 {
		t.Errorf("progress %+v, want 4 rows and 3 skipped", got.progress)
	}
}

// TestImportSkipsInsertedRows lets others insert rows of a transaction after each refusal of one,
// each before the row that was refused.
func TestImportSkipsInsertedRows(t *testing.T) {
	r := newRecorder()
	others := []string{"4", "2", "1"}
	r.fail = func([]store.Op) error {
		if len(others) > 0 {
			importText(t.Context(), r.Store, rows("a/"+others[0]), transfer.ImportOptions{})
			others = others[1:]
		}
		return nil
	}
	got := importText(t.Context(), r, rows("a/0", "a/1", "a/2", "a/3", "a/4", "a/5"), transfer.ImportOptions{Mode: transfer.Insert, SkipBad: true})
	if got.err != nil {
		t.Fatal(got.err)
	}
	want := []string{
		`f:3: entity already exists (PartitionKey "a", RowKey "1")`,
		`f:4: entity already exists (PartitionKey "a", RowKey "2")`,
		`f:6: entity already exists (PartitionKey "a", RowKey "4")`,
	}
	if d := cmp.Diff(want, got.skipped); d != "" {
		t.Errorf("skipped (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]string{"a/0=1", "a/1=1", "a/2=1", "a/3=4", "a/4=1", "a/5=6"}, contents(t, r)); d != "" {
		t.Errorf("stored (-want +got):\n%s", d)
	}
	if p := got.progress; p.Rows != 3 || p.Skipped != 3 {
		t.Errorf("progress %+v, want 3 rows and 3 skipped", p)
	}
}

// TestImportSkipsImportedRows imports a file again, with more rows. Each row that exists is sent
// about once, not with all that follow it in its transaction.
func TestImportSkipsImportedRows(t *testing.T) {
	var keys []string
	for i := range 200 {
		keys = append(keys, fmt.Sprintf("a/%03d", i))
	}
	r := newRecorder()
	importText(t.Context(), r.Store, rows(keys[:140]...), transfer.ImportOptions{})
	sent := 0
	r.fail = func(ops []store.Op) error {
		sent += len(ops)
		return nil
	}
	got := importText(t.Context(), r, rows(keys...), transfer.ImportOptions{Mode: transfer.Insert, SkipBad: true})
	if p := got.progress; got.err != nil || p.Rows != 60 || p.Skipped != 140 || len(contents(t, r)) != 200 {
		t.Errorf("progress %+v, %d stored, error %v; want 60 rows and 140 skipped", p, len(contents(t, r)), got.err)
	}
	if sent > 3*len(keys) {
		t.Errorf("%d rows were sent for %d rows", sent, len(keys))
	}
}

// TestImportSkipsByReads imports a file of which every other row exists. Reads find these rows, so that
// the others need as many transactions as in a file without them.
func TestImportSkipsByReads(t *testing.T) {
	var keys, old []string
	for i := range 400 {
		keys = append(keys, fmt.Sprintf("a/%03d", i))
		if i%2 == 0 {
			old = append(old, keys[i])
		}
	}
	for _, first := range []int{0, 1} {
		r := newRecorder()
		importText(t.Context(), r.Store, rows(old...), transfer.ImportOptions{})
		sent := 0
		r.fail = func([]store.Op) error {
			sent++
			return nil
		}
		got := importText(t.Context(), r, rows(keys[first:]...), transfer.ImportOptions{Mode: transfer.Insert, SkipBad: true, CheapReads: true})
		if p := got.progress; got.err != nil || p.Rows != 200 || p.Skipped != int64(200-first) || len(contents(t, r)) != 400 {
			t.Errorf("from row %d: progress %+v, %d stored, error %v; want 200 rows, and the others skipped", first, p, len(contents(t, r)), got.err)
		}
		var acks []string
		for i := 1 - first; i < len(keys)-first; i += 2 {
			acks = append(acks, fmt.Sprintf("%d-%d", i+2, i+2)) // below the header
		}
		if slices.Sort(acks); !slices.Equal(got.acks, acks) {
			t.Errorf("from row %d: acknowledged lines %q, want %q", first, got.acks, acks)
		}
		if len(got.skipped) != 200-first || sent > 8 {
			t.Errorf("from row %d: %d rows are reported, %d transactions sent; want 4, each at most twice", first, len(got.skipped), sent)
		}
	}
}

// TestImportReadFails lets the read that follows a refusal fail.
func TestImportReadFails(t *testing.T) {
	st := storetest.NewMap(nil)
	importText(t.Context(), st, rows("a/1"), transfer.ImportOptions{})
	got := importText(t.Context(), unread{st}, rows("a/1", "a/2"), transfer.ImportOptions{Mode: transfer.Insert, SkipBad: true, CheapReads: true})
	if !errors.Is(got.err, store.ErrCorrupt) || !strings.Contains(got.err.Error(), "f: import lines 2 to 3: ") {
		t.Errorf("error %v, want %v with the lines", got.err, store.ErrCorrupt)
	}
}

// unread is a store that cannot be read.
type unread struct{ store.Store }

func (unread) View(context.Context, string, edm.Key, func(edm.Row) error) error {
	return store.ErrCorrupt
}

// TestImportUnclosedQuote imports files whose quotes hide lines. No line gets lost without
// being named or counted.
func TestImportUnclosedQuote(t *testing.T) {
	for _, c := range []struct {
		name, in       string
		err            string
		skipped        []string
		rows, bad, not int64 // imported, invalid, lines of these
	}{
		{
			"to the end", rows("a/1", "a/2") + "a,3,\"3\n" + "a,4,4\na,5,5\n",
			"f: lines 4 to 6 are not imported: the quote opened in line 4 is not closed; correct that line", nil, 2, 0, 0,
		},
		{
			"beyond the limit", rows("a/1") + "a,2,\"2\n" + strings.Repeat("a,3,0123456789\n", textfile.MaxRecordBytes/14),
			"f: line 3 and all lines after it are not imported: the quote opened in line 3 is not closed in the 16777216 bytes of a record; correct that line",
			nil, 1, 0, 0,
		},
		{
			"closed by a later row", rows("a/1") + "a,2,\"2\na,3,3\na,4,\"4\"\na,5,5\n", "",
			[]string{`f: lines 3 to 5: text after the closing quote of cell 3, which was opened in line 3; quote the whole cell and write "" for each quote`},
			2, 1, 3,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			st := storetest.NewMap(nil)
			got := importText(t.Context(), st, c.in, transfer.ImportOptions{SkipBad: true})
			if got.err == nil && c.err != "" || got.err != nil && got.err.Error() != c.err {
				t.Errorf("error %v, want %q", got.err, c.err)
			}
			if d := cmp.Diff(c.skipped, got.skipped); d != "" {
				t.Errorf("skipped (-want +got):\n%s", d)
			}
			if p := got.progress; p.Rows != c.rows || p.Skipped != c.bad || p.SkippedLines != c.not {
				t.Errorf("progress %+v, want %d rows, %d bad ones of %d lines", p, c.rows, c.bad, c.not)
			}
		})
	}
}

// TestImportFirstError lets several transactions fail. The error must be that of the
// first line, and all rows before it must be stored.
func TestImportFirstError(t *testing.T) {
	var keys []string
	for i := range 200 {
		keys = append(keys, fmt.Sprintf("p%03d/1", i))
	}
	r := newRecorder()
	r.fail = func(ops []store.Op) error {
		if p := ops[0].Entity.Key.Partition; p >= "p050" {
			return &store.OpError{Err: store.ErrEntityExists}
		}
		return nil
	}
	got := importText(t.Context(), r, rows(keys...), transfer.ImportOptions{Mode: transfer.Insert})
	const want = `f:52: entity already exists (PartitionKey "p050", RowKey "1")`
	if got.err == nil || got.err.Error() != want {
		t.Errorf("error %v, want %s", got.err, want)
	}
	if n := len(contents(t, r)); n != 50 || len(got.acks) != 50 {
		t.Errorf("%d stored and %d acknowledged, want 50", n, len(got.acks))
	}
}

// TestImportStoreError checks that an error of the store ends the import, even with
// SkipBad.
func TestImportStoreError(t *testing.T) {
	for _, skip := range []bool{false, true} {
		r := newRecorder()
		r.fail = func(ops []store.Op) error {
			if ops[0].Entity.Key.Partition == "b" {
				return store.ErrNoSpace
			}
			return nil
		}
		got := importText(t.Context(), r, rows("a/1", "b/1", "b/2", "c/1"), transfer.ImportOptions{SkipBad: skip})
		const want = "f: import lines 3 to 4: no space left for writing"
		if got.err == nil || got.err.Error() != want || !errors.Is(got.err, store.ErrNoSpace) {
			t.Errorf("skip %v: error %v, want %s", skip, got.err, want)
		}
		if !slices.Contains(got.acks, "2-2") {
			t.Errorf("skip %v: acknowledged %q, want line 2 among them", skip, got.acks)
		}
	}
}

// absent is a store that cannot be reached.
type absent struct {
	store.Store
	creations int
}

func (a *absent) CreateTable(context.Context, string) error {
	a.creations++
	return store.ErrUnavailable
}

// TestImportCreatesOnce checks that an import whose table cannot be created ends without another
// attempt, which can take long.
func TestImportCreatesOnce(t *testing.T) {
	for _, text := range []string{head, rows("a/1"), rows("a/1", "b/1")} {
		a := &absent{Store: storetest.NewMap(nil)}
		got := importText(t.Context(), a, text, transfer.ImportOptions{})
		if !errors.Is(got.err, store.ErrUnavailable) || a.creations != 1 {
			t.Errorf("%q: %v after %d attempts, want %v after one", text, got.err, a.creations, store.ErrUnavailable)
		}
	}
}

func TestImportAckError(t *testing.T) {
	broken := errors.New("broken pipe")
	r := transfer.NewReader(strings.NewReader(rows("a/1", "b/1")), transfer.ReadOptions{Name: "f", Format: transfer.CSV})
	_, err := transfer.Import(t.Context(), storetest.NewMap(nil), "Tab", r, transfer.ImportOptions{Ack: func(int64, int64) error { return broken }})
	if !errors.Is(err, broken) {
		t.Errorf("error %v, want %v", err, broken)
	}
}

// TestImportCanceled cancels an import after its first transaction.
func TestImportCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	endless := io.MultiReader(strings.NewReader(head), &repeat{line: "p,r,1\n"})
	r := transfer.NewReader(endless, transfer.ReadOptions{Name: "f", Format: transfer.CSV})
	progress, err := transfer.Import(ctx, storetest.NewMap(nil), "Tab", r, transfer.ImportOptions{Progress: func(transfer.Progress) { cancel() }})
	if !errors.Is(err, context.Canceled) || progress.Rows == 0 {
		t.Errorf("error %v after %+v, want %v after some rows", err, progress, context.Canceled)
	}
}

// repeat returns a line again and again.
type repeat struct{ line string }

func (r *repeat) Read(p []byte) (int, error) {
	n := 0
	for n+len(r.line) <= len(p) {
		n += copy(p[n:], r.line)
	}
	return n, nil
}

// TestImportBadHeader checks that a file without a valid header, or without a valid
// row, creates no table.
func TestImportBadHeader(t *testing.T) {
	st := storetest.NewMap(nil)
	if got := importText(t.Context(), st, "a,b\n1,2\n", transfer.ImportOptions{SkipBad: true}); got.err == nil {
		t.Error("no error for a header without keys")
	}
	for _, skip := range []bool{false, true} {
		got := importText(t.Context(), st, head+"a,b,no number\n", transfer.ImportOptions{SkipBad: skip})
		if (got.err == nil) != skip {
			t.Errorf("an invalid row alone, skip %v: %v", skip, got.err)
		}
	}
	if tables, err := st.Tables(t.Context(), "", 0); err != nil || len(tables) != 0 {
		t.Errorf("tables %v, %v; want none", tables, err)
	}
	if got := importText(t.Context(), st, head, transfer.ImportOptions{}); got.err != nil {
		t.Errorf("a file without rows: %v", got.err)
	}
	if tables, err := st.Tables(t.Context(), "", 0); err != nil || len(tables) != 1 {
		t.Errorf("tables %v, %v; want one", tables, err)
	}
}

func exportText(t testing.TB, st store.Store, f transfer.Format) string {
	t.Helper()
	var out bytes.Buffer
	export := transfer.ExportCSV
	if f == transfer.JSONL {
		export = transfer.ExportJSONL
	}
	if _, err := export(t.Context(), st, "Tab", store.Query{}, &out, transfer.ExportOptions{}); err != nil {
		t.Fatalf("export: %v", err)
	}
	return out.String()
}
