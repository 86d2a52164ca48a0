// Package space keeps a reserve of disk space, so that a database on a full disk can
// still write its manifest, log deletes and compact.
//
// The reserve is a set of preallocated files in the directory of the database. To use
// some of it is to remove one of the files, whose space the next write allocates. Nothing
// is ever stored in them, so they need no sync and a crash loses nothing with them.
//
// The uses of the reserve end at different levels, so that no use takes what a more
// important one needs:
//
//	deletes of entities  leave five eighths
//	one more such delete leaves a quarter, each time that everything is reclaimed
//	sstables             leave an eighth
//	drops of tables      leave a sixteenth, at most 512 KiB
//	manifests            may use all of it
//
// Gate admits other writes, as long as the disk has space for their flush and a compaction.
//
// Free space counts for the levels as the files do, because what is left of a removed file
// is free. Writes of the log may remove every file: their records were admitted before.
package space
