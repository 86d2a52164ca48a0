package lsm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"syscall"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/internal/lsm/internal/fingerprint"
	"github.com/tablerock-db/tablerock/internal/lsm/internal/keyrange"
	"github.com/tablerock-db/tablerock/internal/lsm/internal/pick"
	"github.com/tablerock-db/tablerock/internal/lsm/internal/runs"
	"github.com/tablerock-db/tablerock/internal/lsm/internal/visibility"
	"github.com/tablerock-db/tablerock/internal/manifest"
	"github.com/tablerock-db/tablerock/internal/merge"
	"github.com/tablerock-db/tablerock/sstable"
)

// A step ends after stepEntries entries, or after writing stepBytes.
const (
	stepEntries = 1024
	stepBytes   = 1 << 20
)

// compaction is a flush or a compaction under way.
type compaction struct {
	t    *Tree
	v    *Version // pinned until the end, then nil
	plan pick.Plan
	edit manifest.Edit // of a flush

	flush      bool
	inOrder    bool        // one of several in key order, which consume whole files
	consumed   []*runs.SST // sstables of v that are consumed, some of them in part
	sources    []merge.Source
	it         merge.Iterator
	visibility visibility.Rule
	out        output
	keyBuf     []byte

	in         fingerprint.Fingerprint // of the entries that the sources returned
	decided    visibility.Counts
	tombstones map[*runs.SST]uint64 // of each input, those that the sources returned
	inputBytes int64                // bytes of the inputs

	phase func() (done bool, err error)
}

// newCompaction prepares a planned compaction. It owns the reference to v.
func (t *Tree) newCompaction(v *Version, snapshots []uint64, p *pick.Plan) *compaction {
	c := &compaction{t: t, v: v, plan: *p, tombstones: make(map[*runs.SST]uint64)}
	c.visibility = visibility.Rule{
		Snapshots: snapshots,
		Dropped:   t.o.Dropped,
		Older:     runs.NewOlder(p.Older).MayContain,
		Bottom:    p.Tier == manifest.BottomTier,
	}
	o := sstable.IterOptions{Lower: p.Lower, Upper: p.Upper, AllVersions: true}
	for _, r := range p.Inputs {
		ssts := r.Within(p.Lower, p.Upper)
		if len(ssts) == 0 {
			continue
		}
		c.consumed = append(c.consumed, ssts...)
		c.sources = append(c.sources, &countedRun{Source: &Source{ssts: ssts, o: o}, in: &c.in, tombstones: c.tombstones})
	}
	c.out = output{t: t, tier: p.Tier, run: p.Run, fileBytes: p.FileBytes, compression: t.o.CompactedCompression}
	if c.visibility.Bottom {
		c.out.snapshots = snapshots
	}
	return c
}

func (c *compaction) step(ctx context.Context) (done bool, err error) {
	if c.phase == nil {
		c.phase = c.start
	}
	done, err = c.phase()
	if done && err == nil {
		c.unpin()
	}
	return done, err
}

// unpin releases the version, once.
func (c *compaction) unpin() {
	if v := c.v; v != nil {
		c.v = nil
		v.Unref()
	}
}

func (c *compaction) abort() {
	defer c.unpin()
	for _, s := range c.sources {
		_ = s.Close() // read-only, and the job has failed
	}
	c.out.discard()
}

func (c *compaction) start() (bool, error) {
	if err := c.t.Failure(); err != nil {
		return false, err
	}
	if len(c.sources) == 0 {
		c.phase = c.install
		return false, nil
	}
	if err := c.checkSpace(); err != nil {
		return false, err
	}
	c.it.Init(c.sources, merge.Options{AllVersions: true})
	c.it.SeekGE(c.plan.Lower)
	c.phase = c.copyEntries
	return false, nil
}

