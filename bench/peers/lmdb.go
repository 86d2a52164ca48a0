//go:build lmdb

package main

/*
#cgo LDFLAGS: -llmdb
#include <stdlib.h>
#include <lmdb.h>

// lmdb_gather stores up to n values from the cursor's position on and moves the cursor past
// them; it stops at the key upper. The values are valid until the transaction ends.
static int lmdb_gather(MDB_cursor *c, MDB_val *key, MDB_val *values, int n, MDB_cursor_op op,
	MDB_val *upper, int *count) {
	int rc = 0, i = 0;
	MDB_txn *txn = mdb_cursor_txn(c);
	MDB_dbi dbi = mdb_cursor_dbi(c);
	while (i < n) {
		rc = mdb_cursor_get(c, key, &values[i], op);
		if (rc != 0)
			break;
		if (mdb_cmp(txn, dbi, key, upper) >= 0) {
			rc = MDB_NOTFOUND;
			break;
		}
		i++;
		op = MDB_NEXT;
	}
	*count = i;
	return rc;
}

// lmdb_put_all writes n pairs; ends are those of each key and each value in buf.
static int lmdb_put_all(MDB_txn *txn, MDB_dbi dbi, char *buf, const size_t *ends, int n) {
	size_t from = 0;
	for (int i = 0; i < n; i++) {
		MDB_val k = {ends[2*i] - from, buf + from};
		MDB_val v = {ends[2*i+1] - ends[2*i], buf + ends[2*i]};
		int rc = mdb_put(txn, dbi, &k, &v, 0);
		if (rc != 0)
			return rc;
		from = ends[2*i+1];
	}
	return 0;
}

static int lmdb_delete(MDB_txn *txn, MDB_dbi dbi, char *key, size_t n) {
	MDB_val k = {n, key};
	return mdb_del(txn, dbi, &k, NULL);
}

static int lmdb_get(MDB_txn *txn, MDB_dbi dbi, char *key, size_t n, MDB_val *value) {
	MDB_val k = {n, key};
	return mdb_get(txn, dbi, &k, value);
}
*/
import "C"

import (
	"context"
	"errors"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/tablerock-db/tablerock/bench"
	"github.com/tablerock-db/tablerock/edm"
)

func init() { engines = append(engines, lmdbStore{}) }

// lmdbStore is LMDB.
type lmdbStore struct{}

// Name implements bench.Store.
func (lmdbStore) Name() string { return "lmdb" }

// Describe implements bench.Store.
func (lmdbStore) Describe() string {
	return "0.9.24, Debian; no thread-local readers, no read-ahead, map of 32 GiB, no sync unless durable, concurrent durable inserts " +
		"share transactions of at most 64; no compression, no block cache: the page cache is its cache"
}

// HasLog implements bench.Store.
func (lmdbStore) HasLog() bool { return false }

func lmdbError(rc C.int) error {
	if rc == 0 {
		return nil
	}
	return errors.New(C.GoString(C.mdb_strerror(rc)))
}

// Open implements bench.Store.
func (lmdbStore) Open(_ context.Context, dir string, o bench.Options) (bench.DB, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	d := &lmdbDB{requests: make(chan *lmdbRequest, lmdbGroup), durable: o.Durable}
	if err := lmdbError(C.mdb_env_create(&d.env)); err != nil {
		return nil, err
	}
	const mapping = 32 << 30
	C.mdb_env_set_mapsize(d.env, mapping)
	flags := C.uint(C.MDB_NOTLS | C.MDB_NORDAHEAD)
	if !o.Durable {
		flags |= C.MDB_NOSYNC
	}
	path := C.CString(dir)
	defer C.free(unsafe.Pointer(path))
	if err := lmdbError(C.mdb_env_open(d.env, path, flags, 0o644)); err != nil {
		C.mdb_env_close(d.env)
		return nil, err
	}
	err := d.write(func(txn *C.MDB_txn) error { return lmdbError(C.mdb_dbi_open(txn, nil, 0, &d.dbi)) })
	if err != nil {
		C.mdb_env_close(d.env)
		return nil, err
	}
	d.wait.Go(d.groups)
	return d, nil
}

