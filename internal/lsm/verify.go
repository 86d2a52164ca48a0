package lsm

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/cespare/xxhash/v2"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/internal/corrupt"
	"github.com/tablerock-db/tablerock/internal/filename"
	"github.com/tablerock-db/tablerock/vfs"
)

// Verified is what Verify has read.
type Verified struct {
	Files   int
	Bytes   int64
	Entries uint64
	// Findings are the damages, at most one for each check of a file.
	Findings []*corrupt.Error
}

// Verify is Version.Verify of the current version.
func (t *Tree) Verify(ctx context.Context) (Verified, error) {
	v := t.Version()
	defer v.Unref()
	return v.Verify(ctx)
}

// Verify reads every file of the version in full and checks it against its own
// sums and rules, and against the manifest: the hash of the whole file, counts
// and bounds. What is damaged is a finding; an error means that Verify could not
// go on. It may be called after Tree.Close.
func (v *Version) Verify(ctx context.Context) (Verified, error) {
	t := v.tree
	var out Verified
	seen := make(map[*file]bool)
	for _, p := range v.parts() {
		if !seen[p.file] {
			seen[p.file] = true
			out.Files++
			out.Bytes += p.size
			out.Entries += p.meta.Entries
			if err := t.verifyFile(ctx, p, &out); err != nil {
				return out, err
			}
		}
		if err := out.note(p.checkBounds()); err != nil {
			return out, err
		}
	}
	return out, nil
}

// note takes err as a finding if it is one.
func (v *Verified) note(err error) error {
	var c *corrupt.Error
	if errors.As(err, &c) {
		v.Findings = append(v.Findings, c)
		return nil
	}
	return err
}

func (t *Tree) verifyFile(ctx context.Context, p *part, out *Verified) error {
	if err := out.note(p.reader.Verify(ctx)); err != nil {
		return fmt.Errorf("verify %s: %w", filename.Make(filename.SSTable, p.number), err)
	}
	f, err := t.o.FS.Open(t.path(p.number))
	if err != nil {
		return fmt.Errorf("verify %s: %w", filename.Make(filename.SSTable, p.number), err)
	}
	hash, err := hashFile(ctx, f, p.size)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("hash %s: %w", filename.Make(filename.SSTable, p.number), err)
	}
	if hash != p.meta.Hash {
		return out.note(corrupt.Newf(filename.Make(filename.SSTable, p.number), 0, "the file's hash is %016x, the manifest says %016x", hash, p.meta.Hash))
	}
	return nil
}

func hashFile(ctx context.Context, f vfs.File, size int64) (uint64, error) {
	const chunkBytes = 1 << 20
	h := xxhash.New()
	buf := make([]byte, min(chunkBytes, size))
	for off := int64(0); off < size; off += int64(len(buf)) {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		buf = buf[:min(int64(len(buf)), size-off)]
		if n, err := f.ReadAt(buf, off); n < len(buf) {
			return 0, err
		}
		_, _ = h.Write(buf) // a hash takes everything
	}
	return h.Sum64(), nil
}

// checkBounds checks that the part begins and ends with the keys that the
// manifest names.
func (p *part) checkBounds() error {
	it := p.reader.NewIterator(p.bounds(IterOptions{Snapshot: codec.MaxSeq}))
	is := func(user []byte) bool { return bytes.Equal(it.Key()[:len(it.Key())-codec.TrailerLen], user) }
	var err error
	if it.SeekGE(nil) && !is(p.lo) {
		err = corrupt.Newf(filename.Make(filename.SSTable, p.number), 0, "begins with %x, the manifest says %x", it.Key(), p.meta.Smallest)
	}
	if err == nil && it.SeekLT(nil) && !is(p.hi) {
		err = corrupt.Newf(filename.Make(filename.SSTable, p.number), p.size, "ends with %x, the manifest says %x", it.Key(), p.meta.Largest)
	}
	if cerr := it.Close(); err == nil {
		err = cerr
	}
	return err
}
