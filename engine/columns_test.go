package engine_test

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/filter"
	"github.com/tablerock-db/tablerock/internal/race"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/store/storetest"
	"github.com/tablerock-db/tablerock/vfs"
)

// columnModel is a database of entities of random shapes, spread over memtables and runs,
// and, for each instant of which there is a snapshot, the entities.
type columnModel struct {
	*rand.Rand
	db        *engine.DB
	names     []string
	uniform   bool // all entities have one shape
	few       bool // Strings have few values
	big       bool // some values are in value blocks
	rows      int  // in each partition
	first     int  // the first partition of key
	now       map[edm.Key]edm.Entity
	snapshots []*engine.Snapshot
	maps      []map[edm.Key]edm.Entity
	byColumns int // rows read
}

// types of the properties by name. With two, each entity has one of them.
var columnTypes = map[string][]edm.Type{
	"A": {edm.TypeInt32}, "B": {edm.TypeInt64, edm.TypeInt32}, "C": {edm.TypeDouble}, "D": {edm.TypeDateTime},
	"E": {edm.TypeBoolean, edm.TypeString}, "F": {edm.TypeGuid}, "G": {edm.TypeString}, "H": {edm.TypeString, edm.TypeDouble},
	"I": {edm.TypeBinary}, "J": {edm.TypeBoolean},
}

// value returns one of few values of a type, so that filters match.
func (m *columnModel) value(t edm.Type) edm.Value {
	n := m.IntN(40) - 10
	switch t {
	case edm.TypeInt32:
		return edm.Int32(int32(n))
	case edm.TypeInt64:
		return edm.Int64(int64(n) << m.IntN(2) * 20)
	case edm.TypeDouble:
		switch n {
		case 0:
			return edm.Double(math.NaN())
		case 1:
			return edm.Double(math.Copysign(0, -1))
		case 2:
			return edm.Double(math.Inf(1 - 2*m.IntN(2)))
		}
		return edm.Double(math.Abs(float64(n)) / 4 * float64(1-2*(n&1)*m.IntN(2)))
	case edm.TypeDateTime:
		return edm.DateTime(edm.Ticks(1<<57 + n*1_000_000))
	case edm.TypeBoolean:
		return edm.Boolean(n%2 == 0)
	case edm.TypeGuid:
		return edm.GuidWords(uint64(n&3), uint64(n))
	case edm.TypeBinary:
		return edm.Binary(m.bytes(n))
	}
	words := []string{"", "a", "ab", "b", "\ud7ff", "\U0001F600", "\ue000", "a longer text that is in no dictionary "}
	if m.few { // a dictionary
		return edm.String(words[m.IntN(len(words))])
	}
	return edm.String(words[m.IntN(len(words))] + string(m.bytes(n)))
}

// bytes returns ASCII: few different ones, many, or very many.
func (m *columnModel) bytes(n int) []byte {
	b := fmt.Appendf(nil, "%d", n)
	switch m.IntN(60) {
	case 0:
		if m.big {
			return append(b, make([]byte, 5000)...) // a value block
		}
	case 1, 2, 3, 4, 5:
		return fmt.Appendf(b, "%d", m.IntN(1000))
	}
	return b
}

func (m *columnModel) key() edm.Key {
	return edm.Key{Partition: fmt.Sprint("p", m.first+m.IntN(4-m.first)), Row: fmt.Sprintf("%04d", m.IntN(m.rows))}
}

// entity returns a random entity. Neighbors often have the same shape.
func (m *columnModel) entity(key edm.Key) edm.Entity {
	e := edm.Entity{Key: key}
	shapes := rand.New(rand.NewPCG(uint64(m.IntN(3)), uint64(len(key.Row))))
	if m.uniform {
		shapes = rand.New(rand.NewPCG(1, 1))
	} else if m.IntN(50) == 0 {
		shapes = m.Rand
	}
	for _, name := range m.names {
		if types := columnTypes[name]; m.uniform || shapes.IntN(4) > 0 {
			e.Properties = append(e.Properties, edm.Property{Name: name, Value: m.value(types[shapes.IntN(len(types))])})
		}
	}
	return e
}

