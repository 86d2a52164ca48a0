package workload

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/tablerock-db/tablerock/cmd/torture/internal/oracle"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
)

// Step does one step of the workload. The error is a broken promise or ErrStopped.
func (s *Session) Step(ctx context.Context) error {
	s.steps++
	s.tick()
	if len(s.State.Tables()) == 0 {
		return s.done(s.createTable(ctx, tableNames[s.rng.IntN(2)]))
	}
	return s.done(s.pick()(ctx))
}

func (s *Session) done(err error) error {
	if err != nil {
		return fmt.Errorf("step %d, %s: %w", s.steps, s.What, err)
	}
	s.end()
	return nil
}

// pick chooses a step at random, with the weights of the profile.
func (s *Session) pick() func(context.Context) error {
	w := weights[s.o.Profile]
	sum := 0
	for _, x := range w {
		sum += x
	}
	n := s.rng.IntN(sum)
	kind := 0
	for n >= w[kind] {
		n -= w[kind]
		kind++
	}
	return [...]func(context.Context) error{
		stepSingle: s.single, stepBatch: s.batch, stepLarge: s.large, stepGroup: s.group, stepTable: s.table, stepMeta: s.meta,
		stepFlush: s.flush, stepCompact: s.compact, stepWork: s.work, stepCheckpoint: s.checkpoint,
		stepReopen: s.reopen, stepKill: s.kill, stepRead: s.read, stepLoad: s.load,
	}[kind]
}

// write applies a batch to the database and the oracle.
func (s *Session) write(ctx context.Context, table string, ops []store.Op) error {
	folded := edm.FoldTableName(table)
	what := fmt.Sprintf("%d ops from %v %.40q in %s", len(ops), ops[0].Kind, ops[0].Entity.Key, table)
	s.begin(what)
	p, want := s.expect(folded, ops)
	p.What = what
	results, err := s.via.Apply(ctx, table, ops...)
	switch {
	case want != nil && err == nil:
		return fmt.Errorf("succeeded, want %w", want)
	case want != nil && (errors.Is(err, want) || !s.strict() && s.failed(what, Pending{}, err) == nil):
		return nil
	case err != nil:
		return s.failed(what, p, err)
	}
	return s.acknowledged(p, ops, results)
}

// Probe writes one entity if there is a table.
func (s *Session) Probe(ctx context.Context) error {
	if len(s.State.Tables()) == 0 {
		return nil
	}
	return s.done(s.write(ctx, s.State.Tables()[0], []store.Op{store.InsertOrReplace(edm.Entity{Key: edm.Key{Partition: "probe"}})}))
}

// expect returns the effects of ops or the error that the database must return.
func (s *Session) expect(folded string, ops []store.Op) (Pending, error) {
	var p Pending
	t := s.State.Table(folded)
	if t == nil {
		return p, store.ErrTableNotFound
	}
	for i := range ops {
		props, put, err := t.Resolve(&ops[i])
		if err != nil {
			return p, err
		}
		e := oracle.Effect{Kind: oracle.Remove, Table: folded, Entity: edm.Entity{Key: ops[i].Entity.Key}}
		if put {
			e.Kind, e.Entity.Properties = oracle.Put, props
		}
		p.Effects = append(p.Effects, e)
	}
	return p, nil
}

// acknowledged records a batch with its results.
func (s *Session) acknowledged(p Pending, ops []store.Op, results []store.Result) error {
	if len(results) != len(ops) {
		return fmt.Errorf("%d results for %d ops", len(results), len(ops))
	}
	last := s.Head.MaxTick
	for i, r := range results {
		if p.Effects[i].Kind == oracle.Remove {
			continue
		}
		if r.Timestamp <= last || r.ETag != r.Timestamp.ETag() {
			return fmt.Errorf("op %d has Timestamp %d (%s) after %d", i, r.Timestamp, r.ETag, last)
		}
		last = r.Timestamp
		p.Effects[i].Entity.Timestamp = last
	}
	return s.commit(p.What, p.Effects)
}

func (s *Session) createTable(ctx context.Context, name string) error {
	s.begin("create table " + name)
	folded := edm.FoldTableName(name)
	p := Pending{What: s.What, Effects: []oracle.Effect{{Kind: oracle.Create, Table: folded, Info: store.TableInfo{Name: name}}}}
	if err := s.via.CreateTable(ctx, name); err != nil {
		return s.failed(s.What, p, err)
	}
	infos, err := s.DB.Tables(ctx, name, 1)
	if err != nil || len(infos) == 0 || infos[0].Name != name {
		return fmt.Errorf("the new table is not listed: %v, %w", infos, err)
	}
	p.Effects[0].Info = infos[0]
	return s.commit(s.What, p.Effects)
}

// table creates, deletes or recreates a table.
func (s *Session) table(ctx context.Context) error {
	name := tableNames[s.rng.IntN(len(tableNames))]
	folded := edm.FoldTableName(name)
	if s.State.Table(folded) == nil {
		return s.createTable(ctx, name)
	}
	s.begin("delete table " + name)
	effects := []oracle.Effect{{Kind: oracle.Drop, Table: folded}}
	if err := s.via.DeleteTable(ctx, name); err != nil {
		return s.failed(s.What, Pending{What: s.What, Effects: effects}, err)
	}
	if err := s.commit(s.What, effects); err != nil {
		return err
	}
	if s.rng.IntN(2) == 0 {
		s.end()
		return s.createTable(ctx, name)
	}
	return nil
}

