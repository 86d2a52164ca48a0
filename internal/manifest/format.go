package manifest

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cespare/xxhash/v2"

	"github.com/tablerock-db/tablerock/internal/corrupt"
	"github.com/tablerock-db/tablerock/internal/filename"
)

// A manifest is one file, written whole. Integers are little-endian.
//
//	 0  8  magic "TRMANIFS"
//	 8  4  version
//	12  4  zero
//	16  8  length of the file
//	24 16  database id
//	40  8  next file number
//	48  8  high-water timestamp, ticks
//	56  8  last sequence that the files hold
//	64  4  number of logs
//	68  4  number of files
//	72     logs, then files
//	-8  8  sum = XXH64(everything before) ^ XXH64(database id)
//
//	log
//	 0  8  number
//	 8  4  sealed end, 0 if open
//	12  4  proven end of an open log, 0 if unknown; always 0 in version 1
//
//	file
//	 0  8  number
//	 8  8  size
//	16  8  run
//	24  8  smallest sequence
//	32  8  greatest sequence
//	40  8  entries
//	48  8  tombstones
//	56  8  hash of the whole file
//	64  4  tier
//	68  2  length of the smallest key
//	70  2  length of the largest key
//	72     smallest key, largest key
//
// Logs are in ascending order of number. Files are in ascending order of tier; in a
// tier, runs are in descending order of number; in a run, files are in ascending
// order of keys. The bottom tier is one run, whatever the run numbers of its files.
// So a manifest has exactly one encoding.
//
// Magic, version, length, database id and the final sum keep their offsets in every
// version. This package also reads version 1, which differs as stated above.

// Sizes that are part of the file format.
const (
	version    = 2
	headLen    = 72
	logLen     = 16
	fileLen    = 72
	sumLen     = 8
	trailerLen = 8 // of an internal key, after the user key
)

// Limits of a manifest.
const (
	maxBytes = 64 << 20
	maxLogs  = 1 << 16
	maxFiles = 1 << 20
	maxKey   = 1<<16 - 1
	maxSeq   = 1<<56 - 1
	maxEnd   = 1 << 31 // of a log
	// maxNext is the greatest next number. Numbers below it have at most 18
	// digits, the limit of internal/filename.
	maxNext = 1_000_000_000_000_000_000
	// maxTier is the greatest tier above the bottom. A tier is several times as
	// large as the one before, so no database needs as many.
	maxTier = 255
)

const magic = "TRMANIFS"

// ErrNewerFormat reports a manifest that a later version of Tablerock wrote. The
// file is neither damaged nor changed.
var ErrNewerFormat = errors.New("manifest has a newer format")

// encodedLen returns the length of the encoding of m.
func encodedLen(m *Manifest) int64 {
	n := int64(headLen+sumLen) + int64(len(m.Logs))*logLen + int64(len(m.Files))*fileLen
	for i := range m.Files {
		n += int64(len(m.Files[i].Smallest)) + int64(len(m.Files[i].Largest))
	}
	return n
}

// appendManifest appends the encoding of m, which must be valid and sorted.
func appendManifest(dst []byte, m *Manifest) []byte {
	start := len(dst)
	dst = append(dst, magic...)
	dst = binary.LittleEndian.AppendUint32(dst, version)
	dst = binary.LittleEndian.AppendUint32(dst, 0)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(encodedLen(m)))
	dst = append(dst, m.DBID[:]...)
	dst = binary.LittleEndian.AppendUint64(dst, m.NextFile)
	dst = binary.LittleEndian.AppendUint64(dst, m.HighWater)
	dst = binary.LittleEndian.AppendUint64(dst, m.LastSeq)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(m.Logs)))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(m.Files)))
	for _, l := range m.Logs {
		dst = binary.LittleEndian.AppendUint64(dst, l.Number)
		dst = binary.LittleEndian.AppendUint32(dst, uint32(l.Sealed))
		dst = binary.LittleEndian.AppendUint32(dst, uint32(l.Proven))
	}
	for i := range m.Files {
		dst = appendFile(dst, &m.Files[i])
	}
	return binary.LittleEndian.AppendUint64(dst, sum(dst[start:], m.DBID))
}

func appendFile(dst []byte, f *File) []byte {
	for _, v := range [...]uint64{f.Number, uint64(f.Size), f.Run, f.MinSeq, f.MaxSeq, f.Entries, f.Tombstones, f.Hash} {
		dst = binary.LittleEndian.AppendUint64(dst, v)
	}
	dst = binary.LittleEndian.AppendUint32(dst, f.Tier)
	dst = binary.LittleEndian.AppendUint16(dst, uint16(len(f.Smallest)))
	dst = binary.LittleEndian.AppendUint16(dst, uint16(len(f.Largest)))
	dst = append(dst, f.Smallest...)
	return append(dst, f.Largest...)
}

func sum(b []byte, dbid [16]byte) uint64 { return xxhash.Sum64(b) ^ xxhash.Sum64(dbid[:]) }