// write overwrites, inserts and deletes. Some keys get several versions.
func (m *columnModel) write(t *testing.T, n int) {
	key := m.key()
	for range n {
		if m.IntN(4) == 0 {
			key = m.key()
		} else {
			key.Row = fmt.Sprintf("%04d", m.IntN(m.rows))
		}
		if m.IntN(6) == 0 {
			_, err := m.db.Apply(t.Context(), table, store.Delete(key, store.Any))
			if err != nil && !errors.Is(err, store.ErrEntityNotFound) {
				t.Fatal(err)
			}
			delete(m.now, key)
			continue
		}
		e := m.entity(key)
		e.Timestamp = apply(t, m.db, store.InsertOrReplace(e))[0].Timestamp
		m.now[key] = e
		if m.IntN(300) == 0 {
			m.snapshot(t)
		}
	}
}

func (m *columnModel) snapshot(t *testing.T) {
	s, err := m.db.Snapshot()
	check(t, "Snapshot", err)
	m.snapshots, m.maps = append(m.snapshots, s), append(m.maps, maps.Clone(m.now))
}

// filter returns a random filter and its text.
func (m *columnModel) filter(depth int) string {
	if depth > 0 && m.IntN(3) > 0 {
		a, b := m.filter(depth-1), m.filter(depth-1)
		switch m.IntN(5) {
		case 0:
			return fmt.Sprintf("not (%s)", a)
		case 1, 2:
			return fmt.Sprintf("(%s) or (%s)", a, b)
		}
		return fmt.Sprintf("(%s) and (%s)", a, b)
	}
	op := []string{"eq", "ne", "lt", "le", "gt", "ge"}[m.IntN(6)]
	switch m.IntN(12) {
	case 0:
		return fmt.Sprintf("PartitionKey %s 'p%d'", op, m.IntN(5))
	case 1:
		return fmt.Sprintf("RowKey %s '%04d'", op, m.IntN(m.rows))
	case 2:
		if e, ok := m.now[m.key()]; ok {
			return fmt.Sprintf("Timestamp %s %s", op, literal(edm.DateTime(e.Timestamp)))
		}
	}
	name := m.names[m.IntN(len(m.names))]
	types := columnTypes[name]
	if m.IntN(5) == 0 { // of another type
		types = columnTypes[m.names[m.IntN(len(m.names))]]
	}
	v := m.value(types[m.IntN(len(types))])
	if e, ok := m.now[m.key()]; ok && m.IntN(2) == 0 { // one that matches
		if has, ok := e.Properties.Lookup(name); ok {
			v = has
		}
	}
	for literal(v) == "" {
		v = m.value(edm.TypeInt32)
	}
	return fmt.Sprintf("%s %s %s", name, op, literal(v))
}

// literal returns v in the language of filters, nothing if it cannot be written.
func literal(v edm.Value) string {
	switch v.Type() {
	case edm.TypeInt32:
		n, _ := v.Int32()
		return fmt.Sprint(n)
	case edm.TypeInt64:
		n, _ := v.Int64()
		return fmt.Sprintf("%dL", n)
	case edm.TypeDouble:
		f, _ := v.Double()
		if math.IsNaN(f) || math.IsInf(f, 0) {
			return ""
		}
		return fmt.Sprintf("%.3f", f)
	case edm.TypeBoolean:
		b, _ := v.Bool()
		return fmt.Sprint(b)
	case edm.TypeDateTime:
		t, _ := v.DateTime()
		return fmt.Sprintf("datetime'%v'", t)
	case edm.TypeGuid:
		g, _ := v.Guid()
		return fmt.Sprintf("guid'%v'", g)
	case edm.TypeBinary:
		return fmt.Sprintf("X'%x'", v.Bytes())
	}
	return "'" + string(v.Bytes()) + "'"
}

