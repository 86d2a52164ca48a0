package sstable

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/cache"
	"github.com/tablerock-db/tablerock/internal/corrupt"
	"github.com/tablerock-db/tablerock/internal/feature"
	"github.com/tablerock-db/tablerock/sstable/internal/bloom"
	"github.com/tablerock-db/tablerock/sstable/internal/checksum"
	"github.com/tablerock-db/tablerock/sstable/internal/groupbounds"
	"github.com/tablerock-db/tablerock/sstable/internal/groupindex"
	"github.com/tablerock-db/tablerock/vfs"
)

// Reader reads a finished file. All methods are safe for concurrent use. Call Close
// after the last use of the Reader, its Iterators and its Rows.
type Reader struct {
	f      vfs.File
	o      ReaderOptions
	bind   checksum.Binding
	size   int64
	footer footer
	foot   int64 // offset of the footer
	shapes *codec.ShapeList
	index  groupindex.Index
	filter []byte
	heads  []cache.Hint // one for each group
}

// Open verifies the header and the sections after the groups, except the bounds, which the
// first query with a filter reads. It keeps index, filter and shapes in memory. The Reader
// owns the file unless Open fails. The error is a *corrupt.Error, that of the file, or wraps
// ErrNewerFormat and names the unknown feature, or the version if that is newer.
func Open(f vfs.File, o ReaderOptions) (*Reader, error) {
	if o.Cache == nil {
		o.Cache = cache.New(0)
	}
	r := &Reader{f: f, o: o, bind: checksum.Bind(o.DBID, o.Number)}
	size, err := f.Size()
	if err != nil {
		return nil, fmt.Errorf("size of %s: %w", o.Name, err)
	}
	if o.Size != 0 && size != o.Size {
		return nil, r.corruptf(min(size, o.Size), "file of %d bytes, not %d", size, o.Size)
	}
	r.size = size
	if size < headerBytes+footerBytes1 {
		return nil, r.corruptf(0, "file of %d bytes is too short", size)
	}
	v, err := r.readHeader()
	if err != nil {
		return nil, err
	}
	if r.foot = size - footerLen(v); r.foot < headerBytes {
		return nil, r.corruptf(0, "file of %d bytes is too short", size)
	}
	if err := r.readTail(); err != nil {
		return nil, err
	}
	return r, nil
}

func (r *Reader) corruptf(off int64, format string, args ...any) error {
	return corrupt.Newf(r.o.Name, off, format, args...)
}

// read fills p from off. The range is within the file.
func (r *Reader) read(p []byte, off int64) error {
	if n, err := r.f.ReadAt(p, off); n < len(p) {
		return fmt.Errorf("read %d bytes at %d of %s: %w", len(p), off, r.o.Name, err)
	}
	return nil
}

// readSection fills p with the section at off and verifies its sum.
func (r *Reader) readSection(p []byte, off int64, what string) error {
	if err := r.read(p, off); err != nil {
		return err
	}
	return r.checkSection(p, off, what)
}

// checkSection verifies the sum of the section p at off.
func (r *Reader) checkSection(p []byte, off int64, what string) error {
	if !r.bind.Check(p, off) {
		return r.corruptf(off, "%s of %d bytes: wrong sum", what, len(p))
	}
	return nil
}

// readHeader verifies the header and returns the version.
func (r *Reader) readHeader() (uint32, error) {
	var p [headerBytes]byte
	if err := r.read(p[:], 0); err != nil {
		return 0, err
	}
	if string(p[:8]) != magic {
		return 0, r.corruptf(0, "not an sstable")
	}
	if !r.bind.Check(p[:], 0) {
		return 0, r.corruptf(0, "header: wrong sum, or of another file or database")
	}
	v := binary.LittleEndian.Uint32(p[8:])
	switch {
	case v > version:
		return 0, fmt.Errorf("%s: %w: version %d, this build knows %d", r.o.Name, ErrNewerFormat, v, version)
	case v == 0:
		return 0, r.corruptf(8, "format version 0")
	}
	if binary.LittleEndian.Uint32(p[12:]) != 0 || [16]byte(p[16:32]) != r.o.DBID || binary.LittleEndian.Uint64(p[32:]) != r.o.Number {
		return 0, r.corruptf(0, "header of another file or database")
	}
	return v, nil
}

