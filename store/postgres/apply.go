package postgres

import (
	"context"
	"fmt"

	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/store/postgres/internal/wire"
)

// The statements that are a transaction by themselves. Each reads the id of the table and the base of
// Timestamps in its own snapshot.
const (
	inTable = " WHERE t.account = $1 AND t.folded = $2"
	theID   = "(SELECT t.id FROM tr_tables AS t" + inTable + ")"
	oneKey  = "e.tid = " + theID + " AND e.p = $3 AND e.r = $4"
	// Each row that it overwrites takes a number of its own, after the wait for the row.
	upsert = " ON CONFLICT (tid, p, r) DO UPDATE SET v = excluded.v, ts = CASE WHEN tr_entities.ts < " + tickNow +
		" THEN " + tickNow + " ELSE 1 / (tr_entities.ts - tr_entities.ts) END"
	oneRow   = "INSERT INTO tr_entities (tid, p, r, ts, v) SELECT t.id, $3, $4, " + oneTick + ", $5 FROM tr_tables AS t, " + clockRow + inTable
	manyRows = "INSERT INTO tr_entities (tid, p, r, ts, v) SELECT t.id, $3, u.k, " + manyTick +
		", u.v FROM tr_tables AS t, " + clockRow + ", unnest($4::bytea[], $5::bytea[]) AS u(k, v)" + inTable
	// oneTick and manyTick are the Timestamp of a row, unless its key is in the snapshot. Such a row is written
	// only if the entity goes meanwhile, and can have waited for other writes of it: newTick refuses it.
	oneTick  = "CASE WHEN (SELECT 1 FROM tr_entities AS e WHERE e.tid = t.id AND e.p = $3 AND e.r = $4 LIMIT 1) IS NULL THEN " + tickSQL + " ELSE 0 END"
	manyTick = "CASE WHEN (SELECT 1 " + shortRow + ") IS NULL THEN " + tickSQL + " ELSE 0 END"
	newTick  = "CASE WHEN ts > 0 THEN ts ELSE 1 / ts END"
)

var (
	insertOne = wire.NewStatement("insert", 1, oneRow+" ON CONFLICT DO NOTHING RETURNING "+newTick,
		wire.OIDText, wire.OIDBytea, wire.OIDBytea, wire.OIDBytea, wire.OIDBytea)
	upsertOne = wire.NewStatement("upsert", 1, oneRow+upsert+" RETURNING "+newTick,
		wire.OIDText, wire.OIDBytea, wire.OIDBytea, wire.OIDBytea, wire.OIDBytea)
	replaceOne = wire.NewStatement("replace", 1, "UPDATE tr_entities AS e SET v = $5, ts = "+tickAbove+" FROM "+clockRow+" WHERE "+oneKey+
		" AND ($6 = 0 OR e.ts = $6) RETURNING e.ts", wire.OIDText, wire.OIDBytea, wire.OIDBytea, wire.OIDBytea, wire.OIDBytea, wire.OIDInt8)
	deleteOne = wire.NewStatement("delete", 0, "DELETE FROM tr_entities AS e WHERE "+oneKey+" AND ($5 = 0 OR e.ts = $5)",
		wire.OIDText, wire.OIDBytea, wire.OIDBytea, wire.OIDBytea, wire.OIDInt8)
	insertMany = wire.NewStatement("insert_many", 2, manyRows+" RETURNING r, "+newTick,
		wire.OIDText, wire.OIDBytea, wire.OIDBytea, wire.OIDByteaArray, wire.OIDByteaArray)
	upsertMany = wire.NewStatement("upsert_many", 2, manyRows+upsert+" RETURNING r, "+newTick,
		wire.OIDText, wire.OIDBytea, wire.OIDBytea, wire.OIDByteaArray, wire.OIDByteaArray)

	// sameBase fails if the base was raised since the row of a key was written: a row that waited for a lock
	// can have kept the statement from the rows after it.
	sameBase = wire.NewStatement("same_base", 1, "SELECT 1 / CASE WHEN c.base + nextval('tr_tick') < e.ts + "+leastRaise+
		" THEN 1 ELSE 0 END FROM tr_entities AS e, "+clockRow+" WHERE "+oneKey, wire.OIDText, wire.OIDBytea, wire.OIDBytea, wire.OIDBytea)
)

