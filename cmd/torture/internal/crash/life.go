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

// life is what follows a crash: recovery, some reads and writes, and perhaps the
// next crash at one point of them, each equally likely.
type life struct {
	x     *explorer
	disk  *vfs.Mem
	rng   *rand.Rand
	depth int
	// issued is the greatest Timestamp that was given out before the first
	// crash.
	issued edm.Ticks

	span   *span // what a crash at this moment may lead to
	points int
	next   *vfs.Mem // the disk of the crash at one of the points
	after  *span
	where  string
}

// span is a stretch between two acknowledgements; its window is complete when
// the stretch is over.
type span struct{ window oracle.Window }

// run looks at a disk whose database may be in the states of w.
func (l *life) run(ctx context.Context, w oracle.Window) error {
	l.x.counts.States.Add(1)
	l.span = &span{w}
	if l.depth < l.x.o.Depth {
		l.disk.OnOp(l.look)
	}
	err := l.live(ctx)
	l.disk.OnOp(nil)
	if err != nil || l.next == nil {
		return err
	}
	l.x.counts.Nested.Add(1)
	inner := &life{x: l.x, disk: l.next, rng: l.rng, depth: l.depth + 1, issued: l.issued}
	where := l.where
	if err := inner.run(ctx, l.after.window); err != nil {
		return fmt.Errorf("crash %d at %s: %w", l.depth+1, where, err)
	}
	return nil
}

// look keeps the disk of one point, chosen while they come.
func (l *life) look(op vfs.Op) {
	l.points++
	if l.rng.IntN(l.points) > 0 {
		return
	}
	c := vfs.CrashOptions{Mode: modes[l.rng.IntN(len(modes))], Seed: l.rng.Uint64()}
	l.next, l.after = crashed(l.disk, c), l.span
	l.where = fmt.Sprintf("%v (%s)", op, describe(c))
}

func (l *life) live(ctx context.Context) error {
	if l.rng.IntN(8) == 0 {
		if err := l.readOnly(ctx); err != nil {
			return fmt.Errorf("read-only: %w", err)
		}
	}
	db, err := l.x.open(l.disk, l.rng, false)
	if err != nil {
		return err
	}
	closed := false
	defer func() {
		if !closed {
			_ = db.Close() // something else is wrong already
		}
	}()
	at, err := l.verify(ctx, db)
	if err != nil {
		return err
	}
	if at, err = l.work(ctx, db, at); err != nil {
		return fmt.Errorf("after recovery: %w", err)
	}
	closed = true
	if err := db.Close(); err != nil {
		return fmt.Errorf("close: %w", err)
	}
	if l.rng.IntN(6) > 0 {
		return nil
	}
	l.span = &span{oracle.At(at)}
	if db, err = l.x.open(l.disk, l.rng, false); err != nil {
		return fmt.Errorf("after a close: %w", err)
	}
	closed = false
	if _, err = l.verify(ctx, db); err != nil {
		return fmt.Errorf("after a close: %w", err)
	}
	return nil
}

// readOnly opens the database for reading: no byte may change, and what is shown
// is there to stay.
func (l *life) readOnly(ctx context.Context) error {
	before, err := vfs.Dump(l.disk, ".")
	if err != nil {
		return err
	}
	db, err := l.x.open(l.disk, l.rng, true)
	if errors.Is(err, fs.ErrNotExist) && l.span.window.Low.Before == nil {
		return nil // the creation was cut short
	}
	if err != nil {
		return err
	}
	_, err = l.verify(ctx, db)
	if err = errors.Join(err, db.Close()); err != nil {
		return err
	}
	after, err := vfs.Dump(l.disk, ".")
	if err == nil && after != before {
		err = fmt.Errorf("the files changed from\n%sto\n%s", before, after)
	}
	return err
}

// verify finds out which state the database is in, and narrows the span to it.
func (l *life) verify(ctx context.Context, db *engine.DB) (*oracle.Commit, error) {
	got, err := oracle.Scan(ctx, db)
	if err != nil {
		return nil, fmt.Errorf("scan: %w", err)
	}
	at := l.span.window.Find(got.Sum)
	if at == nil {
		return nil, l.mismatch(ctx, db, got.Sum)
	}
	report, err := db.Verify(ctx)
	if err != nil {
		return nil, fmt.Errorf("verify: %w", err)
	}
	if len(report.Findings) > 0 {
		return nil, fmt.Errorf("verify found %v", report.Findings)
	}
	l.span = &span{oracle.At(at)}
	return at, nil
}

func (l *life) mismatch(ctx context.Context, db *engine.DB, sum uint64) error {
	w := l.span.window
	got, err := oracle.Load(ctx, db)
	if err != nil {
		return fmt.Errorf("load: %w", err)
	}
	if earlier := w.FindEarlier(sum); earlier != nil {
		return fmt.Errorf("acknowledged commits are lost: the state is that of commit %d (%s), %d (%s) was acknowledged: %s",
			earlier.Number, earlier.What, w.Low.Number, w.Low.What, w.Low.State().Diff(got))
	}
	return fmt.Errorf("the state is none that there ever was; from commit %d (%s): %s; from commit %d (%s): %s",
		w.Low.Number, w.Low.What, w.Low.State().Diff(got), w.High.Number, w.High.What, w.High.State().Diff(got))
}

// work writes, so that time stamps can be compared with those given before, and
// lets the background work run or not.
func (l *life) work(ctx context.Context, db *engine.DB, at *oracle.Commit) (*oracle.Commit, error) {
	var err error
	for range 1 + l.rng.IntN(2) {
		s := &span{oracle.Window{Low: at}}
		l.span = s
		at, err = l.write(ctx, db, at)
		if err != nil {
			return nil, err
		}
		s.window.High = at
		l.span = &span{oracle.At(at)}
	}
	switch l.rng.IntN(8) {
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
		return nil, l.mismatch(ctx, db, got.Sum)
	}
	return at, nil
}

// write adds one entity, or the table for it.
func (l *life) write(ctx context.Context, db *engine.DB, at *oracle.Commit) (*oracle.Commit, error) {
	via := store.Store(db)
	if l.x.o.Store != nil {
		via = l.x.o.Store(db)
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
			return nil, fmt.Errorf("the table that was made is not listed: %w", err)
		}
		return at.Insert("table after a crash", oracle.Effect{Kind: oracle.Create, Table: edm.FoldTableName(infos[0].Name), Info: infos[0]}), nil
	}
	folded := edm.FoldTableName(infos[0].Name)
	e := edm.Entity{
		Key:        edm.Key{Partition: "after", Row: strconv.Itoa(at.Number)},
		Properties: edm.Properties{{Name: "Depth", Value: edm.Int32(int32(l.depth))}},
	}
	results, err := via.Apply(ctx, folded, store.Insert(e))
	if err != nil {
		return nil, err
	}
	e.Timestamp = results[0].Timestamp
	if last := max(at.MaxTick, l.issued); e.Timestamp <= last {
		return nil, fmt.Errorf("time stamp %d was given out when %d had been before", e.Timestamp, last)
	}
	return at.Insert("entity after a crash", oracle.Effect{Kind: oracle.Put, Table: folded, Entity: e}), nil
}

var _ oracle.Reader = (*engine.DB)(nil)