// checkFeatures reads the extensions and verifies that this build knows the required
// features of the file.
func (r *Reader) checkFeatures() error {
	s := r.footer.extensions
	var area []byte
	if s.len > 0 {
		area = make([]byte, s.len)
		if err := r.readSection(area, int64(s.off), "extensions"); err != nil {
			return err
		}
		area = area[:len(area)-sumBytes]
	}
	err := feature.Check(area, r.footer.required, knownFeatures)
	if errors.Is(err, feature.ErrUnknown) {
		return fmt.Errorf("%s: %w: %w", r.o.Name, ErrNewerFormat, err)
	}
	if err != nil {
		return r.corruptf(int64(s.off), "%v", err)
	}
	return nil
}

// readTail reads the sections after the groups, except the bounds. One read of the shapes, the index and the filter, which
// are adjacent, takes half the time of three when the page cache has none of them.
func (r *Reader) readTail() error {
	off := r.foot
	p := make([]byte, r.size-off)
	if err := r.readSection(p, off, "footer"); err != nil {
		return err
	}
	f, err := decodeFooter(p, r.o.DBID, r.o.Number, off)
	if err != nil {
		return r.corruptf(off, "%v", err)
	}
	r.footer = f
	if err := r.checkFeatures(); err != nil {
		return err
	}
	if err := f.check(off); err != nil {
		return r.corruptf(off, "%v", err)
	}
	all := make([]byte, f.filter.end()-f.shapes.off)
	if err := r.read(all, int64(f.shapes.off)); err != nil {
		return err
	}
	section := func(s span, what string) ([]byte, error) {
		if s.len < sumBytes {
			return nil, r.corruptf(int64(s.off), "%s of %d bytes", what, s.len)
		}
		p := all[s.off-f.shapes.off:][:s.len:s.len]
		return p[:len(p)-sumBytes], r.checkSection(p, int64(s.off), what)
	}
	shapes, err := section(f.shapes, "shapes")
	if err != nil {
		return err
	}
	if err := r.decodeShapes(shapes); err != nil {
		return err
	}
	index, err := section(f.index, "index")
	if err != nil {
		return err
	}
	if r.index, err = groupindex.Decode(index, headerBytes, f.shapes.off); err != nil {
		return r.corruptf(int64(f.index.off), "%v", err)
	}
	if n := r.index.Rows(); n != f.entries {
		return r.corruptf(off, "%d entries, the index says %d", f.entries, n)
	}
	r.heads = make([]cache.Hint, len(r.index.Groups))
	if r.filter, err = section(f.filter, "filter"); err != nil {
		return err
	}
	if f.bounds.len < sumBytes {
		return r.corruptf(off, "bounds of %d bytes", f.bounds.len)
	}
	if len(r.filter)%bloom.BlockBytes != 0 || (len(r.filter) == 0) != (f.keys == 0) {
		return r.corruptf(int64(f.filter.off), "filter of %d bytes for %d keys", len(r.filter), f.keys)
	}
	return nil
}

// shapeBudget is how many bytes of decoded shapes a Reader keeps: some hundred shapes
// with few properties, or some ten with as many as allowed.
const shapeBudget = 512 << 10

