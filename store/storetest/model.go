package storetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/store"
)

// RunModel executes a random sequence of steps on a new store of b and on a store of
// [NewMap], and fails tb at the first difference. The sequence depends only on seed,
// and on whether b has Reopen and PowerCut. A failure shows the seed and the last
// steps. Timestamps may differ from the oracle's, but must be equal where those are
// equal, and increase for each key, or with RisingTimestamps from call to call.
func RunModel(tb testing.TB, b Backend, seed uint64, steps int) {
	tb.Helper()
	m := &model{
		tester: newTester(tb, b), seed: seed, rand: rand.New(rand.NewPCG(seed, 0x7461626c65)), oracle: newMap(fixedClock),
		ticks: map[edm.Ticks]edm.Ticks{}, created: map[edm.Ticks]edm.Ticks{}, versions: map[edm.Key][]edm.Ticks{},
		lastOf: map[tableKey]edm.Ticks{},
	}
	tb.Logf("model: seed %d, %d steps", seed, steps)
	defer func() {
		if tb.Failed() {
			tb.Logf("model: seed %d failed at step %d; the last steps:\n  %s", seed, m.step, strings.Join(m.trace, "\n  "))
		}
	}()
	m.s = m.open()
	for m.step = range steps {
		if m.do(); m.Failed() {
			return
		}
	}
	m.finishCursors()
	m.compareAll()
	m.noErr("Close", m.s.Close())
}

// model is a running comparison.
type model struct {
	*tester
	seed   uint64
	step   int
	trace  []string // the last steps
	rand   *rand.Rand
	s      store.Store // under test
	oracle *mapStore

	last     edm.Ticks               // the latest Timestamp of a finished call of s
	lastOf   map[tableKey]edm.Ticks  // likewise of each key
	ticks    map[edm.Ticks]edm.Ticks // from the oracle's to those of s
	created  map[edm.Ticks]edm.Ticks // likewise for the creation of tables
	versions map[edm.Key][]edm.Ticks // the oracle's for all versions of a key
	cursors  []*pairOfCursors
}

// tableKey is a key in the table of a folded name.
type tableKey struct {
	table string
	key   edm.Key
}

// pairOfCursors are cursors of one query on both stores, begun at the same step.
type pairOfCursors struct {
	what      string
	got, want store.Cursor
	begun     int // the step of the query
}

func (m *model) fatalf(format string, args ...any) {
	m.Helper()
	m.Fatalf("seed %d, step %d: %s", m.seed, m.step, fmt.Sprintf(format, args...))
}

// note records a step for messages.
func (m *model) note(format string, args ...any) string {
	text := fmt.Sprintf(format, args...)
	if len(text) > 600 {
		text = text[:600] + "..."
	}
	if len(m.trace) == 12 {
		m.trace = m.trace[1:]
	}
	m.trace = append(m.trace, fmt.Sprintf("%d: %s", m.step, text))
	return text
}

// chance returns true in n of 1,000 calls.
func (m *model) chance(n int) bool { return m.rand.IntN(1000) < n }

// do executes one step.
func (m *model) do() {
	switch n := m.rand.IntN(100); {
	case n < 50:
		m.apply()
	case n < 62:
		m.get()
	case n < 80:
		m.query()
	case n < 86:
		m.cursor()
	case n < 93:
		m.tables()
	case n < 97:
		m.meta()
	case n < 98:
		m.note("compare all")
		m.compareAll()
	default:
		m.reopen()
	}
}

// sameErr fails unless both failed in the same way, and reports whether both
// succeeded.
func (m *model) sameErr(got, want error) bool {
	m.Helper()
	if a, b := kindOf(got), kindOf(want); a != b {
		m.fatalf("got %v (%s), want %v (%s)", got, a, want, b)
	}
	return want == nil
}

// kindOf returns everything by which callers can distinguish errors.
func kindOf(err error) string {
	if err == nil {
		return "success"
	}
	var kind []string
	var op *store.OpError
	if errors.As(err, &op) {
		kind = append(kind, fmt.Sprintf("op %d, executed %v", op.Index, op.Executed))
	}
	if rule := ruleOf(err); rule != 0 {
		kind = append(kind, fmt.Sprintf("rule %q", rule))
	}
	for _, sentinel := range []error{
		store.ErrTableExists, store.ErrTableNotFound, store.ErrEntityExists, store.ErrEntityNotFound, store.ErrPrecondition, store.ErrInvalid,
		store.ErrTooLarge, store.ErrLocked, store.ErrReadOnly, store.ErrNoSpace, store.ErrNewerFormat,
		store.ErrOutcomeUnknown, store.ErrUnavailable, store.ErrCorrupt, store.ErrClosed,
	} {
		if errors.Is(err, sentinel) {
			kind = append(kind, sentinel.Error())
		}
	}
	return strings.Join(kind, ", ")
}

