// Package sstable reads and writes sorted files of rows.
//
// A file holds entries in internal-key order, cut into groups of some 32 KiB.
// A group keeps its keys, sequences, timestamps and the values of fixed width in
// its head, column by column, so that a search or a filter touches only what it
// needs. Strings and binaries stand row by row in heap units of about 4 KiB,
// which are decoded when such a value is asked for. See format.go for the bytes.
//
// Every byte is covered by a sum that is bound to its place, and is checked
// before it is used. Damage is reported as a *corrupt.Error by the call that
// meets it.
package sstable

import (
	"errors"
	"fmt"

	"github.com/tablerock-db/tablerock/internal/cache"
	"github.com/tablerock-db/tablerock/internal/predicate"
	"github.com/tablerock-db/tablerock/sstable/group"
)

// ErrNewerFormat is the error of opening a file that a newer version wrote.
var ErrNewerFormat = errors.New("sstable of a newer format version")

// Compression says how heap units and big values are compressed.
type Compression = group.Compression

// The compressions. Any reader reads all of them.
const (
	CompressionFast   = group.Fast   // s2, for files that will soon be merged
	CompressionBetter = group.Better // s2 at half the speed and some 3 % smaller
	CompressionNone   = group.None
)

// WriterOptions configure a Writer.
type WriterOptions struct {
	DBID        [16]byte
	Number      uint64
	Compression Compression // default CompressionFast
	// GroupBytes is the size of a group before compression, at most 32 KiB and
	// by default that.
	GroupBytes int
}

func (o WriterOptions) withDefaults() (WriterOptions, error) {
	if o.GroupBytes == 0 {
		o.GroupBytes = group.MaxBytes
	}
	if o.GroupBytes < 0 || o.GroupBytes > group.MaxBytes {
		return o, fmt.Errorf("group size %d is not within 1..%d", o.GroupBytes, group.MaxBytes)
	}
	if o.Compression > CompressionNone {
		return o, fmt.Errorf("unknown compression %d", o.Compression)
	}
	return o, nil
}

// Info describes a finished file.
type Info struct {
	Size              int64
	Smallest, Largest []byte // internal keys of the first and the last entry
	MinSeq, MaxSeq    uint64
	Entries           uint64 // tombstones included
	Tombstones        uint64
	Hash              uint64 // XXH64 of the whole file
}

// ReaderOptions say what a file must be, and where its blocks are cached.
type ReaderOptions struct {
	DBID   [16]byte
	Number uint64
	Size   int64        // what the manifest says; 0 takes the file's own
	Name   string       // for errors
	Cache  *cache.Cache // nil: nothing is kept
	// CacheDB is the number of the database in Cache.
	CacheDB uint64
}

// IterOptions bound an Iterator.
type IterOptions struct {
	Lower, Upper []byte // user-key bounds [Lower, Upper); nil is open
	Snapshot     uint64 // versions of greater sequence are invisible
	// AllVersions shows every version and ignores Snapshot; forward only.
	AllVersions bool
	Fill        bool // keep blocks that are read in the cache
	// Prune leaves out groups of which the summary says that no row in them
	// satisfies it; others are shown whole. What is left out shadows nothing any
	// more: it may only be set where no other source has older versions of this
	// file's keys.
	Prune *predicate.Program
}
