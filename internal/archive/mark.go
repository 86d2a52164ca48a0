package archive

import (
	"encoding/binary"
	"fmt"

	"github.com/cespare/xxhash/v2"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/corrupt"
	"github.com/tablerock-db/tablerock/wal"
)

// A mark says how far the archive of a database reaches: each write with a Timestamp up to
// At has a sequence number up to Last, and all of these are in chunks. Without it, a reader
// could not know that nothing was written after the last chunk. It is replaced as time goes
// on. Its name is EPOCH/DATABASE/mark.
//
//	 0  8  magic "TRARMARK"
//	 8  8  version
//	16 16  database id
//	32  8  epoch of the database
//	40  8  last sequence
//	48  8  timestamp, ticks
//	56  8  sum = XXH64(bytes 0 to 56)
const (
	// MarkLen is the length of a mark.
	MarkLen = 64

	markName  = "mark"
	markMagic = "TRARMARK"
)

// Mark says how far the archive of a database reaches.
type Mark struct {
	DBID  [16]byte
	Epoch uint64
	Last  uint64
	At    edm.Ticks
}

// MarkName returns the name of the mark of a database in an epoch.
func MarkName(epoch uint64, dbid [16]byte) string { return Prefix(epoch, dbid) + markName }

// AppendMark appends the encoding of m.
func AppendMark(dst []byte, m *Mark) []byte {
	start := len(dst)
	dst = append(dst, markMagic...)
	dst = binary.LittleEndian.AppendUint64(dst, version)
	dst = append(dst, m.DBID[:]...)
	for _, v := range [...]uint64{m.Epoch, m.Last, uint64(m.At)} {
		dst = binary.LittleEndian.AppendUint64(dst, v)
	}
	return binary.LittleEndian.AppendUint64(dst, xxhash.Sum64(dst[start:]))
}

// DecodeMark decodes the mark of that name. The errors are ErrNewerFormat and
// *corrupt.Error.
func DecodeMark(name string, src []byte) (*Mark, error) {
	if len(src) != MarkLen || string(src[:8]) != markMagic {
		return nil, corrupt.Newf(name, 0, "not a mark of an archive")
	}
	if got, want := binary.LittleEndian.Uint64(src[56:]), xxhash.Sum64(src[:56]); got != want {
		return nil, corrupt.Newf(name, 56, "sum is %016x, want %016x", got, want)
	}
	if v := binary.LittleEndian.Uint64(src[8:]); v != version {
		return nil, fmt.Errorf("%s: %w: version %d, this build reads %d", name, ErrNewerFormat, v, version)
	}
	m := &Mark{
		DBID:  [16]byte(src[16:32]),
		Epoch: binary.LittleEndian.Uint64(src[32:]),
		Last:  binary.LittleEndian.Uint64(src[40:]),
		At:    edm.Ticks(binary.LittleEndian.Uint64(src[48:])),
	}
	if m.Last > wal.MaxSeq || !m.At.Valid() || MarkName(m.Epoch, m.DBID) != name {
		return nil, corrupt.Newf(name, 16, "mark of %s, sequence %d, %d ticks", MarkName(m.Epoch, m.DBID), m.Last, m.At)
	}
	return m, nil
}
