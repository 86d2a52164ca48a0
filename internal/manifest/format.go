package manifest

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cespare/xxhash/v2"

	"github.com/tablerock-db/tablerock/internal/corrupt"
	"github.com/tablerock-db/tablerock/internal/feature"
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
//	72  8  required features
//	80  8  optional features
//	88  8  epoch
//	96  8  length of the extension area
//	104    extension area, logs, files
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
//	72 16  id of the database that wrote the file
//	88  4  length of the extension area
//	92  4  share of new keys, of 65536; 0 if unknown; see NewKeys
//	96  8  timestamp of all entries of a loaded file, 0 of any other; see Stamp
//	104    smallest key, largest key, extension area
//
// Logs are in ascending order of number. Files are in ascending order of tier; in a
// tier, runs are in descending order of number; in a run, files are in ascending
// order of keys. The bottom tier is one run, whatever the run numbers of its files.
// So a manifest has exactly one encoding.
//
// Package feature describes feature words and extension areas. Type 2 in the area of the manifest
// is the reserved sequence, u64; see ReservedSeq.
//
// Magic, version, length, database id and the final sum keep their offsets in every
// version. This package also reads versions 1 and 2. There, the head ends before the
// features and a file before its id, and there are no extension areas: no features are
// set, the epoch is 0, each file has the id of the database and is no loaded file, and its
// share of new keys is unknown. The first builds that wrote version 3 had no loaded files, and
// a file ends before the timestamp.

// Sizes that are part of the file format.
const (
	version    = 3
	headLen    = 104
	logLen     = 16
	fileLen    = 104
	sumLen     = 8
	headLen2   = 72 // of versions 1 and 2
	fileLen2   = 72
	fileLen3   = 96 // of version 3 without timestamps of loaded files
	trailerLen = 8  // of an internal key, after the user key
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
	// maxExtensions is the greatest length of the extension area of the manifest, and
	// maxFileExtensions that of a file.
	maxExtensions     = 1 << 20
	maxFileExtensions = 1 << 16
)

// AllNewKeys is File.NewKeys of a file of new keys only. Part of the file format.
const AllNewKeys = 1 << 16

// formats names the format of a database by the version of its manifest. 0 is that of a
// manifest that is not written yet.
var formats = [version + 1]string{"features", "base", "durable-ends", "features"}

// knownFeatures has the bits of the required features that this build reads.
const knownFeatures = feature.Zstd

const magic = "TRMANIFS"

// ErrNewerFormat reports a manifest that a later version of Tablerock wrote. The
// file is neither damaged nor changed.
var ErrNewerFormat = fmt.Errorf("manifest has a %w", feature.ErrNewerFormat)

// encodedLen returns the length of the encoding of m.
func encodedLen(m *Manifest) int64 {
	n := int64(headLen+sumLen) + int64(len(m.Logs))*logLen + int64(len(m.Files))*fileLen
	for i := range m.Files {
		f := &m.Files[i]
		n += int64(len(f.Smallest)) + int64(len(f.Largest)) + int64(len(f.Extensions))
	}
	return n + int64(len(m.Extensions))
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
	for _, v := range [...]uint64{m.Required, m.Optional, m.Epoch, uint64(len(m.Extensions))} {
		dst = binary.LittleEndian.AppendUint64(dst, v)
	}
	dst = append(dst, m.Extensions...)
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
	dst = append(dst, f.Origin[:]...)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(f.Extensions)))
	dst = binary.LittleEndian.AppendUint32(dst, f.NewKeys)
	dst = binary.LittleEndian.AppendUint64(dst, f.Stamp)
	dst = append(dst, f.Smallest...)
	dst = append(dst, f.Largest...)
	return append(dst, f.Extensions...)
}

func sum(b []byte, dbid [16]byte) uint64 { return xxhash.Sum64(b) ^ xxhash.Sum64(dbid[:]) }

