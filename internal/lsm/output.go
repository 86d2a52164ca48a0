package lsm

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/internal/filename"
	"github.com/tablerock-db/tablerock/internal/lsm/internal/bound"
	"github.com/tablerock-db/tablerock/internal/lsm/internal/filesize"
	"github.com/tablerock-db/tablerock/internal/lsm/internal/keyrange"
	"github.com/tablerock-db/tablerock/internal/lsm/internal/runs"
	"github.com/tablerock-db/tablerock/internal/manifest"
	"github.com/tablerock-db/tablerock/sstable"
	"github.com/tablerock-db/tablerock/vfs"
)

// output writes the files of a job.
type output struct {
	t           *Tree
	tier        uint32
	run         uint64
	fileBytes   int64
	overlap     filesize.Limit
	compression sstable.Compression
	snapshots   []uint64 // runs.File.Snapshots

	done    []*runs.SST // finished files
	entries uint64      // in them
	bytes   int64
	// ending is the file before the current one while another goroutine finishes it. ended gets its
	// error.
	ending *output
	ended  chan error

	// The file being written; w is nil between files.
	w       *sstable.Writer
	f       vfs.File
	number  uint64
	last    []byte // user key of the last entry
	n       uint64 // entries
	rows    *bound.Rows
	probes  int // entries whose key was looked up in older runs
	newKeys int // of these, those that hide no entry there, and that no newer one of the file hides
}

// maxOutputBytes limits a file, so that no section of it, of shapes for example, is longer than an
// sstable allows.
const maxOutputBytes = 60 << 20

// full reports whether the file should end before a user key. All versions of a key
// are in one file. If possible, a file ends with a table or a partition.
func (o *output) full(user []byte) bool {
	if o.w == nil {
		return false
	}
	size := o.w.Size()
	if size < o.t.o.fileSize().MinShare() || bytes.Equal(user, o.last) {
		return false
	}
	if size >= o.t.o.fileSize().Min() && !bytes.Equal(user[:codec.TableLen], o.last[:codec.TableLen]) {
		return true
	}
	full, over := size >= o.fileBytes, size >= min(o.fileBytes+o.fileBytes/4, maxOutputBytes)
	if o.overlap.Reached(user) {
		full, over = full || o.n >= o.overlap.Entries, over || o.n >= o.overlap.Entries+o.overlap.Entries/4
	}
	return over || full && !bytes.HasPrefix(o.last, user[:codec.PartitionLen(user)])
}

// add writes an entry. user is the key without its trailer.
func (o *output) add(key, user []byte, row codec.ShapedRow) error {
	if o.w == nil {
		if err := o.create(); err != nil {
			return err
		}
		o.n, o.rows = 0, &bound.Rows{}
		o.overlap.Begin(user)
	}
	o.n++
	o.rows.Add(user)
	o.last = append(o.last[:0], user...)
	if err := o.w.Add(key, row); err != nil {
		return fmt.Errorf("write %s: %w", filename.Make(filename.SSTable, o.number), err)
	}
	return nil
}

// create starts a file. It skips a number if the file exists already: a leftover of a
// crash or a foreign file.
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
	o.probes, o.newKeys = 0, 0
	o.w = sstable.NewWriter(o.f, sstable.WriterOptions{
		DBID:        o.t.dbid,
		Number:      o.number,
		Compression: o.compression,
		GroupBytes:  o.t.o.GroupBytes,
	})
	return nil
}

// endFile ends the current file. If aside is set, another goroutine finishes it, so that the next
// one is written while it is synced.
func (o *output) endFile(aside bool) error {
	if err := o.wait(); err != nil {
		return err
	}
	if !aside {
		return o.finishFile()
	}
	ending := *o
	ending.done, ending.entries, ending.bytes = nil, 0, 0
	o.w, o.f, o.last = nil, nil, nil
	ended := make(chan error, 1)
	o.ending, o.ended = &ending, ended
	go func() { ended <- ending.finishFile() }()
	return nil
}

// wait waits until the file before the current one is finished.
func (o *output) wait() error {
	if o.ending == nil {
		return nil
	}
	err := <-o.ended
	if err != nil {
		o.ending.discard()
	}
	o.done = append(o.done, o.ending.done...)
	o.entries += o.ending.entries
	o.bytes += o.ending.bytes
	o.ending = nil
	return err
}

// finish finishes all files.
func (o *output) finish() error { return o.endFile(false) }

// finishFile finishes the current file, if there is one, and reads its footer and index.
func (o *output) finishFile() error {
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
		o.t.trash.Remove(o.number)
		return fmt.Errorf("close %s: %w", name, err)
	}
	meta := manifest.File{
		Number: o.number, Size: info.Size, Tier: o.tier, Run: o.run,
		Smallest: info.Smallest, Largest: info.Largest, MinSeq: info.MinSeq, MaxSeq: info.MaxSeq,
		Entries: info.Entries, Tombstones: info.Tombstones, Hash: info.Hash, Origin: o.t.dbid,
		NewKeys: keyrange.Share(o.newKeys, o.probes),
	}
	f, err := o.t.opener.Open(&meta)
	if err == nil {
		if _, err = f.Reader(); err != nil {
			o.t.close(f)
		}
	}
	if err != nil {
		o.t.trash.Remove(o.number)
		return err
	}
	f.Snapshots = o.snapshots
	f.Tables.Set(o.rows)
	o.done = append(o.done, runs.NewSST(f, meta, meta.Size))
	o.entries += info.Entries
	o.bytes += info.Size
	return nil
}

// discard removes the output.
func (o *output) discard() {
	if err := o.wait(); err != nil {
		o.t.o.Logger.Warn("a file of an aborted job failed", "cause", err)
	}
	if o.w != nil {
		o.w.Abort()
		o.w = nil
	}
	if o.f != nil {
		if err := o.f.Close(); err != nil {
			o.t.o.Logger.Warn("close of an unfinished file failed", "file", filename.Make(filename.SSTable, o.number), "cause", err)
		}
		o.f = nil
		o.t.trash.Remove(o.number)
	}
	for _, s := range o.done {
		o.t.close(s.File)
		o.t.trash.Remove(s.Number)
	}
	o.done = nil
}

// install installs e, which adds the files of the output. They are the tree's then, and also if the FS panics: the manifest may
// list them.
func (o *output) install(e versionEdit) error {
	done := o.done
	o.done = nil
	err := o.t.install(e)
	if err != nil {
		o.done = done
	}
	if errors.Is(err, ErrInDoubt) {
		o.keep() // a crash may leave the manifest that lists them
	}
	return err
}

// keep closes the files of the output, which are finished, and keeps them on disk.
func (o *output) keep() {
	for _, s := range o.done {
		o.t.close(s.File)
	}
	o.done = nil
}

// files returns how many files were ended.
func (o *output) files() int {
	if o.ending != nil {
		return len(o.done) + 1
	}
	return len(o.done)
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
