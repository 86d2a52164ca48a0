package crash

const chunkBytes = 4096

type chunk [chunkBytes]byte

// slot refers to a chunk; a nil chunk reads as zeros.
type slot struct {
	c     *chunk
	owned bool // no other image refers to c
}

// Image is the contents of a file in chunks that are copied on write, so that a copy of
// an image costs the same for files of any size. Bytes from Size on are zero, except
// between Put and Clip. The zero value is an empty file. An Image is not safe for
// concurrent use, but images that share chunks are independent.
type Image struct {
	Size  int64
	slots []slot
	// shared is set if another image uses slots too: copy them before a write.
	shared bool
}

// Freeze returns a second image with the same contents.
func (im *Image) Freeze() Image {
	im.shared = true
	return *im
}

// own makes the list of slots private to im and at least n long.
func (im *Image) own(n int) {
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
func (im *Image) mutable(i int64) *chunk {
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

// Put stores p at off and does not change the size.
func (im *Image) Put(p []byte, off int64) {
	im.own(chunks(off + int64(len(p))))
	for len(p) > 0 {
		n := copy(im.mutable(off / chunkBytes)[off%chunkBytes:], p)
		p, off = p[n:], off+int64(n)
	}
}

// Write stores p at off and grows the size if needed.
func (im *Image) Write(p []byte, off int64) {
	if len(p) == 0 {
		return
	}
	im.Put(p, off)
	im.Size = max(im.Size, off+int64(len(p)))
}

// Read fills p from off and ignores the size.
func (im *Image) Read(p []byte, off int64) {
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

// Clip zeros the bytes from size on and does not change im.Size.
func (im *Image) Clip(size int64) {
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

// Grow increases the size; a smaller size changes nothing.
func (im *Image) Grow(size int64) { im.Size = max(im.Size, size) }
