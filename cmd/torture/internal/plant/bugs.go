package plant

import (
	"github.com/tablerock-db/tablerock/cmd/torture/internal/workload"
	"github.com/tablerock-db/tablerock/internal/filename"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
)

// Bug is a planted bug. What is nil is as it should be.
type Bug struct {
	Name  string
	What  string
	Wrap  func(*vfs.Mem) vfs.FS
	Store func(store.Store) store.Store
	// First is the profile of the first workload; the others follow.
	First workload.Profile
}

// Bugs returns all bugs that losing power must reveal.
func Bugs() []Bug {
	on := func(name, what string, t traits) Bug {
		return Bug{Name: name, What: what, Wrap: func(m *vfs.Mem) vfs.FS { return &badFS{FS: m, t: t} }}
	}
	return []Bug{
		on("wal-sync", "acknowledge before the log is synced", traits{sync: ext(filename.WAL)}),
		on("wal-sync-sometimes", "every third sync of a log fails and is taken for done", traits{sync: every(3, ext(filename.WAL))}),
		on("wal-header-sync", "the header of a log is not synced before its records", traits{sync: first(ext(filename.WAL))}),
		on("manifest-sync", "the manifest is not synced before its rename", traits{sync: base(filename.ManifestTemp)}),
		on("manifest-late-sync", "the manifest is renamed before it is synced", traits{lateSync: base(filename.ManifestTemp)}),
		on("sstable-sync", "sorted files are not synced", traits{sync: ext(filename.SSTable)}),
		on("dir-sync", "directories are not synced", traits{syncDir: always}),
		on("dir-sync-wal", "the directory is not synced after a log is made", traits{syncDirAfter: ext(filename.WAL)}),
		on("dir-sync-sstable", "the directory is not synced after a sorted file is made", traits{syncDirAfter: ext(filename.SSTable)}),
		on("dir-sync-manifest", "the directory is not synced after the manifest's rename", traits{syncDirAfter: base(filename.Manifest)}),
		on("rename-remove", "a rename removes its target first", traits{removeFirst: true}),
		on("remove-early", "files are removed before the manifest that drops them is durable", traits{removeEarly: true}),
		on("short-write", "every fourth write to a log is short and taken for whole", traits{short: every(4, ext(filename.WAL))}),
		on("short-write-sstable", "the last sector of a write to a sorted file is missing", traits{short: ext(filename.SSTable)}),
		on("misdirected-write", "every fifth write to a log lands eight bytes late", traits{misplace: every(5, ext(filename.WAL))}),
		on("lost-write", "every fifth write to a log is dropped", traits{drop: every(5, ext(filename.WAL))}),
		on("stale-read", "reads of a log see nothing behind its first sector of records", traits{blind: ext(filename.WAL)}),
		on("repair-sync", "what recovery writes again is not synced", traits{syncReopened: ext(filename.WAL)}),
		on("link-copy", "a checkpoint's links are copies that nothing syncs", traits{copyLinks: true}),
		{Name: "split-batch", What: "a batch is two records", First: workload.Batches, Store: func(s store.Store) store.Store { return splitter{s} }},
	}
}
