package transfer_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tablerock-db/tablerock/internal/transfer"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/store/storetest"
)

// applyOf returns an ApplyFunc of st.
func applyOf(st store.Store) transfer.ApplyFunc {
	return func(ctx context.Context, table string, batches [][]store.Op) []error {
		errs := make([]error, len(batches))
		for i, ops := range batches {
			_, errs[i] = st.Apply(ctx, table, ops...)
		}
		return errs
	}
}

// TestImportGroupsAgree imports with and without ImportOptions.Apply. The error must be the
// same, and all rows before it must be stored and acknowledged.
func TestImportGroupsAgree(t *testing.T) {
	var again, singles []string
	for i := range 5000 {
		again = append(again, fmt.Sprintf("%c/%d", 'a'+i%7, i%3))
		singles = append(singles, fmt.Sprintf("p%04d/1", i))
	}
	after := func(partition string, err error) func([]store.Op) error {
		return func(ops []store.Op) error {
			if ops[0].Entity.Key.Partition >= partition {
				return err
			}
			return nil
		}
	}
	for _, c := range []struct {
		name  string
		text  string
		mode  transfer.Mode
		fail  func([]store.Op) error
		lines int // that must be stored, 0 is all
	}{
		{name: "nothing", text: head},
		{name: "keys again and again", text: rows(again...)},
		{name: "merge", text: rows(again...), mode: transfer.Merge},
		{name: "insert", text: rows(singles...), mode: transfer.Insert},
		{name: "insert again", text: rows(append(singles[:400:400], "p0007/1", "z/1")...), mode: transfer.Insert, lines: 400},
		{name: "bad row", text: rows(singles[:300]...) + "p,r,2,3\n" + "q,r,4\n", lines: 300},
		{name: "row error", text: rows(singles...), fail: after("p0050", &store.OpError{Err: store.ErrEntityExists}), lines: 50},
		{name: "store error", text: rows(singles...), fail: after("p2000", store.ErrNoSpace), lines: 2000},
	} {
		t.Run(c.name, func(t *testing.T) {
			one, many := newRecorder(), newRecorder()
			one.fail, many.fail = c.fail, c.fail
			want := importText(t.Context(), one, c.text, transfer.ImportOptions{Mode: c.mode})
			got := importText(t.Context(), many, c.text, transfer.ImportOptions{Mode: c.mode, Apply: applyOf(many)})
			if fmt.Sprint(got.err) != fmt.Sprint(want.err) || (got.err == nil) != (c.lines == 0) {
				t.Errorf("error %v, want %v", got.err, want.err)
			}
			if got.err == nil {
				if diff := cmp.Diff(contents(t, one), contents(t, many)); diff != "" || got.progress != want.progress || !slices.Equal(got.acks, want.acks) {
					t.Errorf("stored (-one by one +in groups):\n%s%+v, want %+v", diff, got.progress, want.progress)
				}
				return
			}
			stored, acks := strings.Join(contents(t, many), "\n")+"\n", strings.Join(got.acks, "\n")+"\n"
			for i := range c.lines {
				if !strings.Contains(stored, fmt.Sprintf("%s=%d\n", singles[i], i+1)) || !strings.Contains(acks, fmt.Sprintf("%d-%[1]d\n", i+2)) {
					t.Fatalf("line %d is not stored and acknowledged: %v", i+2, got.err)
				}
			}
		})
	}
}

// lastByte is a reader of single bytes that closes a channel with the last one.
type lastByte struct {
	text *strings.Reader
	read chan struct{}
}

func (r *lastByte) Read(p []byte) (int, error) {
	n, err := r.text.Read(p[:min(len(p), 1)])
	if n == 1 && r.text.Len() == 0 {
		close(r.read)
	}
	return n, err
}

// TestImportGroups lets the first call of the ApplyFunc end when the file is read. All the other
// transactions must wait then, and come in order.
func TestImportGroups(t *testing.T) {
	var keys, order []string
	for i := range 900 {
		keys = append(keys, fmt.Sprintf("p%03d/1", i))
	}
	st := storetest.NewMap(nil)
	r, o := heldReader(st, rows(keys...), transfer.CSV)
	apply, groups := o.Apply, 0
	o.Apply = func(ctx context.Context, table string, batches [][]store.Op) []error {
		errs := apply(ctx, table, batches)
		groups++
		for _, ops := range batches {
			order = append(order, ops[0].Entity.Key.Partition+"/1")
		}
		return errs
	}
	progress, err := transfer.Import(t.Context(), st, "Tab", r, o)
	if err != nil || progress.Rows != 900 || progress.Transactions != 900 || !slices.Equal(order, keys) {
		t.Errorf("%+v, %v, want 900 rows in order", progress, err)
	}
	if groups > 4 { // the first one, those that waited, and the last two: one is complete when the row behind it is read
		t.Errorf("%d groups", groups)
	}
}

// heldReader returns a Reader of text, and options with an ApplyFunc of st that waits until it
// has read all of text.
func heldReader(st store.Store, text string, f transfer.Format) (*transfer.Reader, transfer.ImportOptions) {
	read := make(chan struct{})
	r := transfer.NewReader(&lastByte{strings.NewReader(text), read}, transfer.ReadOptions{Name: "f", Format: f})
	return r, transfer.ImportOptions{Apply: func(ctx context.Context, table string, batches [][]store.Op) []error {
		<-read
		return applyOf(st)(ctx, table, batches)
	}}
}

