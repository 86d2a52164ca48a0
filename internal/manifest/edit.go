package manifest

import (
	"encoding/binary"
	"slices"

	"github.com/tablerock-db/tablerock/internal/feature"
)

// Edit is a change of everything in a Manifest but its files and NextFile. A zero
// field changes nothing.
type Edit struct {
	// LastSeq replaces Manifest.LastSeq.
	LastSeq uint64
	// HighWater replaces Manifest.HighWater, which may become smaller.
	HighWater uint64
	// MinHighWater is the least value of Manifest.HighWater.
	MinHighWater uint64
	// MinReservedSeq is the least value of Manifest.ReservedSeq, unless it is not above LastSeq.
	MinReservedSeq uint64
	// Logs replaces Manifest.Logs if it is not nil.
	Logs []Log
	// FirstLog removes the logs with smaller numbers, whose entries are in files.
	// It lists FirstLog itself, so that an older log can be told from a newer one.
	FirstLog uint64
	// Proven is how far open logs are durable, by rising number, and the oldest log even
	// if nothing of it is. A log that is not listed yet is added. A log that is older than
	// the first listed one is ignored, because its entries are in files. If no log is listed,
	// as in a copy whose log was flushed, the oldest is the first one.
	Proven []Log
}

// Apply changes m.
func (m *Manifest) Apply(e Edit) {
	if e.LastSeq != 0 {
		m.LastSeq = e.LastSeq
	}
	if e.HighWater != 0 {
		m.HighWater = e.HighWater
	}
	m.HighWater = max(m.HighWater, e.MinHighWater)
	m.reserveSeq(max(m.ReservedSeq(), e.MinReservedSeq))
	if e.Logs != nil {
		m.Logs = slices.Clone(e.Logs)
	}
	if e.FirstLog != 0 {
		m.dropLogs(e.FirstLog)
	}
	m.proveLogs(e.Proven)
}

// RequireZstd sets the required feature zstd, before the first sstable that has it is listed.
func (m *Manifest) RequireZstd() {
	if m.Required&feature.Zstd == 0 {
		m.Required |= feature.Zstd
		m.Extensions = feature.AppendZstd(slices.Clip(m.Extensions))
	}
}

// typeReservedSeq is the type of the extension record with ReservedSeq, u64. It is part of the
// file format.
const typeReservedSeq = 2

// ReservedSeq returns the greatest sequence number that the files of an interrupted flush can
// have. It is 0, and LastSeq and the logs limit them, unless the logs were not synced.
func (m *Manifest) ReservedSeq() uint64 {
	for r := range feature.Records(m.Extensions) {
		if r.Type == typeReservedSeq && len(r.Data) == 8 {
			return binary.LittleEndian.Uint64(r.Data)
		}
	}
	return 0
}

// reserveSeq sets ReservedSeq, to 0 if LastSeq has reached it.
func (m *Manifest) reserveSeq(seq uint64) {
	if seq <= m.LastSeq {
		seq = 0
	}
	if seq == m.ReservedSeq() {
		return
	}
	var area []byte
	for r := range feature.Records(m.Extensions) {
		if r.Type != typeReservedSeq {
			area = feature.AppendRecord(area, r)
		}
	}
	if seq > 0 {
		area = feature.AppendRecord(area, feature.Record{Type: typeReservedSeq, Data: binary.LittleEndian.AppendUint64(nil, seq)})
	}
	m.Extensions = area
}

// dropLogs removes the logs before number first and lists first.
func (m *Manifest) dropLogs(first uint64) {
	m.Logs = slices.DeleteFunc(m.Logs, func(l Log) bool { return l.Number < first })
	if len(m.Logs) == 0 || m.Logs[0].Number != first {
		m.Logs = slices.Insert(m.Logs, 0, Log{Number: first})
	}
}

func (m *Manifest) proveLogs(proven []Log) {
	if len(m.Logs) == 0 && len(proven) > 0 {
		m.Logs = []Log{{Number: proven[0].Number}}
	}
	for _, p := range proven {
		if p.Proven == 0 || p.Number < m.Logs[0].Number {
			continue
		}
		i := slices.IndexFunc(m.Logs, func(l Log) bool { return l.Number == p.Number })
		if i < 0 {
			i = len(m.Logs)
			m.Logs = append(m.Logs, Log{Number: p.Number})
		}
		if m.Logs[i].Sealed == 0 {
			m.Logs[i].Proven = p.Proven
		}
	}
}
