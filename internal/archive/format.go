// Package archive is the format of an archived chunk of a database's history: the records
// of a log segment, or the files of one install of Load.
package archive

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/corrupt"
	"github.com/tablerock-db/tablerock/internal/feature"
	"github.com/tablerock-db/tablerock/wal"
)

// A chunk has the writes of a range of sequence numbers. The chunks of a database in one
// epoch are in the order of these numbers, and each begins after the last number of the
// one before. Its name says so:
//
//	EPOCH/DATABASE/FIRST-LAST.log      the records of a log segment
//	EPOCH/DATABASE/FIRST-LAST.load     the files of an install of Load; FIRST is LAST
//
// EPOCH, at least 8 hexadecimal digits, and DATABASE are the epoch and the id of the
// database; FIRST and LAST are sequence numbers of 17 decimal digits. Integers are
// little-endian.
//
//	 0  8  magic "TRARCHIV"
//	 8  4  version
//	12  4  kind: 1 log, 2 load
//	16 16  database id
//	32  8  epoch of the database
//	40  8  number of the segment; of a load the greatest number of its files
//	48  8  first sequence
//	56  8  last sequence
//	64  8  timestamp of the first sequence, ticks
//	72  8  timestamp of the last sequence, ticks
//	80  8  length of the payload
//	88  8  length of the manifest of a load, 0 of a log
//	96  8  sum = XXH64(bytes 0 to 96)
//	104    payload
//	-8  8  sum = XXH64(bytes 96 to the end of the payload)
//
// The payload of a log is the file of the segment up to the end of its records. The
// payload of a load is a manifest that lists the files, and then the files in ascending
// order of their numbers. Timestamps rise with the sequence.

// Sizes and kinds that are part of the file format.
const (
	// HeaderLen is the length of the header; the payload follows.
	HeaderLen = 104
	// sumLen is the length of the sum after the payload.
	sumLen = 8

	version    = 1
	magic      = "TRARCHIV"
	headSumOff = 96
	// maxPayload is above the size of what Load installs at once.
	maxPayload  = 1 << 40
	maxManifest = 64 << 20
)

// Kind says what a chunk has. It is part of the file format; 0 is invalid.
type Kind uint32

// The kinds.
const (
	Log  Kind = 1
	Load Kind = 2
)

var extensions = map[Kind]string{Log: ".log", Load: ".load"}

// ErrNewerFormat reports a chunk that a later version of Tablerock wrote.
var ErrNewerFormat = fmt.Errorf("archived chunk has a %w", feature.ErrNewerFormat)

// Range is a range of sequence numbers, both inclusive.
type Range struct{ First, Last uint64 }

// Header describes a chunk.
type Header struct {
	Kind   Kind
	DBID   [16]byte
	Epoch  uint64
	Number uint64 // of the segment of a Log; the greatest of the files of a Load
	Range
	From, To edm.Ticks // Timestamps of First and Last
	Bytes    int64     // length of the payload
	Manifest int64     // length of the manifest of a Load, 0 of a Log
}

// Name returns the name of a chunk.
func (h *Header) Name() string {
	return fmt.Sprintf("%s%017d-%017d%s", Prefix(h.Epoch, h.DBID), h.First, h.Last, extensions[h.Kind])
}

// Prefix returns the prefix of the names of a database's chunks of one epoch.
func Prefix(epoch uint64, dbid [16]byte) string { return fmt.Sprintf("%08x/%x/", epoch, dbid) }

// ParseName returns the kind and the range of a name without its Prefix.
func ParseName(name string) (Kind, Range, bool) {
	for kind, extension := range extensions {
		digits, ok := strings.CutSuffix(name, extension)
		if !ok || len(digits) != 35 || digits[17] != '-' || strings.Trim(digits, "0123456789-") != "" {
			continue
		}
		first, err1 := strconv.ParseUint(digits[:17], 10, 64)
		last, err2 := strconv.ParseUint(digits[18:], 10, 64)
		r := Range{first, last}
		return kind, r, err1 == nil && err2 == nil && r.check(kind) == nil
	}
	return 0, Range{}, false
}

func (r Range) check(kind Kind) error {
	if r.First == 0 || r.Last < r.First || r.Last > wal.MaxSeq || kind == Load && r.First != r.Last {
		return fmt.Errorf("sequences %d to %d", r.First, r.Last)
	}
	return nil
}

// appendHeader appends the encoding of h.
func appendHeader(dst []byte, h *Header) []byte {
	start := len(dst)
	dst = append(dst, magic...)
	dst = binary.LittleEndian.AppendUint32(dst, version)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(h.Kind))
	dst = append(dst, h.DBID[:]...)
	for _, v := range [...]uint64{h.Epoch, h.Number, h.First, h.Last, uint64(h.From), uint64(h.To), uint64(h.Bytes), uint64(h.Manifest)} {
		dst = binary.LittleEndian.AppendUint64(dst, v)
	}
	return binary.LittleEndian.AppendUint64(dst, xxhash.Sum64(dst[start:]))
}

// decodeHeader decodes the header of the chunk name, HeaderLen bytes. The errors are
// ErrNewerFormat and *corrupt.Error.
func decodeHeader(name string, src []byte) (*Header, error) {
	if len(src) < HeaderLen || string(src[:8]) != magic {
		return nil, corrupt.Newf(name, 0, "not an archived chunk")
	}
	if got, want := binary.LittleEndian.Uint64(src[headSumOff:]), xxhash.Sum64(src[:headSumOff]); got != want {
		return nil, corrupt.Newf(name, headSumOff, "sum is %016x, want %016x", got, want)
	}
	if v := binary.LittleEndian.Uint32(src[8:]); v != version {
		return nil, fmt.Errorf("%s: %w: version %d, this build reads %d", name, ErrNewerFormat, v, version)
	}
	word := func(off int) uint64 { return binary.LittleEndian.Uint64(src[off:]) }
	h := &Header{
		Kind:     Kind(binary.LittleEndian.Uint32(src[12:])),
		DBID:     [16]byte(src[16:32]),
		Epoch:    word(32),
		Number:   word(40),
		Range:    Range{First: word(48), Last: word(56)},
		From:     edm.Ticks(word(64)),
		To:       edm.Ticks(word(72)),
		Bytes:    int64(word(80)),
		Manifest: int64(word(88)),
	}
	if err := h.check(); err != nil {
		return nil, corrupt.Newf(name, 0, "%v", err)
	}
	return h, nil
}

func (h *Header) check() error {
	switch {
	case extensions[h.Kind] == "":
		return fmt.Errorf("kind %d", h.Kind)
	case h.Bytes <= 0 || h.Bytes > maxPayload:
		return fmt.Errorf("payload of %d bytes", h.Bytes)
	case h.Number == 0 || h.Number > wal.MaxNumber:
		return fmt.Errorf("number %d", h.Number)
	case h.Kind == Log && (h.Bytes < wal.HeaderLen || h.Bytes > wal.MaxSegmentBytes || h.Manifest != 0):
		return fmt.Errorf("segment of %d bytes", h.Bytes)
	case h.Kind == Load && (h.Manifest <= 0 || h.Manifest > min(maxManifest, h.Bytes)):
		return fmt.Errorf("manifest of %d bytes", h.Manifest)
	case !h.From.Valid() || !h.To.Valid() || h.From > h.To:
		return errors.New("timestamps out of order")
	}
	return h.Range.check(h.Kind)
}
