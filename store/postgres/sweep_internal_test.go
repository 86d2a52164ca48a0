package postgres

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/store/postgres/pgtest"
)

const people = "People"

// database is a new database with the table people of one account.
type database struct {
	t   *testing.T
	url string
	d   *Database
	s   *Store
}

func openDatabase(t *testing.T) *database {
	t.Helper()
	b := &database{t: t, url: pgtest.Shared(t).NewDatabase(t)}
	if err := Init(t.Context(), b.url, &Options{AllowAsync: true}); err != nil {
		t.Fatal(err)
	}
	b.d, b.s = b.connect(b.url)
	b.must(b.s.CreateTable(t.Context(), people))
	return b
}

func (b *database) connect(url string) (*Database, *Store) {
	b.t.Helper()
	d, err := Connect(b.t.Context(), url, &Options{AllowAsync: true, manual: true})
	b.must(err)
	b.t.Cleanup(func() {
		if err := d.Close(); err != nil {
			b.t.Error(err)
		}
	})
	s, err := d.Account(b.t.Context(), "acme")
	b.must(err)
	return d, s
}

func (b *database) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// fill inserts n entities, of which every tenth has a long key.
func (b *database) fill(n int) {
	b.t.Helper()
	for _, partition := range []string{"p", strings.Repeat("\u8868", 900)} {
		var ops []store.Op
		for i := range n {
			if (i%10 == 0) != (partition == "p") {
				ops = append(ops, store.Insert(edm.Entity{Key: edm.Key{Partition: partition, Row: fmt.Sprint(i)}}))
			}
		}
		for batch := range slices.Chunk(ops, edm.MaxBatchOps) {
			_, err := b.s.Apply(b.t.Context(), people, batch...)
			b.must(err)
		}
	}
}

func (b *database) drop() {
	b.t.Helper()
	b.must(b.s.DeleteTable(b.t.Context(), people))
}

// rows returns the numbers of rows of tr_entities, tr_long and tr_dead.
func (b *database) rows() string {
	b.t.Helper()
	return pgtest.Exec(b.t, b.url,
		"SELECT (SELECT count(*) FROM tr_entities) || ' ' || (SELECT count(*) FROM tr_long) || ' ' || (SELECT count(*) FROM tr_dead)")[0]
}

// wantRows compares them after a run of w.
func (b *database) wantRows(w *sweeper, what, want string) {
	b.t.Helper()
	b.must(w.run(b.t.Context()))
	if got := b.rows(); got != want {
		b.t.Errorf("%s: %q entities, long ones and dropped tables, want %q", what, got, want)
	}
}

// wantRowsAtLast is like wantRows after some runs: older transactions of other databases delay
// the last step.
func (b *database) wantRowsAtLast(w *sweeper, what, want string) {
	b.t.Helper()
	deadline := time.After(time.Minute)
	for b.rows() != want {
		select {
		case <-deadline:
			b.wantRows(w, what, want)
			return
		case <-time.After(10 * time.Millisecond):
			b.must(w.run(b.t.Context()))
		}
	}
}

func newTestSweeper(d *Database) *sweeper {
	return &sweeper{d: d, rows: func(int64) {}, paused: func(context.Context, time.Duration) error { return nil }}
}