func (r *Reader) decodeShapes(p []byte) error {
	if len(p) < 4 {
		return r.corruptf(int64(r.footer.shapes.off), "shapes of %d bytes", len(p))
	}
	count, rest, empty := binary.LittleEndian.Uint32(p), p[4:], false
	r.shapes = codec.NewShapeList(p, shapeBudget)
	for range count {
		n, after, err := codec.CheckShape(rest)
		if err != nil {
			return r.corruptf(int64(r.footer.shapes.off), "shape %d: %v", r.shapes.Len(), err)
		}
		if n == 0 {
			// Shapes are distinct, and this one is far shorter encoded than in memory.
			if empty {
				return r.corruptf(int64(r.footer.shapes.off), "shape %d is the second without properties", r.shapes.Len())
			}
			empty = true
		}
		r.shapes.Add(len(p)-len(rest), nil)
		rest = after
	}
	if len(rest) != 0 {
		return r.corruptf(int64(r.footer.shapes.off), "%d bytes after the last shape", len(rest))
	}
	return nil
}

// loadBounds returns the bounds, pinned.
func (r *Reader) loadBounds(fill bool) (*groupbounds.Bounds, cache.Handle, error) {
	at := r.footer.bounds
	key := cache.Key{DB: r.o.CacheDB, File: r.o.Number, Offset: at.off, Kind: kindBounds}
	pin, ok := r.o.Cache.Acquire(key, int(at.len), fill)
	if ok {
		return pin.Value().(*groupbounds.Bounds), pin, nil
	}
	defer pin.FailUnless(&ok)
	p := pin.Bytes()
	err := r.readSection(p, int64(at.off), "bounds")
	if err == nil {
		var s *groupbounds.Bounds
		if s, err = groupbounds.Decode(p[:len(p)-sumBytes], len(r.index.Groups)); err == nil {
			s.Assign(r.o.Stamp)
			pin.Fill(s, s.MemBytes())
			ok = true
			return s, pin, nil
		}
		err = r.corruptf(int64(at.off), "bounds: %v", err)
	}
	return nil, cache.Handle{}, err
}

const (
	// maxPruneBytes is the most bytes of bounds that an iterator reads.
	maxPruneBytes = 4 << 20
	// minPruneRatio is how many times longer than the bounds the groups must be, unless the bounds
	// take at most minBoundsBytes: a file of one row can be shorter.
	minPruneRatio = 4
)

// prunable reports whether reading the bounds can save more than it takes before groups
// lowest to highest-1 are read.
func (r *Reader) prunable(lowest, highest int) bool {
	all := r.index.Groups
	if highest <= lowest || r.footer.bounds.len > maxPruneBytes {
		return false
	}
	if r.footer.bounds.len <= minBoundsBytes {
		return true
	}
	last := &all[highest-1]
	return last.Off+int64(last.Len)-all[lowest].Off >= minPruneRatio*int64(r.footer.bounds.len)
}

// Within estimates, from the index alone, the entries from user key lo to user key hi,
// and their share of the bytes of all entries. The file contains both keys. Both results
// are 0 for a file without entries.
func (r *Reader) Within(lo, hi []byte) (entries uint64, share float64) {
	if len(r.index.Groups) == 0 {
		return 0, 0
	}
	entries, n := r.index.Within(lo, hi)
	last := &r.index.Groups[len(r.index.Groups)-1]
	return entries, float64(n) / float64(last.Off+int64(last.Len)-r.index.Groups[0].Off)
}

// Between estimates, from the index alone, which share of the bytes of all entries is from user key lo to user key hi and
// within [lower, upper); a nil upper is the end.
func (r *Reader) Between(lo, hi, lower, upper []byte) float64 {
	if len(r.index.Groups) == 0 {
		return 0
	}
	if bytes.Compare(lower, lo) > 0 {
		lo = lower
	}
	if upper != nil && bytes.Compare(upper, hi) < 0 {
		hi = upper
	}
	last := &r.index.Groups[len(r.index.Groups)-1]
	return float64(r.index.Before(hi)-r.index.Before(lo)) / float64(last.Off+int64(last.Len)-r.index.Groups[0].Off)
}

// Close closes the file. Blocks stay in the cache until they are dropped there: drop them before the file
// is opened again. It keeps memory of heads for those of other files, and must not keep the shapes by them.
func (r *Reader) Close() error {
	r.shapes.Close()
	if err := r.f.Close(); err != nil {
		return fmt.Errorf("close %s: %w", r.o.Name, err)
	}
	return nil
}

