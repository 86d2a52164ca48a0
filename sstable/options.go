package sstable

import (
	"fmt"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/cache"
	"github.com/tablerock-db/tablerock/internal/predicate"
	"github.com/tablerock-db/tablerock/sstable/internal/compression"
	"github.com/tablerock-db/tablerock/sstable/internal/rowgroup"
)

// Compression selects how heap units and big values are compressed.
type Compression uint8

// The compressions. Every reader reads all of them.
const (
	CompressionFast  = Compression(compression.Fast)  // s2
	CompressionSmall = Compression(compression.Small) // Zstandard, for files that stay for long
	CompressionNone  = Compression(compression.None)
)

// WriterOptions configure a Writer.
type WriterOptions struct {
	DBID        [16]byte
	Number      uint64
	Compression Compression // default CompressionFast
	// GroupBytes is the size of a group before compression, at most 32 KiB (default 32
	// KiB).
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

// ReaderOptions identify the file and select the cache of its blocks.
type ReaderOptions struct {
	DBID   [16]byte
	Number uint64
	Size   int64  // expected size, as in the manifest; 0 accepts any
	Name   string // for errors
	// Seq and Stamp are the sequence number and the Timestamp of all entries of a loaded
	// file, written with sequence number 0 and one Timestamp. Stamp is 0 for any other file.
	Seq   uint64
	Stamp edm.Ticks
	Cache *cache.Cache // nil: no block is cached
	// CacheDB is the id of the database in Cache.
	CacheDB uint64
}

// IterOptions select the entries that an Iterator shows.
type IterOptions struct {
	Lower, Upper []byte // user-key bounds [Lower, Upper); nil is open
	Snapshot     uint64 // versions with a greater sequence number are invisible
	// AllVersions shows every version and ignores Snapshot. The iterator then moves
	// forward only.
	AllVersions bool
	Fill        bool // keep the blocks that are read in the cache
	// Prune is what Excludes compares with the bounds of groups. All other methods
	// ignore it.
	Prune *predicate.Program
}
