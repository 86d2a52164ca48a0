// Package lsm maintains the sstables of a database: which are live, how memtables become sstables,
// and how sstables are compacted.
//
// # Runs, tiers and the bottom
//
// A run is a list of files whose keys do not overlap. Runs are ordered by age: for any key, every
// version in a run is newer than every version of that key in the runs below it.
//
//	keys     a ------------------------------------------------- z
//	tier 0   [--][----]    [---]                 a flush adds a run on top
//	         [-----]  [-------]    [-------]
//	              ...                            up to TierRuns runs
//	tier 1   [-------][------------][----------] a run replaces a full tier 0
//	              ...
//	bottom   [------][------][------][------]    one run over all keys
//
// A tier is a set of runs of similar size. When tier n contains Options.TierRuns runs, they are
// compacted into one run of tier n+1. The bottom is the single run below all tiers. Its files
// partition the keys into ranges, and a compaction into the bottom replaces all files of some
// ranges, from all tiers.
//
// # Picking a compaction
//
// Package internal/pick chooses the compactions, by rules that its comment lists. They bound space
// amplification: the files take at most about twice the space of the live rows. They bound read
// amplification: a key is in at most 20 runs, or 32 beside a full compaction.
//
// # Incremental compaction
//
// A compaction proceeds range by range. One Job writes one or a few files and installs them, and
// the same install removes their range from the inputs. An input that was consumed in part stays
// listed as one or more virtual sstables, with narrower bounds. Its file is removed when no version
// lists any range of it. So a compaction loses at most the work of a few files if it is aborted,
// and never delays a flush or a more urgent compaction for long.
//
// A flush whose keys overlap older runs, and a compaction of a tier, write files of about a tenth
// of their run, at least 256 KiB and at most Options.FileBytes. The inputs of a tier are then
// removed one after the other during its compaction, and their consumed ranges take about a tenth
// of the space. Statistics count the rest of a consumed file by the index of its groups.
//
// A reclaim of the space of deleted rows compacts all runs at once, because that frees space early:
// it needs space for a file of each run, less what it drops. Where that ends the space, the reclaim
// compacts the oldest runs first, as many at a time as there is space for, and writes their rows
// more than once.
//
// # Loaded files
//
// A Load writes rows that are in no log, and Install adds its files as the newest run. Only the
// install knows their sequence number and their Timestamp, which are the same for all rows: the
// manifest records them, and readers take them from there. A compaction writes them into its
// output. So an install is a write of many rows at one moment. Every older write must be in files
// by then, because the runs are ordered by age.
//
// # Dropped entries
//
// A compaction drops a version if a newer version of its key hides it from all readers: the readers
// of the present and the readers of each registered snapshot. It drops a tombstone if no run below
// the output contains the key and no snapshot is older than the tombstone. It drops the rows of a
// dropped table once no snapshot is older than the drop. At the bottom, the version that the oldest
// snapshot reads gets sequence number 0: it is visible to every reader, and every other version of
// its key is newer.
//
// # Crashes and errors
//
// A job syncs its files, then the directory, then the manifest that lists them and replaces the old
// one. Only then do readers get the new version. A file is removed when the durable manifest does
// not list it and no pinned version refers to it. A job that fails removes its files and changes
// nothing. If it is unknown whether a new manifest will survive a crash, the Tree still serves
// reads, refuses every further change, and keeps every file that either manifest lists.
package lsm
