//go:build rocksdb

package main

/*
#cgo LDFLAGS: -lrocksdb
#include <stdlib.h>
#include <string.h>
#include <rocksdb/c.h>

// rocks_fill copies values from the iterator to buf, each behind its length, until n values,
// the end or a value that does not fit. With keys_only, it counts. The slices of an
// iterator are valid only until its next step, and a call for each row would cost more
// than the row.
static int rocks_fill(rocksdb_iterator_t *it, char *buf, size_t size, int n, int keys_only) {
	int i;
	size_t at = 0, len;
	for (i = 0; i < n && rocksdb_iter_valid(it); i++) {
		if (!keys_only) {
			const char *v = rocksdb_iter_value(it, &len);
			if (at + 8 + len > size)
				break;
			memcpy(buf + at, &len, 8);
			memcpy(buf + at + 8, v, len);
			at += 8 + len;
		}
		rocksdb_iter_next(it);
	}
	return i;
}

// rocks_put_all adds n pairs to a batch; ends are those of each key and each value in buf.
static void rocks_put_all(rocksdb_writebatch_t *b, const char *buf, const size_t *ends, int n) {
	size_t from = 0;
	for (int i = 0; i < n; i++) {
		size_t mid = ends[2*i], to = ends[2*i+1];
		rocksdb_writebatch_put(b, buf + from, mid - from, buf + mid, to - mid);
		from = to;
	}
}
*/
import "C"

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"time"
	"unsafe"

	"github.com/tablerock-db/tablerock/bench"
	"github.com/tablerock-db/tablerock/edm"
)

func init() { engines = append(engines, rocksStore{}) }

// rocksStore is RocksDB.
type rocksStore struct{}

// Name implements bench.Store.
func (rocksStore) Name() string { return "rocksdb" }

// Describe implements bench.Store.
func (rocksStore) Describe() string {
	return "7.8.3, Debian; memtables 4 x 64 MiB, 8 KiB blocks, Snappy, full bloom 10 bits a key, dynamic level bytes, " +
		"2 background threads, block format 5, checksums verified"
}

// HasLog implements bench.Store.
func (rocksStore) HasLog() bool { return true }

// Open implements bench.Store. It never frees the options: one process opens few databases.
func (rocksStore) Open(_ context.Context, dir string, o bench.Options) (bench.DB, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	table := C.rocksdb_block_based_options_create()
	C.rocksdb_block_based_options_set_block_size(table, 8<<10)
	C.rocksdb_block_based_options_set_filter_policy(table, C.rocksdb_filterpolicy_create_bloom_full(10))
	C.rocksdb_block_based_options_set_block_cache(table, C.rocksdb_cache_create_lru(C.size_t(o.CacheBytes)))
	C.rocksdb_block_based_options_set_format_version(table, 5)
	options := C.rocksdb_options_create()
	C.rocksdb_options_set_create_if_missing(options, 1)
	C.rocksdb_options_set_block_based_table_factory(options, table)
	C.rocksdb_options_set_write_buffer_size(options, C.size_t(o.LogBytes))
	C.rocksdb_options_set_max_write_buffer_number(options, 4)
	C.rocksdb_options_set_compression(options, C.rocksdb_snappy_compression)
	C.rocksdb_options_set_level_compaction_dynamic_level_bytes(options, 1)
	C.rocksdb_options_increase_parallelism(options, 2)
	C.rocksdb_options_set_max_open_files(options, 4096)
	if o.KeepRuns {
		C.rocksdb_options_set_disable_auto_compactions(options, 1)
	}
	path := C.CString(dir)
	defer C.free(unsafe.Pointer(path))
	var e *C.char
	db := C.rocksdb_open(options, path, &e)
	if err := rocksError(e); err != nil {
		return nil, err
	}
	write := C.rocksdb_writeoptions_create()
	if o.Durable {
		C.rocksdb_writeoptions_set_sync(write, 1)
	}
	return &rocksDB{db, write, C.rocksdb_readoptions_create()}, nil
}

// rocksError returns the error in a message and frees it.
func rocksError(message *C.char) error {
	if message == nil {
		return nil
	}
	defer C.rocksdb_free(unsafe.Pointer(message))
	return errors.New(C.GoString(message))
}

type rocksDB struct {
	db    *C.rocksdb_t
	write *C.rocksdb_writeoptions_t
	read  *C.rocksdb_readoptions_t
}

// Session implements bench.DB.
func (d *rocksDB) Session() bench.Session {
	return &rocksSession{db: d, batch: C.rocksdb_writebatch_create(), rows: make([]byte, rocksBuffer)}
}

// Flush implements bench.DB.
func (d *rocksDB) Flush() error {
	options := C.rocksdb_flushoptions_create()
	defer C.rocksdb_flushoptions_destroy(options)
	C.rocksdb_flushoptions_set_wait(options, 1)
	var e *C.char
	C.rocksdb_flush(d.db, options, &e)
	return rocksError(e)
}

