package plant

import (
	"github.com/tablerock-db/tablerock/cmd/torture/internal/workload"
	"github.com/tablerock-db/tablerock/internal/filename"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
)

// Bug is a planted bug. A nil Wrap or Store has no bug.
type Bug struct {
	Name  string
	What  string
	Wrap  func(*vfs.Mem) vfs.FS
	Store func(store.Store) store.Store
	// First is the profile of the first workload. The others follow in order.
	First workload.Profile
}

// Bugs returns all planted bugs. A power failure must reveal each.
func Bugs() []Bug {
	on := func(name, what string, t traits) Bug {
		return Bug{Name: name, What: what, Wrap: func(m *vfs.Mem) vfs.FS { return &badFS{FS: m, t: t} }}
	}
	return []Bug{
		on("wal-sync", "acknowledge before the log is synced", traits{sync: ext(filename.WAL)}),
		on("wal-sync-sometimes", "every third sync of a log fails without an error", traits{sync: every(3, ext(filename.WAL))}),
		on("wal-header-sync", "the header of a log is not synced before its records", traits{sync: first(ext(filename.WAL))}),
		on("manifest-sync", "the manifest is not synced before its rename", traits{sync: base(filename.ManifestTemp)}),
		on("manifest-late-sync", "the manifest is renamed before it is synced", traits{lateSync: base(filename.ManifestTemp)}),
		on("sstable-sync", "sstables are not synced", traits{sync: ext(filename.SSTable)}),
		on("dir-sync", "directories are not synced", traits{syncDir: always}),
		on("dir-sync-wal", "the directory is not synced after a log is created", traits{syncDirAfter: ext(filename.WAL)}),
		on("dir-sync-sstable", "the directory is not synced after an sstable is created", traits{syncDirAfter: ext(filename.SSTable)}),
		on("dir-sync-manifest", "the directory is not synced after the manifest's rename", traits{syncDirAfter: base(filename.Manifest)}),
		on("rename-remove", "a rename removes its target first", traits{removeFirst: true}),
		on("remove-early", "files are removed before the manifest that drops them is durable", traits{removeEarly: true}),
		on("short-write", "every fourth write to a log is short without an error", traits{short: every(4, ext(filename.WAL))}),
		on("short-write-sstable", "the last sector of a write to an sstable is missing", traits{short: ext(filename.SSTable)}),
		on("misdirected-write", "every fifth write to a log is eight bytes too far", traits{misplace: every(5, ext(filename.WAL))}),
		on("lost-write", "every fifth write to a log is dropped", traits{drop: every(5, ext(filename.WAL))}),
		on("stale-read", "reads of a log return zeros after its first sector of records", traits{blind: ext(filename.WAL)}),
		on("repair-sync", "what recovery rewrites is not synced", traits{syncReopened: ext(filename.WAL)}),
		on("link-copy", "the links of a checkpoint are copies without a sync", traits{copyLinks: true}),
		{Name: "split-batch", What: "a batch is two records", First: workload.Batches, Store: func(s store.Store) store.Store { return splitter{s} }},
	}
}
