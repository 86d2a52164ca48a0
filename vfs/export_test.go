package vfs

import "github.com/tablerock-db/tablerock/vfs/internal/crash"

// CrashChoice is a crash with everything decided that Crash draws.
type CrashChoice struct {
	CrashOptions
	Fill crash.Fill
	Keep int // in mode prefix, how many sectors, sizes and names are kept
}

// CrashChoice returns the disk of one choice.
func (m *Mem) CrashChoice(c CrashChoice) *Mem { return m.crash(c.CrashOptions, c.Fill, c.Keep) }

// Pending returns how many sectors, sizes and names are not durable.
func (m *Mem) Pending() int { return newPlanLocked(m.Clone(), lyingFile{}).Pending() }

// Ops returns the number of operations so far that can change something.
func (m *Mem) Ops() uint64 { return m.ops.Load() }
