package rollforward_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/store"
)

// event is one write of the model: all its entries or none are in a database.
type event struct {
	seq     uint64    // last sequence number
	to      edm.Ticks // last Timestamp
	what    string
	effects []effect
}

// effect sets a line of the contents, or without a line removes those with the prefix key.
type effect struct{ key, line string }

// contents returns the lines of the state after the events with Timestamps up to until, and
// the last sequence number.
func contents(events []event, until edm.Ticks) (lines []string, seq uint64) {
	state := map[string]string{}
	for _, e := range events {
		if e.to > until {
			break
		}
		seq = e.seq
		for _, f := range e.effects {
			if f.line != "" {
				state[f.key] = f.line
				continue
			}
			for key := range state {
				if strings.HasPrefix(key, f.key) {
					delete(state, key)
				}
			}
		}
	}
	for key, line := range state {
		lines = append(lines, key+" "+line)
	}
	slices.Sort(lines)
	return lines, seq
}

func tableKey(table string) string { return "table " + table + "\n" }
func metaKey(table string) string  { return "meta " + table + "\n" }
func rowsKey(table string) string  { return "row " + table + "\n" }
func rowKey(table string, k edm.Key) string {
	return rowsKey(table) + k.Partition + "\n" + k.Row + "\n"
}

func rowLine(e edm.Entity) string {
	return fmt.Sprint(e.Timestamp, e.Timestamp.ETag(), e.Properties.Get("N"), e.Properties.Get("S"))
}

// dump returns the lines of the contents of a database.
func dump(ctx context.Context, db *engine.DB) (lines []string, err error) {
	tables, err := db.Tables(ctx, "", 0)
	if err != nil {
		return nil, err
	}
	for _, info := range tables {
		lines = append(lines, tableKey(info.Name)+" "+fmt.Sprint(info.Created))
		meta, err := db.TableMeta(ctx, info.Name)
		if err != nil {
			return nil, err
		}
		if len(meta) > 0 {
			lines = append(lines, metaKey(info.Name)+" "+string(meta))
		}
		for e, err := range store.Entities(db.Query(ctx, info.Name, store.Query{})) {
			if err != nil {
				return nil, err
			}
			lines = append(lines, rowKey(info.Name, e.Key)+" "+rowLine(e))
		}
	}
	slices.Sort(lines)
	return lines, nil
}

// difference describes the first difference of two sorted lists.
func difference(got, want []string) string {
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got):
			return fmt.Sprintf("missing %q", want[i])
		case i >= len(want):
			return fmt.Sprintf("extra %q", got[i])
		case got[i] != want[i]:
			return fmt.Sprintf("got %q, want %q", got[i], want[i])
		}
	}
	return ""
}

// clock moves only when the drill moves it, so that Timestamps are known in advance.
type clock struct {
	mu  sync.Mutex
	now edm.Ticks
}

func (c *clock) Now() time.Time { return c.ticks().Time() }

func (c *clock) ticks() edm.Ticks {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) move(ticks int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now += edm.Ticks(ticks)
}

func (c *clock) AfterFunc(time.Duration, func()) (stop func() bool) {
	return func() bool { return true }
}
