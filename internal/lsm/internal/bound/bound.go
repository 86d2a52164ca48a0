// Package bound makes and checks the bounds of virtual sstables.
package bound

import (
	"encoding/binary"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/corrupt"
	"github.com/tablerock-db/tablerock/internal/filename"
	"github.com/tablerock-db/tablerock/internal/manifest"
)

// The bounds of a virtual sstable are internal keys of the file. A bound at which it
// is clipped is a user key with a trailer that no entry has. These values belong to
// the format of the manifest.
const (
	ClippedFirst = uint64(0)  // before every version of the key
	ClippedLast  = ^uint64(0) // after every version of the key
)

// Split returns the user key and the trailer of a bound.
func Split(key []byte) (user []byte, trailer uint64) {
	n := len(key) - codec.TrailerLen
	return key[:n:n], binary.BigEndian.Uint64(key[n:])
}

// Clip returns the bound of a clipped virtual sstable.
func Clip(user []byte, trailer uint64) []byte {
	return binary.BigEndian.AppendUint64(append(make([]byte, 0, len(user)+codec.TrailerLen), user...), trailer)
}

// After returns the least bound above a user key. No user key is a prefix of another,
// so there is no key between the two.
func After(user []byte) []byte {
	return append(append(make([]byte, 0, len(user)+1), user...), 0)
}

// AllTables reports whether f is true for every table that may have keys from lo to hi. It
// returns false for a large number of tables; compactions drop their rows.
func AllTables(lo, hi []byte, f func(id uint32) bool) bool {
	const maxTables = 256
	from := binary.BigEndian.Uint32(lo)
	n := binary.BigEndian.Uint32(hi) - from
	if n >= maxTables {
		return false
	}
	for i := range n + 1 {
		if !f(from + i) {
			return false
		}
	}
	return true
}

// Check verifies that the bounds of a file are user keys with trailers, from which the picker
// reads table ids, and that the Timestamp of a loaded file is one.
func Check(meta *manifest.File) error {
	for _, b := range [][]byte{meta.Smallest, meta.Largest} {
		user, _ := Split(b)
		if err := codec.CheckKey(user); err != nil {
			return corrupt.Newf(filename.Manifest, 0, "bound of file %d: %v", meta.Number, err)
		}
	}
	if stamp := edm.Ticks(meta.Stamp); !stamp.Valid() {
		return corrupt.Newf(filename.Manifest, 0, "file %d was loaded at %d ticks", meta.Number, stamp)
	}
	return nil
}
