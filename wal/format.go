package wal

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cespare/xxhash/v2"

	"github.com/tablerock-db/tablerock/internal/feature"
)

// A segment file is an image of the memory that the writer appends to: each byte
// has the same offset in both. It is a header and then records, each aligned to 8
// bytes. Integers are little-endian.
//
//	segment
//	+------------------+----------+----------+-- - - --+----------------------+
//	| header 4096      | record   | record   |         | zeros, stale records |
//	+------------------+----------+----------+-- - - --+----------------------+
//
//	header
//	   0  8  magic "TRSEGWAL"
//	   8  4  version
//	  12  4  zero
//	  16 16  database id
//	  32  8  segment number
//	  40  8  first sequence
//	  48  8  high-water timestamp, ticks
//	  56  8  durable end of the previous segment, 0 none; 1: it may not be durable
//	  64     zeros
//	4088  8  sum = XXH64(header[0:4088]) ^ mask(0)
//	4096
//
//	record
//	   0  8  sum = XXH64(record[8:end]) ^ mask(offset), padding included
//	   8  4  check = high 32 bits of XXH64(record[12:40]) ^ mask(offset)
//	  12  4  length of the payload
//	  16  4  segment number, low 32 bits
//	  20  1  kind: 1 data, 2 seal
//	  21  1  flags, the caller's
//	  22  2  count: sequence numbers that the record consumes
//	  24  8  first sequence
//	  32  4  synced-to: the file was known to be durable up to here
//	  36  4  chain: low 32 bits of the previous record's sum, or of the header's
//	  40     payload, then zeros up to a multiple of 8
//
//	mask(offset) = finish(XXH64(database id | segment number) + offset * 9E3779B97F4A7C15)
//	finish(x)    = the last steps of SplitMix64
//
// The mask makes a sum valid only in its database, its segment and at its offset.
// Sequence numbers are dense: a record begins after the last number of the record
// before it, the first record with the number in the header. Synced-to never
// decreases and never exceeds the record's own offset.
//
// A seal is a record without a payload for the database. It is appended when all
// records before it are durable, so its synced-to is its own offset. It is written
// as two records: the payload of the first reaches to the next multiple of 512, the
// offset of the second. So no single sector holds both the end of the data and all
// that proves it.
//
// Magic, version, database id, number and sum keep their offsets in every version.
// The version is raised if an older reader could misread a file.

// Sizes that are part of the file format.
const (
	// HeaderLen is the length of a segment's header; records begin here.
	HeaderLen = 4096
	// RecordHeaderLen is the length of a record's header; the payload follows it.
	RecordHeaderLen = 40
	// MaxSegmentBytes is the maximum size of a segment.
	MaxSegmentBytes = 1 << 31
	// MaxNumber is the greatest number of a segment. It has 18 digits, the limit
	// of internal/filename.
	MaxNumber = 999_999_999_999_999_999
	// MaxSeq is the greatest sequence number.
	MaxSeq = 1<<56 - 1

	version      = 1
	align        = 8
	sealSector   = 512
	maxSealBytes = RecordHeaderLen + sealSector - align + RecordHeaderLen
	headerSumOff = HeaderLen - 8
)

// PrevUnknown is the PrevEnd of a segment before which not everything may be durable. Part of the
// file format; a build that does not know it reads it as an offset up to which nothing is proven.
const PrevUnknown = 1

// Kinds of records; part of the file format. 0 is invalid.
const (
	kindData uint8 = 1
	kindSeal uint8 = 2
)

const magic = "TRSEGWAL"

// ErrNewerFormat reports a segment that a later version of Tablerock wrote. The
// file is neither damaged nor changed.
var ErrNewerFormat = fmt.Errorf("segment has a %w", feature.ErrNewerFormat)

// Header is the beginning of a segment.
type Header struct {
	DBID      [16]byte // the database
	Number    uint64   // the segment, from 1; never used twice in a database
	FirstSeq  uint64   // the sequence of the first record
	HighWater uint64   // the greatest timestamp of earlier segments, ticks
	PrevEnd   int64    // the end of the previous segment, which is durable; 0 if there is none; or PrevUnknown
}

// sumSeed binds checksums to a database and a segment.
type sumSeed uint64

func newSumSeed(dbid [16]byte, number uint64) sumSeed {
	var b [24]byte
	copy(b[:], dbid[:])
	binary.LittleEndian.PutUint64(b[16:], number)
	return sumSeed(xxhash.Sum64(b[:]))
}

// mask returns the value that sums at an offset are xored with.
func (s sumSeed) mask(off int64) uint64 {
	x := uint64(s) + uint64(off)*0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// appendHeader appends the 4 KiB of h.
func appendHeader(dst []byte, h Header) []byte {
	start := len(dst)
	dst = append(dst, magic...)
	dst = binary.LittleEndian.AppendUint32(dst, version)
	dst = binary.LittleEndian.AppendUint32(dst, 0)
	dst = append(dst, h.DBID[:]...)
	dst = binary.LittleEndian.AppendUint64(dst, h.Number)
	dst = binary.LittleEndian.AppendUint64(dst, h.FirstSeq)
	dst = binary.LittleEndian.AppendUint64(dst, h.HighWater)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(h.PrevEnd))
	dst = append(dst, make([]byte, headerSumOff-(len(dst)-start))...)
	sum := xxhash.Sum64(dst[start:]) ^ newSumSeed(h.DBID, h.Number).mask(0)
	return binary.LittleEndian.AppendUint64(dst, sum)
}

