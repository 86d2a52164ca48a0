package main

import (
	"context"
	"errors"
	"time"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"

	"github.com/tablerock-db/tablerock/bench"
	"github.com/tablerock-db/tablerock/edm"
)

// badgerStore is Badger.
type badgerStore struct{}

// Name implements bench.Store.
func (badgerStore) Name() string { return "badger" }

// Describe implements bench.Store.
func (badgerStore) Describe() string {
	return "v4.9.6; memtables 4 x 64 MiB, 8 KiB blocks, Snappy, bloom 1 %, 2 compactors, base tables 8 MiB, " +
		"values in the LSM tree, no conflict detection, no metrics"
}

// HasLog implements bench.Store.
func (badgerStore) HasLog() bool { return true }

// Open implements bench.Store.
func (badgerStore) Open(_ context.Context, dir string, o bench.Options) (bench.DB, error) {
	opts := badger.DefaultOptions(dir).
		WithLogger(nil).
		WithSyncWrites(o.Durable).
		WithMemTableSize(o.LogBytes).
		WithNumMemtables(4).
		WithBlockSize(8 << 10).
		WithBlockCacheSize(o.CacheBytes).
		WithIndexCacheSize(0).
		WithCompression(options.Snappy).
		WithBaseTableSize(8 << 20).
		WithNumCompactors(2).
		WithDetectConflicts(false).
		WithMetricsEnabled(false)
	if o.KeepRuns {
		opts = opts.WithNumCompactors(0)
	}
	db, err := badger.Open(opts)
	if err != nil {
		return nil, err
	}
	return &badgerDB{db: db, opts: opts}, nil
}

type badgerDB struct {
	db   *badger.DB
	opts badger.Options
}

// Session implements bench.DB.
func (d *badgerDB) Session() bench.Session { return &badgerSession{db: d.db} }

// Flush implements bench.DB. The store flushes in Close.
func (d *badgerDB) Flush() error {
	if err := d.db.Close(); err != nil {
		return err
	}
	db, err := badger.Open(d.opts)
	if err == nil {
		d.db = db
	}
	return err
}

// WaitIdle implements bench.DB. It waits for compactions only: the store flushes only
// full memtables, so the newest entities stay in memory, which is in its favour.
func (d *badgerDB) WaitIdle() (idle time.Duration, err error) { return waitQuiet(), nil }

// Compact implements bench.DB.
func (d *badgerDB) Compact() error {
	if err := d.Flush(); err != nil {
		return err
	}
	return d.db.Flatten(2)
}

// Syncs implements bench.DB.
func (d *badgerDB) Syncs() int64 { return -1 }

// Reads implements bench.DB.
func (d *badgerDB) Reads() (n, bytes int64) { return -1, -1 }

// Close implements bench.DB.
func (d *badgerDB) Close() error { return d.db.Close() }

type badgerSession struct {
	keys
	pairs pairs
	db    *badger.DB
}

// Put implements bench.Session: one transaction, because it returns when the entities
// are written. A badger.WriteBatch returns earlier.
func (s *badgerSession) Put(entities []edm.Entity) error {
	s.pairs.encode(entities)
	txn := s.db.NewTransaction(true)
	defer txn.Discard()
	if err := s.pairs.each(txn.Set); err != nil {
		return err
	}
	return txn.Commit()
}

// Delete implements bench.Session: one transaction.
func (s *badgerSession) Delete(keys []edm.Key) error {
	s.pairs.encodeKeys(keys)
	txn := s.db.NewTransaction(true)
	defer txn.Discard()
	if err := s.pairs.each(func(key, _ []byte) error { return txn.Delete(key) }); err != nil {
		return err
	}
	return txn.Commit()
}

// Get implements bench.Session.
func (s *badgerSession) Get(key edm.Key, f *bench.Fold) (bool, error) {
	s.key = appendKey(s.key[:0], key)
	txn := s.db.NewTransaction(false)
	defer txn.Discard()
	item, err := txn.Get(s.key)
	if errors.Is(err, badger.ErrKeyNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, item.Value(func(value []byte) error { return foldValue(value, f) })
}

// Scan implements bench.Session.
func (s *badgerSession) Scan(scan bench.Scan, f *bench.Fold) error {
	s.bounds(scan)
	rows, enough := 0, false
	fold := func(value []byte) error {
		matched, err := fold(value, scan.Match, f)
		enough = limited(scan, &rows, matched)
		return err
	}
	return s.iterate(true, func(item *badger.Item) (bool, error) {
		err := item.Value(fold)
		return !enough, err
	})
}

// Count implements bench.Session.
func (s *badgerSession) Count() (int64, error) {
	s.bounds(bench.Scan{})
	var n int64
	err := s.iterate(false, func(*badger.Item) (bool, error) {
		n++
		return true, nil
	})
	return n, err
}

// iterate calls f with the items between the bounds until it returns false.
func (s *badgerSession) iterate(values bool, f func(*badger.Item) (bool, error)) error {
	txn := s.db.NewTransaction(false)
	defer txn.Discard()
	o := badger.DefaultIteratorOptions
	// Values in the LSM tree need no prefetch, which costs a goroutine for each.
	o.PrefetchValues = false
	if values {
		o.Prefix = s.prefix()
	}
	it := txn.NewIterator(o)
	defer it.Close()
	for it.Seek(s.lower); it.Valid(); it.Next() {
		item := it.Item()
		if string(item.Key()) >= string(s.upper) {
			break
		}
		if next, err := f(item); err != nil || !next {
			return err
		}
	}
	return nil
}

// prefix returns the common prefix of the bounds, with which the store skips tables.
func (s *badgerSession) prefix() []byte {
	n := 0
	for n < min(len(s.lower), len(s.upper)) && s.lower[n] == s.upper[n] {
		n++
	}
	return s.lower[:n]
}
