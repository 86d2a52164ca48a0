package disk

import (
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
)

// fileID identifies a file independently of its path.
type fileID struct{ dev, ino uint64 }

// held holds the lock files that this process has locked. On some file systems, locks
// belong to a process: a second lock of the same process succeeds, and its release
// releases both.
var held = struct {
	mu sync.Mutex
	// +checklocks:mu
	ids map[fileID]struct{}
}{ids: map[fileID]struct{}{}}

// TakeLock locks a file, which it creates if it does not exist. If the file is locked
// already, the result is nil without an error, and holder describes the holder.
func TakeLock(name string) (lock *Lock, holder string, err error) {
	held.mu.Lock()
	defer held.mu.Unlock()

	// Check before the open: if locks belong to a process, closing any
	// descriptor of the file releases them.
	if info, err := os.Lstat(name); err == nil && info.Mode().IsRegular() {
		id, err := identify(name)
		if err != nil {
			return nil, "", err
		}
		if _, ok := held.ids[id]; ok {
			return nil, self() + ", this process", nil
		}
	}
	f, err := Open(name, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, "", err
	}
	l := &Lock{f: f}
	busy, err := l.take()
	if busy {
		holder = readHolder(f)
	}
	if busy || err != nil {
		return nil, holder, errors.Join(err, f.Close())
	}
	held.ids[l.id] = struct{}{}
	l.writeHolder()
	return l, "", nil
}

// LockHolder reports whether a lock file is locked, and its holder. To find out, it takes
// a shared lock for a short time, in which TakeLock fails.
func LockHolder(name string) (holder string, locked bool, err error) {
	held.mu.Lock()
	defer held.mu.Unlock()
	info, err := os.Lstat(name)
	if errors.Is(err, os.ErrNotExist) {
		return "", false, nil
	}
	// Check before the open, as in TakeLock.
	if err == nil && info.Mode().IsRegular() {
		var id fileID
		if id, err = identify(name); err == nil {
			if _, ok := held.ids[id]; ok {
				return self() + ", this process", true, nil
			}
		}
	}
	if err != nil {
		return "", false, err
	}
	f, err := Open(name, os.O_RDONLY)
	if err != nil {
		return "", false, err
	}
	err = f.control("lock", func(fd uintptr) (err error) {
		locked, err = tryShare(fd)
		return err
	})
	if locked {
		holder = readHolder(f)
	}
	return holder, locked, errors.Join(err, f.Close())
}

// Lock is a held lock.
type Lock struct {
	f     *File
	id    fileID
	names uint64 // number of links of the file
}

// take locks the file, or reports that it is locked already.
func (l *Lock) take() (busy bool, err error) {
	err = l.f.control("lock", func(fd uintptr) (err error) {
		if busy, err = tryLock(fd); err != nil || busy {
			return err
		}
		l.id, l.names, err = identifyFD(fd)
		return err
	})
	return busy, err
}

// writeHolder describes this process in the lock file. The lock works without it, and a
// database must open on a full disk to free space, so a failed write is not an error.
// It overwrites before it truncates, which needs no new block. It does not write to a
// file with another name, which may be other data.
func (l *Lock) writeHolder() {
	if l.names != 1 {
		return
	}
	text := self() + "\n"
	if _, err := l.f.WriteAt([]byte(text), 0); err == nil {
		_ = l.f.Truncate(int64(len(text)))
	}
}

// Close releases the lock with the descriptor that holds it.
func (l *Lock) Close() error {
	held.mu.Lock()
	defer held.mu.Unlock()
	if l.f.closed.Load() {
		return nil
	}
	delete(held.ids, l.id)
	return l.f.Close()
}

func self() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return "pid " + strconv.Itoa(os.Getpid()) + " on host " + host
}

// readHolder returns the description in a lock file. It quotes unprintable text, because
// the file can hold anything.
func readHolder(f io.ReaderAt) string {
	b := make([]byte, 128)
	n, err := f.ReadAt(b, 0)
	if err != nil && err != io.EOF {
		return "another process"
	}
	text, _, _ := strings.Cut(string(b[:n]), "\n")
	if text == "" {
		return "another process"
	}
	if quoted := strconv.Quote(text); quoted != `"`+text+`"` {
		return quoted
	}
	return text
}