// WaitIdle implements bench.DB.
func (d *rocksDB) WaitIdle() (idle time.Duration, err error) {
	if err := d.Flush(); err != nil {
		return 0, err
	}
	return waitQuiet(), nil
}

// Compact implements bench.DB.
func (d *rocksDB) Compact() error {
	if err := d.Flush(); err != nil {
		return err
	}
	C.rocksdb_compact_range(d.db, nil, 0, nil, 0)
	return nil
}

// Syncs implements bench.DB.
func (d *rocksDB) Syncs() int64 { return -1 }

// Reads implements bench.DB.
func (d *rocksDB) Reads() (n, bytes int64) { return -1, -1 }

// Close implements bench.DB.
func (d *rocksDB) Close() error {
	C.rocksdb_close(d.db)
	return nil
}

// rocksBuffer is the size of the buffer for the values of a scan, and rocksRows the
// number of rows of one call.
const rocksBuffer, rocksRows = 64 << 10, 128

type rocksSession struct {
	keys
	pairs pairs
	ends  []C.size_t
	db    *rocksDB
	batch *C.rocksdb_writebatch_t
	rows  []byte
}

func chars(b []byte) *C.char { return (*C.char)(unsafe.Pointer(unsafe.SliceData(b))) }

// Put implements bench.Session: one batch.
func (s *rocksSession) Put(entities []edm.Entity) error {
	s.pairs.encode(entities)
	s.ends = s.ends[:0]
	for _, end := range s.pairs.ends {
		s.ends = append(s.ends, C.size_t(end))
	}
	C.rocksdb_writebatch_clear(s.batch)
	C.rocks_put_all(s.batch, chars(s.pairs.buf), unsafe.SliceData(s.ends), C.int(len(entities)))
	var e *C.char
	C.rocksdb_write(s.db.db, s.db.write, s.batch, &e)
	return rocksError(e)
}

// Delete implements bench.Session: one batch.
func (s *rocksSession) Delete(keys []edm.Key) error {
	C.rocksdb_writebatch_clear(s.batch)
	for _, key := range keys {
		s.key = appendKey(s.key[:0], key)
		C.rocksdb_writebatch_delete(s.batch, chars(s.key), C.size_t(len(s.key)))
	}
	var e *C.char
	C.rocksdb_write(s.db.db, s.db.write, s.batch, &e)
	return rocksError(e)
}

// Get implements bench.Session.
func (s *rocksSession) Get(key edm.Key, f *bench.Fold) (bool, error) {
	s.key = appendKey(s.key[:0], key)
	var e *C.char
	pinned := C.rocksdb_get_pinned(s.db.db, s.db.read, chars(s.key), C.size_t(len(s.key)), &e)
	if err := rocksError(e); err != nil || pinned == nil {
		return false, err
	}
	defer C.rocksdb_pinnableslice_destroy(pinned)
	var n C.size_t
	value := C.rocksdb_pinnableslice_value(pinned, &n)
	return true, foldValue(unsafe.Slice((*byte)(unsafe.Pointer(value)), n), f)
}

// Scan implements bench.Session.
func (s *rocksSession) Scan(scan bench.Scan, f *bench.Fold) error {
	rows := 0
	return s.iterate(scan, false, func(n int) (bool, error) {
		buf := s.rows
		for range n {
			size := int(binary.NativeEndian.Uint64(buf))
			matched, err := fold(buf[8:8+size], scan.Match, f)
			if err != nil || limited(scan, &rows, matched) {
				return false, err
			}
			buf = buf[8+size:]
		}
		return true, nil
	})
}

// Count implements bench.Session.
func (s *rocksSession) Count() (int64, error) {
	var total int64
	err := s.iterate(bench.Scan{}, true, func(n int) (bool, error) {
		total += int64(n)
		return true, nil
	})
	return total, err
}

// iterate calls f with the number of rows in the buffer until it returns false.
func (s *rocksSession) iterate(scan bench.Scan, keysOnly bool, f func(n int) (bool, error)) error {
	s.bounds(scan)
	read := C.rocksdb_readoptions_create()
	defer C.rocksdb_readoptions_destroy(read)
	// The library keeps the pointer to the bound.
	upper := C.CBytes(s.upper)
	defer C.free(upper)
	C.rocksdb_readoptions_set_iterate_upper_bound(read, (*C.char)(upper), C.size_t(len(s.upper)))
	it := C.rocksdb_create_iterator(s.db.db, read)
	defer C.rocksdb_iter_destroy(it)
	C.rocksdb_iter_seek(it, chars(s.lower), C.size_t(len(s.lower)))
	most, only := rocksRows, C.int(0)
	if scan.Limit > 0 && scan.Match == nil {
		most = min(most, scan.Limit)
	}
	if keysOnly {
		only = 1
	}
	for {
		n := int(C.rocks_fill(it, chars(s.rows), C.size_t(len(s.rows)), C.int(most), only))
		if n == 0 {
			break
		}
		if next, err := f(n); err != nil || !next {
			return err
		}
	}
	var e *C.char
	C.rocksdb_iter_get_error(it, &e)
	return rocksError(e)
}
