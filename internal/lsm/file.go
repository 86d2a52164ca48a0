package lsm

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"path"
	"sync/atomic"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/internal/corrupt"
	"github.com/tablerock-db/tablerock/internal/filename"
	"github.com/tablerock-db/tablerock/internal/manifest"
	"github.com/tablerock-db/tablerock/sstable"
)

// file is a file on disk and its open reader.
type file struct {
	number uint64
	size   int64
	reader *sstable.Reader
	// fresh estimates the share of the entries whose keys no older run had when
	// the file was written. It is 0 for a file that an earlier life wrote.
	fresh float64
	// refs counts the places in living versions that list the file.
	refs atomic.Int32
	// obsolete is set once the durable manifest no longer lists the file.
	obsolete atomic.Bool
}

// part is what a run lists of a file: all of it, or the stretch of it that no
// merge has taken away. A part is immutable, and versions share it.
type part struct {
	*file
	// meta is the manifest's record: bounds, tier and run are the part's, all
	// else is the whole file's.
	meta manifest.File
	// lo and hi are the user keys of the first and the last entry.
	lo, hi []byte
	// clipped says that the file holds more than lo..hi.
	clipped bool
	bytes   int64 // size of lo..hi, an estimate if clipped
}

// A part's bounds are internal keys that the file holds, but where a part was
// clipped: there the trailer is one that no entry has. These values are part of
// the format of the manifest.
const (
	clippedFirst = uint64(0)  // before every version of the key
	clippedLast  = ^uint64(0) // after every version of the key
)

// newPart returns the part of f that meta lists; a part that was clipped before
// is bytes long.
func newPart(f *file, meta manifest.File, bytes int64) *part {
	p := &part{file: f, meta: meta, bytes: bytes}
	var first, last uint64
	p.lo, first = splitBound(meta.Smallest)
	p.hi, last = splitBound(meta.Largest)
	p.clipped = first == clippedFirst || last == clippedLast
	return p
}

func splitBound(key []byte) (user []byte, trailer uint64) {
	n := len(key) - codec.TrailerLen
	return key[:n:n], binary.BigEndian.Uint64(key[n:])
}

// checkKeys verifies that the bounds of a part are user keys with trailers: what
// plans merges reads table ids from them.
func checkKeys(meta *manifest.File) error {
	for _, bound := range [][]byte{meta.Smallest, meta.Largest} {
		user, _ := splitBound(bound)
		if err := codec.CheckKey(user); err != nil {
			return corrupt.Newf(filename.Manifest, 0, "bound of file %d: %v", meta.Number, err)
		}
	}
	return nil
}

// clip returns a bound at which a part was clipped.
func clip(user []byte, trailer uint64) []byte {
	return binary.BigEndian.AppendUint64(append(make([]byte, 0, len(user)+codec.TrailerLen), user...), trailer)
}

// moved returns the part as a part of another run.
func (p *part) moved(tier uint32, run uint64) *part {
	q := *p
	q.meta.Tier, q.meta.Run = tier, run
	return &q
}

// overlaps reports whether p holds keys within [lower, upper); nil is open.
func (p *part) overlaps(lower, upper []byte) bool {
	return bytes.Compare(p.hi, lower) >= 0 && (upper == nil || bytes.Compare(p.lo, upper) < 0)
}

// inside reports whether all of p lies within [lower, upper).
func (p *part) inside(lower, upper []byte) bool {
	return bytes.Compare(p.lo, lower) >= 0 && (upper == nil || bytes.Compare(p.hi, upper) < 0)
}

// bytesWithin estimates the size of what p holds within [lower, upper).
func (p *part) bytesWithin(lower, upper []byte) int64 {
	if p.inside(lower, upper) {
		return p.bytes
	}
	return overlapBytes(p.bytes, p.lo, p.hi, lower, upper)
}

// garbage estimates how many bytes of older versions n bytes of p hide, at most
// n. Each entry that hides one counts twice, because it may be smaller than the
// version that it hides, or a tombstone.
func (p *part) garbage(n int64) int64 { return int64(float64(n) * min(1, 2*(1-p.fresh))) }

// bounds narrows o to the part.
func (p *part) bounds(o IterOptions) IterOptions {
	if !p.clipped {
		return o
	}
	if bytes.Compare(o.Lower, p.lo) < 0 {
		o.Lower = p.lo
	}
	if end := after(p.hi); o.Upper == nil || bytes.Compare(o.Upper, end) > 0 {
		o.Upper = end
	}
	return o
}

// after returns the least bound above a user key: no user key is a prefix of
// another, so nothing lies between the two.
func after(user []byte) []byte {
	return append(append(make([]byte, 0, len(user)+1), user...), 0)
}

// openFile opens a file that the manifest lists. Its header and footer are
// checked, and so is its size.
func (t *Tree) openFile(meta *manifest.File) (*file, error) {
	name := filename.Make(filename.SSTable, meta.Number)
	vf, err := t.o.FS.Open(path.Join(t.o.Dir, name))
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", name, err)
	}
	r, err := sstable.Open(vf, sstable.ReaderOptions{
		DBID:    t.dbid,
		Number:  meta.Number,
		Size:    meta.Size,
		Name:    name,
		Cache:   t.o.Cache,
		CacheDB: t.o.CacheDB,
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", name, err), vf.Close())
	}
	return &file{number: meta.Number, size: meta.Size, reader: r}, nil
}