// The statements of a transaction in two flights. The first flight locks the stored entities,
// in the order of their keys. Its statements have a snapshot each, so the rows say which table
// they are of.
//
// A statement finds each entity by a subquery, or is for one entity, so that PostgreSQL can
// only look up the whole key. With r = ANY ($4) or a join it may read a whole partition and
// filter it, if partitions were small when it made the plan.
var (
	tableID    = wire.NewStatement("table", 1, "SELECT id FROM tr_tables AS t"+inTable, wire.OIDText, wire.OIDBytea)
	lockRows   = wire.NewStatement("lock", 4, lockSQL("r", "NULL::bytea", shortRow), shortKeys...)
	lockValues = wire.NewStatement("lock_values", 4, lockSQL("r", "e.v", shortRow), shortKeys...)
	lockLong   = wire.NewStatement("lock_long", 4, lockSQL("h", "e.v", longRow), longKeys...)

	insertRow = wire.NewStatement("insert_row", 1, "INSERT INTO tr_entities (tid, p, r, ts, v) VALUES ($1, $2, $3, "+tickNow+", $4) RETURNING ts",
		wire.OIDInt8, wire.OIDBytea, wire.OIDBytea, wire.OIDBytea)
	updateRow = wire.NewStatement("update_row", 1, "UPDATE tr_entities AS e SET v = $4, ts = "+tickAbove+" FROM "+clockRow+`
		WHERE e.tid = $1 AND e.p = $2 AND e.r = $3 RETURNING e.ts`, wire.OIDInt8, wire.OIDBytea, wire.OIDBytea, wire.OIDBytea)
	deleteRow  = wire.NewStatement("delete_row", 0, "DELETE FROM tr_entities WHERE tid = $1 AND p = $2 AND r = $3", wire.OIDInt8, wire.OIDBytea, wire.OIDBytea)
	insertLong = wire.NewStatement("insert_long", 1, "INSERT INTO tr_long (tid, h, p, r, ts, v) VALUES ($1, $2, $3, $4, "+tickNow+", $5) RETURNING ts",
		wire.OIDInt8, wire.OIDBytea, wire.OIDBytea, wire.OIDBytea, wire.OIDBytea)
	updateLong = wire.NewStatement("update_long", 1, "UPDATE tr_long AS e SET v = $3, ts = "+tickAbove+" FROM "+clockRow+`
		WHERE e.tid = $1 AND e.h = $2 RETURNING e.ts`, wire.OIDInt8, wire.OIDBytea, wire.OIDBytea)
	deleteLong = wire.NewStatement("delete_long", 0, "DELETE FROM tr_long WHERE tid = $1 AND h = $2", wire.OIDInt8, wire.OIDBytea)
	markLong   = wire.NewStatement("mark_long", 0, "UPDATE tr_tables AS t SET long = true"+inTable+" AND t.id = $3 AND NOT t.long",
		wire.OIDText, wire.OIDBytea, wire.OIDInt8)
)

// Subqueries for the entity with the key u.k in the table t.id.
const (
	shortRow = "FROM tr_entities AS e WHERE e.tid = t.id AND e.p = $3 AND e.r = u.k LIMIT 1"
	longRow  = "FROM tr_long AS e WHERE e.tid = t.id AND e.h = u.k LIMIT 1"
)

// The parameters of statements with an array of keys.
var (
	shortKeys = []uint32{wire.OIDText, wire.OIDBytea, wire.OIDBytea, wire.OIDByteaArray}
	longKeys  = []uint32{wire.OIDText, wire.OIDBytea, wire.OIDByteaArray}
)

func lockSQL(key, value, row string) string {
	return "SELECT f.* FROM (SELECT " + theID + " AS id) AS t, unnest(" + keysOf(key) + ") AS u(k), LATERAL (SELECT e.tid, e." + key + ", e.ts, " + value +
		" " + row + " FOR UPDATE) AS f"
}

// keysOf returns the parameter that has the keys.
func keysOf(key string) string {
	if key == "r" {
		return "$4::bytea[]"
	}
	return "$3::bytea[]"
}

// The statements that read what a refusal depends on. They return a row for each key.
var (
	beginSnapshot = wire.NewStatement("begin_snapshot", 0, "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY")
	readRows      = wire.NewStatement("read_rows", 4, readSQL("r", "NULL::bytea", shortRow), shortKeys...)
	readValues    = wire.NewStatement("read_values", 4, readSQL("r", "e.v", shortRow), shortKeys...)
	readLong      = wire.NewStatement("read_long", 4, readSQL("h", "e.v", longRow), longKeys...)
)

