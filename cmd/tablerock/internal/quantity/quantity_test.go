package quantity_test

import (
	"testing"
	"time"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/quantity"
)

func TestQuantity(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", -1234: "-1,234", 1234567: "1,234,567"} {
		if got := quantity.Count(n); got != want {
			t.Errorf("Count(%d) = %q, want %q", n, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0 bytes", 1023: "1023 bytes", 1536: "1.5 KiB", 3 << 30: "3.0 GiB"} {
		if got := quantity.Bytes(n); got != want {
			t.Errorf("Bytes(%d) = %q, want %q", n, got, want)
		}
	}
	if got := quantity.PerSecond(3000, 2*time.Second); got != "1,500" {
		t.Errorf("3000 in 2 s are %q a second, want 1,500", got)
	}
	for n, want := range map[int64]string{0: "0 entities", 1: "1 entity", 1000: "1,000 entities"} {
		if got := quantity.Plural(n, "entity"); got != want {
			t.Errorf("Plural(%d) = %q, want %q", n, got, want)
		}
	}
}
