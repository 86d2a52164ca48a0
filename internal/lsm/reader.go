package lsm

import (
	"encoding/binary"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/internal/manifest"
	"github.com/tablerock-db/tablerock/sstable"
)

func infoOf(r *sstable.Reader, meta *manifest.File) (sstable.Info, error) {
	if i, ok := any(r).(interface{ Info() sstable.Info }); ok {
		return i.Info(), nil
	}
	info := sstable.Info{Size: meta.Size, MinSeq: meta.MinSeq, MaxSeq: meta.MaxSeq, Entries: meta.Entries, Tombstones: meta.Tombstones}
	it := r.NewIterator(sstable.IterOptions{Snapshot: codec.MaxSeq})
	if it.SeekGE(nil) {
		info.Smallest = append([]byte(nil), it.Key()...)
	}
	if it.SeekLT(nil) {
		info.Largest = append([]byte(nil), it.Key()...)
		info.Largest = append(info.Largest[:len(info.Largest)-8], 255, 255, 255, 255, 255, 255, 255, 255)
	}
	return info, it.Close()
}

func estimatorOf(r *sstable.Reader, info sstable.Info) func(lower, upper []byte) int64 {
	if e, ok := any(r).(interface {
		EstimateBytes(lower, upper []byte) int64
	}); ok {
		return e.EstimateBytes
	}
	lo, _, _ := codec.SplitTrailer(info.Smallest)
	hi, _, _ := codec.SplitTrailer(info.Largest)
	return func(lower, upper []byte) int64 {
		n := 0
		for n < len(lo) && n < len(hi) && lo[n] == hi[n] {
			n++
		}
		at := func(key []byte) float64 {
			var b [8]byte
			if len(key) > n {
				copy(b[:], key[n:])
			}
			return float64(binary.BigEndian.Uint64(b[:]))
		}
		from, to := at(lo), at(hi)
		a, b := max(from, at(lower)), to
		if upper != nil {
			b = min(to, at(upper))
		}
		if to <= from {
			return info.Size
		}
		return max(1, int64(float64(info.Size)*(b-a)/(to-from)))
	}
}
