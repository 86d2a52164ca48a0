package vfs

import "fmt"

// Op is an operation before it takes effect.
type Op struct {
	// Kind is the method of FS or File: create, open, open-rw, rename, link,
	// remove, list, stat, mkdir, sync-dir, lock, locked, space, read, write,
	// sync, preallocate, size, or close, of a file or a lock.
	Kind    string
	Index   uint64 // counts the operations of one FS, from 1
	Name    string // the file or directory, as passed to FS
	NewName string // the second name of a rename or link
	Off     int64  // read, write, preallocate: the first byte
	Len     int64  // read, write, preallocate: bytes
	// Done is not 0 at a point inside an operation: the bytes that a write has
	// written or the sectors that a sync has made durable.
	Done int64
}

// String formats the operation for messages.
func (op Op) String() string {
	s := fmt.Sprintf("#%d %s %s", op.Index, op.Kind, op.Name)
	switch op.Kind {
	case "rename", "link":
		s += " " + op.NewName
	case "read", "write", "preallocate":
		s += fmt.Sprintf(" [%d,%d)", op.Off, op.Off+op.Len)
	default:
	}
	if op.Done > 0 {
		s += fmt.Sprintf(" after %d", op.Done)
	}
	return s
}