const hintBytes = 8 // size in memory

// Newest returns the greatest sequence number and the latest Timestamp in the file.
func (r *Reader) Newest() (seq uint64, stamp edm.Ticks, err error) {
	it := r.NewIterator(IterOptions{AllVersions: true})
	for ok := it.SeekGE(nil); ok; ok = it.Next() {
		s, kind := it.Version()
		seq = max(seq, s)
		if kind == codec.KindPut {
			stamp = max(stamp, it.Row().Timestamp())
		}
	}
	return seq, stamp, it.Close()
}

// Small reports whether the file was written with CompressionSmall.
func (r *Reader) Small() bool { return r.footer.required&feature.Zstd != 0 }

// Versions reports whether some user key has several versions in the file.
func (r *Reader) Versions() bool { return r.footer.keys < r.footer.entries }

// MayContain reports whether the file may have a version of the user key with this
// hash (codec.KeyHash).
func (r *Reader) MayContain(keyHash uint64) bool { return bloom.Has(r.filter, keyHash) }

// Get finds the newest version of a user key with a sequence number of at most snap.
// For a put, row becomes a view of it, unless it is Lazy with all values loaded except big
// ones, and pins its blocks until Release. Get releases the previous contents of row. Get does not
// allocate if it asks the filter, which excludes the key, or if all blocks are in the cache.
//
// A row whose last thousand Gets found their keys skips the filter: a hot get then needs
// 8 % less CPU (bench, get/key=present). The first Get that finds nothing looks at a group
// in vain, and the next ones ask the filter again.
func (r *Reader) Get(key []byte, keyHash uint64, snap uint64, row *Row) (seq uint64, kind codec.Kind, ok bool, err error) {
	row.Release()
	if row.finds < findsBeforeSkip && !bloom.Has(r.filter, keyHash) {
		row.finds = 0
		return 0, 0, false, nil
	}
	row.finds++
	for g := r.index.Seek(key); g < len(r.index.Groups); g++ {
		h, pin, stored, err := r.headByRows(g, key, true, true, 1)
		if err != nil {
			row.finds = 0
			if !bloom.Has(r.filter, keyHash) { // the key does not need the damaged group
				return 0, 0, false, nil
			}
			return 0, 0, false, err
		}
		if pin != (cache.Handle{}) {
			row.TouchKeys(pin.Bytes())
		}
		i, equal := h.Seek(key)
		for equal && h.Sequence(i) > snap {
			i++
			equal = i < h.Rows() && h.Same(i)
		}
		if equal {
			return r.found(h, pin, stored, i, row)
		}
		// The next group can begin with older versions of the same key only.
		last := i < h.Rows() || g+1 == len(r.index.Groups) || !r.index.Groups[g+1].Continues
		pin.Release()
		stored.free()
		if last {
			break
		}
	}
	row.finds = 0
	return 0, 0, false, nil
}

// findsBeforeSkip is how many Gets of a row must have found their keys, one after the
// other, before it skips the filter.
const findsBeforeSkip = 1000

// found sets row to row i of h.
func (r *Reader) found(h *head, pin cache.Handle, stored *storedGroup, i int, row *Row) (uint64, codec.Kind, bool, error) {
	seq, kind := h.Version(i)
	if kind == codec.KindDelete {
		pin.Release()
		stored.free()
		return seq, kind, true, nil
	}
	row.pins.hold(r, h, pin, stored)
	row.pins.fill, row.pins.only = true, i
	row.Attach(&h.Head, &row.pins)
	row.Set(i)
	if row.Lazy {
		return seq, kind, true, nil
	}
	row.TouchValues()
	err := row.LoadHeap()
	if err != nil {
		row.finds = 0
		row.Release()
		return 0, 0, false, err
	}
	return seq, kind, true, nil
}