func (s *Session) meta(ctx context.Context) error {
	meta := []byte(strings.Repeat("m", 1+s.rng.IntN(20)) + fmt.Sprint(s.steps))
	name := ""
	set := func() error { return s.via.SetAccountMeta(ctx, meta) }
	if s.rng.IntN(3) > 0 {
		name = s.someTable()
		set = func() error { return s.via.SetTableMeta(ctx, name, meta) }
	}
	s.begin(fmt.Sprintf("set metadata of %q", name))
	effects := []oracle.Effect{{Kind: oracle.SetMeta, Table: name, Meta: meta}}
	if err := set(); err != nil {
		return s.failed(s.What, Pending{What: s.What, Effects: effects}, err)
	}
	return s.commit(s.What, effects)
}

// maintain runs work that changes no readable data.
func (s *Session) maintain(what string, do func() error) error {
	s.begin(what)
	if err := do(); err != nil {
		return s.failed(what, Pending{}, err)
	}
	return nil
}

func (s *Session) flush(ctx context.Context) error {
	err := s.maintain("flush", func() error {
		if err := s.DB.Flush(ctx); err != nil {
			return err
		}
		s.floor = s.Head
		return nil
	})
	return err
}

func (s *Session) compact(ctx context.Context) error {
	return s.maintain("compact", func() error {
		if err := s.DB.Compact(ctx); err != nil {
			return err
		}
		s.floor = s.Head
		return nil
	})
}

// work does some steps of the background work.
func (s *Session) work(ctx context.Context) error {
	n := 1 + s.rng.IntN(6)
	return s.maintain(fmt.Sprintf("%d steps of background work", n), func() error {
		return s.workUpTo(ctx, n)
	})
}

func (s *Session) workUpTo(ctx context.Context, n int) error {
	for range n {
		if worked, err := s.DB.Step(ctx); err != nil || !worked {
			return err
		}
	}
	return nil
}

func (s *Session) checkpoint(ctx context.Context) error {
	s.copies++
	dest := fmt.Sprintf("copy%d", s.copies)
	s.begin("checkpoint to " + dest)
	s.epoch.Checkpoint = dest
	if err := s.DB.Checkpoint(ctx, dest); err != nil {
		return s.failed(s.What, Pending{}, err)
	}
	s.floor = s.Head
	if s.strict() {
		if err := s.CheckCopy(ctx, s.Disk.Crash(vfs.CrashOptions{Mode: "min"}), dest, s.Head, true); err != nil {
			return err
		}
	}
	return s.removeCopy(dest)
}

// removeCopy deletes a checkpoint without hooks and faults.
func (s *Session) removeCopy(dest string) error {
	s.Disk.OnOp(nil)
	defer func() {
		if s.o.Attach != nil {
			s.o.Attach(s.Disk)
		}
	}()
	names, err := s.Disk.List(dest)
	for _, name := range names {
		if err == nil {
			err = s.Disk.Remove(dest + "/" + name)
		}
	}
	if err == nil {
		err = s.Disk.Remove(dest)
	}
	if err == nil {
		err = s.Disk.SyncDir(".")
	}
	return err
}

// CheckCopy checks that a checkpoint contains exactly a state or, unless it is finished, is
// not a database.
func (s *Session) CheckCopy(ctx context.Context, disk *vfs.Mem, dest string, want *oracle.Commit, finished bool) error {
	o := EngineOptions(disk, NewClock(), s.o.Cache)
	if !finished {
		if _, err := disk.Stat(dest + "/MANIFEST"); err != nil {
			return nil
		}
	}
	db, err := engine.Open(dest, o)
	if err != nil {
		return fmt.Errorf("open checkpoint: %w", err)
	}
	defer db.Close()
	got, err := oracle.Scan(ctx, db)
	if err != nil {
		return fmt.Errorf("scan checkpoint: %w", err)
	}
	if got.Sum != want.Sum {
		state, err := oracle.Load(ctx, db)
		if err != nil {
			return fmt.Errorf("load checkpoint: %w", err)
		}
		return fmt.Errorf("the checkpoint differs: %s", want.State().Diff(state))
	}
	return nil
}

// closeDB closes the database. With flush it leaves nothing in the log for the next open.
func (s *Session) closeDB(ctx context.Context, flush bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if !flush {
		cancel()
	}
	return s.DB.CloseContext(ctx)
}

// reopen closes the database and opens it again.
func (s *Session) reopen(ctx context.Context) error {
	s.begin("close")
	err := s.closeDB(ctx, s.steps%2 == 0)
	if err != nil {
		if err := s.failed("close", Pending{}, err); err != nil {
			return err
		}
	} else {
		s.floor = s.Head
	}
	s.end()
	return s.openAgain(ctx, "open again")
}

func (s *Session) openAgain(ctx context.Context, what string) error {
	if len(s.Unknown) > 0 || s.Refused {
		// The caller checks the unknown commits.
		s.DB = nil
		return ErrStopped
	}
	s.begin(what)
	if err := s.open(); err != nil {
		return s.stopped(err)
	}
	s.end()
	return s.read(ctx)
}

// ErrDiffers means that the database differs from the oracle.
var ErrDiffers = errors.New("the running database differs")

// ErrStopped means that the work cannot continue after a failure of the disk.
var ErrStopped = errors.New("stopped by a failure of the disk")

// kill simulates the end of the process and opens the database with everything that it
// wrote, synced or not.
func (s *Session) kill(ctx context.Context) error {
	if s.o.NoSync {
		return s.reopen(ctx)
	}
	s.begin("kill")
	disk := s.Disk.Clone()
	s.Abandon()
	s.Disk = disk
	return s.openAgain(ctx, "open after a kill")
}

func (s *Session) read(ctx context.Context) error {
	s.begin("read everything")
	if err := s.Check(ctx); err != nil {
		if s.strict() || errors.Is(err, ErrDiffers) || errors.Is(err, store.ErrCorrupt) {
			return err
		}
	}
	return nil
}
