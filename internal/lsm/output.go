package lsm

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/internal/filename"
	"github.com/tablerock-db/tablerock/internal/manifest"
	"github.com/tablerock-db/tablerock/sstable"
	"github.com/tablerock-db/tablerock/vfs"
)

const tableLen = 4 // of the table id at the front of a key

// output writes the files of a job.
type output struct {
	t           *Tree
	tier        uint32
	run         uint64
	fileBytes   int64
	compression sstable.Compression

	done    []*part // finished files
	entries uint64  // in them
	bytes   int64

	// The file being written; w is nil between files.
	w      *sstable.Writer
	f      vfs.File
	number uint64
	last   []byte // user key of the last entry
	probes int    // entries that were looked up in older runs
	fresh  int    // and not found there
}

// probed reports whether the key of the nth entry is looked up in the filters of
// older runs. One in sixteen is, in no step with anything: of rows that come in
// groups of sixteen, it is not the same one of each.
func probed(n uint64) bool { return n*0x9E3779B97F4A7C15 < 1<<60 }

// full reports whether the file should end before a user key. A key's versions
// stay together; beyond that, files end where a table or a partition does, if
// one ends in time.
func (o *output) full(user []byte) bool {
	if o.w == nil {
		return false
	}
	size := o.w.Size()
	if size < o.t.o.pieceBytes() || bytes.Equal(user, o.last) {
		return false
	}
	if !bytes.Equal(user[:tableLen], o.last[:tableLen]) {
		return true
	}
	if size < o.fileBytes {
		return false
	}
	return size >= o.fileBytes+o.fileBytes/4 || !bytes.HasPrefix(o.last, user[:codec.PartitionLen(user)])
}

// add writes an entry. user is the key without its trailer.
func (o *output) add(key, user []byte, row codec.ShapedRow) error {
	if o.w == nil {
		if err := o.create(); err != nil {
			return err
		}
	}
	o.last = append(o.last[:0], user...)
	if err := o.w.Add(key, row); err != nil {
		return fmt.Errorf("write %s: %w", filename.Make(filename.SSTable, o.number), err)
	}
	return nil
}

// create begins a file. A number whose name is taken, by what a crash left or by
// a stranger, is passed over.
func (o *output) create() error {
	for {
		o.number = o.t.NewNumber()
		f, err := o.t.o.FS.Create(o.t.path(o.number))
		if err == nil {
			o.f = f
			break
		}
		if !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("create %s: %w", filename.Make(filename.SSTable, o.number), err)
		}
	}
	o.probes, o.fresh = 0, 0
	o.w = sstable.NewWriter(o.f, sstable.WriterOptions{
		DBID:        o.t.dbid,
		Number:      o.number,
		Compression: o.compression,
		GroupBytes:  o.t.o.GroupBytes,
	})
	return nil
}

// finish ends the file being written, if there is one, and opens it for reading.
func (o *output) finish() error {
	if o.w == nil {
		return nil
	}
	name := filename.Make(filename.SSTable, o.number)
	info, err := o.w.Finish()
	if err != nil {
		return fmt.Errorf("finish %s: %w", name, err)
	}
	o.w = nil
	err = o.f.Close()
	o.f = nil
	if err != nil {
		o.t.remove(o.number)
		return fmt.Errorf("close %s: %w", name, err)
	}
	meta := manifest.File{
		Number: o.number, Size: info.Size, Tier: o.tier, Run: o.run,
		Smallest: info.Smallest, Largest: info.Largest, MinSeq: info.MinSeq, MaxSeq: info.MaxSeq,
		Entries: info.Entries, Tombstones: info.Tombstones, Hash: info.Hash,
	}
	f, err := o.t.openFile(&meta)
	if err != nil {
		o.t.remove(o.number)
		return err
	}
	if o.probes > 0 {
		f.fresh = float64(o.fresh) / float64(o.probes)
	}
	o.done = append(o.done, newPart(f, meta, meta.Size))
	o.entries += info.Entries
	o.bytes += info.Size
	return nil
}

// discard removes everything that was written.
func (o *output) discard() {
	if o.w != nil {
		o.w.Abort()
		o.w = nil
	}
	if o.f != nil {
		if err := o.f.Close(); err != nil {
			o.t.o.Logger.Warn("close of an unfinished file failed", "file", filename.Make(filename.SSTable, o.number), "cause", err)
		}
		o.f = nil
		o.t.remove(o.number)
	}
	for _, p := range o.done {
		o.t.close(p.file)
		o.t.remove(p.number)
	}
	o.done = nil
}

// leave closes what was written and keeps it on disk.
func (o *output) leave() {
	for _, p := range o.done {
		o.t.close(p.file)
	}
	o.done = nil
}

// size returns the bytes written so far.
func (o *output) size() int64 {
	if o.w == nil {
		return o.bytes
	}
	return o.bytes + o.w.Size()
}

func (t *Tree) path(number uint64) string {
	return path.Join(t.o.Dir, filename.Make(filename.SSTable, number))
}
