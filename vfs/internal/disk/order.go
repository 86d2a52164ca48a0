package disk

import "sync"

// The system reads ahead of reads that are not in order too: after some gets from a cold file
// it reads hundreds of KiB more, and the next get waits for them. So a file is opened with the
// advice that reads are at random, which is taken back while they are in order.
const (
	// streams is how many sequences of reads in order a file can have at once.
	streams = 4
	// streamReads is how many reads in order make a stream.
	streamReads = 3
	// streamGap is how many bytes a read of a stream may skip: a filter skips the values that
	// it does not compare.
	streamGap = 64 << 10
)

// readOrder follows the reads of a file.
type readOrder struct {
	mu      sync.Mutex
	streams [streams]stream
	n       uint64 // reads
	inOrder bool   // the last read was in order
}

type stream struct {
	reads int
	end   int64  // of its last read
	used  uint64 // readOrder.n then
}

// read counts a read of n bytes at off. changed reports whether it is in order and the read
// before was not, or the reverse. While another goroutine is here, it counts nothing.
func (o *readOrder) read(off, n int64) (inOrder, changed bool) {
	if !o.mu.TryLock() {
		return false, false
	}
	defer o.mu.Unlock() // +checklocksignore: TryLock
	o.n++
	s := o.stream(off)
	s.reads++
	s.end, s.used = off+n, o.n
	was := o.inOrder
	o.inOrder = s.reads >= streamReads
	return o.inOrder, o.inOrder != was
}

// stream returns the stream that a read at off continues, or a new one in place of that which
// was not used for longest.
func (o *readOrder) stream(off int64) *stream {
	oldest := &o.streams[0]
	for i := range o.streams {
		s := &o.streams[i]
		if s.reads > 0 && off >= s.end && off-s.end <= streamGap {
			return s
		}
		if s.used < oldest.used {
			oldest = s
		}
	}
	*oldest = stream{}
	return oldest
}
