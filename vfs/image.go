package vfs

const (
	chunkBytes  = 4096
	sectorBytes = 512

	// maxFileBytes keeps a wild offset from taking all memory for the list of
	// chunks.
	maxFileBytes = 1 << 40
)

type chunk [chunkBytes]byte

// slot refers to a chunk; nil reads as zeros.
type slot struct {
	c     *chunk
	owned bool // no other image refers to c
}

// image is the contents of a file, copied on write: freeze costs the same for
// a file of any size. Bytes at and past size are zero, and slots past the end
// of the list read as zeros.
type image struct {
	size  int64
	slots []slot
	// shared says that another image uses slots too. It changes only under the
	// lock of the image's file; what is shared is never written.
	shared bool
}

// freeze returns a second image with the same contents.
func (im *image) freeze() image {
	im.shared = true
	return *im
}

// own makes the list of slots exclusive to im and at least n long.
func (im *image) own(n int) {
	if im.shared {
		slots := make([]slot, max(n, len(im.slots)))
		for i, s := range im.slots {
			slots[i].c = s.c
		}
		im.slots, im.shared = slots, false
		return
	}
	if n > len(im.slots) {
		im.slots = append(im.slots, make([]slot, n-len(im.slots))...)
	}
}

// mutable returns chunk i for writing.
func (im *image) mutable(i int64) *chunk {
	s := &im.slots[i]
	if s.owned {
		return s.c
	}
	c := new(chunk)
	if s.c != nil {
		*c = *s.c
	}
	*s = slot{c: c, owned: true}
	return c
}

func chunks(size int64) int { return int((size + chunkBytes - 1) / chunkBytes) }

// put stores p at off and leaves the size alone.
func (im *image) put(p []byte, off int64) {
	im.own(chunks(off + int64(len(p))))
	for len(p) > 0 {
		n := copy(im.mutable(off / chunkBytes)[off%chunkBytes:], p)
		p, off = p[n:], off+int64(n)
	}
}

// write stores p at off and grows the size where needed.
func (im *image) write(p []byte, off int64) {
	if len(p) == 0 {
		return
	}
	im.put(p, off)
	im.size = max(im.size, off+int64(len(p)))
}

// read fills p from off without regard to the size.
func (im *image) read(p []byte, off int64) {
	for len(p) > 0 {
		at := off % chunkBytes
		n := min(int64(len(p)), chunkBytes-at)
		if i := off / chunkBytes; i < int64(len(im.slots)) && im.slots[i].c != nil {
			copy(p[:n], im.slots[i].c[at:])
		} else {
			clear(p[:n])
		}
		p, off = p[n:], off+n
	}
}

// clip drops every byte at and past size and leaves im.size alone.
func (im *image) clip(size int64) {
	n := chunks(size)
	if n < len(im.slots) {
		im.own(0)
		clear(im.slots[n:])
		im.slots = im.slots[:n]
	}
	if at := size % chunkBytes; at != 0 && n == len(im.slots) && im.slots[n-1].c != nil {
		im.own(0)
		clear(im.mutable(int64(n - 1))[at:])
	}
}

func (im *image) truncate(size int64) {
	if size < im.size {
		im.clip(size)
	}
	im.size = size
}
