package kill

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/store"
)

// Cycles starts and kills child processes of this program, one after another, on one
// database.
type Cycles struct {
	Program string // this program, whose command is run as a child
	Command string
	Dir     string // an empty directory
	Longest time.Duration

	rng  *rand.Rand
	next [writers]int // the first missing batch
	// Killed and Batches are the numbers of kills and of stored batches.
	Killed, Batches int
}

// New returns cycles whose delays depend on seed.
func New(program, command, dir string, seed uint64) *Cycles {
	return &Cycles{Program: program, Command: command, Dir: dir, Longest: 60 * time.Millisecond, rng: rand.New(rand.NewPCG(seed, 0x6b696c6c))}
}

func (c *Cycles) data() string { return filepath.Join(c.Dir, "data") }
func (c *Cycles) acks() string { return filepath.Join(c.Dir, "acks") }

// Run does one cycle: it starts a child, kills it after a random time, and opens and checks
// the database.
func (c *Cycles) Run(ctx context.Context) error {
	after := time.Duration(c.rng.Int64N(int64(c.Longest)))
	err := c.child(ctx, 1<<30, after)
	if err != nil {
		return err
	}
	c.Killed++
	return c.check(ctx)
}

// Finish runs a last child to its end and checks the database.
func (c *Cycles) Finish(ctx context.Context) error {
	until := 0
	for _, n := range c.next {
		until = max(until, n+20)
	}
	if err := c.child(ctx, until, 0); err != nil {
		return err
	}
	if err := c.check(ctx); err != nil {
		return err
	}
	for w, n := range c.next {
		if n != until {
			return fmt.Errorf("writer %d has %d batches at the end, want %d", w, n, until)
		}
	}
	return nil
}

// child runs a child and kills it at a time after it has begun, unless that is 0.
func (c *Cycles) child(ctx context.Context, until int, after time.Duration) error {
	args := []string{c.Command, c.data(), c.acks(), strconv.Itoa(until)}
	for _, n := range c.next {
		args = append(args, strconv.Itoa(n))
	}
	cmd := exec.CommandContext(ctx, c.Program, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	// On a busy machine, the start of a process can take longer than all of the times.
	_, _ = out.Read(make([]byte, 1)) // the child has begun, or has ended
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	if after > 0 {
		timer := time.NewTimer(after)
		defer timer.Stop()
		select {
		case <-timer.C:
			if err := cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
				return err
			}
			<-ended
			return nil
		case err := <-ended:
			return fmt.Errorf("the child ended by itself: %w: %s", err, stderr.String())
		}
	}
	if err := <-ended; err != nil {
		return fmt.Errorf("the child failed: %w: %s", err, stderr.String())
	}
	return nil
}

// acknowledged returns the number of acknowledged batches of each writer. It ignores an
// incomplete last line.
func (c *Cycles) acknowledged() (upto [writers]int, err error) {
	f, err := os.Open(c.acks())
	if errors.Is(err, os.ErrNotExist) {
		return upto, nil
	}
	if err != nil {
		return upto, err
	}
	defer f.Close()
	lines := bufio.NewReader(f)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return upto, nil
		}
		var w, b int
		if _, err := fmt.Sscanf(line, "%d %d\n", &w, &b); err != nil || w < 0 || w >= writers {
			return upto, fmt.Errorf("acknowledgement %q: %w", line, err)
		}
		upto[w] = max(upto[w], b+1)
	}
}

// check opens the database and compares it with the acknowledgements.
func (c *Cycles) check(ctx context.Context) error {
	acked, err := c.acknowledged()
	if err != nil {
		return err
	}
	db, err := engine.Open(c.data(), options())
	if err != nil {
		return fmt.Errorf("open after a kill: %w", err)
	}
	err = c.compare(ctx, db, acked)
	if err == nil && c.Killed%10 == 0 {
		var report engine.Report
		if report, err = db.Verify(ctx); err == nil && len(report.Findings) > 0 {
			err = fmt.Errorf("verify found %v", report.Findings)
		}
	}
	return errors.Join(err, db.Close())
}

// compare reads all rows. The batches of each writer must be complete and unchanged, without
// a gap, and include all acknowledged ones.
func (c *Cycles) compare(ctx context.Context, db *engine.DB, acked [writers]int) error {
	found := [writers]int{}
	w, b, i := 0, 0, 0 // the next entity
	for e, err := range store.Entities(db.Query(ctx, tableName, store.Query{})) {
		if errors.Is(err, store.ErrTableNotFound) && acked == ([writers]int{}) {
			break
		}
		if err != nil {
			return fmt.Errorf("query: %w", err)
		}
		for w < writers && e.Key != key(w, b, i) {
			if i > 0 {
				return fmt.Errorf("batch %d of writer %d has %d entities, want %d", b, w, i, batchLen(w, b))
			}
			found[w] = b
			w, b, i = w+1, 0, 0
		}
		if w == writers {
			return fmt.Errorf("entity %q is out of place", e.Key)
		}
		if want := entity(w, b, i); !sameProperties(e.Properties, want.Properties) {
			return fmt.Errorf("entity %q is %v, want %v", e.Key, e.Properties, want.Properties)
		}
		if i++; i == batchLen(w, b) {
			b, i = b+1, 0
		}
	}
	if i > 0 {
		return fmt.Errorf("batch %d of writer %d has %d entities, want %d", b, w, i, batchLen(w, b))
	}
	if w < writers {
		found[w] = b
	}
	c.Batches = 0
	for w, n := range found {
		if n < acked[w] {
			return fmt.Errorf("writer %d has %d batches, %d were acknowledged", w, n, acked[w])
		}
		c.Batches += n
	}
	c.next = found
	return nil
}

func sameProperties(a, b edm.Properties) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].Name != b[i].Name || !a[i].Value.Equal(b[i].Value) {
			return false
		}
	}
	return true
}
