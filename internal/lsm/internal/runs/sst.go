package runs

import (
	"bytes"
	"fmt"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/internal/filename"
	"github.com/tablerock-db/tablerock/internal/lsm/internal/bound"
	"github.com/tablerock-db/tablerock/internal/lsm/internal/keyrange"
	"github.com/tablerock-db/tablerock/internal/manifest"
	"github.com/tablerock-db/tablerock/sstable"
)

// SST is a virtual sstable, an element of a run: a file, or the range of a file that no compaction
// has consumed.
type SST struct {
	*File
	// Meta is the record in the manifest. Bounds, tier and run are those of the
	// virtual sstable, all other fields are those of the file.
	Meta manifest.File
	// Lo and Hi are the user keys of the first and the last entry.
	Lo, Hi []byte
	// Clipped says that the file contains keys beyond Lo..Hi.
	Clipped bool
	// Bytes and Entries are those of Lo..Hi, estimates if clipped.
	Bytes   int64
	Entries uint64
	// MostTombstones is the most tombstones that Lo..Hi can have: those of the file without those
	// that compactions have consumed since the Tree was opened.
	MostTombstones uint64
}

// NewSST returns the virtual sstable of f that meta lists, of about the given size.
func NewSST(f *File, meta manifest.File, size int64) *SST {
	s := &SST{File: f, Meta: meta, Bytes: size, Entries: meta.Entries, MostTombstones: meta.Tombstones}
	var first, last uint64
	s.Lo, first = bound.Split(meta.Smallest)
	s.Hi, last = bound.Split(meta.Largest)
	s.Clipped = first == bound.ClippedFirst || last == bound.ClippedLast
	return s
}

// Measured sets the size and the entries of a clipped s, which nobody else uses yet, by the index
// of its file, and returns s.
func (s *SST) Measured() (*SST, error) {
	if !s.Clipped {
		return s, nil
	}
	r, err := s.Reader()
	if err != nil {
		return nil, err
	}
	entries, share := r.Within(s.Lo, s.Hi)
	s.Entries, s.Bytes = entries, max(1, int64(float64(s.Size)*share))
	return s, nil
}

// Tombstones estimates the tombstones within Lo..Hi.
func (s *SST) Tombstones() uint64 {
	if !s.Clipped {
		return s.Meta.Tombstones
	}
	return min(s.MostTombstones, uint64(float64(s.Meta.Tombstones)*float64(s.Entries)/float64(s.Meta.Entries)))
}

// Moved returns a copy of s in another run.
func (s *SST) Moved(tier uint32, run uint64) *SST {
	q := *s
	q.Meta.Tier, q.Meta.Run = tier, run
	return &q
}

// Overlaps reports whether s may contain keys within [lower, upper); nil is open.
func (s *SST) Overlaps(lower, upper []byte) bool {
	return bytes.Compare(s.Hi, lower) >= 0 && (upper == nil || bytes.Compare(s.Lo, upper) < 0)
}

// Inside reports whether all keys of s are within [lower, upper).
func (s *SST) Inside(lower, upper []byte) bool {
	return bytes.Compare(s.Lo, lower) >= 0 && (upper == nil || bytes.Compare(s.Hi, upper) < 0)
}

// BytesWithin estimates the size of the entries of s within [lower, upper): by the index, if the
// file is open.
func (s *SST) BytesWithin(lower, upper []byte) int64 {
	if s.Inside(lower, upper) {
		return s.Bytes
	}
	if r := s.opened.Load(); r != nil {
		return max(1, min(s.Bytes, int64(float64(s.Size)*r.Between(s.Lo, s.Hi, lower, upper))))
	}
	return keyrange.OverlapBytes(s.Bytes, s.Lo, s.Hi, lower, upper)
}

// Garbage estimates the bytes of older versions that n bytes of s hide, at most n.
// An entry that hides a version counts twice, because it may be smaller than that version, or a
// tombstone.
func (s *SST) Garbage(n int64) int64 {
	newKeys := float64(s.Meta.NewKeys) / manifest.AllNewKeys
	return int64(float64(n) * min(1, 2*(1-newKeys)))
}

// Bounds narrows o to the bounds of s.
func (s *SST) Bounds(o sstable.IterOptions) sstable.IterOptions {
	if !s.Clipped {
		return o
	}
	if bytes.Compare(o.Lower, s.Lo) < 0 {
		o.Lower = s.Lo
	}
	if end := bound.After(s.Hi); o.Upper == nil || bytes.Compare(o.Upper, end) > 0 {
		o.Upper = end
	}
	return o
}

// Without returns s without the keys in [lower, upper), which have the given number of tombstones:
// at most two virtual sstables, whose bounds are keys of the file.
func (s *SST) Without(lower, upper []byte, tombstones uint64) ([]*SST, error) {
	if s.Inside(lower, upper) {
		return nil, nil
	}
	r, err := s.Reader()
	if err != nil {
		return nil, err
	}
	var metas []manifest.File
	it := r.NewIterator(s.Bounds(sstable.IterOptions{Snapshot: codec.MaxSeq}))
	if lower != nil && it.SeekLT(lower) {
		meta := s.Meta
		meta.Largest = bound.Clip(codec.UserKey(it.Key()), bound.ClippedLast)
		metas = append(metas, meta)
	}
	if upper != nil && it.Err() == nil && it.SeekGE(upper) {
		meta := s.Meta
		meta.Smallest = bound.Clip(codec.UserKey(it.Key()), bound.ClippedFirst)
		metas = append(metas, meta)
	}
	err = it.Err()
	if cerr := it.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return nil, fmt.Errorf("bounds of the rest of %s: %w", filename.Make(filename.SSTable, s.Number), err)
	}
	var rest []*SST
	for _, meta := range metas {
		part, err := NewSST(s.File, meta, 0).Measured()
		if err != nil {
			return nil, err
		}
		part.MostTombstones = s.MostTombstones - min(tombstones, s.MostTombstones)
		rest = append(rest, part)
	}
	return rest, nil
}
