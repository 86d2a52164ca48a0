package lsm

import (
	"bytes"
	"encoding/binary"
	"sort"

	"github.com/tablerock-db/tablerock/codec"
)

// fate is what becomes of an entry in a merge.
type fate uint8

const (
	fateKeep     fate = iota
	fateKeepZero      // kept with sequence 0
	fateShadowed      // a newer version hides it from every reader
	fateGrave         // a tombstone that hides nothing
	fateTable         // its table was dropped
	fates
)

// collapser decides what becomes of entries that come in internal-key order.
type collapser struct {
	snapshots []uint64 // rising
	dropped   func(table uint32) (seq uint64, ok bool)
	older     *coverage
	// bottom says that the output lies below everything, so that the last
	// version of a key may get sequence 0.
	bottom bool

	user  []byte // user key of the entry before, nil at the start
	newer uint64 // and its sequence
	table uint32
	known bool // table is set
	gone  bool // it was dropped
}

// decide returns the fate of the entry.
func (c *collapser) decide(key []byte) fate {
	user, seq, kind := codec.SplitTrailer(key)
	newest := c.user == nil || !bytes.Equal(user, c.user)
	if newest {
		c.user = append(c.user[:0], user...)
	}
	newer := c.newer
	c.newer = seq
	if c.tableGone(user) {
		return fateTable
	}
	if !newest && !c.readBetween(seq, newer) {
		return fateShadowed
	}
	// Readers of the present and of every snapshot that does not see this
	// version see a newer one, or none is older than it.
	oldest := len(c.snapshots) == 0 || seq <= c.snapshots[0]
	if kind == codec.KindDelete && oldest && !c.older.has(user) {
		return fateGrave
	}
	if c.bottom && oldest {
		return fateKeepZero
	}
	return fateKeep
}

// readBetween reports whether a snapshot reads the version of sequence seq when
// the next newer one has sequence newer.
func (c *collapser) readBetween(seq, newer uint64) bool {
	i := sort.Search(len(c.snapshots), func(i int) bool { return c.snapshots[i] >= seq })
	return i < len(c.snapshots) && c.snapshots[i] < newer
}

// tableGone reports whether no reader can see the table of a key any more.
func (c *collapser) tableGone(user []byte) bool {
	table := binary.BigEndian.Uint32(user)
	if !c.known || table != c.table {
		c.table, c.known = table, true
		c.gone = gone(table, c.snapshots, c.dropped)
	}
	return c.gone
}

func gone(table uint32, snapshots []uint64, dropped func(uint32) (uint64, bool)) bool {
	seq, ok := dropped(table)
	return ok && (len(snapshots) == 0 || snapshots[0] >= seq)
}

// coverage tells, for user keys that rise from call to call, whether older runs
// may hold them.
type coverage struct {
	runs []*run
	at   []int
}

func newCoverage(runs []*run) *coverage { return &coverage{runs: runs, at: make([]int, len(runs))} }

// has reports whether an older run may have a version of the key.
func (c *coverage) has(user []byte) bool {
	hash := uint64(0)
	for i, r := range c.runs {
		for c.at[i] < len(r.parts) && bytes.Compare(r.parts[c.at[i]].hi, user) < 0 {
			c.at[i]++
		}
		if c.at[i] == len(r.parts) || bytes.Compare(r.parts[c.at[i]].lo, user) > 0 {
			continue
		}
		if hash == 0 {
			hash = codec.KeyHash(user)
		}
		if r.parts[c.at[i]].reader.MayContain(hash) {
			return true
		}
	}
	return false
}
