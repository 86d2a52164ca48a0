package crash

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path"

	"github.com/tablerock-db/tablerock/cmd/torture/internal/oracle"
	"github.com/tablerock-db/tablerock/cmd/torture/internal/workload"
	"github.com/tablerock-db/tablerock/internal/filename"
	"github.com/tablerock-db/tablerock/internal/manifest"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
	"github.com/tablerock-db/tablerock/wal"
)

// checkLying checks a disk on which the last syncs of one file did nothing. Data may be
// lost, but the engine must detect a loss if anything on the disk proves it, and must
// return a state that the database once had.
func (x *explorer) checkLying(ctx context.Context, f *crashDisk) error {
	x.counts.States.Add(1)
	before := f.disk.Clone()
	rng := rand.New(rand.NewPCG(f.choice.Seed, 1))
	db, err := x.open(f.disk, rng, false)
	if err != nil {
		x.counts.Detected.Add(1)
		return nil
	}
	defer db.Close()
	w := f.instant.Window()
	got, err := oracle.Scan(ctx, db)
	if errors.Is(err, store.ErrCorrupt) {
		x.counts.Detected.Add(1)
		return nil
	}
	if err != nil {
		return fmt.Errorf("scan: %w", err)
	}
	if w.Find(got.Sum) != nil {
		x.counts.Harmless.Add(1)
		return nil
	}
	if report, err := db.Verify(ctx); err != nil || len(report.Findings) > 0 {
		x.counts.Detected.Add(1)
		return nil
	}
	earlier := w.FindEarlier(got.Sum)
	if earlier == nil {
		state, err := oracle.Load(ctx, db)
		if err != nil {
			return fmt.Errorf("load: %w", err)
		}
		if w.FindWithoutDropped(state) == nil {
			return fmt.Errorf("with lost syncs of %s, the database returns a state that it never had: %s", f.choice.File, w.Low.State().Diff(state))
		}
	}
	if f.choice.File != "" {
		if proof := x.proof(before, f.choice.File); proof != "" {
			return fmt.Errorf("with lost syncs of %s, commits before %d are lost and not detected, although %s", f.choice.File, w.Low.Number, proof)
		}
	}
	x.counts.Undetectable.Add(1)
	return nil
}

// lyingFile picks the file whose syncs are lost.
func lyingFile(disk *vfs.Mem, rng *rand.Rand) string {
	names, err := disk.Clone().List(workload.Dir)
	if err != nil || len(names) == 0 {
		return ""
	}
	return path.Join(workload.Dir, names[rng.IntN(len(names))])
}

// proof returns the evidence on the disk that name was longer, or "".
func (x *explorer) proof(disk vfs.FS, name string) string {
	if path.Base(name) == filename.Manifest {
		return "" // stale sectors can be a complete earlier manifest
	}
	if kind, _ := filename.Parse(path.Base(name)); kind != filename.WAL {
		return "it is not a log"
	}
	m, err := manifest.Read(disk, workload.Dir)
	if err == nil {
		for _, l := range m.Logs {
			if path.Base(name) == filename.Make(filename.WAL, l.Number) && l.Sealed > 0 {
				return "the manifest states its end"
			}
		}
	}
	names, err := disk.List(workload.Dir)
	if err != nil {
		return err.Error()
	}
	for _, other := range names {
		if other > path.Base(name) && hasHeader(disk, path.Join(workload.Dir, other)) {
			return other + " follows it"
		}
	}
	return ""
}

// hasHeader reports whether a segment has a complete header, which proves that the segment
// before it was complete.
func hasHeader(disk vfs.FS, name string) bool {
	kind, number := filename.Parse(path.Base(name))
	if kind != filename.WAL {
		return false
	}
	_, err := wal.Inspect(disk, name, [16]byte{}, number)
	return err == nil
}
