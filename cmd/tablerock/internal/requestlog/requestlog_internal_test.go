package requestlog

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tablerock-db/tablerock/server"
	"github.com/tablerock-db/tablerock/store"
)

// TestOutage logs requests to stores that are unavailable: a failure of each account a minute, and
// how many were not logged in between.
func TestOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out, debug bytes.Buffer
		l := New(slog.New(slog.NewMultiHandler(
			slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelInfo}), slog.NewTextHandler(&debug, &slog.HandlerOptions{Level: slog.LevelDebug}))), false)
		refused := server.Event{Account: "a", Status: 503, Code: "ServerBusy", Err: fmt.Errorf("%w: connection refused", store.ErrUnavailable)}
		other := refused
		other.Account = "b"
		failed := refused
		failed.Status, failed.Err = 500, errors.New("disk gone")
		for range 2 {
			for range 100 {
				l.Observe(refused)
			}
			l.Observe(other)
			l.Observe(failed)
			time.Sleep(outageInterval)
		}
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		for i, want := range []string{
			`account=a .*connection refused"$`, `account=b .*connection refused"$`, `status=500 .*err="disk gone"$`,
			`account=a .*connection refused" refused_before=99$`, `account=b .*connection refused"$`, `status=500 .*err="disk gone"$`,
		} {
			if i >= len(lines) || !regexp.MustCompile("level=ERROR .*"+want).MatchString(lines[i]) {
				t.Errorf("line %d is not %s", i, want)
			}
		}
		if len(lines) != 6 || strings.Count(debug.String(), "\n") != 204 {
			t.Errorf("%d lines, and %d for debugging; want 6 and 204:\n%s", len(lines), strings.Count(debug.String(), "\n"), &out)
		}
	})
}
