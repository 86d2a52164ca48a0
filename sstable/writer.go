package sstable

import (
	"bytes"
	"fmt"
	"sync"

	"github.com/cespare/xxhash/v2"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/internal/feature"
	"github.com/tablerock-db/tablerock/sstable/internal/bloom"
	"github.com/tablerock-db/tablerock/sstable/internal/checksum"
	"github.com/tablerock-db/tablerock/sstable/internal/compression"
	"github.com/tablerock-db/tablerock/sstable/internal/groupindex"
	"github.com/tablerock-db/tablerock/sstable/internal/rowgroup"
	"github.com/tablerock-db/tablerock/vfs"
)

const (
	// writeBytes is how much a Writer buffers before it writes.
	writeBytes = 256 << 10
	// boundsRatio is how many times longer than its bounds a group is, unless they take at most
	// minBoundsBytes. Readers read no bounds that are long beside the groups (minPruneRatio).
	boundsRatio    = 8
	minBoundsBytes = 512
)

// Writer writes one file. It is not safe for concurrent use. After an error every call
// returns that error, and the file is useless.
type Writer struct {
	f    vfs.File
	o    WriterOptions
	bind checksum.Binding

	writerBuffers
	written int64 // bytes of the file before buf
	hash    *xxhash.Digest

	shapes            *rowgroup.Shapes
	group             rowgroup.Builder
	last              []byte // internal key
	first             []byte // internal key of the file's first entry
	ended             []byte // last user key of the group before; nil in the first group
	unitKey, unitLast []byte // scratch of appendUnits
	info              Info
	err               error
}

// writerBuffers grow with a file. Later Writers use them again, because growing them for each
// file takes a tenth of the CPU of an ordered load (bench, load/order=sorted).
type writerBuffers struct {
	buf    []byte // not yet written
	groups []groupindex.Group
	keys   []byte   // separators of the groups
	units  []byte   // of the index
	hashes []uint64 // of user keys
	bounds []byte   // encoded bounds of the groups
}

var freeBuffers = sync.Pool{New: func() any {
	return &writerBuffers{buf: make([]byte, 0, writeBytes+rowgroup.MaxBytes*2)}
}}

// free gives the buffers to a later Writer.
func (b *writerBuffers) free() {
	if b.buf == nil {
		return
	}
	clear(b.groups)
	freeBuffers.Put(&writerBuffers{b.buf[:0], b.groups[:0], b.keys[:0], b.units[:0], b.hashes[:0], b.bounds[:0]})
	*b = writerBuffers{}
}

// NewWriter returns a Writer for the empty file f, which the caller closes. Add or
// Finish returns the error of invalid options.
func NewWriter(f vfs.File, o WriterOptions) *Writer {
	o, err := o.withDefaults()
	w := &Writer{f: f, o: o, bind: checksum.Bind(o.DBID, o.Number), hash: xxhash.New(), shapes: rowgroup.NewShapes(), err: err}
	w.writerBuffers = *freeBuffers.Get().(*writerBuffers)
	w.buf = appendHeader(w.buf, w.bind, o.DBID, o.Number)
	return w
}

// Add appends an entry and keeps no reference to it. Keys are internal keys in rising
// order; row is nil for a tombstone and only then. If a value of row cannot be read,
// Add returns that error.
func (w *Writer) Add(key []byte, row codec.ShapedRow) error {
	if w.err != nil {
		return w.err
	}
	if err := w.add(key, row); err != nil {
		w.err = err
		return err
	}
	return nil
}

func (w *Writer) add(key []byte, row codec.ShapedRow) error {
	if len(key) < codec.TrailerLen+codec.MinKeyLen || len(key) > codec.TrailerLen+codec.MaxKeyLen {
		return fmt.Errorf("add: internal key of %d bytes", len(key))
	}
	user, seq, kind := codec.SplitTrailer(key)
	if kind != codec.KindPut && kind != codec.KindDelete || (kind == codec.KindDelete) != (row == nil) {
		return fmt.Errorf("add: entry of kind %d with row %t", kind, row != nil)
	}
	if bytes.Compare(key, w.last) <= 0 {
		return fmt.Errorf("add: key %x does not follow %x", key, w.last)
	}
	lastUser := w.last[:max(len(w.last)-codec.TrailerLen, 0)]
	again := bytes.Equal(user, lastUser)
	if user[len(user)-1] != codec.EndOfComponent || bytes.IndexByte(user[codec.TableLen:], 0) >= 0 {
		return fmt.Errorf("add: key %x has an invalid user key", key)
	}
	if w.group.Full(w.o.GroupBytes) {
		if err := w.endGroup(); err != nil {
			return err
		}
	}
	if w.group.Rows() == 0 {
		w.beginGroup(user, again)
	}
	// 0 means that the row has the same partition as the row before.
	partition := 0
	if p := w.group.Partition(); p == 0 || len(user) <= p || !bytes.Equal(user[:p], lastUser[:p]) {
		if partition = codec.PartitionLen(user); partition == 0 || partition == len(user) {
			return fmt.Errorf("add: key %x has an invalid user key", key)
		}
	}
	if err := w.group.Add(user, partition, again, seq, row, w.shapes); err != nil {
		return err
	}
	if !again {
		w.hashes = append(w.hashes, codec.KeyHash(user))
	}
	w.count(key, seq, row == nil)
	return nil
}

func (w *Writer) count(key []byte, seq uint64, tombstone bool) {
	if w.info.Entries == 0 {
		w.first = append(w.first, key...)
		w.info.MinSeq = seq
	}
	w.last = append(w.last[:0], key...)
	w.info.MinSeq, w.info.MaxSeq = min(w.info.MinSeq, seq), max(w.info.MaxSeq, seq)
	w.info.Entries++
	if tombstone {
		w.info.Tombstones++
	}
}

