package main

import (
	"context"
	"errors"
	"time"

	"github.com/syndtr/goleveldb/leveldb"
	"github.com/syndtr/goleveldb/leveldb/filter"
	"github.com/syndtr/goleveldb/leveldb/opt"
	"github.com/syndtr/goleveldb/leveldb/util"

	"github.com/tablerock-db/tablerock/bench"
	"github.com/tablerock-db/tablerock/edm"
)

// levelStore is goleveldb.
type levelStore struct{}

// Name implements bench.Store.
func (levelStore) Name() string { return "goleveldb" }

// Describe implements bench.Store.
func (levelStore) Describe() string {
	return "126854af5e6d; write buffer 64 MiB, 8 KiB blocks, Snappy, bloom 10 bits a key, tables 16 MiB, " +
		"4096 open files, L0 slowdown 16, pause 32"
}

// HasLog implements bench.Store.
func (levelStore) HasLog() bool { return true }

// keptTables is more tables at level 0 than a workload makes.
const keptTables = 1000

// Open implements bench.Store.
func (levelStore) Open(_ context.Context, dir string, o bench.Options) (bench.DB, error) {
	options := &opt.Options{
		BlockCacheCapacity:     int(o.CacheBytes),
		WriteBuffer:            int(o.LogBytes),
		BlockSize:              8 << 10,
		Compression:            opt.SnappyCompression,
		Filter:                 filter.NewBloomFilter(10),
		CompactionTableSize:    16 << 20,
		OpenFilesCacheCapacity: 4096,
		WriteL0SlowdownTrigger: 16,
		WriteL0PauseTrigger:    32,
	}
	if o.KeepRuns {
		options.CompactionL0Trigger = keptTables
		options.WriteL0SlowdownTrigger, options.WriteL0PauseTrigger = keptTables, keptTables
	}
	db, err := leveldb.OpenFile(dir, options)
	if err != nil {
		return nil, err
	}
	return &levelDB{db: db, dir: dir, options: options, write: &opt.WriteOptions{Sync: o.Durable}}, nil
}

type levelDB struct {
	db      *leveldb.DB
	dir     string
	options *opt.Options
	write   *opt.WriteOptions
}

// Session implements bench.DB.
func (d *levelDB) Session() bench.Session { return &levelSession{db: d.db, write: d.write} }

// Flush implements bench.DB. The store flushes when it replays its log at Open.
func (d *levelDB) Flush() error {
	if err := d.db.Close(); err != nil {
		return err
	}
	db, err := leveldb.OpenFile(d.dir, d.options)
	if err == nil {
		d.db = db
	}
	return err
}

// WaitIdle implements bench.DB. It waits for compactions only: the store has no flush, so
// the newest entities stay in memory, which is in its favour.
func (d *levelDB) WaitIdle() (idle time.Duration, err error) { return waitQuiet(), nil }

// Compact implements bench.DB.
func (d *levelDB) Compact() error { return d.db.CompactRange(util.Range{}) }

// Syncs implements bench.DB.
func (d *levelDB) Syncs() int64 { return -1 }

// Reads implements bench.DB.
func (d *levelDB) Reads() (n, bytes int64) { return -1, -1 }

// Close implements bench.DB.
func (d *levelDB) Close() error { return d.db.Close() }

type levelSession struct {
	keys
	db    *leveldb.DB
	write *opt.WriteOptions
	batch leveldb.Batch
}

// Put implements bench.Session: one batch.
func (s *levelSession) Put(entities []edm.Entity) error {
	s.batch.Reset()
	for i := range entities {
		s.batch.Put(s.encode(&entities[i]))
	}
	return s.db.Write(&s.batch, s.write)
}

// Delete implements bench.Session: one batch.
func (s *levelSession) Delete(keys []edm.Key) error {
	s.batch.Reset()
	for _, key := range keys {
		s.key = appendKey(s.key[:0], key)
		s.batch.Delete(s.key)
	}
	return s.db.Write(&s.batch, s.write)
}

// Get implements bench.Session.
func (s *levelSession) Get(key edm.Key, f *bench.Fold) (bool, error) {
	s.key = appendKey(s.key[:0], key)
	value, err := s.db.Get(s.key, nil)
	if errors.Is(err, leveldb.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, foldValue(value, f)
}

// Scan implements bench.Session.
func (s *levelSession) Scan(scan bench.Scan, f *bench.Fold) error {
	s.bounds(scan)
	it := s.db.NewIterator(&util.Range{Start: s.lower, Limit: s.upper}, nil)
	defer it.Release()
	rows := 0
	for it.Next() {
		matched, err := fold(it.Value(), scan.Match, f)
		if err != nil {
			return err
		}
		if limited(scan, &rows, matched) {
			break
		}
	}
	return it.Error()
}

// Count implements bench.Session.
func (s *levelSession) Count() (int64, error) {
	s.bounds(bench.Scan{})
	it := s.db.NewIterator(&util.Range{Start: s.lower, Limit: s.upper}, nil)
	defer it.Release()
	var n int64
	for it.Next() {
		n++
	}
	return n, it.Error()
}
