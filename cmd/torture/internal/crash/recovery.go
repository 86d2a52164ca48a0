package crash

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"strconv"

	"github.com/tablerock-db/tablerock/cmd/torture/internal/oracle"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
)

// recovery recovers a disk after a crash, reads and writes, and simulates the next crash at
// one point of that, chosen at random.
type recovery struct {
	x     *explorer
	disk  *vfs.Mem
	rng   *rand.Rand
	depth int
	// issued is the largest Timestamp that was returned before the first crash.
	issued edm.Ticks

	span   *span // states that a crash may now lead to
	points int
	next   *vfs.Mem // the disk of the crash at one of the points
	after  *span
	where  string
}

// span is the time between two acknowledgements. Its window is complete when it ends.
type span struct{ window oracle.Window }

// run checks a disk whose database may be in any state of w.
func (r *recovery) run(ctx context.Context, w oracle.Window) error {
	r.x.counts.States.Add(1)
	r.span = &span{w}
	if r.depth < r.x.o.Depth {
		r.disk.OnOp(r.maybeCrash)
	}
	err := r.use(ctx)
	r.disk.OnOp(nil)
	if err != nil || r.next == nil {
		return err
	}
	r.x.counts.Nested.Add(1)
	inner := &recovery{x: r.x, disk: r.next, rng: r.rng, depth: r.depth + 1, issued: r.issued}
	where := r.where
	if err := inner.run(ctx, r.after.window); err != nil {
		return fmt.Errorf("crash %d at %s: %w", r.depth+1, where, err)
	}
	return nil
}

// maybeCrash keeps the disk of one point by reservoir sampling.
func (r *recovery) maybeCrash(op vfs.Op) {
	r.points++
	if r.rng.IntN(r.points) > 0 {
		return
	}
	c := vfs.CrashOptions{Mode: modes[r.rng.IntN(len(modes))], Seed: r.rng.Uint64()}
	r.next, r.after = crashed(r.disk, c), r.span
	r.where = fmt.Sprintf("%v (%s)", op, describe(c))
}

// use opens the database, checks it, writes to it and closes it.
func (r *recovery) use(ctx context.Context) error {
	if r.rng.IntN(8) == 0 {
		if err := r.readOnly(ctx); err != nil {
			return fmt.Errorf("read-only: %w", err)
		}
	}
	db, err := r.x.open(r.disk, r.rng, false)
	if err != nil {
		return err
	}
	closed := false
	defer func() {
		if !closed {
			_ = db.Close() // there is another error
		}
	}()
	at, err := r.verify(ctx, db)
	if err != nil {
		return err
	}
	if at, err = r.work(ctx, db, at); err != nil {
		return fmt.Errorf("after recovery: %w", err)
	}
	closed = true
	if err := db.Close(); err != nil {
		return fmt.Errorf("close: %w", err)
	}
	if r.rng.IntN(6) > 0 {
		return nil
	}
	r.span = &span{oracle.At(at)}
	if db, err = r.x.open(r.disk, r.rng, false); err != nil {
		return fmt.Errorf("after a close: %w", err)
	}
	closed = false
	if _, err = r.verify(ctx, db); err != nil {
		return fmt.Errorf("after a close: %w", err)
	}
	return nil
}

// readOnly opens the database read-only: no byte may change, and the next open must find
// the same state.
func (r *recovery) readOnly(ctx context.Context) error {
	before, err := vfs.Dump(r.disk, ".")
	if err != nil {
		return err
	}
	db, err := r.x.open(r.disk, r.rng, true)
	if errors.Is(err, fs.ErrNotExist) && r.span.window.Low.Before == nil {
		return nil // the crash was during its creation
	}
	if err != nil {
		return err
	}
	_, err = r.verify(ctx, db)
	if err = errors.Join(err, db.Close()); err != nil {
		return err
	}
	after, err := vfs.Dump(r.disk, ".")
	if err == nil && after != before {
		err = fmt.Errorf("the files changed from\n%sto\n%s", before, after)
	}
	return err
}

