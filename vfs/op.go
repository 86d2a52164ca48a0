package vfs

import (
	"fmt"
	"strings"
)

// OpKind identifies a method of FS or File.
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

// String returns the name of the operation.
func (k OpKind) String() string {
	if int(k) < len(opNames) {
		return opNames[k]
	}
	return fmt.Sprintf("op(%d)", uint8(k))
}

// Changes reports whether the operation can change the file system.
func (k OpKind) Changes() bool {
	switch k {
	case OpCreate, OpRename, OpLink, OpRemove, OpMkdirAll, OpSyncDir, OpLock,
		OpWrite, OpSync, OpPreallocate:
		return true
	case OpOpen, OpOpenReadWrite, OpList, OpStat, OpLocked, OpRead, OpSize, OpClose:
	}
	return false
}

// Op is an operation before it takes effect.
type Op struct {
	Kind    OpKind
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
