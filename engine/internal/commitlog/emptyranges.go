package commitlog

import "github.com/tablerock-db/tablerock/codec"

// FoundEmpty is told that [lower, upper), which it does not keep, has no entity at the registered
// sequence number seq. If nothing has been applied since, Register gives the range to readers until
// a put or an install ends it.
func (l *Log) FoundEmpty(lower, upper []byte, seq uint64) {
	l.applyMu.Lock()
	defer l.applyMu.Unlock()
	if l.applied == seq {
		l.empty = l.empty.With(lower, upper, seq)
	}
}

// fillLocked takes the keys that c puts out of the empty ranges. Call it before c is published.
// +checklocks:l.applyMu
func (l *Log) fillLocked(c *Commit) {
	for i := range c.entries {
		if e := &c.entries[i]; e.shape != nil {
			l.empty = l.empty.Without(codec.EntryKey(c.buf[e.start:]))
		}
	}
}