// decodeHeader decodes the 4 KiB of a header. Its errors are ErrNewerFormat and
// descriptions of damage. It checks the sum before the version, so that a flipped
// bit is damage and not a newer format.
func decodeHeader(src []byte) (Header, error) {
	if len(src) < HeaderLen {
		return Header{}, fmt.Errorf("header of %d bytes, want %d", len(src), HeaderLen)
	}
	src = src[:HeaderLen]
	if string(src[:8]) != magic {
		return Header{}, fmt.Errorf("magic is %q, want %q", src[:8], magic)
	}
	h := Header{
		DBID:      [16]byte(src[16:32]),
		Number:    binary.LittleEndian.Uint64(src[32:]),
		FirstSeq:  binary.LittleEndian.Uint64(src[40:]),
		HighWater: binary.LittleEndian.Uint64(src[48:]),
		PrevEnd:   int64(binary.LittleEndian.Uint64(src[56:])),
	}
	sum := xxhash.Sum64(src[:headerSumOff]) ^ newSumSeed(h.DBID, h.Number).mask(0)
	if got := headerSum(src); got != sum {
		return Header{}, fmt.Errorf("header sum is %016x, want %016x", got, sum)
	}
	v := binary.LittleEndian.Uint32(src[8:])
	if v > version {
		return Header{}, fmt.Errorf("%w: version %d, this build knows %d", ErrNewerFormat, v, version)
	}
	if v == 0 {
		return Header{}, errors.New("version is 0")
	}
	return h, h.check()
}

// headerSum returns the sum field of an encoded header.
func headerSum(src []byte) uint64 { return binary.LittleEndian.Uint64(src[headerSumOff:]) }

func (h Header) check() error {
	switch {
	case h.Number == 0 || h.Number > MaxNumber:
		return fmt.Errorf("segment number is %d, want 1 to %d", h.Number, uint64(MaxNumber))
	case h.FirstSeq == 0 || h.FirstSeq > MaxSeq:
		return fmt.Errorf("first sequence is %d, want 1 to %d", h.FirstSeq, uint64(MaxSeq))
	case h.PrevEnd < 0 || h.PrevEnd > MaxSegmentBytes:
		return fmt.Errorf("end of the previous segment is %d", h.PrevEnd)
	}
	return nil
}

// recordHeader is the decoded form of the 40 bytes.
type recordHeader struct {
	sum      uint64
	check    uint32
	length   uint32
	number   uint32
	kind     uint8
	flags    uint8
	count    uint16
	firstSeq uint64
	syncedTo uint32
	chain    uint32
}

// recordBytes returns the size of a record with a payload of n bytes.
func recordBytes(n int64) int64 { return RecordHeaderLen + (n+align-1)&^(align-1) }

// SegmentBytes returns the minimum capacity of a segment for one record with a
// payload of n bytes.
func SegmentBytes(n int) int64 { return HeaderLen + recordBytes(int64(n)) + maxSealBytes }

// encodeRecord writes the header of the record that fills rec, with both sums, and
// returns the sum. Payload and padding must be in rec already.
func encodeRecord(rec []byte, h recordHeader, mask uint64) uint64 {
	binary.LittleEndian.PutUint32(rec[12:], h.length)
	binary.LittleEndian.PutUint32(rec[16:], h.number)
	rec[20] = h.kind
	rec[21] = h.flags
	binary.LittleEndian.PutUint16(rec[22:], h.count)
	binary.LittleEndian.PutUint64(rec[24:], h.firstSeq)
	binary.LittleEndian.PutUint32(rec[32:], h.syncedTo)
	binary.LittleEndian.PutUint32(rec[36:], h.chain)
	binary.LittleEndian.PutUint32(rec[8:], recordCheck(rec, mask))
	sum := xxhash.Sum64(rec[8:]) ^ mask
	binary.LittleEndian.PutUint64(rec, sum)
	return sum
}

// decodeRecordHeader decodes the 40 bytes without checking them.
func decodeRecordHeader(src []byte) recordHeader {
	src = src[:RecordHeaderLen]
	return recordHeader{
		sum:      binary.LittleEndian.Uint64(src),
		check:    binary.LittleEndian.Uint32(src[8:]),
		length:   binary.LittleEndian.Uint32(src[12:]),
		number:   binary.LittleEndian.Uint32(src[16:]),
		kind:     src[20],
		flags:    src[21],
		count:    binary.LittleEndian.Uint16(src[22:]),
		firstSeq: binary.LittleEndian.Uint64(src[24:]),
		syncedTo: binary.LittleEndian.Uint32(src[32:]),
		chain:    binary.LittleEndian.Uint32(src[36:]),
	}
}

// recordCheck computes the check field of a record's header.
func recordCheck(src []byte, mask uint64) uint32 {
	return uint32((xxhash.Sum64(src[12:RecordHeaderLen]) ^ mask) >> 32)
}

// isRecord reports whether src begins with the header h of a record of a segment,
// at the offset of mask.
func isRecord(src []byte, h recordHeader, number uint64, mask uint64) bool {
	return h.number == uint32(number) && (h.kind == kindData || h.kind == kindSeal) &&
		h.check == recordCheck(src, mask)
}

// staleNumber returns the greatest segment number below number whose low 32 bits
// are low, or false if there is none.
func staleNumber(number uint64, low uint32) (uint64, bool) {
	back := uint64(uint32(number) - low)
	return number - back, back != 0 && back < number
}
