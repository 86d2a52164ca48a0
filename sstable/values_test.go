package sstable

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/cache"
	"github.com/tablerock-db/tablerock/internal/corrupt"
)

// TestInvalidValues reads files with right sums and a value that is invalid for its
// type: Verify refuses it, and no read may return it, except a String in columns, which
// a read does not check.
func TestInvalidValues(t *testing.T) {
	long := append(bytes.Repeat([]byte("long "), 1200), 0xff)
	good := func(i int) edm.Properties { // the least and the greatest DateTime
		return edm.Properties{{Name: "A", Value: edm.String(fmt.Sprint("text ", i))}, {Name: "T", Value: edm.DateTime(edm.Ticks(i%2) * edm.MaxTicks)}}
	}
	for _, c := range []struct {
		name string
		ts   edm.Ticks
		rows int // with the bad value; the others are valid
		bad  edm.Properties
		read bool // a read returns it
	}{
		{"none", 0, 0, nil, false},
		{"text among columns", 0, 1, edm.Properties{{Name: "A", Value: edm.StringBytes([]byte("\xfftext"))}, {Name: "T", Value: edm.DateTime(1)}}, true},
		{"text cut in the middle", 0, 1, edm.Properties{{Name: "A", Value: edm.StringBytes([]byte("text\xc3"))}, {Name: "T", Value: edm.DateTime(1)}}, true},
		{"text in a dictionary", 0, 40, edm.Properties{{Name: "A", Value: edm.StringBytes([]byte("\xfftext"))}, {Name: "T", Value: edm.DateTime(1)}}, true},
		{"long text", 0, 1, edm.Properties{{Name: "A", Value: edm.StringBytes(long)}, {Name: "T", Value: edm.DateTime(1)}}, true},
		{"text of a row stored by row", 0, 1, edm.Properties{{Name: "Own", Value: edm.StringBytes([]byte("\xfftext"))}}, false},
		{"DateTime", 0, 1, edm.Properties{{Name: "A", Value: edm.String("x")}, {Name: "T", Value: edm.DateTime(edm.MaxTicks + 1)}}, false},
		{"negative DateTime", 0, 1, edm.Properties{{Name: "A", Value: edm.String("x")}, {Name: "T", Value: edm.DateTime(-1)}}, false},
		{"equal DateTimes", 0, 40, edm.Properties{{Name: "A", Value: edm.String("x")}, {Name: "T", Value: edm.DateTime(edm.MaxTicks + 1)}}, false},
		{"equal negative DateTimes", 0, 40, edm.Properties{{Name: "A", Value: edm.String("x")}, {Name: "T", Value: edm.DateTime(-1)}}, false},
		{"DateTime of a row stored by row", 0, 1, edm.Properties{{Name: "Own", Value: edm.DateTime(edm.MaxTicks + 1)}}, false},
		{"Timestamp", edm.MaxTicks + 1, 1, good(0), false},
		{"negative Timestamp", -1, 1, good(0), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var entries []entry
			for i := range 40 {
				e := newEntry("p", fmt.Sprintf("%03d", i), uint64(i+1), i%7 == 6, good(i))
				if i < c.rows && i%7 != 6 {
					e.props = c.bad
					if c.ts != 0 {
						e.ts = c.ts
					}
				}
				entries = append(entries, e)
			}
			f, _ := write(t, writerOptions(), entries)
			r := open(t, f, cache.New(1<<20))
			defer r.Close()
			it := r.NewIterator(IterOptions{Snapshot: 1 << 50})
			n := 0
			for ok := it.SeekGE(nil); ok; ok = it.Next() {
				row := it.Row()
				if row == nil {
					continue
				}
				if row.Load() != nil {
					break
				}
				for i := range row.Len() {
					if _, v := row.At(i); !c.read && !validValue(v) {
						t.Errorf("row %d returns an invalid %v", n, v.Type())
					}
				}
				if !row.Timestamp().Valid() {
					t.Errorf("row %d returns an invalid Timestamp", n)
				}
				n++
			}
			err := it.Err()
			if it.h != nil && err == nil && it.viewed {
				err = it.view.Err()
			}
			var damage *corrupt.Error
			if found := errors.As(err, &damage); found != (c.rows > 0 && !c.read) || !found && err != nil {
				t.Errorf("after %d rows: %v", n, err)
			}
			if err := it.Close(); err != nil && c.rows == 0 {
				t.Error(err)
			}
			if err := r.Verify(t.Context()); errors.As(err, &damage) != (c.rows > 0) {
				t.Errorf("Verify: %v", err)
			}
		})
	}
}
