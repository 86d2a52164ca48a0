package full

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
)

// state is what is known about a row.
type state uint8

const (
	absent  state = iota // not written, or each write was refused
	present              // its write was acknowledged
	deleted              // its deletion was acknowledged
	unknown              // the outcome of a write or deletion is unknown
)

// model holds the expected rows of a database. It is safe for concurrent use.
type model struct {
	seed uint64

	mu sync.Mutex
	// states has the state of each row.
	// +checklocks:mu
	states []state
	// next is the next unused partition of each table.
	// +checklocks:mu
	next [tables]int
	// units has the transactions of unknown outcome, by their first row.
	// +checklocks:mu
	units map[int][]int
	// +checklocks:mu
	dropped [tables]bool
}

func newModel(seed uint64) *model { return &model{seed: seed, units: map[int][]int{}} }

// take returns the rows of the next partition of a table.
func (m *model) take(table int) []int {
	m.mu.Lock()
	defer m.mu.Unlock()
	rows := make([]int, rowsPerPartition)
	for i := range rows {
		rows[i] = rowNumber(table, m.next[table], i)
	}
	m.next[table]++
	if end := rows[len(rows)-1] + tables; end > len(m.states) {
		m.states = append(m.states, make([]state, end-len(m.states))...)
	}
	return rows
}

// set records the state of the rows of one transaction.
func (m *model) set(rows []int, s state) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, row := range rows {
		m.states[row] = s
		delete(m.units, row)
	}
	if s == unknown && len(rows) > 1 {
		m.units[rows[0]] = rows
	}
}

// rowsIn returns the rows of a table that were acknowledged.
func (m *model) rowsIn(table int) (rows []int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for row := table; row < len(m.states); row += tables {
		if m.states[row] == present {
			rows = append(rows, row)
		}
	}
	return rows
}

// drop records the deletion of a table.
func (m *model) drop(table int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for row := table; row < len(m.states); row += tables {
		m.states[row] = deleted
	}
	m.dropped[table] = true
	m.forgetLocked(table)
}

// forgetLocked forgets which rows of a table are one transaction.
//
// +checklocks:m.mu
func (m *model) forgetLocked(table int) {
	maps.DeleteFunc(m.units, func(row int, _ []int) bool { return tableOf(row) == table })
}

func (m *model) isDropped(table int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.dropped[table]
}

// remaining returns the tables that were not dropped.
func (m *model) remaining() (list []int) {
	for table := range tables {
		if !m.isDropped(table) {
			list = append(list, table)
		}
	}
	return list
}

// bytesIn returns the bytes of the acknowledged rows of a table.
func (m *model) bytesIn(table int) (bytes int64) {
	for _, row := range m.rowsIn(table) {
		bytes += int64(valueBytes(row))
	}
	return bytes
}

// victims returns half of the acknowledged rows of a table, grouped by request: single rows
// in one half of the partitions, transactions in the other half.
func (m *model) victims(table int) (units [][]int) {
	for _, row := range m.rowsIn(table) {
		last := len(units) - 1
		switch {
		case !m.victim(row):
		case last >= 0 && partitionOf(row)%2 == 0 && partitionOf(units[last][0]) == partitionOf(row):
			units[last] = append(units[last], row)
		default:
			units = append(units, []int{row})
		}
	}
	return units
}

// readable returns a random row that must be present and is not deleted concurrently.
func (m *model) readable(rng *rand.Rand) (row int, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for range 100 {
		if len(m.states) == 0 {
			break
		}
		row = rng.IntN(len(m.states))
		if m.states[row] == present && tableOf(row) == 1 && !m.victim(row) {
			return row, true
		}
	}
	return 0, false
}

// victim reports whether a row belongs to the half that is deleted.
func (m *model) victim(row int) bool { return mix(m.seed^uint64(row))&1 == 0 }

// scan compares the rows of a table with the model.
type scan struct {
	m     *model
	table int
	seen  map[int]bool
	wrong map[string][]int // rows by what is wrong with them
}

func (m *model) scan(table int) *scan {
	return &scan{m, table, map[int]bool{}, map[string][]int{}}
}

// row checks a row that the program returned.
func (s *scan) row(e *entity) {
	row, ok := rowOfKey(e.PartitionKey, e.RowKey)
	s.m.mu.Lock()
	known := ok && row < len(s.m.states) && tableOf(row) == s.table
	state := absent
	if known {
		state = s.m.states[row]
	}
	s.m.mu.Unlock()
	switch {
	case !known:
		s.add(fmt.Sprintf("with the key %q, %q was never written", e.PartitionKey, e.RowKey), row)
	case s.seen[row]:
		s.add("is returned twice", row)
	case state == absent:
		s.add("was not acknowledged but refused, and is present", row)
	case state == deleted:
		s.add("was deleted and came back", row)
	case !bytes.Equal(e.V, value(s.m.seed, row)):
		s.add("has another content", row)
	}
	s.seen[row] = true
}

func (s *scan) add(what string, row int) { s.wrong[what] = append(s.wrong[what], row) }

// end returns what was wrong, "" if nothing was. If the database was opened since the last
// write of unknown outcome, the outcome is now known.
func (s *scan) end(reopened bool) string {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	for row := s.table; row < len(s.m.states); row += tables {
		if s.m.states[row] == present && !s.seen[row] {
			s.add("was acknowledged and is missing", row)
		}
	}
	for _, rows := range s.m.units {
		if tableOf(rows[0]) != s.table {
			continue
		}
		n := 0
		for _, row := range rows {
			if s.seen[row] {
				n++
			}
		}
		if n != 0 && n != len(rows) {
			s.add("begins a transaction that is incomplete", rows[0])
		}
	}
	if reopened {
		s.resolveLocked()
	}
	var text []string
	for what, rows := range s.wrong {
		text = append(text, fmt.Sprintf("table %s: row %d %s (%d rows)", tableNames[s.table], rows[0], what, len(rows)))
	}
	slices.Sort(text)
	return strings.Join(text, "; ")
}

// resolveLocked replaces the state unknown by what the scan saw.
//
// +checklocks:s.m.mu
func (s *scan) resolveLocked() {
	s.m.forgetLocked(s.table)
	for row := s.table; row < len(s.m.states); row += tables {
		if s.m.states[row] != unknown {
			continue
		}
		s.m.states[row] = absent
		if s.seen[row] {
			s.m.states[row] = present
		}
	}
}
