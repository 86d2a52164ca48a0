package rot

import (
	"context"
	"errors"
	"fmt"
	"path"
	"time"

	"github.com/tablerock-db/tablerock/cmd/torture/internal/oracle"
	"github.com/tablerock-db/tablerock/cmd/torture/internal/workload"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/internal/filename"
	"github.com/tablerock-db/tablerock/internal/manifest"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
	"github.com/tablerock-db/tablerock/vfs/errorfs"
)

// Subject is a database to damage.
type Subject struct {
	Name string
	disk *vfs.Mem
	sum  uint64
	m    *manifest.Manifest
}

// Build returns the subjects: a closed database, and one that was idle when its process was
// killed. They are small, because each byte is damaged and all bytes are read after each
// damage.
func Build(ctx context.Context) ([]Subject, error) {
	closed, err := buildClosed(ctx)
	if err != nil {
		return nil, err
	}
	idle, err := buildIdle(ctx, closed.disk.Clone())
	if err != nil {
		return nil, err
	}
	return []Subject{closed, idle}, nil
}

// builder writes a database step by step. After the first error it does nothing.
type builder struct {
	ctx  context.Context
	disk *vfs.Mem
	db   *engine.DB
	err  error
}

func (b *builder) do(step func() error) {
	if b.err == nil {
		b.err = step()
	}
}

func (b *builder) apply(table string, ops ...store.Op) {
	b.do(func() error {
		_, err := b.db.Apply(b.ctx, table, ops...)
		return err
	})
}

func (b *builder) open() {
	b.do(func() (err error) {
		b.db, err = engine.Open(workload.Dir, workload.EngineOptions(b.disk, workload.NewClock(), workload.NewCache()))
		return err
	})
}

func (b *builder) flush() { b.do(func() error { return b.db.Flush(b.ctx) }) }

// buildClosed returns a database with every structure: in the bottom tier an sstable of
// several row groups with rows of many shapes and all types, columns of all encodings, a
// compressed heap unit, values in value blocks and a wide row; a newer run with tombstones
// and several versions of a key; a dropped table; metadata; and a log of two segments.
func buildClosed(ctx context.Context) (s Subject, err error) {
	b := &builder{ctx: ctx, disk: vfs.NewMem()}
	b.open()
	for _, table := range []string{"Kept", "Dropped"} {
		b.do(func() error { return b.db.CreateTable(ctx, table) })
	}
	for i := range 28 {
		b.apply("Kept", store.InsertOrReplace(everyType(i)))
	}
	for i := range 4 {
		b.apply("Kept", store.InsertOrReplace(oddShape(i)))
	}
	b.apply("Kept", store.InsertOrReplace(large(1)))
	b.apply("Dropped", store.InsertOrReplace(oddShape(1)))
	b.do(func() error { return b.db.SetTableMeta(ctx, "Kept", []byte("policies")) })
	b.do(func() error { return b.db.SetAccountMeta(ctx, []byte("properties")) })
	b.do(func() error { return b.db.Compact(ctx) })
	b.do(func() error { return b.db.DeleteTable(ctx, "Dropped") })
	for i := range 4 {
		b.apply("Kept", store.Delete(everyType(5*i).Key, store.Any))
		b.apply("Kept", store.InsertOrReplace(everyType(5*i+1)))
	}
	b.flush()
	for i := range 2 {
		b.apply("Kept", store.InsertOrReplace(oddShape(10+i)))
		b.apply("Kept", store.Delete(everyType(2+i).Key, store.Any), store.InsertOrReplace(everyType(40+i)))
		b.do(b.closeDB)
		b.open()
	}
	defer func() { err = errors.Join(err, b.closeDB()) }()
	var got oracle.Scanned
	b.do(func() (err error) {
		got, err = oracle.Scan(ctx, b.db)
		return err
	})
	if b.err != nil {
		return s, b.err
	}
	s = Subject{Name: "closed", disk: b.disk.Clone(), sum: got.Sum}
	if s.m, err = manifest.Read(s.disk, workload.Dir); err != nil {
		return s, err
	}
	return s, complete(s.m)
}

// closeDB closes the database and leaves its log.
func (b *builder) closeDB() error {
	ctx, cancel := context.WithCancel(b.ctx)
	cancel()
	return b.db.CloseContext(ctx)
}

