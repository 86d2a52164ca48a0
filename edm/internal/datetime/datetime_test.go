package datetime_test

import (
	"testing"
	"time"

	"github.com/tablerock-db/tablerock/edm/internal/datetime"
	"github.com/tablerock-db/tablerock/internal/race"
)

// TestDays compares the text of each day with package time, and parses it again.
func TestDays(t *testing.T) {
	race.SkipOneGoroutine(t)
	const day = 24 * 3600 * datetime.Second
	first, last := time.Date(1601, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)
	var text, want []byte
	ticks := int64(0)
	for at := first; !at.After(last); at = at.Add(24 * time.Hour) {
		text, want = datetime.Append(text[:0], uint64(ticks)), at.AppendFormat(want[:0], "2006-01-02T15:04:05Z")
		if string(text) != string(want) {
			t.Fatalf("day %d: %s, want %s", ticks/day, text, want)
		}
		if got, ok := datetime.Parse(string(text)); got != ticks || !ok {
			t.Fatalf("%s: %d ticks, %v; want %d", text, got, ok, ticks)
		}
		ticks += day
	}
}