// apply executes a batch on both stores.
func (m *model) apply() {
	table, ops := m.tableName(), m.ops()
	theirs := slices.Clone(ops)
	for i := range theirs {
		for _, ts := range m.versions[ops[i].Entity.Key] {
			if ts.ETag() == ops[i].IfMatch {
				theirs[i].IfMatch = m.ticks[ts].ETag()
			}
		}
	}
	m.note("%s", describe(table, ops))
	want, wantErr := m.oracle.Apply(m.ctx, table, ops...)
	got, err := m.s.Apply(m.ctx, table, theirs...)
	if !m.sameErr(err, wantErr) {
		if got != nil {
			m.fatalf("results %v with an error", got)
		}
		return
	}
	if len(got) != len(want) {
		m.fatalf("%d results, want %d", len(got), len(want))
	}
	latest := m.last
	for i, w := range want {
		g := got[i]
		if ops[i].Kind == store.OpDelete {
			if g != w {
				m.fatalf("op %d, a deletion, has the result %v", i, g)
			}
			continue
		}
		k := ops[i].Entity.Key
		of := tableKey{edm.FoldTableName(table), k}
		if g.Timestamp <= m.lastOf[of] || g.ETag != g.Timestamp.ETag() {
			m.fatalf("op %d has the result %v, after %d of this key", i, g, m.lastOf[of])
		}
		if m.backend.RisingTimestamps && (g.Timestamp <= m.last || g.Timestamp < latest) {
			m.fatalf("op %d has the result %v, after %d in this batch and %d before", i, g, latest, m.last)
		}
		latest, m.lastOf[of] = g.Timestamp, g.Timestamp
		m.ticks[w.Timestamp] = g.Timestamp
		m.versions[k] = append(m.versions[k], w.Timestamp)
	}
	m.last = latest
}

// same fails unless got equals want of the oracle.
func (m *model) same(what string, got, want []edm.Entity) {
	m.Helper()
	want = slices.Clone(want)
	for i := range want {
		want[i].Timestamp = m.ticks[want[i].Timestamp]
	}
	if d := difference(got, want); d != "" {
		m.fatalf("%s: %s", what, d)
	}
}

func (m *model) get() {
	table, k := m.tableName(), m.key()
	what := m.note("get %q of %s", k, table)
	want, wantErr := m.oracle.Get(m.ctx, table, k)
	got, err := m.s.Get(m.ctx, table, k)
	if m.sameErr(err, wantErr) {
		m.same(what, []edm.Entity{got}, []edm.Entity{want})
	}
	err = m.s.View(m.ctx, table, k, func(r edm.Row) error {
		m.same(what+" by View", []edm.Entity{edm.EntityOf(r)}, []edm.Entity{want})
		return nil
	})
	m.sameErr(err, wantErr)
}

// query compares a chain of pages with the whole result.
func (m *model) query() {
	table, q := m.tableName(), m.queryOf()
	what := m.note("query %s: %s", table, show(q))
	whole := q
	whole.Limit, whole.Budget, whole.BudgetBytes = 0, 0, 0
	want := m.drain(m.oracle.Query(m.ctx, table, whole))
	if want.Err != nil {
		m.sameErr(m.drain(m.s.Query(m.ctx, table, q)).Err, want.Err)
		return
	}
	m.same(what, m.chain(m.s, table, q, 100_000), want.Rows)
}

// cursor begins a query, or continues one.
func (m *model) cursor() {
	if !m.backend.Snapshot {
		return // the cursors of the oracle are snapshots
	}
	if len(m.cursors) < 3 && m.chance(600) {
		table, q := m.tableName(), m.queryOf()
		q.Budget, q.BudgetBytes = 0, 0
		what := m.note("begin query %s: %s", table, show(q))
		m.cursors = append(m.cursors, &pairOfCursors{what: what, got: m.s.Query(m.ctx, table, q), want: m.oracle.Query(m.ctx, table, q), begun: m.step})
		return
	}
	if len(m.cursors) > 0 {
		i := m.rand.IntN(len(m.cursors))
		if !m.advance(m.cursors[i], m.rand.IntN(20)) {
			m.cursors = slices.Delete(m.cursors, i, i+1)
		}
	}
}

