// Package lsm keeps the sorted files of a database: which are live, how
// memtables become files, and how files are merged.
//
// A run is a list of files whose keys do not overlap. Runs are ordered by age:
// for any key, every version in a run is newer than every version of that key
// in the runs below it. Flushes put runs on top, in tier 0. When a tier holds
// Options.TierRuns runs they are merged into one run of the next tier. Below all
// tiers lies the bottom, one run over all keys. A range of keys is merged down
// to the bottom when what may be hidden there weighs as much as all else, so
// that the files take at most about twice the space of the live rows. All that
// lies above the bottom may hide something, but for what is known to be new: of
// each file that is written, the filters of older runs are asked for some of its
// keys. Loads of new keys are merged within the tiers only, where the number of
// runs wants it.
//
// Merges work range by range: one Job makes a file or a few, installs them, and
// the inputs shrink by that range at the same moment. A file that is half merged
// away stays listed with narrower bounds, perhaps more than once, and leaves
// the disk when nothing of it is listed. So no merge holds space for long, none
// loses more than one file's work when it is cut short, and a flush or a more
// urgent merge never waits for a large one.
//
// # What may be dropped
//
// A version is dropped when a newer version of its key hides it from every
// reader: from those that read the present, and from those of each registered
// snapshot. A tombstone is dropped when nothing older can lie below it and no
// snapshot is older than it. At the bottom, the version that the oldest snapshot
// reads has nothing below it, and its sequence becomes 0: every reader sees it,
// and every other version of its key is newer, whatever its sequence. Rows of a
// dropped table go once no snapshot is older than the drop.
//
// # Crashes and errors
//
// A job's files are synced, then their directory, then the manifest that lists
// them replaces the old one; only then do readers get the version that has them.
// A file is removed when a durable manifest no longer lists it and no pinned
// version holds it. A job that fails removes its files and changes nothing. If
// it is unknown whether a new manifest will survive a crash, the Tree keeps
// serving reads, refuses every further change, and removes nothing that either
// manifest lists.
package lsm
