package disk

import (
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
)

// fileID names a file whatever path leads to it.
type fileID struct{ dev, ino uint64 }

// held lists the lock files that this process holds. The system's locks belong
// to a process on some file systems, where a second lock of the same process
// would be granted and its release would release both.
var held = struct {
	mu sync.Mutex
	// +checklocks:mu
	ids map[fileID]struct{}
}{ids: map[fileID]struct{}{}}

// TakeLock takes the lock file, making it if it is missing. A lock that is
// taken is no error: then the result is nil, and holder says who has it.
func TakeLock(name string) (lock *Lock, holder string, err error) {
	held.mu.Lock()
	defer held.mu.Unlock()

	// The check comes before the open: where locks belong to a process,
	// closing any descriptor of the file releases them.
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

// LockHolder reports whether somebody holds the lock file, and who. To see that
// nobody does it shares the lock for a moment, in which TakeLock fails.
func LockHolder(name string) (holder string, locked bool, err error) {
	held.mu.Lock()
	defer held.mu.Unlock()
	info, err := os.Lstat(name)
	if errors.Is(err, os.ErrNotExist) {
		return "", false, nil
	}
	// As in TakeLock, the check comes before the open.
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

// Lock is a lock that this process holds.
type Lock struct {
	f  *File
	id fileID
	// names is how many names the file has.
	names uint64
}

// take locks the file or reports that it is busy.
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

// writeHolder leaves a word for whoever finds the lock taken. The lock holds
// without it, and on a full disk a database must open to make room, so
// failing to write is no error. Overwriting first needs no new block. A file
// with another name may be somebody's data, and is left as it is.
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

// readHolder returns what the lock file says, made safe to print: the file may
// hold anything.
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