// complete returns an error if the database lacks a structure.
func complete(m *manifest.Manifest) error {
	tiers, tombstones := map[uint32]bool{}, uint64(0)
	for _, f := range m.Files {
		tiers[f.Tier] = true
		tombstones += f.Tombstones
	}
	if len(m.Logs) != 2 || len(tiers) < 2 || tombstones == 0 {
		return fmt.Errorf("the database has %d logs, %d tiers and %d tombstones", len(m.Logs), len(tiers), tombstones)
	}
	return nil
}

// everyType returns an entity with a property of each type.
func everyType(i int) edm.Entity {
	b := make([]byte, 2000)
	b[0] = byte(i)
	return edm.Entity{
		Key: edm.Key{Partition: fmt.Sprintf("rot%d", i%2), Row: fmt.Sprintf("%04d", i)},
		Properties: edm.Properties{
			{Name: "S", Value: edm.String("text \u8868 " + fmt.Sprint(i))},
			{Name: "C", Value: edm.String([]string{"red", "green"}[i%2])},
			{Name: "B", Value: edm.Binary(b)},
			{Name: "F", Value: edm.Boolean(i%3 == 0)},
			{Name: "I", Value: edm.Int32(int32(i))},
			{Name: "L", Value: edm.Int64(int64(i) << 40)},
			{Name: "D", Value: edm.Double(float64(i) / 3)},
			{Name: "T", Value: edm.DateTime(edm.Ticks(i))},
			{Name: "G", Value: edm.GuidWords(uint64(i), 1)},
		},
	}
}

// oddShape returns an entity with a unique shape.
func oddShape(i int) edm.Entity {
	return edm.Entity{
		Key: edm.Key{Partition: "odd", Row: fmt.Sprintf("%0*d", 1+5*i, i)},
		Properties: edm.Properties{
			{Name: fmt.Sprintf("Only%d", i), Value: edm.String("here")},
			{Name: "I", Value: edm.Int32(int32(i))},
		},
	}
}

// large returns an entity whose values have more bytes than 16 bits count.
func large(i int) edm.Entity {
	return edm.Entity{
		Key:        edm.Key{Partition: "large", Row: fmt.Sprint(i)},
		Properties: edm.Properties{{Name: "A", Value: edm.Binary(make([]byte, 1<<16))}, {Name: "Z", Value: edm.String("end")}},
	}
}

// idleClock is a clock whose callbacks the test calls.
type idleClock struct {
	*workload.Clock
	calls chan func()
}

// AfterFunc implements engine.Clock.
func (c idleClock) AfterFunc(_ time.Duration, f func()) func() bool {
	c.calls <- f
	return func() bool { return true }
}

// buildIdle writes to the database of a disk, waits until the manifest states the end of
// the idle log, and kills the process. The log reuses the file of an earlier segment, whose
// records follow its own.
func buildIdle(ctx context.Context, disk *vfs.Mem) (s Subject, err error) {
	clock := idleClock{workload.NewClock(), make(chan func(), 16)}
	o := workload.EngineOptions(errorfs.Wrap(disk, func(vfs.Op) *errorfs.Fault { return nil }), clock, workload.NewCache())
	o.Testing.Manual = false
	b := &builder{ctx: ctx, disk: disk}
	if b.db, err = engine.Open(workload.Dir, o); err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, b.closeDB()) }()
	for i := range 18 { // most of a segment, so that its file is kept
		b.apply("Kept", store.InsertOrReplace(everyType(1000+i)))
	}
	// Keep the database small: damage to most of its bytes is harmless, and then all of
	// it is read.
	b.apply("Kept", store.Delete(large(1).Key, store.Any))
	b.do(func() error { return b.db.Compact(ctx) })
	for i := range 12 {
		b.apply("Kept", store.InsertOrReplace(oddShape(20+i%3)))
	}
	if b.err != nil {
		return s, b.err
	}
	// The callbacks see writes, then none since the last call, then none for a long time.
	for range 3 {
		f := <-clock.calls
		f()
	}
	got, err := oracle.Scan(ctx, b.db)
	if err != nil {
		return s, err
	}
	s = Subject{Name: "idle and killed", disk: disk.Clone(), sum: got.Sum}
	if s.m, err = manifest.Read(s.disk, workload.Dir); err != nil {
		return s, err
	}
	newest := s.m.Logs[len(s.m.Logs)-1]
	info, err := s.disk.Stat(path.Join(workload.Dir, filename.Make(filename.WAL, newest.Number)))
	if err == nil && (newest.Proven == 0 || info.Size <= newest.Proven+sectorBytes) {
		err = fmt.Errorf("the log is proven to %d, its file has %d bytes", newest.Proven, info.Size)
	}
	return s, err
}