// checkHead verifies the first headLen2 bytes of a file of size bytes before the rest
// is read.
func checkHead(src []byte, size int64) error {
	switch {
	case len(src) < headLen2 || size < headLen2+sumLen:
		return damage(size, "manifest of %d bytes, want at least %d", size, headLen2+sumLen)
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
	if err := checkHead(src[:min(len(src), headLen2)], int64(len(src))); err != nil {
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
	off, err := m.decodeHead(src[:end])
	if err != nil {
		return nil, err
	}
	if err := m.decodeLists(src[:end], off); err != nil {
		return nil, err
	}
	return m, nil
}

// decodeHead decodes the rest of the head and the extension area, and returns the
// offset of the logs. src is the file without the final sum. Unknown features are
// refused before anything that they could change is decoded.
func (m *Manifest) decodeHead(src []byte) (off int, err error) {
	if m.Version < 3 {
		return headLen2, nil
	}
	if len(src) < headLen {
		return 0, damage(int64(len(src)), "head of %d bytes, want %d", len(src), headLen)
	}
	m.Required = binary.LittleEndian.Uint64(src[72:])
	m.Optional = binary.LittleEndian.Uint64(src[80:])
	m.Epoch = binary.LittleEndian.Uint64(src[88:])
	n := binary.LittleEndian.Uint64(src[96:])
	if n > maxExtensions || n > uint64(len(src)-headLen) {
		return 0, damage(96, "extension area of %d bytes", n)
	}
	off = headLen + int(n)
	if n > 0 {
		m.Extensions = src[headLen:off:off]
	}
	return off, checkFeatures(m.Extensions, m.Required, headLen)
}

// checkFeatures verifies the extension area at off and the required features.
func checkFeatures(area []byte, required uint64, off int) error {
	err := feature.Check(area, required, knownFeatures)
	if errors.Is(err, feature.ErrUnknown) {
		return fmt.Errorf("%w: %w", ErrNewerFormat, err)
	}
	if err != nil {
		return damage(int64(off), "%v", err)
	}
	return nil
}

// decodeLists decodes logs and files from off, and checks them. src is the file without the final
// sum. In version 3 only the length of the lists tells whether files have timestamps.
func (m *Manifest) decodeLists(src []byte, off int) error {
	if m.Version < 3 {
		return m.decodeListsOf(src, off, fileLen2)
	}
	err := m.decodeListsOf(src, off, fileLen)
	if err != nil && m.decodeListsOf(src, off, fileLen3) == nil {
		return nil
	}
	return err
}

// decodeListsOf decodes lists with files whose fields take fields bytes.
func (m *Manifest) decodeListsOf(src []byte, off, fields int) error {
	logs := int64(binary.LittleEndian.Uint32(src[64:]))
	files := int64(binary.LittleEndian.Uint32(src[68:]))
	if logs > maxLogs || files > maxFiles || logs*logLen+files*int64(fields) > int64(len(src)-off) {
		return damage(64, "%d logs and %d files in %d bytes", logs, files, len(src)-off)
	}
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
		n, ok := decodeFile(src[off:], &m.Files[i], fields)
		if !ok {
			return damage(int64(off), "file %d of %d exceeds the manifest", i, files)
		}
		if m.Version < 3 {
			m.Files[i].Origin = m.DBID
		}
		off += n
		area := m.Files[i].Extensions
		if err := checkFeatures(area, 0, off-len(area)); err != nil {
			return fmt.Errorf("file %d: %w", m.Files[i].Number, err)
		}
	}
	if off != len(src) {
		return damage(int64(off), "%d bytes after the last file", len(src)-off)
	}
	if err := m.check(); err != nil {
		return damage(0, "%v", err)
	}
	return nil
}

// decodeFile decodes a file whose fields take fields bytes, and returns its length.
func decodeFile(src []byte, f *File, fields int) (n int, ok bool) {
	if len(src) < fields {
		return 0, false
	}
	small := fields + int(binary.LittleEndian.Uint16(src[68:]))
	large := small + int(binary.LittleEndian.Uint16(src[70:]))
	var origin [16]byte
	extensions, newKeys, stamp := uint32(0), uint32(0), uint64(0)
	if fields >= fileLen3 {
		origin = [16]byte(src[72:88])
		extensions, newKeys = binary.LittleEndian.Uint32(src[88:]), binary.LittleEndian.Uint32(src[92:])
	}
	if fields >= fileLen {
		stamp = binary.LittleEndian.Uint64(src[96:])
	}
	if extensions > maxFileExtensions || len(src) < large+int(extensions) {
		return 0, false
	}
	n = large + int(extensions)
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
		NewKeys:    newKeys,
		Stamp:      stamp,
		Origin:     origin,
		Smallest:   src[fields:small:small],
		Largest:    src[small:large:large],
	}
	if extensions > 0 {
		f.Extensions = src[large:n:n]
	}
	return n, true
}

func damage(off int64, format string, args ...any) error {
	return corrupt.Newf(filename.Manifest, off, format, args...)
}
