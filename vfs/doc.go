// Package vfs defines the file system interface of the engine and implements it twice:
// for the operating system, and in memory with simulated power cuts. Package errorfs
// adds failures to either.
//
// Names are paths with forward slashes. Errors wrap those of the operating system, so
// errors.Is works with fs.ErrNotExist, fs.ErrExist and syscall.ENOSPC.
//
// # The operating system
//
// OS creates directories with mode 0700 and files with mode 0600. It opens regular
// files only: for a symbolic link, directory, FIFO, socket or device it returns
// ErrNotRegular and never blocks. It marks every descriptor close-on-exec. Linux is the
// reference system. On macOS, Sync flushes the cache of the drive. On Windows, SyncDir
// does nothing because directories cannot be flushed; there Tablerock does not promise
// that names survive a power cut.
//
// # Crash model
//
// A Mem made by NewCrashMem separates the state that processes see from the state on
// the disk. Each file has a durable image and an ordered list of writes and size
// changes since its last sync. Each directory has durable entries and an ordered list
// of changes since its last SyncDir. Crash returns one disk that a power cut could
// leave. The model is stricter than real file systems:
//
//   - A successful File.Sync makes the contents and size of the file durable, and
//     nothing else. The name of the file needs SyncDir of its directory, even for a new
//     file. The name of a directory needs SyncDir of its parent.
//   - A successful SyncDir makes all earlier changes of names in that directory durable.
//     It does not affect the contents of the files.
//   - Without a sync there is no promise: each change may have reached the disk or not,
//     independently of earlier changes.
//   - The unit of writing is a sector of 512 bytes. A sector is never torn: it holds
//     its contents as of the last sync or as of one of the later writes to it. Bytes of
//     a sector without a write since the last sync do not change.
//   - The size of a file is independent of its data. If the size grew over a sector
//     whose data is lost, the sector reads as zeros, as garbage, or as a sector of
//     another or a removed file. A lost sector within the durable size reads as of the
//     last sync. A range that was only preallocated reads as zeros.
//   - Create, Link, Remove, and Rename within one directory are atomic. Unsynced ones
//     are kept or lost independently: a later one can survive an earlier one, a removed
//     file can return, and a new name can be gone. A rename between directories is a
//     creation and a removal, which are kept or lost independently.
//
// The model does not contain drives that tear a sector or change its neighbours, damage
// at rest (use Mem.Patch), file systems that need a repair after a crash, times,
// permissions, and symbolic links. For a device that acknowledges a flush without doing
// it use the mode lying. For failed syncs use package errorfs.
package vfs
