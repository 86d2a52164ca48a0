package local

import (
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/tablerock-db/tablerock/internal/filename"
	"github.com/tablerock-db/tablerock/vfs"
)

// noteAfter is how long a request waits for an answer before a command says so: a server that is
// stopped accepts connections, and answers when it continues. The command goes on waiting.
const noteAfter = 3 * time.Second

// Note prints a line for the user of a command.
type Note func(format string, args ...any)

// waiting says that a command waits for a server, once in noteAfter for all of its connections.
type waiting struct {
	dir  string
	note Note

	mu sync.Mutex
	// +checklocks:mu
	last time.Time // of the note
}

func (w *waiting) say() {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	if now.Sub(w.last) < noteAfter {
		return
	}
	w.last = now
	of := ""
	if holder := holder(w.dir); holder != "" {
		of = " (" + holder + ")"
	}
	w.note("waiting for the server that has %s%s, which has not answered for %v", w.dir, of, noteAfter)
}

// holder returns the process that has a database in the data directory dir, "" if it is not known.
func holder(dir string) string {
	list, _ := os.ReadDir(dir) // the note names nobody then
	for _, d := range list {
		name, held, err := vfs.OS().Locked(filepath.ToSlash(filepath.Join(dir, d.Name(), filename.Lock)))
		if held && err == nil {
			return name
		}
	}
	return ""
}

// noted is a connection that notes that no byte has come for some time after the last write.
type noted struct {
	net.Conn
	of *waiting

	mu sync.Mutex
	// +checklocks:mu
	timer *time.Timer // nil while no answer is awaited
}

// Write sends a part of a request.
func (c *noted) Write(p []byte) (int, error) {
	c.mu.Lock()
	if c.timer == nil {
		c.timer = time.AfterFunc(noteAfter, c.of.say)
	} else {
		c.timer.Reset(noteAfter)
	}
	c.mu.Unlock()
	return c.Conn.Write(p)
}

// Read receives a part of an answer.
func (c *noted) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.stop()
	return n, err
}

// Close closes the connection.
func (c *noted) Close() error {
	c.stop()
	return c.Conn.Close()
}

func (c *noted) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.timer != nil {
		c.timer.Stop()
		c.timer = nil
	}
}
