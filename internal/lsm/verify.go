package lsm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/internal/corrupt"
	"github.com/tablerock-db/tablerock/internal/filename"
	"github.com/tablerock-db/tablerock/internal/lsm/internal/runs"
	"github.com/tablerock-db/tablerock/internal/manifest"
	"github.com/tablerock-db/tablerock/sstable"
)

// Verified is the result of Verify.
type Verified struct {
	Files   int
	Bytes   int64
	Entries uint64
	// Findings are the damages found, at most one for each check of a file.
	Findings []*corrupt.Error
}

// Verify reads every file of the version completely. It checks the checksums and rules
// of the file, and compares its hash, counts and bounds with the manifest. Damage is
// a finding; an error means that Verify could not continue. It calls progress with the
// bytes read after each file. It may be called after Tree.Close.
func (v *Version) Verify(ctx context.Context, progress func(bytes int64)) (Verified, error) {
	t := v.tree
	var out Verified
	seen := make(map[*runs.File]bool)
	for _, s := range v.runs.SSTs() {
		if !seen[s.File] {
			seen[s.File] = true
			out.Files++
			out.Bytes += s.Size
			out.Entries += s.Meta.Entries
			if err := t.verifyFile(ctx, s, &out); err != nil {
				return out, err
			}
			progress(out.Bytes)
		}
		if err := out.note(checkBounds(s)); err != nil {
			return out, err
		}
	}
	return out, nil
}

// note adds err to the findings if it is damage, unless it is one of them, and returns it
// otherwise.
func (v *Verified) note(err error) error {
	var c *corrupt.Error
	if !errors.As(err, &c) {
		return err
	}
	if !slices.ContainsFunc(v.Findings, func(f *corrupt.Error) bool { return *f == *c }) {
		v.Findings = append(v.Findings, c)
	}
	return nil
}

func (t *Tree) verifyFile(ctx context.Context, s *runs.SST, out *Verified) error {
	r, err := s.Reader()
	if err == nil {
		err = r.Verify(ctx)
	}
	if err := out.note(err); err != nil {
		return fmt.Errorf("verify %s: %w", filename.Make(filename.SSTable, s.Number), err)
	}
	f, err := t.o.FS.Open(t.path(s.Number))
	if errors.Is(err, fs.ErrNotExist) {
		if manifest.Unlisted(t.o.FS, t.o.Dir, s.Number) {
			return nil // a writer beside this reader has compacted it
		}
		err = corrupt.Newf(filename.Make(filename.SSTable, s.Number), 0, "the open database uses it, but there is no such file")
		return out.note(err)
	}
	if err != nil {
		return fmt.Errorf("verify %s: %w", filename.Make(filename.SSTable, s.Number), err)
	}
	hash, err := sstable.Hash(ctx, f, s.Size)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("hash %s: %w", filename.Make(filename.SSTable, s.Number), err)
	}
	if hash != s.Meta.Hash {
		return out.note(corrupt.Newf(filename.Make(filename.SSTable, s.Number), 0, "the file's hash is %016x, the manifest says %016x", hash, s.Meta.Hash))
	}
	return nil
}

// checkBounds compares the first and the last key of s with the manifest.
func checkBounds(s *runs.SST) error {
	r, err := s.Reader()
	if errors.Is(err, corrupt.ErrCorrupt) {
		return nil // verifyFile has found it
	}
	if err != nil {
		return err
	}
	it := r.NewIterator(s.Bounds(sstable.IterOptions{Snapshot: codec.MaxSeq}))
	is := func(user []byte) bool { return bytes.Equal(codec.UserKey(it.Key()), user) }
	if it.SeekGE(nil) && !is(s.Lo) {
		err = corrupt.Newf(filename.Make(filename.SSTable, s.Number), 0, "begins with %x, the manifest says %x", it.Key(), s.Meta.Smallest)
	}
	if err == nil && it.SeekLT(nil) && !is(s.Hi) {
		err = corrupt.Newf(filename.Make(filename.SSTable, s.Number), s.Size, "ends with %x, the manifest says %x", it.Key(), s.Meta.Largest)
	}
	if cerr := it.Close(); err == nil {
		err = cerr
	}
	return err
}