// beginGroup adds the separator of a group whose first user key is user.
func (w *Writer) beginGroup(user []byte, again bool) {
	separator := user
	if len(w.groups) > 0 && !again {
		separator = user[:codec.CommonLen(user, w.ended)+1]
	}
	from := len(w.keys)
	w.keys = append(w.keys, separator...)
	w.groups = append(w.groups, groupindex.Group{Continues: again, Separator: w.keys[from:len(w.keys):len(w.keys)]})
}

// endGroup encodes the current group.
func (w *Writer) endGroup() error {
	w.ended = append(w.ended[:0], codec.UserKey(w.last)...)
	e := &w.groups[len(w.groups)-1]
	e.Off = w.written + int64(len(w.buf))
	e.Rows = w.group.Rows()
	from := len(w.buf)
	w.buf, e.Before, e.Head = w.group.AppendTo(w.buf, e.Off, w.bind, compression.Method(w.o.Compression))
	e.Len = len(w.buf) - from
	w.bounds = w.group.AppendBounds(w.bounds, w.shapes, max(minBoundsBytes, e.Len/boundsRatio))
	w.appendUnits(e)
	w.group.Reset()
	if len(w.buf) >= writeBytes {
		return w.flush()
	}
	return nil
}

// appendUnits adds the heap units of the current group to the index. A get reads a group
// with one unit, or with value blocks, whole.
func (w *Writer) appendUnits(e *groupindex.Group) {
	units, n := w.group.HeapUnits(), e.Head
	for i := range units {
		n += units[i].Stored
	}
	if len(units) < 2 || len(units) > groupindex.MaxUnits || n < e.Len {
		w.units = append(w.units, 0)
		return
	}
	w.units = append(w.units, byte(len(units)))
	for i := range units {
		var separator []byte
		if first := units[i].First; first > 0 {
			w.unitLast = w.group.AppendKey(w.unitLast[:0], first-1)
			w.unitKey = w.group.AppendKey(w.unitKey[:0], first)
			n := min(codec.CommonLen(w.unitKey, w.unitLast)+1, len(w.unitKey))
			separator = w.unitKey[:n]
		}
		w.units = groupindex.AppendUnit(w.units, units[i].Stored, separator, e.Separator)
	}
}

func (w *Writer) flush() error {
	w.hash.Write(w.buf)
	if _, err := w.f.WriteAt(w.buf, w.written); err != nil {
		return fmt.Errorf("write sstable %06d at %d: %w", w.o.Number, w.written, err)
	}
	w.written += int64(len(w.buf))
	w.buf = w.buf[:0]
	return nil
}

// Size returns about how large the file would be if it were finished now.
func (w *Writer) Size() int64 {
	tail := w.shapes.Size() + len(w.groups)*groupindex.GroupBytes + len(w.keys) + len(w.units) + len(w.bounds) + len(w.hashes)*bloom.BitsPerKey/8
	return w.written + int64(len(w.buf)+w.group.Logical()/2+tail+footerBytes)
}

// Finish writes the sections after the groups and syncs the file.
func (w *Writer) Finish() (Info, error) {
	if w.err != nil {
		return Info{}, w.err
	}
	if err := w.finish(); err != nil {
		w.err = err
		return Info{}, err
	}
	w.err = errFinished
	w.free()
	return w.info, nil
}

func (w *Writer) finish() error {
	if w.group.Rows() > 0 {
		if err := w.endGroup(); err != nil {
			return err
		}
	}
	f := footer{
		entries: w.info.Entries, tombstones: w.info.Tombstones,
		minSeq: w.info.MinSeq, maxSeq: w.info.MaxSeq, keys: uint64(len(w.hashes)),
	}
	f.shapes = w.section(w.shapes.AppendTo)
	f.index = w.section(func(dst []byte) []byte { return append(groupindex.Append(dst, w.groups, w.first, w.last), w.units...) })
	f.filter = w.section(func(dst []byte) []byte { return bloom.Append(dst, w.hashes) })
	f.bounds = w.section(func(dst []byte) []byte { return append(w.shapes.AppendColumns(dst), w.bounds...) })
	for _, s := range f.spans() {
		if s.len > maxSectionBytes {
			return fmt.Errorf("finish sstable %06d: a section of %d bytes, limit %d", w.o.Number, s.len, maxSectionBytes)
		}
	}
	f.extensions.off = uint64(w.written) + uint64(len(w.buf))
	if w.o.Compression == CompressionSmall {
		f.required = feature.Zstd
		f.extensions = w.section(feature.AppendZstd)
	}
	w.buf = appendFooter(w.buf, w.bind, w.o.DBID, w.o.Number, f, w.written+int64(len(w.buf)))
	if err := w.flush(); err != nil {
		return err
	}
	if err := w.f.Sync(); err != nil {
		return fmt.Errorf("sync sstable %06d: %w", w.o.Number, err)
	}
	w.info.Size = w.written
	w.info.Smallest, w.info.Largest = w.first, bytes.Clone(w.last)
	w.info.Hash = w.hash.Sum64()
	return nil
}

// section appends a section with its sum.
func (w *Writer) section(appendTo func([]byte) []byte) span {
	from := len(w.buf)
	off := w.written + int64(from)
	w.buf = w.bind.AppendSum(appendTo(w.buf), from, off)
	return span{uint64(off), uint64(len(w.buf) - from)}
}

// Abort makes every later call fail. The caller removes the file.
func (w *Writer) Abort() {
	if w.err == nil {
		w.err = errAborted
	}
	w.free()
	w.group = rowgroup.Builder{}
}
