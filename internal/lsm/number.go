package lsm

// NewNumber returns a number for a log segment that neither a file nor another
// segment had before.
func (t *Tree) NewNumber() uint64 { return t.newNumber() }

// SkipNumbers makes every number that is handed out from here on at least next.
func (t *Tree) SkipNumbers(next uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.m.NextFile = max(t.m.NextFile, next)
}
