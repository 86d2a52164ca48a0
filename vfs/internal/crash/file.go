// Package crash says what a power cut can leave of changes that no sync has covered:
// which sectors, sizes and names are undecided, and what a disk holds once each is
// decided. Package vfs states the model.
package crash

import (
	"slices"
)

// SectorBytes is what a disk writes whole or not at all.
const SectorBytes = 512

// File is what the disk holds of a file, and the changes that no sync has covered.
// Durable with those changes made in their order is what readers see, unless a
// failed sync parted them. It is not safe for concurrent use.
type File struct {
	Durable Image
	pending []change
	history []syncRecord // the last syncs, for devices that lie
}

// change is data, or a size, or both.
type change struct {
	seq uint64 // position in the order of all changes of a disk
	// data is whole sectors as they were after the change, at off. It is never
	// changed once it is here.
	data []byte
	off  int64
	size int64 // the file is at least this long after it
}

func (c *change) sectors() int { return len(c.data) / SectorBytes }

// split cuts a write after its first n sectors.
func (c change) split(n int) (head, tail change) {
	head, tail = c, c
	at := c.off + int64(n)*SectorBytes
	head.data, tail.data = c.data[:at-c.off], c.data[at-c.off:]
	head.size = min(c.size, at)
	tail.off = at
	return head, tail
}

// apply makes the change in a durable image.
func (c *change) apply(im *Image) {
	im.Size = max(im.Size, c.size)
	if n := im.Size - c.off; n > 0 {
		im.Put(c.data[:min(int64(len(c.data)), n)], c.off)
	}
}

// syncRecord is one sync that reported success.
type syncRecord struct {
	before  Image
	changes []change
}

// historySyncs is how many of a file's syncs a lying device may have dropped.
const historySyncs = 4

// Write notes a write of [off, end) that cache, what readers see, already holds. seq
// is its position in the order of all changes of the disk, files and names alike.
func (f *File) Write(seq uint64, cache *Image, off, end int64) {
	first, last := off/SectorBytes*SectorBytes, (end+SectorBytes-1)/SectorBytes*SectorBytes
	data := make([]byte, last-first)
	cache.Read(data, first)
	f.pending = append(f.pending, change{seq: seq, data: data, off: first, size: end})
}

// Grow notes that the file became at least size bytes long.
func (f *File) Grow(seq uint64, size int64) {
	f.pending = append(f.pending, change{seq: seq, size: size})
}

// Pending returns how many sectors and sizes are not durable.
func (f *File) Pending() int {
	sum := 0
	for i := range f.pending {
		sum += max(f.pending[i].sectors(), 1)
	}
	return sum
}

// Sync makes the first changes durable, up to a number of sectors; begin says that a
// sync begins, and does not go on.
func (f *File) Sync(begin bool, sectors int) {
	if len(f.pending) == 0 {
		return
	}
	if begin || len(f.history) == 0 {
		if len(f.history) == historySyncs {
			f.history = slices.Clone(f.history[1:])
		}
		f.history = append(f.history, syncRecord{before: f.Durable.Freeze()})
	}
	f.flush(sectors)
}

// flush makes the first changes durable, up to a number of sectors, and notes them in
// the newest record of the history.
func (f *File) flush(sectors int) {
	done := 0
	for done < len(f.pending) && sectors > 0 {
		c := &f.pending[done]
		if c.sectors() > sectors {
			break
		}
		sectors -= max(c.sectors(), 1)
		done++
	}
	flushed, rest := f.pending[:done], f.pending[done:]
	if sectors > 0 && len(rest) > 0 {
		head, tail := rest[0].split(sectors)
		flushed = append(slices.Clone(flushed), head)
		rest = append([]change{tail}, rest[1:]...)
	}
	for i := range flushed {
		flushed[i].apply(&f.Durable)
	}
	last := &f.history[len(f.history)-1]
	last.changes = append(last.changes, flushed...)
	f.pending = rest
	if len(rest) == 0 {
		f.pending = nil
	}
}

// Forget drops the changes that no sync has covered: none will.
func (f *File) Forget() { f.pending = nil }

// Syncs returns how many syncs a lying device may have dropped.
func (f *File) Syncs() int { return len(f.history) }

// Clone returns an independent copy. Contents are shared until they change.
func (f *File) Clone() File {
	c := File{
		Durable: f.Durable.Freeze(),
		pending: slices.Clip(f.pending),
		history: slices.Clone(f.history),
	}
	for i := range c.history {
		c.history[i].changes = slices.Clip(c.history[i].changes)
	}
	return c
}