func readSQL(key, value, row string) string {
	return "SELECT t.id, f.* FROM tr_tables AS t CROSS JOIN unnest(" + keysOf(key) + ") AS u(k) LEFT JOIN LATERAL (SELECT e." + key + ", e.ts, " + value +
		" " + row + ") AS f ON true" + inTable
}

// Apply implements store.Store. A single insert, upsert, replace or deletion, and a batch of
// inserts or of upserts, is one flight. Any other batch locks and reads the stored
// entities in one flight, and writes and commits in a second one. So does one whose statement got a
// Timestamp that would not increase: with the entities locked, each next one does.
func (s *Store) Apply(ctx context.Context, table string, ops ...store.Op) ([]store.Result, error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	defer s.calls.Done()
	if err := store.CheckBatch(table, ops, nil); err != nil {
		return nil, err
	}
	b := s.newBatch(table, ops)
	if err := s.db.transact(ctx, func(c *wire.Conn) error { return b.try(ctx, c) }); err != nil {
		return nil, err
	}
	return b.results, nil
}

// try makes one try.
func (b *batch) try(ctx context.Context, c *wire.Conn) error {
	one, at := len(b.ops) == 1, 0 // at is the number of the statement in the flight
	account, folded, p, e := b.store.account, b.folded, b.p, &b.rows[0]
	switch {
	case b.limited:
		return b.refuse(ctx, c)
	case b.waited:
		return b.lockAndWrite(ctx, c)
	case one && b.all(store.OpInsert):
		c.Queue(insertOne, account, folded, p, e.R, e.value)
	case one && b.all(store.OpInsertOrReplace):
		c.Queue(upsertOne, account, folded, p, e.R, e.value)
	case one && b.all(store.OpReplace):
		c.Queue(replaceOne, account, folded, p, e.R, e.value, wire.Int8Arg(e.want))
	case one && b.all(store.OpDelete):
		c.Queue(deleteOne, account, folded, p, e.R, wire.Int8Arg(e.want))
	case b.all(store.OpInsert):
		at = b.queueMany(c, insertMany)
	case b.all(store.OpInsertOrReplace):
		at = b.queueMany(c, upsertMany)
	default:
		return b.lockAndWrite(ctx, c)
	}
	rows, err := c.Commit(func(statement int, values [][]byte) error {
		if statement != at {
			return nil
		}
		if one {
			return b.result(0, values[0])
		}
		i := b.index(false, values[0])
		if i < 0 {
			return errNoAnswer
		}
		return b.result(i, values[1])
	})
	switch {
	case wire.CodeOf(err) == "23505" && b.ops[0].Kind == store.OpInsert, err == nil && rows[at] == 0:
		return b.refuse(ctx, c)
	case err == nil && rows[at] != int64(len(b.ops)):
		return errNoAnswer
	}
	b.waited = wire.CodeOf(err) == "22012"
	return err
}

// queueMany queues a transaction that writes all rows by one statement, and returns the number of the
// statement in the flight.
func (b *batch) queueMany(c *wire.Conn, st *wire.Statement) int {
	c.Queue(wire.BeginStatement)
	c.Queue(st, b.store.account, b.folded, b.p, b.keys(b.short, false), b.values(b.short))
	c.Queue(sameBase, b.store.account, b.folded, b.p, b.rows[b.short[0]].R)
	c.Queue(wire.CommitStatement)
	return 1
}

var errNoAnswer = fmt.Errorf("%w: the database answers for other rows than were written", store.ErrOutcomeUnknown)

// refuse reads the stored entities in one snapshot without locks, and judges. It returns the *store.OpError that they
// demand, or wire.ErrLostRace if the ops can succeed by now. Rows that were locked after a wait, and a statement
// that changed no row, are no reason for a refusal by themselves: PostgreSQL shows a locked
// row as it is after the wait, but an absent one as of before it.
func (b *batch) refuse(ctx context.Context, c *wire.Conn) error {
	c.Rollback(ctx)
	if c.Broken {
		return wire.ErrLostRace
	}
	b.forget()
	both := len(b.long) > 0 && len(b.short) > 0
	first := 0
	if both {
		c.Queue(beginSnapshot)
		first = 1
	}
	account := b.store.account
	if len(b.short) > 0 {
		st := readRows
		if b.merges {
			st = readValues
		}
		c.Queue(st, account, b.folded, b.p, b.keys(b.short, false))
	}
	if len(b.long) > 0 {
		c.Queue(readLong, account, b.folded, b.keys(b.long, true))
	}
	if both {
		c.Queue(wire.CommitStatement)
	}
	table := false
	_, err := c.RoundTrip(ctx, func(i int, values [][]byte) error {
		table = true
		if values[1] == nil {
			return nil
		}
		long := len(b.short) == 0 || i > first
		return b.found(long, values[1], values[2], values[3])
	})
	if err != nil {
		return err
	}
	// The refusal is of the primary only if it still is one.
	if err := b.store.db.heart.check(c); err != nil {
		return err
	}
	if err := b.judge(table); err != nil {
		return err
	}
	return wire.ErrLostRace
}

