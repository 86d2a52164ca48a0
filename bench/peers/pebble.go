package main

import (
	"context"
	"errors"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"

	"github.com/tablerock-db/tablerock/bench"
	"github.com/tablerock-db/tablerock/edm"
)

// pebbleStore is Pebble.
type pebbleStore struct{}

// Name implements bench.Store.
func (pebbleStore) Name() string { return "pebble" }

// Describe implements bench.Store.
func (pebbleStore) Describe() string {
	return "v2.1.7; memtables 4 x 64 MiB, 8 KiB blocks, bloom 10 bits a key on all levels, compression Fastest, " +
		"LBase 64 MiB, L0 trigger 2, stop 1000, compactions 1 to 2, BytesPerSync 512 KiB, newest format"
}

// HasLog implements bench.Store.
func (pebbleStore) HasLog() bool { return true }

// Open implements bench.Store.
func (pebbleStore) Open(_ context.Context, dir string, o bench.Options) (bench.DB, error) {
	cache := pebble.NewCache(o.CacheBytes)
	defer cache.Unref()
	options := &pebble.Options{
		Cache:                       cache,
		MemTableSize:                uint64(o.LogBytes),
		MemTableStopWritesThreshold: 4,
		L0CompactionThreshold:       2,
		L0StopWritesThreshold:       1000,
		LBaseMaxBytes:               64 << 20,
		BytesPerSync:                512 << 10,
		FormatMajorVersion:          pebble.FormatNewest,
		CompactionConcurrencyRange:  func() (lower, upper int) { return 1, 2 },
		MaxOpenFiles:                4096,
		DisableAutomaticCompactions: o.KeepRuns,
		Logger:                      silent{},
	}
	for i := range options.Levels {
		options.Levels[i].BlockSize = 8 << 10
		options.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
		options.Levels[i].FilterType = pebble.TableFilter
	}
	options.ApplyCompressionSettings(func() pebble.DBCompressionSettings { return pebble.DBCompressionFastest })
	db, err := pebble.Open(dir, options)
	if err != nil {
		return nil, err
	}
	write := pebble.NoSync
	if o.Durable {
		write = pebble.Sync
	}
	return &pebbleDB{db, write}, nil
}

// silent discards the log of Pebble.
type silent struct{}

func (silent) Infof(string, ...any)  {}
func (silent) Errorf(string, ...any) {}
func (silent) Fatalf(format string, args ...any) {
	pebble.DefaultLogger.Fatalf(format, args...)
}

type pebbleDB struct {
	db    *pebble.DB
	write *pebble.WriteOptions
}

// Session implements bench.DB.
func (d *pebbleDB) Session() bench.Session { return &pebbleSession{db: d.db, write: d.write} }

// Flush implements bench.DB.
func (d *pebbleDB) Flush() error { return d.db.Flush() }

// WaitIdle implements bench.DB with a flush and a wait for compactions.
func (d *pebbleDB) WaitIdle() (idle time.Duration, err error) {
	if err := d.db.Flush(); err != nil {
		return 0, err
	}
	since := time.Now()
	for quiet := 0; quiet < 3; {
		m := d.db.Metrics()
		quiet++
		if m.Compact.NumInProgress > 0 || m.Flush.NumInProgress > 0 {
			quiet, since = 0, time.Now()
		}
		time.Sleep(5 * time.Millisecond)
	}
	return time.Since(since), nil
}

// Compact implements bench.DB.
func (d *pebbleDB) Compact() error {
	if err := d.db.Flush(); err != nil {
		return err
	}
	lower, upper := appendBounds(nil, nil, "")
	return d.db.Compact(context.Background(), lower, upper, false)
}

// Syncs implements bench.DB.
func (d *pebbleDB) Syncs() int64 { return -1 }

// Reads implements bench.DB.
func (d *pebbleDB) Reads() (n, bytes int64) { return -1, -1 }

// Close implements bench.DB.
func (d *pebbleDB) Close() error { return d.db.Close() }

type pebbleSession struct {
	keys
	db    *pebble.DB
	write *pebble.WriteOptions
}

// Put implements bench.Session: one batch.
func (s *pebbleSession) Put(entities []edm.Entity) error {
	if len(entities) == 1 {
		key, value := s.encode(&entities[0])
		return s.db.Set(key, value, s.write)
	}
	b := s.db.NewBatch()
	for i := range entities {
		key, value := s.encode(&entities[i])
		if err := b.Set(key, value, nil); err != nil {
			return errors.Join(err, b.Close())
		}
	}
	return errors.Join(b.Commit(s.write), b.Close())
}

// Delete implements bench.Session: one batch.
func (s *pebbleSession) Delete(keys []edm.Key) error {
	b := s.db.NewBatch()
	for _, key := range keys {
		s.key = appendKey(s.key[:0], key)
		if err := b.Delete(s.key, nil); err != nil {
			return errors.Join(err, b.Close())
		}
	}
	return errors.Join(b.Commit(s.write), b.Close())
}

// Get implements bench.Session.
func (s *pebbleSession) Get(key edm.Key, f *bench.Fold) (bool, error) {
	s.key = appendKey(s.key[:0], key)
	value, closer, err := s.db.Get(s.key)
	if errors.Is(err, pebble.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	err = foldValue(value, f)
	return true, errors.Join(err, closer.Close())
}

// Scan implements bench.Session.
func (s *pebbleSession) Scan(scan bench.Scan, f *bench.Fold) error {
	s.bounds(scan)
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: s.lower, UpperBound: s.upper})
	if err != nil {
		return err
	}
	rows := 0
	for ok := it.First(); ok; ok = it.Next() {
		value, err := it.ValueAndErr()
		matched := false
		if err == nil {
			matched, err = fold(value, scan.Match, f)
		}
		if err != nil {
			return errors.Join(err, it.Close())
		}
		if limited(scan, &rows, matched) {
			break
		}
	}
	return errors.Join(it.Error(), it.Close())
}

// Count implements bench.Session.
func (s *pebbleSession) Count() (int64, error) {
	s.bounds(bench.Scan{})
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: s.lower, UpperBound: s.upper})
	if err != nil {
		return 0, err
	}
	var n int64
	for ok := it.First(); ok; ok = it.Next() {
		n++
	}
	return n, errors.Join(it.Error(), it.Close())
}