// TestImportGroupsSlowly writes rows to a pipe that stays open. A transaction must be applied as
// soon as the row behind it is read.
func TestImportGroupsSlowly(t *testing.T) {
	in, out := io.Pipe()
	st := storetest.NewMap(nil)
	acks := make(chan int64)
	done := make(chan error)
	go func() {
		_, err := transfer.Import(t.Context(), st, "Tab", transfer.NewReader(in, transfer.ReadOptions{Name: "f", Format: transfer.CSV}), transfer.ImportOptions{
			Apply: applyOf(st), Ack: func(_, last int64) error { acks <- last; return nil },
		})
		done <- err
	}()
	if _, err := io.WriteString(out, rows("a/1", "b/1", "c/1", "d/1")); err != nil {
		t.Fatal(err)
	}
	for want := int64(2); want <= 4; want++ {
		if got := <-acks; got != want {
			t.Errorf("line %d is acknowledged, want %d", got, want)
		}
	}
	out.Close()
	if got, err := <-acks, <-done; got != 5 || err != nil {
		t.Errorf("line %d is acknowledged, want 5; error %v", got, err)
	}
}

// TestImportGroupsCanceled cancels an import without end after its first transaction.
func TestImportGroupsCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	st := storetest.NewMap(nil)
	endless := io.MultiReader(strings.NewReader(head), &repeat{line: "p,r,1\n"})
	r := transfer.NewReader(endless, transfer.ReadOptions{Name: "f", Format: transfer.CSV})
	progress, err := transfer.Import(ctx, st, "Tab", r, transfer.ImportOptions{Apply: applyOf(st), Progress: func(transfer.Progress) { cancel() }})
	if !errors.Is(err, context.Canceled) || progress.Rows == 0 {
		t.Errorf("error %v after %+v, want %v after some rows", err, progress, context.Canceled)
	}
}

// eachWay runs a test of an import of text into st one transaction at a time, and in groups that
// wait until text is read.
func eachWay(t *testing.T, text string, f transfer.Format, test func(t *testing.T, st store.Store, r *transfer.Reader, o transfer.ImportOptions)) {
	t.Run("one by one", func(t *testing.T) {
		r := transfer.NewReader(strings.NewReader(text), transfer.ReadOptions{Name: "f", Format: f})
		test(t, storetest.NewMap(nil), r, transfer.ImportOptions{})
	})
	t.Run("in groups", func(t *testing.T) {
		st := storetest.NewMap(nil)
		r, o := heldReader(st, text, f)
		test(t, st, r, o)
	})
}

// TestImportOneLine imports an array in one line whose last row is invalid. The rows before
// it must be stored, although they are in the line of the error.
func TestImportOneLine(t *testing.T) {
	var items []string
	for i := range 900 {
		items = append(items, fmt.Sprintf(`{"PartitionKey":"p%03d","RowKey":"1","Text":"%d"}`, i, i))
	}
	text := "[" + strings.Join(append(items, `{"PartitionKey":"q","RowKey":5}`), ",")
	eachWay(t, text, transfer.JSON, func(t *testing.T, st store.Store, r *transfer.Reader, o transfer.ImportOptions) {
		progress, err := transfer.Import(t.Context(), st, "Tab", r, o)
		if err == nil || progress.Rows != 900 || len(contents(t, st)) != 900 {
			t.Errorf("%d rows are stored, want 900; error %v", progress.Rows, err)
		}
	})
}

// TestImportPartitionInOrder inserts rows of one partition, of which one is there already. No
// later transaction of the partition may be applied.
func TestImportPartitionInOrder(t *testing.T) {
	var keys []string
	for i := range 1000 {
		keys = append(keys, fmt.Sprintf("p/%04d", i))
	}
	eachWay(t, rows(keys...), transfer.CSV, func(t *testing.T, st store.Store, r *transfer.Reader, o transfer.ImportOptions) {
		if there := importText(t.Context(), st, rows("p/0450"), transfer.ImportOptions{}); there.err != nil {
			t.Fatal(there.err)
		}
		o.Mode = transfer.Insert
		progress, err := transfer.Import(t.Context(), st, "Tab", r, o)
		if !errors.Is(err, store.ErrEntityExists) || progress.Rows != 400 || len(contents(t, st)) != 401 {
			t.Errorf("%d rows are stored, want 400; error %v", progress.Rows, err)
		}
	})
}

// TestImportAckFailsOnce lets an acknowledgement fail. There may be none after it, because they
// would follow a part of a line.
func TestImportAckFailsOnce(t *testing.T) {
	var keys []string
	for i := range 900 {
		keys = append(keys, fmt.Sprintf("p%03d/1", i))
	}
	eachWay(t, rows(keys...), transfer.CSV, func(t *testing.T, st store.Store, r *transfer.Reader, o transfer.ImportOptions) {
		full, calls := errors.New("the disk is full"), 0
		o.Ack = func(int64, int64) error {
			if calls++; calls == 3 {
				return full
			}
			return nil
		}
		if _, err := transfer.Import(t.Context(), st, "Tab", r, o); !errors.Is(err, full) || calls != 3 {
			t.Errorf("%d acknowledgements, want 3; error %v", calls, err)
		}
	})
}