// lockAndWrite is a transaction of two flights.
func (b *batch) lockAndWrite(ctx context.Context, c *wire.Conn) error {
	id, err := b.lock(ctx, c)
	if err != nil {
		return err
	}
	if err := b.judge(id != 0); err != nil {
		if !isOpError(err) {
			return err
		}
		return b.refuse(ctx, c)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return b.write(c, id)
}

// lock begins a transaction, locks and reads the stored entities, and returns the id of the table, 0 if there
// is none.
func (b *batch) lock(ctx context.Context, c *wire.Conn) (id int64, err error) {
	b.forget()
	account := b.store.account
	c.Queue(wire.BeginStatement)
	c.Queue(tableID, account, b.folded)
	if len(b.short) > 0 {
		st := lockRows
		if b.merges {
			st = lockValues
		}
		c.Queue(st, account, b.folded, b.p, b.keys(b.short, false))
	}
	if len(b.long) > 0 {
		c.Queue(lockLong, account, b.folded, b.keys(b.long, true))
	}
	_, err = c.RoundTrip(ctx, func(i int, values [][]byte) error {
		n, err := wire.Int8Of(values[0])
		if err != nil {
			return err
		}
		if i == 1 {
			id = n
			return nil
		}
		if n != id {
			return wire.ErrLostRace // of a table that was created since
		}
		return b.found(len(b.short) == 0 || i == 3, values[1], values[2], values[3])
	})
	return id, err
}

// write writes all ops to the table id, whose entities are locked, and commits. An insert
// that lost a race is a unique violation; the other rows exist and stay as they are.
func (b *batch) write(c *wire.Conn, id int64) error {
	table := wire.Int8Arg(id)
	// The answers must be short: the server stops reading the flight when they fill the socket. So
	// they have no keys. Each row is written by a statement of its own, which takes the base and the number of
	// its Timestamp after the waits of those before it.
	var written []int // by statement, the op that it executes
	add := func(i int, st *wire.Statement, args ...[]byte) {
		c.Queue(st, args...)
		written = append(written, i)
	}
	ins, upd, del := b.split(b.short)
	for _, i := range ins {
		add(i, insertRow, table, b.p, b.rows[i].R, b.rows[i].value)
	}
	for _, i := range upd {
		add(i, updateRow, table, b.p, b.rows[i].R, b.rows[i].value)
	}
	for _, i := range del {
		add(i, deleteRow, table, b.p, b.rows[i].R)
	}
	ins, upd, del = b.split(b.long)
	for _, i := range ins {
		add(i, insertLong, table, b.rows[i].H, b.p, b.rows[i].R, b.rows[i].value)
	}
	for _, i := range upd {
		add(i, updateLong, table, b.rows[i].H, b.rows[i].value)
	}
	for _, i := range del {
		add(i, deleteLong, table, b.rows[i].H)
	}
	if len(ins) > 0 {
		c.Queue(markLong, b.store.account, b.folded, table)
	}
	c.Queue(wire.CommitStatement)
	rows, err := c.Commit(func(statement int, values [][]byte) error {
		if statement >= len(written) {
			return errNoAnswer
		}
		return b.result(written[statement], values[0])
	})
	if err != nil {
		return err
	}
	if len(rows) < len(written) {
		return errNoAnswer
	}
	for i := range written {
		if rows[i] != 1 {
			return errNoAnswer
		}
	}
	return nil
}

// split returns the indexes of list whose rows are to be inserted, updated and deleted.
func (b *batch) split(list []int) (ins, upd, del []int) {
	for _, i := range list {
		switch {
		case b.ops[i].Kind == store.OpDelete:
			del = append(del, i)
		case b.rows[i].found:
			upd = append(upd, i)
		default:
			ins = append(ins, i)
		}
	}
	return ins, upd, del
}
