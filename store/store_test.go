package store

import (
	"errors"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tablerock-db/tablerock/edm"
)

// fakeCursor returns rows, then its errors.
type fakeCursor struct {
	rows     []edm.Entity
	at       int
	err      error
	closeErr error
	closed   int
}

func (c *fakeCursor) Next() bool       { c.at++; return c.closed == 0 && c.at <= len(c.rows) }
func (c *fakeCursor) Row() edm.Row     { return c.rows[c.at-1].View() }
func (c *fakeCursor) Resume() *edm.Key { return nil }
func (c *fakeCursor) Err() error       { return c.err }

func (c *fakeCursor) Close() error {
	if c.closed++; c.closed == 1 {
		return c.closeErr
	}
	return nil
}

func TestEntities(t *testing.T) {
	broken := errors.New("broken")
	text := []byte("text")
	rows := []edm.Entity{rowOf("p", "1", prop("a", edm.StringBytes(text))), rowOf("p", "2"), rowOf("p", "3")}
	for _, c := range []struct {
		name          string
		err, closeErr error
		stop          int // break after so many rows
		rows          int
		want          error
	}{
		{name: "all", rows: 3},
		{name: "stop", stop: 2, rows: 2},
		{name: "failure", err: broken, rows: 3, want: broken},
		{name: "failure to close", closeErr: io.ErrUnexpectedEOF, rows: 3, want: io.ErrUnexpectedEOF},
		{name: "two failures", err: broken, closeErr: io.ErrUnexpectedEOF, rows: 3, want: broken},
	} {
		t.Run(c.name, func(t *testing.T) {
			cursor := &fakeCursor{rows: rows, err: c.err, closeErr: c.closeErr}
			var got []edm.Entity
			var failure error
			for e, err := range Entities(cursor) {
				if failure != nil {
					t.Fatalf("a pair after the failure %v", failure)
				}
				if failure = err; err == nil {
					got = append(got, e)
				}
				if len(got) == c.stop {
					break
				}
			}
			if failure != c.want || len(got) != c.rows {
				t.Errorf("got %d rows and %v, want %d rows and %v", len(got), failure, c.rows, c.want)
			}
			if cursor.closed == 0 {
				t.Error("the cursor is still open")
			}
			text[0] = 'T'
			if len(got) > 0 && !got[0].Properties.Get("a").Equal(edm.String("text")) {
				t.Error("the entity shares the cursor's memory")
			}
			text[0] = 't'
		})
	}
}

func TestMergeProperties(t *testing.T) {
	one, two, null := edm.Int32(1), edm.String("two"), edm.Value{}
	p := func(pairs ...any) (p edm.Properties) {
		for i := 0; i < len(pairs); i += 2 {
			p = append(p, prop(pairs[i].(string), pairs[i+1].(edm.Value)))
		}
		return p
	}
	for _, c := range []struct {
		name             string
		old, patch, want edm.Properties
	}{
		{"nothing", nil, nil, nil},
		{"into nothing", nil, p("b", one, "a", two), p("a", two, "b", one)},
		{"with nothing", p("b", one, "a", two), nil, p("a", two, "b", one)},
		{"null of none", nil, p("a", null), nil},
		{"null of one", p("a", one), p("a", null), p("a", one)},
		{"type changes", p("a", one, "b", one), p("a", two), p("a", two, "b", one)},
		{"given backwards", p("a", one, "b", one, "c", one), p("c", two, "a", two), p("a", two, "b", one, "c", two)},
		{"new ones", p("b", one), p("z", two, "b", two, "a", two), p("a", two, "b", two, "z", two)},
		{"case counts", p("a", one), p("A", two), p("A", two, "a", one)},
		{"UTF-16 code units", p("\uf900", one), p("\U00010400", two), p("\U00010400", two, "\uf900", one)},
	} {
		t.Run(c.name, func(t *testing.T) {
			old := edm.Entity{Properties: c.old}
			for _, capacity := range []int{1, 2, 3, 20} {
				first := prop("first", one)
				dst := append(make(edm.Properties, 0, capacity), first)
				got := MergeProperties(dst, old.View(), c.patch)
				if diff := cmp.Diff(append(edm.Properties{first}, c.want...), got); diff != "" {
					t.Errorf("capacity %d (-want +got):\n%s", capacity, diff)
				}
			}
		})
	}
}

func TestMergePropertiesAllocs(t *testing.T) {
	old, patch := twelve("p", "r"), twelve("p", "r")
	dst := make(edm.Properties, 0, 24)
	row := old.View()
	if n := testing.AllocsPerRun(10, func() { dst = MergeProperties(dst[:0], row, patch.Properties) }); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

func TestOpKind(t *testing.T) {
	for k := OpInsert; k <= OpDelete; k++ {
		if !k.valid() || k.String() == "" {
			t.Errorf("kind %d: valid %v, name %q", k, k.valid(), k.String())
		}
	}
	if k := OpDelete + 1; k.valid() || OpKind(0).valid() || k.String() != "kind 7" {
		t.Errorf("kind %d is valid, or has the name %q", k, k.String())
	}
}
