package vfs

import (
	"fmt"
	"strings"
)

// OpKind says which method of FS or File an operation is.
type OpKind uint8

// The operations. OpClose closes a file or releases a lock.
const (
	OpCreate OpKind = iota + 1
	OpOpen
	OpOpenReadWrite
	OpRename
	OpLink
	OpRemove
	OpList
	OpStat
	OpMkdirAll
	OpSyncDir
	OpLock
	OpLocked
	OpRead
	OpWrite
	OpSync
	OpPreallocate
	OpSize
	OpClose
)

// opNames holds the names, in the order of the constants.
var opNames = strings.Fields(`?
	create open open-rw rename link remove list stat mkdir sync-dir lock locked
	read write sync preallocate size close`)

// String returns the operation's name.
func (k OpKind) String() string {
	if int(k) < len(opNames) {
		return opNames[k]
	}
	return fmt.Sprintf("op(%d)", uint8(k))
}

// Changes reports whether the operation can change what is in memory or on
// disk.
func (k OpKind) Changes() bool {
	switch k {
	case OpCreate, OpRename, OpLink, OpRemove, OpMkdirAll, OpSyncDir, OpLock,
		OpWrite, OpSync, OpPreallocate:
		return true
	case OpOpen, OpOpenReadWrite, OpList, OpStat, OpLocked, OpRead, OpSize, OpClose:
	}
	return false
}

// Op is one operation that is about to happen.
type Op struct {
	Kind    OpKind
	Index   uint64 // counts the operations of one FS, from 1
	Name    string // the file or directory, as opened
	NewName string // the second name of a rename or link
	Off     int64  // read, write, preallocate: first byte
	Len     int64  // read, write, preallocate: bytes
	// Done is the bytes already written by a write, or the sectors already
	// made durable by a sync, at a point inside it. 0 is before it began.
	Done int64
}

// String formats the operation for a log of a failing run.
func (op Op) String() string {
	s := fmt.Sprintf("#%d %s %s", op.Index, op.Kind, op.Name)
	switch op.Kind {
	case OpRename, OpLink:
		s += " " + op.NewName
	case OpRead, OpWrite, OpPreallocate:
		s += fmt.Sprintf(" [%d,%d)", op.Off, op.Off+op.Len)
	default:
	}
	if op.Done > 0 {
		s += fmt.Sprintf(" after %d", op.Done)
	}
	return s
}