// query compares a random query with the entities of a random instant.
func (m *columnModel) query(t *testing.T, seed uint64) {
	t.Helper()
	for range m.IntN(20) { // arranges heads
		_, err := m.db.Get(t.Context(), table, m.key())
		if err != nil && !errors.Is(err, store.ErrEntityNotFound) {
			t.Fatal(err)
		}
	}
	at := m.IntN(len(m.maps))
	q := store.Query{Reverse: m.IntN(2) == 0}
	var parts []string
	if m.IntN(4) == 0 { // several ranges of keys
		parts = append(parts, fmt.Sprintf("(PartitionKey eq 'p%d' and RowKey lt '%04d' or PartitionKey eq 'p%d' or PartitionKey eq 'p%d' and RowKey ge '%04d')",
			m.IntN(2), m.IntN(m.rows), m.IntN(3), m.IntN(4), m.IntN(m.rows)))
	}
	if m.IntN(4) > 0 {
		parts = append(parts, "("+m.filter(m.IntN(4))+")")
	}
	text := strings.Join(parts, " and ")
	if text != "" {
		q.Filter = filter.MustParse(text)
	}
	switch m.IntN(4) {
	case 0:
		q.Limit = 1 + m.IntN(60)
	case 1:
		q.Budget = 1 + m.IntN(3000)
	case 2:
		q.BudgetBytes = 1 + m.IntN(5000)
	}
	if m.IntN(3) == 0 {
		q.Select = []string{m.names[m.IntN(len(m.names))], m.names[m.IntN(len(m.names))]}
	}
	if m.IntN(4) == 0 {
		from := m.key()
		q.From = &from
	}
	var want []edm.Entity
	for _, e := range m.maps[at] {
		before := q.From != nil && (!q.Reverse && e.Key.Compare(*q.From) < 0 || q.Reverse && e.Key.Compare(*q.From) > 0)
		if !before && (q.Filter == nil || q.Filter.Match(e.View())) {
			want = append(want, e)
		}
	}
	slices.SortFunc(want, func(a, b edm.Entity) int { return a.Key.Compare(b.Key) })
	if q.Reverse {
		slices.Reverse(want)
	}
	what := fmt.Sprintf("TABLEROCK_SEED=%d: %.300s at snapshot %d of %d, from %v, reverse %v, limit %d, budget %d, bytes %d, select %v",
		seed, text, at, len(m.maps), q.From, q.Reverse, q.Limit, q.Budget, q.BudgetBytes, q.Select)
	n := 0
	for {
		c := m.snapshots[at].Query(t.Context(), table, q)
		returned := 0
		for row := range m.rowsOf(c) {
			if n == len(want) {
				t.Fatalf("%s: more than %d rows; the next one is %v", what, n, row.Key())
			}
			compareRow(t, what, row, want[n], q.Select)
			n++
			returned++
		}
		read, next := c.(store.Examiner).Examined(), c.Resume()
		check(t, what, errors.Join(c.Err(), c.Close()))
		m.comparePage(t, what, m.snapshots[at].Query(t.Context(), table, q), q, returned, read, next)
		if q.Limit > 0 && returned > q.Limit || q.Budget > 0 && read > q.Budget || returned > read {
			t.Fatalf("%s: a page of %d rows, %d examined", what, returned, read)
		}
		if next == nil {
			break
		}
		if q.From = next; returned == 0 && read == 0 {
			t.Fatalf("%s: a page without progress at %v", what, *next)
		}
	}
	if n != len(want) {
		t.Fatalf("%s: %d rows, want %d; the next one is %v", what, n, len(want), want[n].Key)
	}
}

// comparePage reads a page by rows and compares where it ends with the same page as m.rowsOf
// has read it. With a filter, windows by columns and by rows can end a Budget at other entities.
func (m *columnModel) comparePage(t *testing.T, what string, c store.Cursor, q store.Query, returned, read int, next *edm.Key) {
	t.Helper()
	n := 0
	for c.Next() {
		n++
	}
	examined, resume := c.(store.Examiner).Examined(), c.Resume()
	check(t, what, errors.Join(c.Err(), c.Close()))
	if q.Filter != nil && q.Budget > 0 {
		return
	}
	same := (next == nil) == (resume == nil) && (next == nil || *next == *resume)
	if n != returned || !same || q.Filter == nil && examined != read {
		t.Fatalf("%s: a page of %d rows, %d examined, resumes at %v; by rows %d, %d, %v", what, returned, read, next, n, examined, resume)
	}
}

// rowsOf returns the rows of a cursor, which it reads by rows, by columns where it can, or
// at random by both.
func (m *columnModel) rowsOf(c store.Cursor) iter.Seq[edm.Row] {
	columns := m.IntN(3)
	return func(yield func(edm.Row) bool) {
		for {
			if columns == 2 || columns == 1 && m.IntN(3) == 0 {
				if rows := c.(store.ColumnCursor).NextColumns(); rows != nil {
					list, err := storetest.Entities(rows)
					if err != nil {
						return // Err returns it
					}
					for _, e := range list {
						if !yield(e.View()) {
							return
						}
					}
					m.byColumns += rows.Len()
					continue
				}
			}
			if !c.Next() || !yield(c.Row()) {
				return
			}
		}
	}
}

