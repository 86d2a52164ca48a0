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

// ended is a reader that closes a channel at its end.
type ended struct {
	io.Reader
	end chan struct{}
}

func (r *ended) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if err == io.EOF && r.end != nil {
		close(r.end)
		r.end = nil
	}
	return n, err
}

// TestImportGroups lets the first call of the ApplyFunc end when the file is read. All the other
// transactions must wait then, and come in order.
func TestImportGroups(t *testing.T) {
	var keys []string
	for i := range 900 {
		keys = append(keys, fmt.Sprintf("p%03d/1", i))
	}
	end := make(chan struct{})
	st := newRecorder()
	var groups, order []string
	apply := func(ctx context.Context, table string, batches [][]store.Op) []error {
		<-end
		groups = append(groups, fmt.Sprint(len(batches)))
		for _, ops := range batches {
			order = append(order, ops[0].Entity.Key.Partition+"/1")
		}
		return applyOf(st)(ctx, table, batches)
	}
	r := transfer.NewReader(&ended{strings.NewReader(rows(keys...)), end}, transfer.ReadOptions{Name: "f", Format: transfer.CSV})
	progress, err := transfer.Import(t.Context(), st, "Tab", r, transfer.ImportOptions{Apply: apply})
	if err != nil || progress.Rows != 900 || progress.Transactions != 900 || !slices.Equal(order, keys) {
		t.Errorf("%+v, %v, want 900 rows in order", progress, err)
	}
	if len(groups) > 20 {
		t.Errorf("groups of %v transactions", groups)
	}
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

// eachWay runs a test with one transaction at a time and with groups.
func eachWay(t *testing.T, test func(t *testing.T, o transfer.ImportOptions, st store.Store)) {
	for _, groups := range []bool{false, true} {
		t.Run(fmt.Sprint("groups=", groups), func(t *testing.T) {
			st, o := storetest.NewMap(nil), transfer.ImportOptions{}
			if groups {
				o.Apply = applyOf(st)
			}
			test(t, o, st)
		})
	}
}

// TestImportOneLine imports an array in one line that ends with an invalid row. The rows before
// it must be stored, although they are in the line of the error.
func TestImportOneLine(t *testing.T) {
	eachWay(t, func(t *testing.T, o transfer.ImportOptions, st store.Store) {
		var items []string
		for i := range 900 {
			items = append(items, fmt.Sprintf(`{"PartitionKey":"p%03d","RowKey":"1"}`, i))
		}
		text := "[" + strings.Join(append(items, `{"PartitionKey":"q","RowKey":5}`), ",") + "]"
		r := transfer.NewReader(strings.NewReader(text), transfer.ReadOptions{Name: "f", Format: transfer.JSON})
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
	eachWay(t, func(t *testing.T, o transfer.ImportOptions, st store.Store) {
		if got := importText(t.Context(), st, rows("p/0450"), transfer.ImportOptions{}); got.err != nil {
			t.Fatal(got.err)
		}
		o.Mode = transfer.Insert
		got := importText(t.Context(), st, rows(keys...), o)
		if !errors.Is(got.err, store.ErrEntityExists) || got.progress.Rows != 400 || len(contents(t, st)) != 401 {
			t.Errorf("%d rows are stored, want 400; error %v", got.progress.Rows, got.err)
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
	eachWay(t, func(t *testing.T, o transfer.ImportOptions, st store.Store) {
		full, calls := errors.New("the disk is full"), 0
		o.Ack = func(int64, int64) error {
			if calls++; calls == 3 {
				return full
			}
			return nil
		}
		r := transfer.NewReader(strings.NewReader(rows(keys...)), transfer.ReadOptions{Name: "f", Format: transfer.CSV})
		if _, err := transfer.Import(t.Context(), st, "Tab", r, o); !errors.Is(err, full) || calls != 3 {
			t.Errorf("%d acknowledgements, want 3; error %v", calls, err)
		}
	})
}
