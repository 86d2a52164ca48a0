package rot

import (
	"context"
	"fmt"
	"path"
	"time"

	"github.com/tablerock-db/tablerock/cmd/torture/internal/oracle"
	"github.com/tablerock-db/tablerock/cmd/torture/internal/workload"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/internal/manifest"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
)

// Subject is a database to damage.
type Subject struct {
	Name string
	disk *vfs.Mem
	sum  uint64
	m    *manifest.Manifest

	// open is the log whose end only its own seal states; shorter are the sums
	// of what the database held when that log was shorter. Cutting it, or
	// putting another file in its place, takes the seal away with the rest:
	// nothing on the disk tells that from a log that never grew.
	open    string
	shorter []uint64
}

// Build makes the subjects: a database that was closed, and one that fell idle
// and whose process was then killed.
func Build(ctx context.Context, seed uint64) ([]Subject, error) {
	for ; ; seed++ {
		closed, ok, err := buildClosed(ctx, seed)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		idle, err := buildIdle(ctx, closed.disk.Clone())
		if err != nil {
			return nil, err
		}
		return []Subject{closed, idle}, nil
	}
}

// buildClosed is not ok if the database lacks one of the structures.
func buildClosed(ctx context.Context, seed uint64) (s Subject, ok bool, err error) {
	w := workload.New(workload.Options{Seed: seed, Profile: workload.Churn})
	defer w.Abandon()
	if err := w.Start(); err != nil {
		return s, false, err
	}
	for range 60 {
		if err := w.Step(ctx); err != nil {
			return s, false, err
		}
	}
	table := w.State.Tables()[0]
	if err := w.DB.SetTableMeta(ctx, table, []byte("policies")); err != nil {
		return s, false, err
	}
	if err := w.DB.SetAccountMeta(ctx, []byte("properties")); err != nil {
		return s, false, err
	}
	for i := range 100 {
		if _, err := w.DB.Apply(ctx, table, store.InsertOrReplace(everyType(i))); err != nil {
			return s, false, err
		}
	}
	got, err := oracle.Scan(ctx, w.DB)
	if err != nil {
		return s, false, err
	}
	if err := w.DB.Close(); err != nil {
		return s, false, err
	}
	s = Subject{Name: "closed", disk: w.Disk.Clone(), sum: got.Sum}
	if s.m, err = manifest.Read(s.disk, workload.Dir); err != nil {
		return s, false, err
	}
	tiers, tombstones := map[uint32]bool{}, uint64(0)
	for _, f := range s.m.Files {
		tiers[f.Tier] = true
		tombstones += f.Tombstones
	}
	return s, len(s.m.Logs) >= 2 && len(tiers) >= 2 && tombstones > 0, nil
}

// everyType returns an entity with a property of each type.
func everyType(i int) edm.Entity {
	return edm.Entity{
		Key: edm.Key{Partition: fmt.Sprintf("rot%d", i%3), Row: fmt.Sprintf("%04d", i)},
		Properties: edm.Properties{
			{Name: "S", Value: edm.String("text \u8868 " + fmt.Sprint(i))},
			{Name: "B", Value: edm.Binary(make([]byte, 900))},
			{Name: "F", Value: edm.Boolean(i%2 == 0)},
			{Name: "I", Value: edm.Int32(int32(i))},
			{Name: "L", Value: edm.Int64(int64(i) << 40)},
			{Name: "D", Value: edm.Double(float64(i) / 3)},
			{Name: "T", Value: edm.DateTime(edm.Ticks(i))},
			{Name: "G", Value: edm.GuidWords(uint64(i), 1)},
		},
	}
}

// idleClock calls back when it is told to.
type idleClock struct {
	*workload.Clock
	calls chan func()
}

// AfterFunc implements engine.Clock.
func (c idleClock) AfterFunc(_ time.Duration, f func()) func() bool {
	c.calls <- f
	return func() bool { return true }
}

// buildIdle writes to the database of a disk, lets it seal its idle log, and
// kills it.
func buildIdle(ctx context.Context, disk *vfs.Mem) (s Subject, err error) {
	clock := idleClock{workload.NewClock(), make(chan func(), 16)}
	o := workload.EngineOptions(disk, clock, workload.NewCache())
	o.Manual = false
	db, err := engine.Open(workload.Dir, o)
	if err != nil {
		return s, err
	}
	defer db.Close()
	if err := db.Flush(ctx); err != nil {
		return s, err
	}
	for worked := true; worked && err == nil; {
		worked, err = db.Step(ctx)
	}
	if err != nil {
		return s, err
	}
	infos, err := db.Tables(ctx, "", 1)
	if err != nil {
		return s, err
	}
	s.Name = "idle and killed"
	note := func() error {
		got, err := oracle.Scan(ctx, db)
		s.shorter = append(s.shorter, got.Sum)
		return err
	}
	for i := range 12 {
		if err := note(); err != nil {
			return s, err
		}
		if _, err := db.Apply(ctx, infos[0].Name, store.InsertOrReplace(everyType(1000+i))); err != nil {
			return s, err
		}
	}
	// The first call sees that there were writes, the second that there were
	// none since.
	for range 2 {
		f := <-clock.calls
		f()
	}
	got, err := oracle.Scan(ctx, db)
	if err != nil {
		return s, err
	}
	s.disk, s.sum = disk.Clone(), got.Sum
	if s.m, err = manifest.Read(s.disk, workload.Dir); err != nil {
		return s, err
	}
	names, err := s.disk.List(workload.Dir)
	for _, name := range names {
		if path.Ext(name) == ".wal" {
			s.open = name
		}
	}
	return s, err
}