// checkSpace returns an ENOSPC if the disk does not have the space for the output of a
// compaction, which would be written in vain.
func (c *compaction) checkSpace() error {
	if c.flush {
		return nil
	}
	need := c.plan.FileBytes + c.plan.FileBytes/4
	if !c.plan.OneFile {
		need = c.plan.Inputs.BytesWithin(c.plan.Lower, c.plan.Upper)
	}
	limit := c.t.o.OutputLimit()
	if !c.inOrder {
		// It can leave a few files consumed in part, and others did so elsewhere.
		limit -= c.v.CompactionSpace()
	}
	if need > limit {
		return fmt.Errorf("output of up to %d bytes, the disk has %d for it: %w", need, max(0, limit), syscall.ENOSPC)
	}
	return nil
}

// copyEntries copies some entries from the inputs to the output.
func (c *compaction) copyEntries() (bool, error) {
	limit := c.out.size() + stepBytes
	for range stepEntries {
		if !c.it.Valid() {
			c.phase = c.finish
			return false, c.it.Err()
		}
		key := c.it.Key()
		user := codec.UserKey(key)
		if c.out.full(user) {
			if c.plan.OneFile && bytes.Compare(user, c.plan.EndAfter) > 0 {
				c.plan.Upper = append([]byte(nil), user...)
				c.phase = c.finish
			}
			// Half of a flush is waiting for syncs. An ordered load of 4,000,000 entities is 14 % faster
			// if files are synced aside when writers will soon wait. Otherwise the job had better leave
			// the CPU to them: one of 1,000,000 is 7 % faster than if each file were synced aside
			// (bench/peers, load/order=sorted).
			return false, c.out.endFile(c.t.o.Behind())
		}
		if err := c.entry(key, user); err != nil {
			return false, err
		}
		c.it.Next()
		if c.out.size() >= limit {
			break
		}
	}
	return false, nil
}

func (c *compaction) entry(key, user []byte) error {
	d := c.visibility.Decide(key)
	c.decided[d].Add(key)
	if d != visibility.Keep && d != visibility.KeepZeroSeq {
		return nil
	}
	row := c.it.Row()
	if d == visibility.KeepZeroSeq {
		_, _, kind := codec.SplitTrailer(key)
		c.keyBuf = codec.AppendTrailer(append(c.keyBuf[:0], user...), 0, kind)
		key, user = c.keyBuf, c.keyBuf[:len(user)]
	}
	hidden := bytes.Equal(user, c.out.last) // for a snapshot
	err := c.out.add(key, user, row)
	if keyrange.Sampled(c.decided[d].Entries) {
		c.out.probes++
		if !hidden && !c.visibility.Older(user) {
			c.out.newKeys++
		}
	}
	return err
}

// finish finishes the last file and compares the entries of the output, and the
// dropped ones, with the entries of the inputs.
func (c *compaction) finish() (bool, error) {
	if err := c.out.finish(); err != nil {
		return false, err
	}
	var errs []error
	for _, s := range c.sources {
		errs = append(errs, s.Close())
	}
	c.sources = nil
	if err := errors.Join(errs...); err != nil {
		return false, fmt.Errorf("close inputs: %w", err)
	}
	if err := c.decided.Check(c.in, c.out.entries); err != nil {
		return false, err
	}
	c.phase = c.install
	return false, nil
}

// install installs the output in place of the inputs.
func (c *compaction) install() (bool, error) {
	e := versionEdit{manifest: c.edit}
	e.remove = append(e.remove, c.plan.Remove...)
	e.add = append(e.add, c.plan.Add...)
	for _, s := range c.consumed {
		if !s.Overlaps(c.plan.Lower, c.plan.Upper) {
			continue // the compaction ended before it
		}
		rest, err := s.Without(c.plan.Lower, c.plan.Upper, c.tombstones[s])
		if err != nil {
			return false, err
		}
		c.inputBytes += s.Bytes
		for _, r := range rest {
			c.inputBytes -= r.Bytes
		}
		e.remove = append(e.remove, s)
		e.add = append(e.add, rest...)
	}
	e.add = append(e.add, c.out.done...)
	if len(c.out.done) > 0 {
		if err := c.t.o.FS.SyncDir(c.t.o.Dir); err != nil {
			return false, fmt.Errorf("sync directory: %w", err)
		}
	}
	files := len(c.out.done)
	if err := c.out.install(e); err != nil {
		return false, fmt.Errorf("install: %w", err)
	}
	c.count(files)
	return true, nil
}