type lmdbDB struct {
	env      *C.MDB_env
	dbi      C.MDB_dbi
	durable  bool
	requests chan *lmdbRequest

	mu       sync.Mutex
	sessions []*lmdbSession // +checklocks:mu
	many     atomic.Bool    // more than one session exists
	wait     sync.WaitGroup
}

// lmdbGroup is the greatest number of inserts of one transaction.
const lmdbGroup = 64

// lmdbRequest is an insert that waits for its group.
type lmdbRequest struct {
	pairs *pairs
	done  chan error
}

// groups writes the requests that wait in one transaction.
func (d *lmdbDB) groups() {
	for first := range d.requests {
		group := []*lmdbRequest{first}
		for len(group) < lmdbGroup && len(d.requests) > 0 {
			group = append(group, <-d.requests)
		}
		err := d.write(func(txn *C.MDB_txn) error {
			for _, r := range group {
				if err := d.put(txn, r.pairs); err != nil {
					return err
				}
			}
			return nil
		})
		for _, r := range group {
			r.done <- err
		}
	}
}

// write runs f in a transaction. The library demands one thread for it.
func (d *lmdbDB) write(f func(txn *C.MDB_txn) error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var txn *C.MDB_txn
	if err := lmdbError(C.mdb_txn_begin(d.env, nil, 0, &txn)); err != nil {
		return err
	}
	if err := f(txn); err != nil {
		C.mdb_txn_abort(txn)
		return err
	}
	return lmdbError(C.mdb_txn_commit(txn))
}

func (d *lmdbDB) put(txn *C.MDB_txn, p *pairs) error {
	ends := make([]C.size_t, len(p.ends))
	for i, end := range p.ends {
		ends[i] = C.size_t(end)
	}
	return lmdbError(C.lmdb_put_all(txn, d.dbi, lmdbChars(p.buf), unsafe.SliceData(ends), C.int(len(ends)/2)))
}

func lmdbChars(b []byte) *C.char { return (*C.char)(unsafe.Pointer(unsafe.SliceData(b))) }

// Session implements bench.DB.
func (d *lmdbDB) Session() bench.Session {
	s := &lmdbSession{db: d, done: make(chan error, 1), values: make([]C.MDB_val, lmdbRows)}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sessions = append(d.sessions, s)
	d.many.Store(len(d.sessions) > 1)
	return s
}

// Flush implements bench.DB. The store has nothing to flush.
func (d *lmdbDB) Flush() error { return nil }

// WaitIdle implements bench.DB. The store has no background work.
func (d *lmdbDB) WaitIdle() (idle time.Duration, err error) { return 0, nil }

// Compact implements bench.DB. A loaded tree is not rewritten.
func (d *lmdbDB) Compact() error { return nil }

// Syncs implements bench.DB.
func (d *lmdbDB) Syncs() int64 { return -1 }

// Reads implements bench.DB.
func (d *lmdbDB) Reads() (n, bytes int64) { return -1, -1 }

// Close implements bench.DB.
func (d *lmdbDB) Close() error {
	close(d.requests)
	d.wait.Wait()
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, s := range d.sessions {
		if s.reader != nil {
			C.mdb_txn_abort(s.reader)
		}
	}
	C.mdb_env_close(d.env)
	return nil
}

// lmdbRows is the number of rows of one call in a scan.
const lmdbRows = 128

type lmdbSession struct {
	keys
	pairs  pairs
	db     *lmdbDB
	done   chan error
	reader *C.MDB_txn
	values []C.MDB_val
}

// Put implements bench.Session: one transaction.
func (s *lmdbSession) Put(entities []edm.Entity) error {
	s.pairs.encode(entities)
	if s.db.durable && s.db.many.Load() && len(entities) == 1 {
		s.db.requests <- &lmdbRequest{&s.pairs, s.done}
		return <-s.done
	}
	return s.db.write(func(txn *C.MDB_txn) error { return s.db.put(txn, &s.pairs) })
}