// verify determines the state of the database and sets the span to it.
func (r *recovery) verify(ctx context.Context, db *engine.DB) (*oracle.Commit, error) {
	got, err := oracle.Scan(ctx, db)
	if err != nil {
		return nil, fmt.Errorf("scan: %w", err)
	}
	at := r.span.window.Find(got.Sum)
	if at == nil {
		return nil, r.mismatch(ctx, db, got.Sum)
	}
	report, err := db.Verify(ctx)
	if err != nil {
		return nil, fmt.Errorf("verify: %w", err)
	}
	if len(report.Findings) > 0 {
		return nil, fmt.Errorf("verify found %v", report.Findings)
	}
	r.span = &span{oracle.At(at)}
	return at, nil
}

func (r *recovery) mismatch(ctx context.Context, db *engine.DB, sum uint64) error {
	w := r.span.window
	got, err := oracle.Load(ctx, db)
	if err != nil {
		return fmt.Errorf("load: %w", err)
	}
	if earlier := w.FindEarlier(sum); earlier != nil {
		return fmt.Errorf("acknowledged commits are lost: the state is that of commit %d (%s), %d (%s) was acknowledged: %s",
			earlier.Number, earlier.What, w.Low.Number, w.Low.What, w.Low.State().Diff(got))
	}
	return fmt.Errorf("the database never had this state; from commit %d (%s): %s; from commit %d (%s): %s",
		w.Low.Number, w.Low.What, w.Low.State().Diff(got), w.High.Number, w.High.What, w.High.State().Diff(got))
}

// work writes, which compares Timestamps with earlier ones, and runs the background work at
// random.
func (r *recovery) work(ctx context.Context, db *engine.DB, at *oracle.Commit) (*oracle.Commit, error) {
	var err error
	for range 1 + r.rng.IntN(2) {
		s := &span{oracle.Window{Low: at}}
		r.span = s
		at, err = r.write(ctx, db, at)
		if err != nil {
			return nil, err
		}
		s.window.High = at
		r.span = &span{oracle.At(at)}
	}
	switch r.rng.IntN(8) {
	case 0:
		err = db.Flush(ctx)
	case 1:
		err = db.Compact(ctx)
	case 2, 3:
		for worked := true; worked && err == nil; {
			worked, err = db.Step(ctx)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("background work: %w", err)
	}
	got, err := oracle.Scan(ctx, db)
	if err != nil {
		return nil, fmt.Errorf("scan: %w", err)
	}
	if got.Sum != at.Sum {
		return nil, r.mismatch(ctx, db, got.Sum)
	}
	return at, nil
}

// write adds one entity, or the table for it.
func (r *recovery) write(ctx context.Context, db *engine.DB, at *oracle.Commit) (*oracle.Commit, error) {
	via := store.Store(db)
	if r.x.o.Store != nil {
		via = r.x.o.Store(db)
	}
	infos, err := db.Tables(ctx, "", 1)
	if err != nil {
		return nil, err
	}
	if len(infos) == 0 {
		if err := via.CreateTable(ctx, "After"); err != nil {
			return nil, err
		}
		if infos, err = db.Tables(ctx, "", 1); err != nil || len(infos) == 0 {
			return nil, fmt.Errorf("the new table is not listed: %w", err)
		}
		return at.Insert("table after a crash", oracle.Effect{Kind: oracle.Create, Table: edm.FoldTableName(infos[0].Name), Info: infos[0]}), nil
	}
	folded := edm.FoldTableName(infos[0].Name)
	e := edm.Entity{
		Key:        edm.Key{Partition: "after", Row: strconv.Itoa(at.Number)},
		Properties: edm.Properties{{Name: "Depth", Value: edm.Int32(int32(r.depth))}},
	}
	results, err := via.Apply(ctx, folded, store.Insert(e))
	if err != nil {
		return nil, err
	}
	e.Timestamp = results[0].Timestamp
	if last := max(at.MaxTick, r.issued); e.Timestamp <= last {
		return nil, fmt.Errorf("got Timestamp %d after %d", e.Timestamp, last)
	}
	return at.Insert("entity after a crash", oracle.Effect{Kind: oracle.Put, Table: folded, Entity: e}), nil
}

var _ oracle.Reader = (*engine.DB)(nil)
