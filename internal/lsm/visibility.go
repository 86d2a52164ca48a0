package lsm

import (
	"bytes"
	"encoding/binary"
	"sort"

	"github.com/tablerock-db/tablerock/codec"
)

// decision is what a flush or a compaction does with an entry.
type decision uint8

// The first two decisions keep the entry.
const (
	keepEntry     decision = iota
	keepZeroSeq            // keep it with sequence 0
	dropShadowed           // a newer version hides it from every reader
	dropTombstone          // it hides nothing
	dropTable              // its table was dropped
	decisions              // the number of decisions
)

// visibility decides which entries a compaction keeps: the entries that a reader can
// see. The entries must come in internal-key order. It belongs to one goroutine.
type visibility struct {
	// snapshots are the sequences that registered snapshots read, rising.
	snapshots []uint64
	// dropped reports whether no reader can see the rows of a table.
	dropped func(table uint32) bool
	// older reports whether a run below the output may contain the user key. Its
	// keys rise from call to call.
	older func(user []byte) bool
	// bottom says that no run is below the output, so that the last version of a
	// key may get sequence 0.
	bottom bool

	user         []byte // user key of the previous entry, nil at the start
	seq          uint64 // sequence of the previous entry
	table        uint32
	tableKnown   bool // table is set
	tableDropped bool
}

// decide returns the decision for the entry with the internal key.
func (v *visibility) decide(key []byte) decision {
	user, seq, kind := codec.SplitTrailer(key)
	newest := v.user == nil || !bytes.Equal(user, v.user)
	if newest {
		v.user = append(v.user[:0], user...)
	}
	newer := v.seq
	v.seq = seq
	if v.inDroppedTable(user) {
		return dropTable
	}
	if !newest && !v.readBetween(seq, newer) {
		return dropShadowed
	}
	// If no snapshot is older than this version, every reader sees it or a newer one.
	oldest := len(v.snapshots) == 0 || seq <= v.snapshots[0]
	if kind == codec.KindDelete && oldest && !v.older(user) {
		return dropTombstone
	}
	if v.bottom && oldest {
		return keepZeroSeq
	}
	return keepEntry
}

// readBetween reports whether a snapshot reads the version of sequence seq when
// the next newer version has sequence newer.
func (v *visibility) readBetween(seq, newer uint64) bool {
	i := sort.Search(len(v.snapshots), func(i int) bool { return v.snapshots[i] >= seq })
	return i < len(v.snapshots) && v.snapshots[i] < newer
}

// inDroppedTable asks dropped once for each table.
func (v *visibility) inDroppedTable(user []byte) bool {
	table := binary.BigEndian.Uint32(user)
	if !v.tableKnown || table != v.table {
		v.table, v.tableKnown = table, true
		v.tableDropped = v.dropped(table)
	}
	return v.tableDropped
}

// olderRuns looks up user keys, which must rise from call to call, in runs.
type olderRuns struct {
	runs []*run
	at   []int
}

func newOlderRuns(runs []*run) *olderRuns { return &olderRuns{runs: runs, at: make([]int, len(runs))} }

// mayContain reports whether a run may contain a version of the key.
func (o *olderRuns) mayContain(user []byte) bool {
	hash := uint64(0)
	for i, r := range o.runs {
		for o.at[i] < len(r.ssts) && bytes.Compare(r.ssts[o.at[i]].hi, user) < 0 {
			o.at[i]++
		}
		if o.at[i] == len(r.ssts) || bytes.Compare(r.ssts[o.at[i]].lo, user) > 0 {
			continue
		}
		if hash == 0 {
			hash = codec.KeyHash(user)
		}
		if r.ssts[o.at[i]].reader.MayContain(hash) {
			return true
		}
	}
	return false
}
