package workload

import (
	"time"

	"github.com/tablerock-db/tablerock/edm"
)

// Clock is a clock that its owner moves. It makes no callbacks, because a database opened
// with Manual needs none. Do not move it while it is in use.
type Clock struct{ at edm.Ticks }

// NewClock returns a clock with a time in 2024.
func NewClock() *Clock { return &Clock{at: 133_514_496_000_000_000} }

// Now implements engine.Clock.
func (c *Clock) Now() time.Time { return c.at.Time() }

// AfterFunc implements engine.Clock.
func (c *Clock) AfterFunc(time.Duration, func()) func() bool { return func() bool { return true } }

// Move moves the clock, back if d is negative, and not past its range.
func (c *Clock) Move(d edm.Ticks) {
	const least, most = 1, edm.MaxTicks / 2
	c.at = min(max(c.at+d, least), most)
}
