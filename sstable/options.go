package sstable

import (
	"fmt"

	"github.com/tablerock-db/tablerock/internal/cache"
	"github.com/tablerock-db/tablerock/internal/predicate"
	"github.com/tablerock-db/tablerock/sstable/internal/rowgroup"
)

// Compression selects how heap units and big values are compressed.
type Compression uint8

// The compressions. Every reader reads all of them.
const (
	CompressionFast   = Compression(rowgroup.Fast)   // s2, for files that will soon be compacted
	CompressionBetter = Compression(rowgroup.Better) // s2 at half the speed and some 3 % smaller
	CompressionNone   = Compression(rowgroup.None)
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
		o.GroupBytes = rowgroup.MaxBytes
	}
	if o.GroupBytes < 0 || o.GroupBytes > rowgroup.MaxBytes {
		return o, fmt.Errorf("group size %d is not within 1..%d", o.GroupBytes, rowgroup.MaxBytes)
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
