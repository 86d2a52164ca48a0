package rowgroup

import (
	"errors"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
)

// counted counts the calls of its Blocks, which fail with err if that is set.
type counted struct {
	stored
	err              error
	values, released int
}

func (c *counted) HeapUnit(h *Head, u *HeapUnit) ([]byte, error) {
	if c.err != nil {
		return nil, c.err
	}
	return c.stored.HeapUnit(h, u)
}

func (c *counted) ValueBlock(e *ValueBlock) ([]byte, error) {
	c.values++
	if c.err != nil {
		return nil, c.err
	}
	return c.stored.ValueBlock(e)
}

func (c *counted) ReleaseValueBlocks() { c.released++ }

// TestBigValues reads rows with two big values and a short one.
func TestBigValues(t *testing.T) {
	big := func(s string) edm.Value { return edm.String(strings.Repeat(s, bigValueBytes+1)) }
	rows := []edm.Properties{
		{{Name: "a", Value: big("1")}, {Name: "b", Value: big("2")}, {Name: "c", Value: edm.String("3")}},
		{{Name: "a", Value: big("4")}, {Name: "b", Value: big("5")}, {Name: "c", Value: edm.String("6")}},
	}
	h, data := build(t, userKeys([]string{"p"}, []string{"0", "1"}), func(i int) edm.Properties { return rows[i] })
	b := &counted{stored: stored{off: h.off, data: data}}
	var r Row
	check := func(row int, want error, values, released int) {
		t.Helper()
		for i, p := range rows[row] {
			_, v := r.At(i)
			if want != nil {
				p.Value = edm.Value{}
			}
			if short := i == 2; !v.Equal(p.Value) && !(short && want != nil) { // with an error, it may be read
				t.Errorf("row %d: %s is %v, want %v", row, p.Name, v, p.Value)
			}
		}
		if !errors.Is(r.Err(), want) {
			t.Errorf("row %d: error %v, want %v", row, r.Err(), want)
		}
		if b.values != values || b.released != released {
			t.Errorf("row %d: %d blocks read, released %d times, want %d and %d", row, b.values, b.released, values, released)
		}
	}
	broken := errors.New("broken")

	// What Load has read does not fail, and is read once.
	r.Attach(h, b)
	r.Set(0)
	if err := r.Load(); err != nil {
		t.Fatal(err)
	}
	b.err = broken
	check(0, nil, 2, 0)

	// Blocks are released with their row, and read again when it is read again.
	b.err = nil
	r.Set(1)
	check(1, nil, 4, 1)
	r.Set(0)
	check(0, nil, 6, 2)
	r.Set(1)
	if err := r.LoadAt(1); err != nil {
		t.Fatal(err)
	}
	r.Set(0)
	check(0, nil, 9, 4)

	// A failure remains until Attach.
	at := func() error {
		if _, v := r.At(0); !v.Equal(edm.Value{}) {
			t.Errorf("unreadable value: %v", v)
		}
		return r.Err()
	}
	rest := func() error {
		b.err = nil
		err := r.LoadHeap()
		b.err = broken
		return errors.Join(err, r.Load())
	}
	for _, load := range []func() error{r.Load, r.LoadHeap, func() error { return r.LoadAt(0) }, at, rest} {
		b.err, b.values, b.released = broken, 0, 0
		r.Attach(h, b)
		r.Set(0)
		if err := load(); !errors.Is(err, broken) {
			t.Errorf("got %v, want %v", err, broken)
		}
		values := b.values
		b.err = nil
		check(0, broken, values, 0)
	}
}
