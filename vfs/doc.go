// Package vfs is the only door to the disk: the operating system's file
// system, one in memory that can lose power, and one that fails on demand.
//
// Names are paths with forward slashes. An error wraps the operating system's,
// so errors.Is works with fs.ErrNotExist, fs.ErrExist and syscall.ENOSPC.
//
// # The operating system
//
// OS makes directories with mode 0700 and files with mode 0600, opens regular
// files only (a symbolic link, directory, FIFO, socket or device in a file's
// place is ErrNotRegular and never blocks), and marks every descriptor
// close-on-exec. Linux is the system of reference. On macOS Sync asks the
// drive itself to flush. On Windows SyncDir does nothing, since a directory
// cannot be flushed there: a name that a power cut takes back is beyond what
// Tablerock promises on it.
//
// # Crash model
//
// A Mem made by NewCrashMem separates what a running process sees from what
// the disk holds. Each file has a durable image and the ordered list of writes
// and size changes that no sync has covered; each directory has durable
// entries and the ordered list of changes that no SyncDir has covered. Crash
// returns one disk that power loss could leave. It is stricter than the file
// systems in use:
//
//   - File.Sync that returned nil makes the file's contents and size durable,
//     and nothing else: the file's name needs SyncDir of its directory, even
//     for a file that was just created, and a directory's own name needs
//     SyncDir of its parent.
//   - SyncDir that returned nil makes all earlier changes of names in that one
//     directory durable. It says nothing of what the files hold.
//   - Without a sync nothing is promised: each change may have reached the
//     disk or not, whatever became of the changes before it.
//   - The unit of writing is a sector of 512 bytes. A sector is never torn: it
//     is as it was at the last sync, or as it was after one of the later
//     writes to it. Bytes of a sector that no write touched since the last
//     sync never change.
//   - A file's size is independent of its data. Where the size grew over a
//     sector whose data is lost, the sector reads as zeros, as garbage, or as
//     a sector of another file or of one removed. Where the sector lay within
//     the durable size, it reads as it did at the last sync. A region that
//     only Preallocate added reads as zeros.
//   - Creating, linking, removing, and renaming within one directory are
//     atomic; unsynced ones are kept or lost one by one, so a later one can
//     survive an earlier one, a removed file can return, and a new name can
//     be gone. A rename between directories is a creation in the one and a
//     removal in the other, each kept or lost by itself.
//
// Not modelled: a drive that tears a sector or changes its neighbour, damage
// at rest (Mem.Patch does that), a file system that needs repair after the
// crash, times, permissions, and symbolic links. A device that acknowledges a
// flush and drops it is the mode CrashLying, and package errorfs fails syncs.
package vfs