// checkHead verifies the first headLen bytes of a file of size bytes before the rest
// is read.
func checkHead(src []byte, size int64) error {
	switch {
	case len(src) < headLen || size < headLen+sumLen:
		return damage(size, "manifest of %d bytes, want at least %d", size, headLen+sumLen)
	case string(src[:8]) != magic:
		return damage(0, "magic is %q, want %q", src[:8], magic)
	case size > maxBytes:
		return damage(16, "manifest of %d bytes, at most %d allowed", size, maxBytes)
	case binary.LittleEndian.Uint64(src[16:]) != uint64(size):
		return damage(16, "length is %d, want %d, the size of the file", binary.LittleEndian.Uint64(src[16:]), size)
	}
	return nil
}

// decode decodes a whole file. The keys of the result are slices of src. It checks
// the sum before the version, so that a flipped bit is damage and not a newer format.
func decode(src []byte) (*Manifest, error) {
	if err := checkHead(src[:min(len(src), headLen)], int64(len(src))); err != nil {
		return nil, err
	}
	m := &Manifest{
		Version:   binary.LittleEndian.Uint32(src[8:]),
		DBID:      [16]byte(src[24:40]),
		NextFile:  binary.LittleEndian.Uint64(src[40:]),
		HighWater: binary.LittleEndian.Uint64(src[48:]),
		LastSeq:   binary.LittleEndian.Uint64(src[56:]),
	}
	end := len(src) - sumLen
	got, want := binary.LittleEndian.Uint64(src[end:]), sum(src[:end], m.DBID)
	if got != want {
		return nil, damage(int64(end), "sum is %016x, want %016x", got, want)
	}
	if m.Version > version {
		return nil, fmt.Errorf("%w: version %d, this build knows %d", ErrNewerFormat, m.Version, version)
	}
	if m.Version == 0 || binary.LittleEndian.Uint32(src[12:]) != 0 {
		return nil, damage(8, "version is %d, then %d", m.Version, binary.LittleEndian.Uint32(src[12:]))
	}
	if err := m.decodeLists(src[:end]); err != nil {
		return nil, err
	}
	if err := m.check(); err != nil {
		return nil, damage(0, "%v", err)
	}
	return m, nil
}

// decodeLists decodes logs and files. src is the file without the final sum.
func (m *Manifest) decodeLists(src []byte) error {
	logs := int64(binary.LittleEndian.Uint32(src[64:]))
	files := int64(binary.LittleEndian.Uint32(src[68:]))
	if logs > maxLogs || files > maxFiles || logs*logLen+files*fileLen > int64(len(src)-headLen) {
		return damage(64, "%d logs and %d files in %d bytes", logs, files, len(src)-headLen)
	}
	off := headLen
	if logs > 0 {
		m.Logs = make([]Log, logs)
	}
	for i := range m.Logs {
		m.Logs[i] = Log{
			Number: binary.LittleEndian.Uint64(src[off:]),
			Sealed: int64(binary.LittleEndian.Uint32(src[off+8:])),
			Proven: int64(binary.LittleEndian.Uint32(src[off+12:])),
		}
		if m.Version == 1 && m.Logs[i].Proven != 0 {
			return damage(int64(off)+12, "log %d is proven to %d in version 1", m.Logs[i].Number, m.Logs[i].Proven)
		}
		off += logLen
	}
	if files > 0 {
		m.Files = make([]File, files)
	}
	for i := range m.Files {
		n, ok := decodeFile(src[off:], &m.Files[i])
		if !ok {
			return damage(int64(off), "file %d of %d exceeds the manifest", i, files)
		}
		off += n
	}
	if off != len(src) {
		return damage(int64(off), "%d bytes after the last file", len(src)-off)
	}
	return nil
}

func decodeFile(src []byte, f *File) (n int, ok bool) {
	if len(src) < fileLen {
		return 0, false
	}
	small := fileLen + int(binary.LittleEndian.Uint16(src[68:]))
	n = small + int(binary.LittleEndian.Uint16(src[70:]))
	if len(src) < n {
		return 0, false
	}
	*f = File{
		Number:     binary.LittleEndian.Uint64(src),
		Size:       int64(binary.LittleEndian.Uint64(src[8:])),
		Run:        binary.LittleEndian.Uint64(src[16:]),
		MinSeq:     binary.LittleEndian.Uint64(src[24:]),
		MaxSeq:     binary.LittleEndian.Uint64(src[32:]),
		Entries:    binary.LittleEndian.Uint64(src[40:]),
		Tombstones: binary.LittleEndian.Uint64(src[48:]),
		Hash:       binary.LittleEndian.Uint64(src[56:]),
		Tier:       binary.LittleEndian.Uint32(src[64:]),
		Smallest:   src[fileLen:small:small],
		Largest:    src[small:n:n],
	}
	return n, true
}

func damage(off int64, format string, args ...any) error {
	return corrupt.Newf(filename.Manifest, off, format, args...)
}