// TestBudgetEndsInMemtable reads pages whose budget ends among the rows of a memtable that
// are between two rows of a file.
func TestBudgetEndsInMemtable(t *testing.T) {
	race.SkipOneGoroutine(t)
	o := small(vfs.NewMem())
	o.Testing.Manual, o.NoSync, o.SegmentBytes = true, true, 4<<20
	db := mustCreate(t, o)
	const rows = 4000
	var want []string
	for _, step := range []int{999, 1} {
		for i := 0; i < rows; i += step {
			apply(t, db, store.InsertOrReplace(entity("p", fmt.Sprintf("%05d", i), int64(i%7), 20)))
		}
		if step > 1 {
			check(t, "Flush", db.Flush(t.Context()))
		}
	}
	for i := range rows {
		if i%7 == 3 {
			want = append(want, fmt.Sprintf("%05d", i))
		}
	}
	for budget := 1000; budget < 1300; budget += 37 {
		for _, reverse := range []bool{false, true} {
			keys, _, examined := pages(t, db, store.Query{Filter: filter.MustParse("N eq 3L"), Budget: budget, Reverse: reverse})
			if examined < rows {
				t.Errorf("budget %d, reverse %v: %d rows of %d examined", budget, reverse, examined, rows)
			}
			if reverse {
				slices.Reverse(keys)
			}
			if !slices.EqualFunc(keys, want, func(k edm.Key, row string) bool { return k.Row == row }) {
				t.Errorf("budget %d, reverse %v: %d rows, want %d", budget, reverse, len(keys), len(want))
			}
		}
	}
}

// TestEveryBudget reads pages with every budget, which can be just the rows of a group that has matches.
func TestEveryBudget(t *testing.T) {
	race.SkipOneGoroutine(t)
	o := small(vfs.NewMem())
	o.Testing.Manual, o.NoSync, o.SegmentBytes, o.FileBytes = true, true, 4<<20, 4<<20
	db := mustCreate(t, o)
	const rows, every = 600, 150
	for i := range rows {
		apply(t, db, store.Insert(entity("p", fmt.Sprintf("%04d", i), int64(i%every), 100)))
	}
	check(t, "Flush", db.Flush(t.Context()))
	for budget := 1; budget <= rows; budget++ {
		for _, reverse := range []bool{false, true} {
			keys, _, _ := pages(t, db, store.Query{Filter: filter.MustParse("N eq 3L"), Budget: budget, Reverse: reverse})
			if len(keys) != rows/every {
				t.Fatalf("budget %d, reverse %v: the rows %v, want %d", budget, reverse, keys, rows/every)
			}
		}
	}
}

// TestBudgetBesideFrom reads pages whose From is the only row of its file, in the span of a
// group of another file, before the first or after the last row of it. The budget can be just
// the rows of the group.
func TestBudgetBesideFrom(t *testing.T) {
	race.SkipOneGoroutine(t)
	o := small(vfs.NewMem())
	o.Testing.Manual, o.NoSync, o.SegmentBytes, o.FileBytes = true, true, 4<<20, 1<<20
	db := mustCreate(t, o)
	check(t, "Flush", db.Flush(t.Context())) // the catalog's rows into a file of their own
	const rows = 2000
	row := func(i int, last string) edm.Entity {
		return entity("p", fmt.Sprintf("%04d%s", i, last), int64(i&1)*2, 20)
	}
	for i := range rows {
		apply(t, db, store.Insert(row(i, "m")))
	}
	check(t, "Flush", db.Flush(t.Context()))
	groups := func(i int) int {
		key := row(i, "m").Key
		plan, _, _ := explain(t, db, "N eq 1L", store.Query{From: &key})
		return plan.InRanges
	}
	first := sort.Search(rows, func(i int) bool { return groups(i) < groups(0) }) // row of the second group
	for _, c := range []struct {
		from    edm.Entity
		reverse bool
	}{{row(first, "a"), false}, {row(first-1, "z"), true}} {
		apply(t, db, store.Insert(c.from))
		check(t, "Flush", db.Flush(t.Context()))
		q := store.Query{Filter: filter.MustParse("N eq 1L"), From: &c.from.Key, Reverse: c.reverse}
		for q.Budget = 1; q.Budget < rows; q.Budget++ {
			cursor := db.Query(t.Context(), table, q)
			if cursor.Next() || cursor.Err() != nil {
				t.Fatalf("budget %d: a row, or %v", q.Budget, cursor.Err())
			}
			if next := cursor.Resume(); next != nil && *next == *q.From {
				t.Errorf("budget %d, reverse %v: a page from %v resumes there", q.Budget, q.Reverse, *next)
			}
			check(t, "Close", cursor.Close())
		}
	}
}