// advance reads up to n rows of c, and reports whether there may be more.
func (m *model) advance(c *pairOfCursors, n int) bool {
	m.note("read %d rows of the query of step %d", n, c.begun)
	for range n {
		got, want := c.got.Next(), c.want.Next()
		if got != want {
			m.fatalf("query of step %d, %s: Next is %v (%v), want %v", c.begun, c.what, got, c.got.Err(), want)
		}
		if !want {
			m.sameErr(c.got.Err(), c.want.Err())
			m.noErr("Close", errors.Join(c.got.Close(), c.want.Close()))
			return false
		}
		m.same(fmt.Sprintf("query of step %d, %s", c.begun, c.what), []edm.Entity{edm.EntityOf(c.got.Row())}, []edm.Entity{edm.EntityOf(c.want.Row())})
	}
	return true
}

func (m *model) finishCursors() {
	for _, c := range m.cursors {
		for m.advance(c, 100) {
		}
	}
	m.cursors = nil
}

func (m *model) tables() {
	switch table := m.tableName(); m.rand.IntN(4) {
	case 0, 1:
		m.note("create table %s", table)
		m.sameErr(m.s.CreateTable(m.ctx, table), m.oracle.CreateTable(m.ctx, table))
	case 2:
		if m.chance(500) {
			m.note("delete table %s", table)
			m.sameErr(m.s.DeleteTable(m.ctx, table), m.oracle.DeleteTable(m.ctx, table))
		}
	case 3:
		m.list(table[:m.rand.IntN(len(table)+1)], m.rand.IntN(4))
	}
}

func (m *model) list(from string, limit int) {
	m.note("tables from %q limit %d", from, limit)
	want, wantErr := m.oracle.Tables(m.ctx, from, limit)
	got, err := m.s.Tables(m.ctx, from, limit)
	if !m.sameErr(err, wantErr) {
		return
	}
	if !slices.EqualFunc(got, want, func(a, b store.TableInfo) bool { return a.Name == b.Name }) {
		m.fatalf("got tables %v, want %v", got, want)
	}
	for i, w := range want {
		if m.backend.Protocol {
			break // it has no Created
		}
		if _, ok := m.created[w.Created]; !ok {
			m.created[w.Created] = got[i].Created
		}
		if got[i].Created != m.created[w.Created] {
			m.fatalf("table %s was created at %d, and at %d when last seen", w.Name, got[i].Created, m.created[w.Created])
		}
	}
}

func (m *model) meta() {
	if m.backend.Protocol {
		return
	}
	table := m.tableName()
	meta := []byte(strings.Repeat("m", m.rand.IntN(4)))
	if m.chance(100) {
		meta = make([]byte, maxMetaBytes+m.rand.IntN(2))
	}
	switch m.rand.IntN(4) {
	case 0:
		m.note("set %d bytes of metadata of %s", len(meta), table)
		m.sameErr(m.s.SetTableMeta(m.ctx, table, meta), m.oracle.SetTableMeta(m.ctx, table, meta))
	case 1:
		m.note("set %d bytes of metadata", len(meta))
		m.sameErr(m.s.SetAccountMeta(m.ctx, meta), m.oracle.SetAccountMeta(m.ctx, meta))
	default:
		m.note("metadata of %s and of the account", table)
		m.compareMeta(table)
	}
}

func (m *model) compareMeta(table string) {
	if m.backend.Protocol {
		return
	}
	want, wantErr := m.oracle.TableMeta(m.ctx, table)
	got, err := m.s.TableMeta(m.ctx, table)
	if m.sameErr(err, wantErr) && string(got) != string(want) {
		m.fatalf("metadata of %s: %d bytes, want %d", table, len(got), len(want))
	}
	want, wantErr = m.oracle.AccountMeta(m.ctx)
	got, err = m.s.AccountMeta(m.ctx)
	if m.sameErr(err, wantErr) && string(got) != string(want) {
		m.fatalf("metadata of the account: %d bytes, want %d", len(got), len(want))
	}
}

// compareAll compares everything.
func (m *model) compareAll() {
	m.list("", 0)
	for _, table := range m.tester.tables(m.oracle, "", 0) {
		m.compareMeta(table.Name)
		got, want := m.drain(m.s.Query(m.ctx, table.Name, store.Query{})), m.drain(m.oracle.Query(m.ctx, table.Name, store.Query{}))
		m.sameErr(got.Err, want.Err)
		m.same("all of "+table.Name, got.Rows, want.Rows)
	}
}

// reopen opens the data again after Close or a power cut.
func (m *model) reopen() {
	cut := m.backend.PowerCut != nil && (m.backend.Reopen == nil || m.chance(500))
	if !cut && m.backend.Reopen == nil {
		return
	}
	m.finishCursors()
	m.note("reopen, by a loss of power: %v", cut)
	if cut {
		m.s = m.closing(m.backend.PowerCut(m, m.s))
	} else {
		m.s = m.tester.reopen(m.s)
	}
	m.compareAll()
}
