package wal

import (
	"encoding/binary"

	"github.com/cespare/xxhash/v2"
)

// refResult is the result of the reference reader.
type refResult struct {
	class   string // "", "corrupt", "unfinished", "newer", "changed"
	records []logRecord
	offset  int64
	proven  int64
	lastSeq uint64
}

// refReplay is a second reader of segments, written from the description of the
// format alone: without windows and early ends, with all rules in one function.
func refReplay(file []byte, o ReplayOptions) refResult {
	if class := refHeader(file, o); class != "" {
		return refResult{class: class}
	}
	limit := int64(len(file))
	if o.Sealed != 0 {
		if o.Sealed < 4096 || o.Sealed > limit {
			return refResult{class: "corrupt"}
		}
		limit = o.Sealed
	}
	r := refResult{offset: 4096, proven: 4096, lastSeq: u64(file, 40) - 1}
	chain := uint32(u64(file, 4088))
	for {
		length, ok := refRecord(file[:limit], r.offset, o)
		if !ok {
			break
		}
		rec := file[r.offset : r.offset+length]
		seq, count := u64(rec, 24), uint64(binary.LittleEndian.Uint16(rec[22:]))
		synced := int64(u32(rec, 32))
		if u32(rec, 36) != chain || seq != r.lastSeq+1 || seq+count-1 > 1<<56-1 || synced < r.proven || synced > r.offset {
			return refResult{class: "corrupt"}
		}
		r.offset += length
		r.proven, r.lastSeq, chain = synced, seq+count-1, uint32(u64(rec, 0))
		if rec[20] == 1 {
			r.records = append(r.records, logRecord{
				FirstSeq: seq, Count: uint16(count), Flags: rec[21],
				Payload: string(rec[40 : 40+u32(rec, 12)]), End: r.offset,
			})
		}
	}
	if o.Sealed != 0 {
		r.proven = r.offset
		if r.offset != o.Sealed {
			r.class = "corrupt"
		}
	} else {
		if r.offset == 4096 {
			r.proven = 0 // the header may be only in the page cache
		}
		r.proven = max(r.proven, o.Proven)
		// The first sequence number of the next segment proves the end.
		if o.NextSeq == 0 || r.lastSeq+1 != o.NextSeq {
			r.proven = max(r.proven, refProven(file, r.offset+8, o))
		}
		if r.proven > r.offset {
			r.class = "corrupt"
		}
	}
	if o.NextSeq != 0 && r.lastSeq+1 != o.NextSeq {
		r.class = "corrupt"
	}
	return r
}

func refHeader(file []byte, o ReplayOptions) string {
	ok := len(file) >= 4096 && string(file[:8]) == "TRSEGWAL"
	if ok {
		ok = u64(file, 4088) == xxhash.Sum64(file[:4088])^refMask(file[16:32], u64(file, 32), 0)
	}
	if ok && u32(file, 8) > 1 {
		return "newer"
	}
	seq, prev := uint64(0), int64(0)
	if ok {
		seq, prev = u64(file, 40), int64(u64(file, 56))
		ok = u32(file, 8) == 1 && u64(file, 32)-1 < 999_999_999_999_999_999 && seq != 0 && seq < 1<<56 && prev >= 0 && prev <= 1<<31
	}
	switch {
	case !ok && refProven(file, 4096, o) > 0:
		return "corrupt"
	case !ok:
		return "unfinished"
	case string(file[16:32]) != string(o.DBID[:]) || u64(file, 32) < o.Number:
		return "corrupt"
	case u64(file, 32) > o.Number:
		return "changed"
	}
	return ""
}

// refRecord reports whether there is a record of the segment at off.
func refRecord(file []byte, off int64, o ReplayOptions) (length int64, ok bool) {
	if off+40 > int64(len(file)) {
		return 0, false
	}
	h := file[off : off+40]
	mask := refMask(o.DBID[:], o.Number, off)
	if u32(h, 16) != uint32(o.Number) || h[20] < 1 || h[20] > 2 || u32(h, 8) != uint32((xxhash.Sum64(h[12:])^mask)>>32) {
		return 0, false
	}
	length = 40 + (int64(u32(h, 12))+7)/8*8
	if length > int64(len(file))-off {
		return 0, false
	}
	return length, u64(h, 0) == xxhash.Sum64(file[off+8:off+length])^mask
}

// refProven returns the greatest synced-to of the records from off on, or 0 if
// there are none.
func refProven(file []byte, off int64, o ReplayOptions) int64 {
	proven := int64(0)
	for off < int64(len(file)) {
		length, ok := refRecord(file, off, o)
		if !ok || int64(u32(file[off:], 32)) > off || u32(file[off:], 32) < 4096 {
			off += 8
			continue
		}
		proven = max(proven, int64(u32(file[off:], 32)))
		off += length
	}
	return proven
}

func refMask(dbid []byte, number uint64, off int64) uint64 {
	x := xxhash.Sum64(binary.LittleEndian.AppendUint64(append([]byte(nil), dbid...), number))
	x += uint64(off) * 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

func u32(b []byte, off int) uint32 { return binary.LittleEndian.Uint32(b[off:]) }
func u64(b []byte, off int) uint64 { return binary.LittleEndian.Uint64(b[off:]) }
