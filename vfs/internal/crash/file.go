// Package crash computes what a power cut can leave of unsynced changes: the pending
// sectors, sizes and names, and the disk for each way to keep or lose them. Package vfs
// describes the model.
package crash

import (
	"slices"
)

// SectorBytes is the size of a sector, the unit that a disk writes atomically.
const SectorBytes = 512

// File is the durable image of a file and its unsynced changes. Readers see Durable with
// the changes applied in order, unless a failed sync dropped changes. A File is not safe
// for concurrent use.
type File struct {
	Durable Image
	pending []change
	history []syncRecord // the last syncs, which a lying device may have dropped
}

// change is a change of data, of the size, or of both.
type change struct {
	seq uint64 // position in the order of all changes of a disk
	// data holds whole sectors as of after the change, at off. It is immutable.
	data []byte
	off  int64
	size int64 // the file is at least this long after it
}

func (c *change) sectors() int { return len(c.data) / SectorBytes }

// split splits a write after its first n sectors.
func (c change) split(n int) (head, tail change) {
	head, tail = c, c
	at := c.off + int64(n)*SectorBytes
	head.data, tail.data = c.data[:at-c.off], c.data[at-c.off:]
	head.size = min(c.size, at)
	tail.off = at
	return head, tail
}

// apply applies the change to a durable image.
func (c *change) apply(im *Image) {
	im.Size = max(im.Size, c.size)
	if n := im.Size - c.off; n > 0 {
		im.Put(c.data[:min(int64(len(c.data)), n)], c.off)
	}
}

// syncRecord is one successful sync.
type syncRecord struct {
	before  Image
	changes []change
}

// historySyncs is the maximum number of syncs that a lying device drops.
const historySyncs = 4

// Write records a write of [off, end). cache, the image that readers see, holds it
// already. seq is its position in the order of all changes of the disk.
func (f *File) Write(seq uint64, cache *Image, off, end int64) {
	first, last := off/SectorBytes*SectorBytes, (end+SectorBytes-1)/SectorBytes*SectorBytes
	data := make([]byte, last-first)
	cache.Read(data, first)
	f.pending = append(f.pending, change{seq: seq, data: data, off: first, size: end})
}

// Grow records that the file became at least size bytes long.
func (f *File) Grow(seq uint64, size int64) {
	f.pending = append(f.pending, change{seq: seq, size: size})
}

// Pending returns the number of sectors and sizes that are not durable.
func (f *File) Pending() int {
	sum := 0
	for i := range f.pending {
		sum += max(f.pending[i].sectors(), 1)
	}
	return sum
}

// Sync makes the first changes durable, up to a number of sectors. begin starts a new
// sync; without it, Sync continues the last one.
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

// flush makes the first changes durable, up to a number of sectors, and adds them to the
// newest record of the history.
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

// Forget drops the unsynced changes: no later sync makes them durable.
func (f *File) Forget() { f.pending = nil }

// Syncs returns the number of syncs that a lying device can drop.
func (f *File) Syncs() int { return len(f.history) }

// Clone returns an independent copy. Contents are copied on write.
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