// TestSweep drops a table of some thousand entities beside another table. Two sweepers
// remove them, at the same time. Each skips rows while the other has the lock of the table, so
// both can leave some, which the third one removes.
func TestSweep(t *testing.T) {
	t.Parallel()
	b := openDatabase(t)
	const n = 2*sweepRows + 500
	b.fill(n)
	b.drop()
	b.must(b.s.CreateTable(t.Context(), people))
	b.fill(20)
	var most, total int64
	var mu sync.Mutex
	counting := func() *sweeper {
		w := newTestSweeper(b.d)
		w.rows = func(n int64) {
			mu.Lock()
			defer mu.Unlock()
			most, total = max(most, n), total+n
		}
		return w
	}
	var group sync.WaitGroup
	for range 2 {
		group.Go(func() {
			if err := counting().run(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	b.wantRowsAtLast(counting(), "after three sweepers", "18 2 0")
	if total != n || most > sweepRows {
		t.Errorf("removed %d rows, at most %d in a transaction; want %d, at most %d", total, most, n, sweepRows)
	}
}

// TestSweepWaitsForWriters adds an entity to a dropped table, by a transaction that read its
// id before the drop and has no number of its own until after it.
func TestSweepWaitsForWriters(t *testing.T) {
	t.Parallel()
	for _, row := range []string{"tr_entities VALUES (%s, 'p', 'r', 1, '')", "tr_long VALUES (%s, 'h', 'p', 'r', 1, '')"} {
		b := openDatabase(t)
		writer, err := b.d.acquire(t.Context())
		b.must(err)
		script := func(sql string) [][]string {
			rows, err := writer.Script(t.Context(), sql)
			b.must(err)
			return rows
		}
		id := script("BEGIN; SELECT id FROM tr_tables")[0][0]
		b.drop()
		w := newTestSweeper(b.d)
		for range 2 {
			b.wantRows(w, "while a transaction can add entities", "0 0 1")
		}
		script("INSERT INTO " + fmt.Sprintf(row, id) + "; COMMIT")
		b.d.pool.Release(writer)
		b.wantRowsAtLast(w, "after the writer", "0 0 0")
	}
}

// TestSweepBesideDump sweeps a table while a transaction stays open that began before its drop, as that of pg_dump, and
// that keeps all dead rows. Once no row is left, a run looks only whether the transaction has ended.
func TestSweepBesideDump(t *testing.T) {
	t.Parallel()
	b := openDatabase(t)
	b.fill(20)
	o := newOther(t, b.url)
	o.exec("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1 FROM tr_tables")
	b.drop()
	w := newTestSweeper(b.d)
	b.wantRows(w, "the first run", "0 0 1")
	b.must(w.run(t.Context()))
	before := b.d.Stats().RoundTrips
	const runs = 50
	for range runs {
		b.must(w.run(t.Context()))
	}
	if n := b.d.Stats().RoundTrips - before; n > 3*runs {
		t.Errorf("%d round trips of %d runs without a row", n, runs)
	}
	pgtest.Exec(t, b.url, `INSERT INTO tr_entities SELECT id, 'p', 'late', 1, '' FROM tr_dead`)
	o.exec("ROLLBACK")
	b.wantRowsAtLast(w, "after the transaction", "0 0 0")
}

// TestSweepWaitsForHiddenWriters does not see when the transaction of another user began.
func TestSweepWaitsForHiddenWriters(t *testing.T) {
	t.Parallel()
	b := openDatabase(t) // its heartbeat is the other session
	const user = "tr_sweep_test"
	pgtest.Exec(t, b.url, "DROP ROLE IF EXISTS "+user, "CREATE ROLE "+user+" LOGIN",
		"GRANT ALL ON ALL TABLES IN SCHEMA public TO "+user, "GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO "+user)
	t.Cleanup(func() { pgtest.Exec(t, b.url, "DROP OWNED BY "+user, "DROP ROLE "+user) })
	u, err := url.Parse(b.url)
	b.must(err)
	u.User = url.User(user)
	d, _ := b.connect(u.String())
	b.drop()
	w := newTestSweeper(d)
	b.wantRows(w, "a new drop", "0 0 1")
	pgtest.Exec(t, b.url, fmt.Sprintf("UPDATE tr_dead SET dropped = dropped - %d", hiddenAge/100))
	b.wantRowsAtLast(w, "an old drop", "0 0 0")
}

// TestSweepWaitsForUnwatchedWriters does not see when a transaction began, because its session has track_activities off.
func TestSweepWaitsForUnwatchedWriters(t *testing.T) {
	t.Parallel()
	b := openDatabase(t)
	writer, err := b.d.acquire(t.Context())
	b.must(err)
	_, err = writer.Script(t.Context(), "SET track_activities = off")
	b.must(err)
	_, err = writer.Script(t.Context(), "BEGIN; SELECT id FROM tr_tables")
	b.must(err)
	b.drop()
	w := newTestSweeper(b.d)
	b.wantRows(w, "while a transaction can add entities", "0 0 1")
	writer.Close()
	b.d.pool.Release(writer)
	b.wantRowsAtLast(w, "after the writer", "0 0 0")
}

// TestSweepRestored sweeps a table that was dropped in another cluster, of which this one has a dump: it may never reach
// the number of that transaction.
func TestSweepRestored(t *testing.T) {
	t.Parallel()
	b := openDatabase(t)
	b.fill(20)
	b.drop()
	pgtest.Exec(t, b.url, "UPDATE tr_dead SET xid = xid + 1000000000000")
	b.wantRowsAtLast(newTestSweeper(b.d), "a drop of another cluster", "0 0 0")
}

// TestSweepCommand calls Sweep, and takes a sample.
func TestSweepCommand(t *testing.T) {
	t.Parallel()
	b := openDatabase(t)
	b.fill(1)
	b.drop()
	b.must(b.d.takeSample(t.Context()))
	if got := b.d.Stats().Sample; got.DroppedTables != 1 || got.TableBytes == 0 || got.IndexBytes == 0 || got.Time.IsZero() {
		t.Errorf("sample %+v, want a dropped table and sizes", got)
	}
	var seen int64
	n, err := Sweep(t.Context(), b.url, func(rows int64) { seen = rows })
	if n != 1 || seen != 1 || err != nil {
		t.Errorf("Sweep: %d rows, %v, progress %d; want 1", n, err, seen)
	}
	b.wantRowsAtLast(newTestSweeper(b.d), "after Sweep", "0 0 0")
}

// TestSampleDuringSweep takes samples of a table that is being swept: it is one of those that are not finished.
func TestSampleDuringSweep(t *testing.T) {
	t.Parallel()
	var clock shiftedClock
	b := &database{t: t, url: pgtest.Shared(t).NewDatabase(t)}
	b.s = openURL(t, b.url, &Options{AllowAsync: true, now: clock.now, manual: true})
	b.d = b.s.db
	b.s.makeTable(t)
	b.fill(2 * sweepRows)
	samples := &sampler{d: b.d}
	b.must(samples.run(t.Context()))
	b.drop()
	w := b.d.newSweeper(samples)
	var seen []int64
	pause := w.paused
	w.paused = func(ctx context.Context, _ time.Duration) error {
		clock.by.Add(int64(sampleInterval))
		await(t, "a beat", func() bool { b.d.heart.wake(); return b.d.Ping(ctx) == nil })
		err := pause(ctx, 0)
		seen = append(seen, b.d.Stats().Sample.DroppedTables)
		return err
	}
	b.must(w.run(t.Context()))
	if want := []int64{1, 1, 1}; !slices.Equal(seen, want) {
		t.Errorf("the samples have %v dropped tables, want %v", seen, want)
	}
}

// TestSweepAlone stops Sweep after its first transaction for longer than sweepInterval. No other sweeper of the same
// process removes rows meanwhile, which Sweep would not count.
func TestSweepAlone(t *testing.T) {
	t.Parallel()
	b := openDatabase(t)
	const n = sweepRows + 500
	b.fill(n)
	b.drop()
	first := true
	got, err := Sweep(t.Context(), b.url, func(rows int64) {
		if !first {
			return
		}
		first = false
		deadline := time.After(sweepInterval + 2*time.Second)
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for pgtest.Exec(t, b.url, "SELECT (SELECT count(*) FROM tr_entities) + (SELECT count(*) FROM tr_long)")[0] == fmt.Sprint(n-rows) {
			select {
			case <-tick.C:
			case <-deadline:
				return
			}
		}
		t.Error("another sweeper works beside Sweep")
	})
	if got != n || err != nil {
		t.Errorf("Sweep: %d rows, %v; want %d", got, err, n)
	}
}

// TestVacuum overwrites all rows of a small table. Autovacuum, which looks at it once
// a minute, is off.
func TestVacuum(t *testing.T) {
	t.Parallel()
	b := openDatabase(t)
	pgtest.Exec(t, b.url, "ALTER TABLE tr_entities SET (autovacuum_enabled = off)")
	b.fill(3000)
	pgtest.Exec(t, b.url, "UPDATE tr_entities SET ts = ts + 1")
	dead := func(condition string) bool {
		rows := pgtest.Exec(t, b.url, "SELECT 1 FROM pg_stat_user_tables WHERE relname = 'tr_entities' AND "+condition)
		return len(rows) == 1
	}
	await(t, "PostgreSQL has counted the dead rows", func() bool { return dead("n_dead_tup >= 2700") })
	v := &vacuumer{d: b.d}
	await(t, "no dead rows", func() bool {
		b.must(v.run(t.Context()))
		return dead("vacuum_count > 0 AND n_dead_tup = 0") // the first can be too early for a transaction
	})
	const runs = "SELECT vacuum_count FROM pg_stat_user_tables WHERE relname = 'tr_entities'"
	before := pgtest.Exec(t, b.url, runs)[0]
	v.next = time.Time{}
	b.must(v.run(t.Context()))
	if after := pgtest.Exec(t, b.url, runs)[0]; after != before || !v.next.IsZero() {
		t.Error("the table was vacuumed again although it has no dead rows")
	}
}

// TestNewIndexBytes looks at the index and shows its size in Stats.
func TestNewIndexBytes(t *testing.T) {
	t.Parallel()
	b := openDatabase(t)
	b.fill(20)
	pgtest.Exec(t, b.url, "ANALYZE tr_entities")
	r := b.d.rebuilder()
	b.must(r.Run(t.Context()))
	r.Release()
	if got := b.d.Stats().NewIndexBytes; got == 0 {
		t.Error("Stats has no size of a new index")
	}
}