func compareRow(t *testing.T, what string, row edm.Row, want edm.Entity, selected []string) {
	t.Helper()
	if row.Key() != want.Key || row.Timestamp() != want.Timestamp {
		t.Fatalf("%s: row %v of %v, want %v of %v", what, row.Key(), row.Timestamp(), want.Key, want.Timestamp)
	}
	var props edm.Properties
	for _, p := range want.Properties {
		if selected == nil || slices.Contains(selected, p.Name) {
			props = append(props, p)
		}
	}
	got := edm.EntityOf(row).Properties
	slices.SortFunc(got, func(a, b edm.Property) int { return edm.Compare([]byte(a.Name), []byte(b.Name)) })
	equal := slices.EqualFunc(got, props, func(a, b edm.Property) bool { return a.Name == b.Name && a.Value.Equal(b.Value) })
	if !equal {
		t.Fatalf("%s: row %v\n%s", what, want.Key, cmp.Diff(fmt.Sprint(props), fmt.Sprint(got)))
	}
}

// TestQueriesByColumns compares random queries with maps of the entities: over memtables,
// files and runs that overlap or not, of overwrites and deletes, at the present and at
// snapshots.
func TestQueriesByColumns(t *testing.T) {
	race.SkipOneGoroutine(t)
	seed := testSeed(t)
	databases, queries := 6, 80
	if testing.Short() {
		databases, queries = 3, 16
	}
	for i := range uint64(databases) {
		m := &columnModel{Rand: rand.New(rand.NewPCG(seed, i)), now: map[edm.Key]edm.Entity{}}
		t.Run(fmt.Sprint("database=", i), func(t *testing.T) {
			m.run(t, seed, queries)
			t.Logf("%d rows by columns", m.byColumns)
		})
	}
}

func (m *columnModel) run(t *testing.T, seed uint64, queries int) {
	o := small(vfs.NewMem())
	o.Testing.Manual, o.NoSync, o.SegmentBytes = true, true, 4<<20
	o.TierRuns, o.FileBytes, o.CacheBytes = 2+m.IntN(15), int64(64<<10)<<m.IntN(6), int64(64<<10)<<m.IntN(8)
	m.db = mustCreate(t, o)
	m.rows, m.uniform = 20<<m.IntN(9), m.IntN(2) == 0
	m.few, m.big = m.IntN(2) == 0, m.IntN(2) == 0
	m.names = slices.Sorted(maps.Keys(columnTypes))
	m.Shuffle(len(m.names), func(i, j int) { m.names[i], m.names[j] = m.names[j], m.names[i] })
	m.names = m.names[:1+m.IntN(len(m.names))]
	slices.Sort(m.names)
	m.snapshot(t)
	size := 1
	if m.rows > 2000 { // files of many groups of rows
		size = 5
	}
	for range 1 + m.IntN(8) {
		m.first = m.IntN(2) * m.IntN(4) // files of some partitions among files of all
		m.write(t, size*(200+m.IntN(1500)))
		m.first = 0
		m.snapshot(t)
		switch m.IntN(5) {
		case 0:
			check(t, "Compact", m.db.Compact(t.Context()))
		case 1:
		default:
			check(t, "Flush", m.db.Flush(t.Context()))
		}
		for range m.IntN(4) { // leaves files that are compacted in part
			_, err := m.db.Step(t.Context())
			check(t, "Step", err)
			m.snapshot(t)
		}
		for range queries / 8 {
			m.query(t, seed)
		}
	}
	m.snapshot(t)
	for range queries {
		m.query(t, seed)
	}
	for _, s := range m.snapshots {
		check(t, "Close", s.Close())
	}
}
