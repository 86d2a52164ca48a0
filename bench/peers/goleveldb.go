package main

import (
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

// Open implements bench.Store.
func (levelStore) Open(dir string, o bench.Options) (bench.DB, error) {
	db, err := leveldb.OpenFile(dir, &opt.Options{
		BlockCacheCapacity:     int(o.CacheBytes),
		WriteBuffer:            int(o.LogBytes),
		BlockSize:              8 << 10,
		Compression:            opt.SnappyCompression,
		Filter:                 filter.NewBloomFilter(10),
		CompactionTableSize:    16 << 20,
		OpenFilesCacheCapacity: 4096,
		WriteL0SlowdownTrigger: 16,
		WriteL0PauseTrigger:    32,
	})
	if err != nil {
		return nil, err
	}
	return &levelDB{db, &opt.WriteOptions{Sync: o.Durable}}, nil
}

type levelDB struct {
	db    *leveldb.DB
	write *opt.WriteOptions
}

// Session implements bench.DB.
func (d *levelDB) Session() bench.Session { return &levelSession{db: d.db, write: d.write} }

// WaitIdle implements bench.DB. It waits for compactions only: the store has no flush, so
// the newest entities stay in memory, which is in its favour.
func (d *levelDB) WaitIdle() error {
	var before, after leveldb.DBStats
	for quiet := 0; quiet < 4; quiet++ {
		if err := d.db.Stats(&after); err != nil {
			return err
		}
		if after.IOWrite != before.IOWrite {
			quiet = 0
		}
		before.IOWrite = after.IOWrite
		time.Sleep(5 * time.Millisecond)
	}
	return nil
}

// Compact implements bench.DB.
func (d *levelDB) Compact() error { return d.db.CompactRange(util.Range{}) }

// Syncs implements bench.DB.
func (d *levelDB) Syncs() int64 { return -1 }

// Reads implements bench.DB.
func (d *levelDB) Reads() (n, bytes int64) { return -1, -1 }

// Close implements bench.DB.
func (d *levelDB) Close() error { return d.db.Close() }

type levelSession struct {
	db           *leveldb.DB
	write        *opt.WriteOptions
	batch        leveldb.Batch
	key, value   []byte
	lower, upper []byte
}

// Put implements bench.Session: one batch.
func (s *levelSession) Put(entities []edm.Entity) error {
	s.batch.Reset()
	for i := range entities {
		s.key = appendKey(s.key[:0], entities[i].Key)
		s.value = appendValue(s.value[:0], entities[i].Properties)
		s.batch.Put(s.key, s.value)
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
func (s *levelSession) Scan(partition string, onlyHot bool, f *bench.Fold) error {
	s.lower, s.upper = appendBounds(s.lower[:0], s.upper[:0], partition)
	it := s.db.NewIterator(&util.Range{Start: s.lower, Limit: s.upper}, nil)
	defer it.Release()
	for it.Next() {
		if err := fold(it.Value(), onlyHot, f); err != nil {
			return err
		}
	}
	return it.Error()
}
