package commitlog

import (
	"errors"
	"fmt"

	"github.com/tablerock-db/tablerock/edm"
)

// reserveAhead is how many time stamps NoSync mode reserves at a time, 10 s of
// them. After a crash the clock of the log can run ahead by as much.
const reserveAhead edm.Ticks = 10 * 10_000_000

// unreserved is the time stamp that a commit cannot have yet.
type unreserved edm.Ticks

func (u unreserved) Error() string { return fmt.Sprintf("time stamp %d is not reserved", edm.Ticks(u)) }

// appendReserved goes on behind an append that failed with err: if it lacked time
// stamps, it gets some and is done again.
func (l *Log) appendReserved(c *Commit, err error) error {
	var short unreserved
	for errors.As(err, &short) {
		if err = l.reserve(edm.Ticks(short)); err == nil {
			err = l.append(c)
		}
	}
	return err
}

// reserve raises what NoSync mode may give out to stamp and more.
func (l *Log) reserve(stamp edm.Ticks) error {
	l.reserving.Lock()
	defer l.reserving.Unlock()
	l.mu.Lock()
	enough := stamp <= l.reserved
	l.mu.Unlock()
	if enough {
		return nil
	}
	upto := min(stamp+reserveAhead, edm.MaxTicks)
	if l.o.Reserve != nil {
		if err := l.o.Reserve(upto); err != nil {
			return fmt.Errorf("reserve time stamps: %w", err)
		}
	}
	l.mu.Lock()
	l.reserved = upto
	l.mu.Unlock()
	return nil
}
