package engine

import "github.com/tablerock-db/tablerock/store"

// Stats describes a database at one moment.
type Stats struct {
	Tables int
	// Entities is exact when nothing was overwritten or deleted since the last
	// Compact, and an estimate otherwise.
	Entities      int64
	SSTables      int
	SSTableBytes  int64
	WALBytes      int64 // records in the log that are not in sorted files
	MemtableBytes int64 // memory of memtables and of the log's mirror
	LastSequence  uint64
	// RunsMax is the most sorted runs that can hold one key: what a get probes
	// at worst.
	RunsMax int
	// SpaceAmp is the size of the sorted files over an estimate of what they
	// would be after Compact, 1 for none.
	SpaceAmp float64
}

// Stats returns the current figures.
func (db *DB) Stats() (Stats, error) {
	m := db.takeMoment()
	if m == nil {
		return Stats{}, store.ErrClosed
	}
	defer m.release()
	t := m.state.version.Stats()
	s := Stats{
		Tables:       m.catalog.Len(),
		SSTables:     t.Files,
		SSTableBytes: t.Bytes,
		LastSequence: m.seq,
		RunsMax:      t.RunsMax,
		SpaceAmp:     t.SpaceAmp,
		Entities:     int64(t.Entries) - 2*int64(t.Tombstones),
	}
	for _, seg := range m.state.mems {
		s.MemtableBytes += seg.Table.Bytes() + seg.Tail()
		if !seg.Empty() {
			s.WALBytes += seg.Tail()
		}
		s.Entities += int64(seg.Table.Len())
	}
	// The catalog's own rows: one a table, and the next id.
	s.Entities = max(0, s.Entities-int64(s.Tables)-1)
	return s, nil
}
