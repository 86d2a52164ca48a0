package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"go.etcd.io/bbolt"

	"github.com/tablerock-db/tablerock/bench"
	"github.com/tablerock-db/tablerock/edm"
)

// boltStore is bbolt.
type boltStore struct{}

// Name implements bench.Store.
func (boltStore) Name() string { return "bbolt" }

// Describe implements bench.Store.
func (boltStore) Describe() string {
	return "v1.5.0; no freelist sync, freelist as a map, mapping of 16 GiB, fill 0.9 for ascending keys and 0.5 for others, " +
		"Batch of 64 within 0.5 ms for concurrent durable inserts; no compression, no block cache: the page cache is its cache"
}

// HasLog implements bench.Store.
func (boltStore) HasLog() bool { return false }

// Names of the file and of the bucket.
const boltFile, boltBucket = "bolt.db", "entities"

// Open implements bench.Store.
func (boltStore) Open(_ context.Context, dir string, o bench.Options) (bench.DB, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	const mapping = 16 << 30
	db, err := bbolt.Open(filepath.Join(dir, boltFile), 0o644, &bbolt.Options{
		NoSync:          !o.Durable,
		NoFreelistSync:  true,
		FreelistType:    bbolt.FreelistMapType,
		InitialMmapSize: mapping,
	})
	if err != nil {
		return nil, err
	}
	const together, wait = 64, 500 * time.Microsecond
	db.MaxBatchSize, db.MaxBatchDelay = together, wait
	err = db.Update(func(tx *bbolt.Tx) error {
		_, err := tx.CreateBucketIfNotExists([]byte(boltBucket))
		return err
	})
	if err != nil {
		return nil, err
	}
	return &boltDB{db: db, durable: o.Durable}, nil
}

type boltDB struct {
	db       *bbolt.DB
	durable  bool
	sessions atomic.Int64
}

// Session implements bench.DB.
func (d *boltDB) Session() bench.Session {
	d.sessions.Add(1)
	return &boltSession{db: d}
}

// Flush implements bench.DB. The store has nothing to flush.
func (d *boltDB) Flush() error { return nil }

// WaitIdle implements bench.DB. The store has no background work.
func (d *boltDB) WaitIdle() (idle time.Duration, err error) { return 0, nil }

// Compact implements bench.DB. A loaded tree is not rewritten: the store has no command
// for that in a running program.
func (d *boltDB) Compact() error { return nil }

// Syncs implements bench.DB.
func (d *boltDB) Syncs() int64 { return -1 }

// Reads implements bench.DB.
func (d *boltDB) Reads() (n, bytes int64) { return -1, -1 }

// Close implements bench.DB.
func (d *boltDB) Close() error { return d.db.Close() }

type boltSession struct {
	keys
	pairs pairs
	db    *boltDB
	last  []byte // the last key of the last Put
	// rising counts the successive Puts with greater keys than the one before.
	rising int
}

// Put implements bench.Session: one transaction.
func (s *boltSession) Put(entities []edm.Entity) error {
	s.pairs.encode(entities)
	const ascending, sure = 0.9, 8
	fill := bbolt.DefaultFillPercent
	s.key = appendKey(s.key[:0], entities[0].Key)
	if s.rising++; bytes.Compare(s.last, s.key) >= 0 {
		s.rising = 0
	}
	if s.rising > sure {
		fill = ascending
	}
	s.last = appendKey(s.last[:0], entities[len(entities)-1].Key)
	put := func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte(boltBucket))
		b.FillPercent = fill
		return s.pairs.each(b.Put)
	}
	if s.db.durable && len(entities) == 1 && s.db.sessions.Load() > 1 {
		return s.db.db.Batch(put)
	}
	return s.db.db.Update(put)
}

// Delete implements bench.Session: one transaction.
func (s *boltSession) Delete(keys []edm.Key) error {
	s.pairs.encodeKeys(keys)
	return s.db.db.Update(func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte(boltBucket))
		return s.pairs.each(func(key, _ []byte) error { return b.Delete(key) })
	})
}

// Get implements bench.Session.
func (s *boltSession) Get(key edm.Key, f *bench.Fold) (bool, error) {
	s.key = appendKey(s.key[:0], key)
	found := false
	err := s.db.db.View(func(tx *bbolt.Tx) error {
		value := tx.Bucket([]byte(boltBucket)).Get(s.key)
		if value == nil {
			return nil
		}
		found = true
		return foldValue(value, f)
	})
	return found, err
}

// Scan implements bench.Session.
func (s *boltSession) Scan(scan bench.Scan, f *bench.Fold) error {
	s.bounds(scan)
	return s.db.db.View(func(tx *bbolt.Tx) error {
		c := tx.Bucket([]byte(boltBucket)).Cursor()
		rows := 0
		for k, v := c.Seek(s.lower); k != nil && bytes.Compare(k, s.upper) < 0; k, v = c.Next() {
			matched, err := fold(v, scan.Match, f)
			if err != nil || limited(scan, &rows, matched) {
				return err
			}
		}
		return nil
	})
}

// Count implements bench.Session.
func (s *boltSession) Count() (int64, error) {
	s.bounds(bench.Scan{})
	var n int64
	err := s.db.db.View(func(tx *bbolt.Tx) error {
		c := tx.Bucket([]byte(boltBucket)).Cursor()
		for k, _ := c.Seek(s.lower); k != nil && bytes.Compare(k, s.upper) < 0; k, _ = c.Next() {
			n++
		}
		return nil
	})
	return n, err
}