// Delete implements bench.Session: one transaction.
func (s *lmdbSession) Delete(keys []edm.Key) error {
	return s.db.write(func(txn *C.MDB_txn) error {
		for _, key := range keys {
			s.key = appendKey(s.key[:0], key)
			if err := lmdbError(C.lmdb_delete(txn, s.db.dbi, lmdbChars(s.key), C.size_t(len(s.key)))); err != nil {
				return err
			}
		}
		return nil
	})
}

// begin begins a read. A session reuses its reader, as the library advises.
func (s *lmdbSession) begin() error {
	if s.reader == nil {
		return lmdbError(C.mdb_txn_begin(s.db.env, nil, C.MDB_RDONLY, &s.reader))
	}
	return lmdbError(C.mdb_txn_renew(s.reader))
}

// Get implements bench.Session.
func (s *lmdbSession) Get(key edm.Key, f *bench.Fold) (bool, error) {
	s.key = appendKey(s.key[:0], key)
	if err := s.begin(); err != nil {
		return false, err
	}
	defer C.mdb_txn_reset(s.reader)
	rc := C.lmdb_get(s.reader, s.db.dbi, lmdbChars(s.key), C.size_t(len(s.key)), &s.values[0])
	if rc == C.MDB_NOTFOUND {
		return false, nil
	}
	if err := lmdbError(rc); err != nil {
		return false, err
	}
	return true, foldValue(lmdbBytes(s.values[0]), f)
}

func lmdbBytes(v C.MDB_val) []byte { return unsafe.Slice((*byte)(v.mv_data), v.mv_size) }

// Scan implements bench.Session.
func (s *lmdbSession) Scan(scan bench.Scan, f *bench.Fold) error {
	rows := 0
	return s.iterate(scan, func(values []C.MDB_val) (bool, error) {
		for _, v := range values {
			matched, err := fold(lmdbBytes(v), scan.Match, f)
			if err != nil || limited(scan, &rows, matched) {
				return false, err
			}
		}
		return true, nil
	})
}

// Count implements bench.Session.
func (s *lmdbSession) Count() (int64, error) {
	var n int64
	err := s.iterate(bench.Scan{}, func(values []C.MDB_val) (bool, error) {
		n += int64(len(values))
		return true, nil
	})
	return n, err
}

// iterate calls f with the values between the bounds until it returns false.
func (s *lmdbSession) iterate(scan bench.Scan, f func([]C.MDB_val) (bool, error)) error {
	s.bounds(scan)
	if err := s.begin(); err != nil {
		return err
	}
	defer C.mdb_txn_reset(s.reader)
	var cursor *C.MDB_cursor
	if err := lmdbError(C.mdb_cursor_open(s.reader, s.db.dbi, &cursor)); err != nil {
		return err
	}
	defer C.mdb_cursor_close(cursor)
	var pin runtime.Pinner
	defer pin.Unpin()
	pin.Pin(unsafe.SliceData(s.lower))
	pin.Pin(unsafe.SliceData(s.upper))
	key := C.MDB_val{C.size_t(len(s.lower)), unsafe.Pointer(unsafe.SliceData(s.lower))}
	upper := C.MDB_val{C.size_t(len(s.upper)), unsafe.Pointer(unsafe.SliceData(s.upper))}
	most := lmdbRows
	if scan.Limit > 0 && scan.Match == nil {
		most = min(most, scan.Limit)
	}
	op := C.MDB_cursor_op(C.MDB_SET_RANGE)
	for {
		var n C.int
		rc := C.lmdb_gather(cursor, &key, unsafe.SliceData(s.values), C.int(most), op, &upper, &n)
		if n > 0 {
			if next, err := f(s.values[:n]); err != nil || !next {
				return err
			}
		}
		if rc == C.MDB_NOTFOUND {
			return nil
		}
		if err := lmdbError(rc); err != nil {
			return err
		}
		op = C.MDB_NEXT
	}
}
