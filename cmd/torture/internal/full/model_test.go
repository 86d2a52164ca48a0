package full

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// TestScan checks what a scan finds. Each case changes a model with one partition of
// acknowledged rows, or what is read from it.
func TestScan(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(m *model, rows []int)
		read   func(rows []int) []int
		want   string
	}{
		{"as acknowledged", nil, nil, ""},
		{"a missing row", nil, func(rows []int) []int { return rows[1:] }, "was acknowledged and is missing"},
		{"a row twice", nil, func(rows []int) []int { return append(rows, rows[0]) }, "is returned twice"},
		{"a deleted row", func(m *model, rows []int) { m.set(rows[:1], deleted) }, nil, "was deleted and came back"},
		{"a refused row", func(m *model, rows []int) { m.set(rows[:1], absent) }, nil, "was not acknowledged but refused, and is present"},
		{"a row of a dropped table", func(m *model, _ []int) { m.drop(1) }, nil, "was deleted and came back"},
		{"a row of another table", nil, func(rows []int) []int { return append(rows, rowNumber(0, 0, 0)) }, "was never written"},
		{"an unknown row present", func(m *model, rows []int) { m.set(rows[:1], unknown) }, nil, ""},
		{"an unknown row absent", func(m *model, rows []int) { m.set(rows[:1], unknown) }, func(rows []int) []int { return rows[1:] }, ""},
		{"an unknown batch absent", func(m *model, rows []int) { m.set(rows[:5], unknown) }, func(rows []int) []int { return rows[5:] }, ""},
		{"half of an unknown batch", func(m *model, rows []int) { m.set(rows[:5], unknown) }, func(rows []int) []int { return rows[1:] }, "incomplete"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newModel(1)
			rows := m.take(1)
			m.set(rows, present)
			if c.change != nil {
				c.change(m, rows)
			}
			read := rows
			if c.read != nil {
				read = c.read(slices.Clone(rows))
			}
			s := m.scan(1)
			for _, row := range read {
				s.row(&entity{partitionKey(row), rowKey(row), value(1, row)})
			}
			if got := s.end(true); !strings.Contains(got, c.want) || (c.want == "") != (got == "") {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestScanComparesContent reads a row with one changed byte.
func TestScanComparesContent(t *testing.T) {
	m := newModel(1)
	rows := m.take(0)
	m.set(rows[:1], present)
	content := value(1, rows[0])
	content[len(content)-1]++
	s := m.scan(0)
	s.row(&entity{partitionKey(rows[0]), rowKey(rows[0]), content})
	if got := s.end(true); !strings.Contains(got, "has another content") {
		t.Errorf("got %q", got)
	}
}

// TestScanDecides checks that the outcome that the first scan after an open sees is final.
func TestScanDecides(t *testing.T) {
	for _, reopened := range []bool{false, true} {
		m := newModel(1)
		rows := m.take(0)
		m.set(rows[:5], unknown)
		m.scan(0).end(reopened)
		s := m.scan(0)
		for _, row := range rows[:5] {
			s.row(&entity{partitionKey(row), rowKey(row), value(1, row)})
		}
		if got := s.end(true); (got != "") != reopened {
			t.Errorf("reopened %t: got %q", reopened, got)
		}
	}
}

// TestRows checks sizes, keys and JSON of rows, and that their content depends on the seed
// and on the row.
func TestRows(t *testing.T) {
	m := newModel(7)
	contents := map[string]bool{}
	small, large := 0, 0
	for table := range tables {
		for range 3 {
			for _, row := range m.take(table) {
				var e entity
				if err := json.Unmarshal(entityJSON(nil, 7, row), &e); err != nil {
					t.Fatal(err)
				}
				if got, ok := rowOfKey(e.PartitionKey, e.RowKey); !ok || got != row || tableOf(row) != table {
					t.Errorf("row %d has the key %q, %q, which is that of row %d (%t)", row, e.PartitionKey, e.RowKey, got, ok)
				}
				if !bytes.Equal(e.V, value(7, row)) || bytes.Equal(e.V, value(8, row)) || len(e.V) != valueBytes(row) {
					t.Errorf("row %d has %d bytes of content, want %d of its own", row, len(e.V), valueBytes(row))
				}
				if contents[string(e.V)] {
					t.Errorf("row %d has the content of another row", row)
				}
				contents[string(e.V)] = true
				if len(e.V) < 2000 {
					small++
				} else {
					large++
				}
			}
		}
	}
	if small != large || small == 0 {
		t.Errorf("%d small and %d large rows, want as many", small, large)
	}
}

// TestVictims checks that about half of the rows are deleted, each once, in single requests
// and in transactions of one partition.
func TestVictims(t *testing.T) {
	m := newModel(1)
	n := 0
	for range 20 {
		rows := m.take(1)
		m.set(rows, present)
		n += len(rows)
	}
	seen := map[int]bool{}
	single, batches := 0, 0
	for _, unit := range m.victims(1) {
		if len(unit) == 1 {
			single++
		} else {
			batches++
		}
		for _, row := range unit {
			if seen[row] || partitionOf(row) != partitionOf(unit[0]) {
				t.Errorf("row %d is in a transaction with row %d, or occurs twice", row, unit[0])
			}
			seen[row] = true
		}
	}
	if len(seen) < n*4/10 || len(seen) > n*6/10 || single < n/10 || batches < 5 {
		t.Errorf("%d of %d rows, %d single and %d transactions", len(seen), n, single, batches)
	}
}

// TestCases checks that the names are unique and which cases a short campaign has.
func TestCases(t *testing.T) {
	names, short := map[string]bool{}, 0
	for _, c := range Cases() {
		if names[c.Name()] {
			t.Errorf("two cases are called %s", c.Name())
		}
		names[c.Name()] = true
		if c.Short {
			short++
		}
	}
	if short != len(shortCases) {
		t.Errorf("%d cases are short, want %d: a name of shortCases is wrong", short, len(shortCases))
	}
}
