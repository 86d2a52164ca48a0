// Package fate decides which versions a merge keeps.
package fate

import (
	"bytes"
	"encoding/binary"
	"sort"

	"github.com/tablerock-db/tablerock/codec"
)

// Fate is what becomes of an entry in a merge.
type Fate uint8

// The fates of entries. The first two survive.
const (
	Keep     Fate = iota
	KeepZero      // kept with sequence 0
	Shadowed      // a newer version hides it from every reader
	Grave         // a tombstone that hides nothing
	Table         // its table was dropped
	Count         // how many fates there are
)

// Judge decides what becomes of entries that come in internal-key order. It
// belongs to one goroutine.
type Judge struct {
	// Snapshots are the sequences that registered snapshots read, rising.
	Snapshots []uint64
	// Dropped tells whether a table was dropped, and at which sequence.
	Dropped func(table uint32) (seq uint64, ok bool)
	// Older reports whether a run below the output may hold the user key. It is
	// called with keys that rise.
	Older func(user []byte) bool
	// Bottom says that the output lies below everything, so that the last
	// version of a key may get sequence 0.
	Bottom bool

	user  []byte // user key of the entry before, nil at the start
	newer uint64 // and its sequence
	table uint32
	known bool // table is set
	gone  bool // it was dropped
}

// Decide returns the fate of the entry with the internal key.
func (j *Judge) Decide(key []byte) Fate {
	user, seq, kind := codec.SplitTrailer(key)
	newest := j.user == nil || !bytes.Equal(user, j.user)
	if newest {
		j.user = append(j.user[:0], user...)
	}
	newer := j.newer
	j.newer = seq
	if j.tableGone(user) {
		return Table
	}
	if !newest && !j.readBetween(seq, newer) {
		return Shadowed
	}
	// Readers of the present and of every snapshot that does not see this
	// version see a newer one, or none is older than it.
	oldest := len(j.Snapshots) == 0 || seq <= j.Snapshots[0]
	if kind == codec.KindDelete && oldest && !j.Older(user) {
		return Grave
	}
	if j.Bottom && oldest {
		return KeepZero
	}
	return Keep
}

// readBetween reports whether a snapshot reads the version of sequence seq when
// the next newer one has sequence newer.
func (j *Judge) readBetween(seq, newer uint64) bool {
	i := sort.Search(len(j.Snapshots), func(i int) bool { return j.Snapshots[i] >= seq })
	return i < len(j.Snapshots) && j.Snapshots[i] < newer
}

// tableGone reports whether no reader can see the table of a key any more.
func (j *Judge) tableGone(user []byte) bool {
	table := binary.BigEndian.Uint32(user)
	if !j.known || table != j.table {
		j.table, j.known = table, true
		j.gone = Gone(table, j.Snapshots, j.Dropped)
	}
	return j.gone
}

// Gone reports whether a table was dropped and no snapshot sees it any more.
func Gone(table uint32, snapshots []uint64, dropped func(uint32) (uint64, bool)) bool {
	seq, ok := dropped(table)
	return ok && (len(snapshots) == 0 || snapshots[0] >= seq)
}
