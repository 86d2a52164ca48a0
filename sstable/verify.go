package sstable

import (
	"bytes"
	"context"
	"errors"
	"unicode/utf8"

	"github.com/cespare/xxhash/v2"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/cache"
	"github.com/tablerock-db/tablerock/sstable/internal/groupbounds"
	"github.com/tablerock-db/tablerock/sstable/internal/groupindex"
	"github.com/tablerock-db/tablerock/sstable/internal/rowgroup"
	"github.com/tablerock-db/tablerock/vfs"
)

// Verify reads the whole file without the cache, and checks every byte: its sum, and
// the rules of the format. Keys are well formed and sorted; index and footer agree
// with the groups; the filter has every key; there are no bytes between sections;
// values are valid for their types and within their bounds. Verify returns the first
// damage as a *corrupt.Error. The caller compares the hash of the file.
func (r *Reader) Verify(ctx context.Context) error {
	own := *r
	r = &own
	r.o.Cache = cache.New(0)
	loaded := r.o.Stamp != 0
	r.o.Stamp = 0 // the sections of the file agree with each other
	bounds, pin, err := r.loadBounds(false)
	if err != nil {
		return err
	}
	defer pin.Release()
	v := verifier{r: r, bounds: bounds.NewGroup()}
	if _, err := r.readHeader(); err != nil {
		return err
	}
	if err := r.checkFeatures(); err != nil {
		return err
	}
	spans := r.footer.spans()
	for _, s := range append(spans[:], span{uint64(r.foot), uint64(r.size - r.foot)}) {
		p := make([]byte, s.len)
		if err := r.readSection(p, int64(s.off), "section"); err != nil {
			return err
		}
	}
	for g := range r.index.Groups {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := v.group(g); err != nil {
			return err
		}
	}
	f := &r.footer
	if v.f.entries != f.entries || v.f.tombstones != f.tombstones || v.f.keys != f.keys ||
		f.entries > 0 && (v.f.minSeq != f.minSeq || v.f.maxSeq != f.maxSeq) {
		return r.corruptf(r.foot, "footer and groups differ in their counts")
	}
	if loaded && (v.f.maxSeq != 0 || v.f.tombstones != 0 || v.f.keys != v.f.entries) {
		return r.corruptf(r.foot, "a loaded file has tombstones, versions or sequence numbers")
	}
	if f.entries > 0 && !bytes.Equal(v.key, r.index.Largest) {
		return r.corruptf(int64(f.index.off), "largest key of the index is not the last key")
	}
	return nil
}

// Hash returns the XXH64 of the size bytes of f, as Info.Hash.
func Hash(ctx context.Context, f vfs.File, size int64) (uint64, error) {
	const chunkBytes = 1 << 20
	h := xxhash.New()
	buf := make([]byte, min(chunkBytes, size))
	for off := int64(0); off < size; off += int64(len(buf)) {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		buf = buf[:min(int64(len(buf)), size-off)]
		if n, err := f.ReadAt(buf, off); n < len(buf) {
			return 0, err
		}
		_, _ = h.Write(buf) // never fails
	}
	return h.Sum64(), nil
}

// verifier accumulates what Verify compares with index and footer.
type verifier struct {
	r   *Reader
	f   footer // counts
	key []byte // last internal key
	buf []byte
	h   rowgroup.Head
	row Row

	bounds *groupbounds.Group
}

func (v *verifier) group(g int) error {
	r, e, h := v.r, &v.r.index.Groups[g], &v.h
	v.buf = append(v.buf[:0], make([]byte, e.Head)...)
	if err := r.readSection(v.buf, e.HeadOff(), "head"); err != nil {
		return err
	}
	if err := h.Decode(v.buf, e.Off, e.Before, e.Len, r.shapes); err != nil {
		return r.corruptf(e.Off, "%v", err)
	}
	if h.Rows() != e.Rows {
		return r.corruptf(e.Off, "group of %d rows, the index says %d", h.Rows(), e.Rows)
	}
	v.bounds.Load(g)
	maxSeq, versions := uint64(0), false
	for row := range h.Rows() {
		maxSeq = max(maxSeq, h.Sequence(row))
		versions = versions || row > 0 && h.Same(row)
		if err := v.entry(g, row); err != nil {
			return r.corruptf(e.Off, "row %d: %v", row, err)
		}
	}
	if maxSeq != h.MaxSeq || versions != h.Versions() {
		return r.corruptf(e.Off, "largest sequence is not %d, or no key has several rows", h.MaxSeq)
	}
	if next := r.index.Groups[g+1:]; len(next) > 0 && bytes.Compare(next[0].Separator, codec.UserKey(v.key)) < 0 {
		return r.corruptf(e.Off, "group reaches into the next")
	}
	if !v.checkUnits(e) {
		return r.corruptf(e.Off, "index has other heap units")
	}
	return v.values(e)
}

