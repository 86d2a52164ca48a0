package lsm

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"sync/atomic"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/internal/corrupt"
	"github.com/tablerock-db/tablerock/internal/manifest"
	"github.com/tablerock-db/tablerock/sstable"
)

const manifestName = "MANIFEST"

// fileName returns the name of file n within its directory.
func fileName(n uint64) string { return fmt.Sprintf("%06d.sst", n) }

// file is a file on disk and its open reader.
type file struct {
	number uint64
	size   int64
	reader *sstable.Reader
	info   sstable.Info
	// estimate is the size of what lies within bounds of user keys.
	estimate func(lower, upper []byte) int64
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
	bytes   int64 // estimated size of lo..hi
}

func newPart(f *file, meta manifest.File, clipped bool) *part {
	p := &part{file: f, meta: meta, clipped: clipped, bytes: meta.Size}
	p.lo, _, _ = codec.SplitTrailer(p.meta.Smallest)
	p.hi, _, _ = codec.SplitTrailer(p.meta.Largest)
	if clipped {
		p.bytes = f.estimate(p.lo, after(p.hi))
	}
	return p
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
	if bytes.Compare(lower, p.lo) < 0 {
		lower = p.lo
	}
	if end := after(p.hi); upper == nil || bytes.Compare(upper, end) > 0 {
		upper = end
	}
	return p.estimate(lower, upper)
}

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

// openFile opens a file that the manifest lists and checks that it is the one
// that was listed.
func (t *Tree) openFile(meta *manifest.File) (*file, error) {
	name := fileName(meta.Number)
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
	info, err := infoOf(r, meta)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", name, err), r.Close())
	}
	if info.Entries != meta.Entries || info.Tombstones != meta.Tombstones || info.MinSeq != meta.MinSeq || info.MaxSeq != meta.MaxSeq {
		_ = r.Close()
		return nil, corrupt.Newf(name, 0, "footer counts %d entries, %d tombstones, sequences %d..%d; the manifest %d, %d, %d..%d",
			info.Entries, info.Tombstones, info.MinSeq, info.MaxSeq, meta.Entries, meta.Tombstones, meta.MinSeq, meta.MaxSeq)
	}
	return &file{number: meta.Number, size: meta.Size, reader: r, info: info, estimate: estimatorOf(r, info)}, nil
}

// clippedBy reports whether meta lists less than all of f, and checks that it
// does not list more.
func (f *file) clippedBy(meta *manifest.File) (bool, error) {
	info := f.info
	if bytes.Equal(info.Smallest, meta.Smallest) && bytes.Equal(info.Largest, meta.Largest) {
		return false, nil
	}
	if bytes.Compare(meta.Smallest, info.Smallest) < 0 || bytes.Compare(meta.Largest, info.Largest) > 0 {
		return false, corrupt.Newf(fileName(f.number), 0, "holds %q to %q, the manifest says %q to %q",
			info.Smallest, info.Largest, meta.Smallest, meta.Largest)
	}
	return true, nil
}
