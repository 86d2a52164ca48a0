package postgres

import "time"

// systemClock is the clock of a Database without another one.
func systemClock() time.Time { return time.Now() }