// checkUnits reports whether the heap units of the group are as the index says.
func (v *verifier) checkUnits(e *groupindex.Group) bool {
	if len(e.Units) == 0 {
		return true
	}
	p := e.Units
	for i := range v.h.HeapUnits {
		unit := &v.h.HeapUnits[i]
		u, rest, ok := groupindex.NextUnit(p)
		if !ok || u.Stored != unit.Stored {
			return false
		}
		p = rest
		if first := unit.First; first > 0 {
			before := u.Compare(v.h.AppendKey(nil, first-1), e.Separator)
			if u.Compare(v.h.AppendKey(nil, first), e.Separator) < 0 || before > 0 || before == 0 && !v.h.Same(first) {
				return false
			}
		}
	}
	return len(p) == 0
}

// entry checks the key of a row.
func (v *verifier) entry(g, row int) error {
	h, e := &v.h, &v.r.index.Groups[g]
	seq, kind := h.Version(row)
	user := h.AppendKey(nil, row)
	if codec.CheckKey(user) != nil || seq > codec.MaxSeq || codec.PartitionLen(user) != h.PartitionLen(row) {
		return errors.New("malformed key")
	}
	key := codec.AppendTrailer(user, seq, kind)
	user = key[:len(user)]
	if bytes.Compare(key, v.key) <= 0 {
		return errors.New("key does not follow the one before")
	}
	again := len(v.key) > 0 && bytes.Equal(user, codec.UserKey(v.key))
	marked := e.Continues
	if row > 0 {
		marked = h.Same(row)
	}
	if again != marked {
		return errors.New("older version of the key before is not marked")
	}
	if row == 0 {
		if bytes.Compare(user, e.Separator) < 0 || g == 0 && !bytes.Equal(key, v.r.index.Smallest) {
			return errors.New("key before the beginning of the group")
		}
		if len(v.key) > 0 && !again && bytes.Compare(e.Separator, codec.UserKey(v.key)) <= 0 {
			return errors.New("separator does not separate")
		}
	}
	if i, equal := h.Seek(user); !equal || (!again || row == 0) && i != row {
		return errors.New("key cannot be found")
	}
	if !v.r.MayContain(codec.KeyHash(user)) {
		return errors.New("key is not in the filter")
	}
	v.count(seq, kind, again)
	v.key = append(v.key[:0], key...)
	return nil
}

func (v *verifier) count(seq uint64, kind codec.Kind, again bool) {
	if v.f.entries == 0 {
		v.f.minSeq = seq
	}
	v.f.minSeq, v.f.maxSeq = min(v.f.minSeq, seq), max(v.f.maxSeq, seq)
	v.f.entries++
	if !again {
		v.f.keys++
	}
	if kind == codec.KindDelete {
		v.f.tombstones++
	}
}

// values checks the heap units and value blocks of the group, and that there are no
// other bytes beside its head.
func (v *verifier) values(e *groupindex.Group) error {
	r, h := v.r, &v.h
	at, end := e.Off, e.Off+int64(e.HeadEnd())
	row := &v.row
	row.pins.r, row.pins.only = r, -1
	row.Attach(h, &row.pins)
	defer row.Release()
	for i := range h.HeapUnits {
		u := &h.HeapUnits[i]
		if at == e.HeadOff() {
			at = end
		}
		if u.Off != at {
			return r.corruptf(at, "bytes between heap units")
		}
		at += int64(u.Stored)
		if err := v.check(e.Off, row, u.First, u.End); err != nil {
			return err
		}
	}
	if len(h.HeapUnits) == 0 {
		if err := v.check(e.Off, row, 0, h.Rows()); err != nil {
			return err
		}
	}
	at = max(at, end)
	for i := range h.ValueBlocks {
		if h.ValueBlocks[i].Off != at {
			return r.corruptf(at, "bytes between value blocks")
		}
		at += int64(h.ValueBlocks[i].Stored)
	}
	if at != e.Off+int64(e.Len) {
		return r.corruptf(at, "bytes after the group")
	}
	return nil
}

// check reads every value of rows from to to-1.
func (v *verifier) check(off int64, row *Row, from, to int) error {
	r, h := v.r, &v.h
	for i := from; i < to; i++ {
		if h.Tombstone(i) {
			continue
		}
		row.Set(i)
		if t := row.Timestamp(); !t.Valid() || !v.bounds.Contains(edm.TimestampName, edm.DateTime(t)) {
			return r.corruptf(off, "row %d: timestamp of %d ticks", i, t)
		}
		for p := range row.Len() {
			name, value := row.At(p)
			if row.Err() != nil {
				return row.Err()
			}
			if !validValue(value) {
				return r.corruptf(off, "row %d: property %q is not a valid %v", i, name, value.Type())
			}
			if !v.bounds.Contains(name, value) {
				return r.corruptf(off, "row %d: property %q is outside its bounds", i, name)
			}
		}
	}
	return nil
}

// validValue reports whether the writer can have written v. Reading alone guarantees
// only that a value is within its block.
func validValue(v edm.Value) bool {
	switch v.Type() {
	case edm.TypeString:
		return utf8.Valid(v.Bytes())
	case edm.TypeInt32:
		return v.Word() == uint64(int64(int32(v.Word())))
	case edm.TypeDateTime:
		return edm.Ticks(v.Word()).Valid()
	}
	return true
}
