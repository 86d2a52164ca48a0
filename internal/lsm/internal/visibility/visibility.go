// Package visibility decides which entries a compaction keeps.
package visibility

import (
	"bytes"
	"encoding/binary"
	"slices"
	"sort"

	"github.com/tablerock-db/tablerock/codec"
)

// Decision is what a flush or a compaction does with an entry.
type Decision uint8

// The first two Decisions keep the entry.
const (
	Keep          Decision = iota
	KeepZeroSeq            // keep it with sequence 0
	DropShadowed           // a newer version hides it from every reader
	DropTombstone          // it hides nothing
	DropTable              // its table was dropped
	decisions              // how many there are
)

// Rule keeps the entries that a reader can see. The entries must come in internal-key
// order. It belongs to one goroutine.
type Rule struct {
	// Snapshots are the sequences that registered snapshots read, rising.
	Snapshots []uint64
	// Dropped reports whether no reader can see the rows of a table.
	Dropped func(table uint32) bool
	// Older reports whether a run below the output may contain the user key. Its
	// keys rise from call to call.
	Older func(user []byte) bool
	// Bottom says that no run is below the output, so that the last version of a
	// key may get sequence 0.
	Bottom bool

	user         []byte // user key of the previous entry, nil at the start
	seq          uint64 // sequence of the previous entry
	table        uint32
	tableKnown   bool // table is set
	tableDropped bool
}

// Decide returns the decision for the entry with the internal key.
func (v *Rule) Decide(key []byte) Decision {
	user, seq, kind := codec.SplitTrailer(key)
	newest := !bytes.Equal(user, v.user)
	if newest {
		v.user = append(v.user[:0], user...)
	}
	newer := v.seq
	v.seq = seq
	if v.inDroppedTable(user) {
		return DropTable
	}
	if !newest && !v.readBetween(seq, newer) {
		return DropShadowed
	}
	// If no snapshot is older than this version, every reader sees it or a newer one.
	oldest := len(v.Snapshots) == 0 || seq <= v.Snapshots[0]
	if kind == codec.KindDelete && oldest && !v.Older(user) {
		return DropTombstone
	}
	if v.Bottom && oldest {
		return KeepZeroSeq
	}
	return Keep
}

// readBetween reports whether a snapshot reads the version of sequence seq when
// the next newer version has sequence newer.
func (v *Rule) readBetween(seq, newer uint64) bool {
	i := sort.Search(len(v.Snapshots), func(i int) bool { return v.Snapshots[i] >= seq })
	return i < len(v.Snapshots) && v.Snapshots[i] < newer
}

// inDroppedTable asks Dropped once for each table.
func (v *Rule) inDroppedTable(user []byte) bool {
	table := binary.BigEndian.Uint32(user)
	if !v.tableKnown || table != v.table {
		v.table, v.tableKnown = table, true
		v.tableDropped = v.Dropped(table)
	}
	return v.tableDropped
}

// AllOpen reports whether there are snapshots for which a compaction kept entries, and all of them are open: then
// another compaction of these entries keeps them too.
func AllOpen(snapshots, open []uint64) bool {
	closed := func(seq uint64) bool { return !slices.Contains(open, seq) }
	return len(snapshots) > 0 && !slices.ContainsFunc(snapshots, closed)
}
