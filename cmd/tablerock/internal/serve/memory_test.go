package serve

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math"
	"net/http"
	"runtime/debug"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/pgbackend"
)

// TestMemory checks what a limit of memory leaves for the heap, and when it is called too small.
func TestMemory(t *testing.T) {
	const mib = 1 << 20
	one, hundred := make([]account, 1), make([]account, 100)
	small := Config{CacheBytes: 16 * mib, SegmentBytes: 4 * mib}
	usual := Config{CacheBytes: defaultCacheBytes, SegmentBytes: defaultSegmentBytes}
	inMemory := usual
	inMemory.InMemory = true
	for _, c := range []struct {
		name     string
		config   Config
		limit    int64
		accounts []account
		heap     int64
		requests int64
		warning  string
	}{
		{"no limit", usual, 0, one, 0, 0, ""},
		{"just enough", usual, 380 * mib, one, 129 * mib, 64 * mib, ""},
		{"too small", usual, 376 * mib, one, 126 * mib, 63 * mib, "limit=376MiB needed=380MiB"},
		{"at least a quarter", usual, 256 * mib, one, 64 * mib, 32 * mib, "limit=256MiB needed=380MiB"},
		{"least", usual, 16 * mib, one, 4 * mib, 8 * mib, "limit=16MiB needed=380MiB"},
		{"lower sizes", small, 256 * mib, one, 105 * mib, 55050240, "limit=256MiB needed=288MiB"},
		{"many accounts", usual, 8 << 30, hundred, 2 << 30, 64 * mib, "limit=8GiB needed=8300MiB"},
		{"without logs", usual, 512 * mib, []account{{backend: new(pgbackend.URL)}}, 288 * mib, 64 * mib, ""},
		{"databases in memory", inMemory, 256 * mib, one, 0, 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.limit > 0 {
				c.config.system = limited(c.limit)
			} else {
				c.config.system = fstest.MapFS{}
			}
			m := c.config.memoryOf(c.accounts)
			if got := m.heap(); got != c.heap {
				t.Errorf("the heap has %d bytes, want %d", got, c.heap)
			}
			if got := m.requests(); got != c.requests {
				t.Errorf("requests have %d bytes, want %d", got, c.requests)
			}
			var log bytes.Buffer
			m.warn(slog.New(slog.NewTextHandler(&log, nil)))
			if got := log.String(); (got != "") != (c.warning != "") || !strings.Contains(got, c.warning) {
				t.Errorf("the log has %q, want %q", got, c.warning)
			}
		})
	}
}

// limited returns the files of a system with a limit of memory.
func limited(bytes int64) fs.FS {
	return fstest.MapFS{
		"proc/self/cgroup":         {Data: []byte("0::/\n")},
		"sys/fs/cgroup/memory.max": {Data: fmt.Appendln(nil, bytes)},
	}
}

// TestLimitedServer checks that a server keeps to a limit of 64 MiB: that of the heap, and that of
// bodies, by two that are never complete.
func TestLimitedServer(t *testing.T) {
	t.Setenv("GOGC", "")
	t.Setenv("GOMEMLIMIT", "")
	r := startIn(t, limited(64<<20))
	if got, want := debug.SetMemoryLimit(-1), int64(16<<20+gcReserveBytes); got != want {
		t.Errorf("the limit of the heap is %d, want %d", got, want)
	}
	if log := r.stderr.String(); !strings.Contains(log, "limit=64MiB needed=380MiB") {
		t.Errorf("no warning in the log: %s", log)
	}
	ended := make(chan int, 2)
	for range 2 {
		body, w := io.Pipe()
		defer w.CloseWithError(io.ErrUnexpectedEOF)
		q, err := http.NewRequest(http.MethodPost, r.url+"/Tables", body)
		if err != nil {
			t.Fatal(err)
		}
		q.ContentLength = 4 << 20
		q.Header.Set("Content-Type", "application/json")
		if err := r.credential.SignRequest(q, time.Now()); err != nil {
			t.Fatal(err)
		}
		go func() {
			resp, err := r.client.Do(q)
			if err != nil {
				ended <- 0
				return
			}
			ended <- resp.StatusCode
			resp.Body.Close()
		}()
		go w.Write(make([]byte, q.ContentLength-1))
	}
	for {
		if status, _ := r.send(t, http.MethodPost, r.url+"/Tables", `{"TableName":"Orders"}`); status == http.StatusServiceUnavailable {
			return
		}
		select {
		case status := <-ended: // the third body came before the end of this one
			if status != http.StatusServiceUnavailable {
				t.Fatalf("two bodies of 4 MiB leave room for a third one; one of them has status %d", status)
			}
			return
		default:
		}
	}
}

// TestHeapLimit checks that the collector gets the limit, which then counts the reserve, unless the
// environment has settings.
func TestHeapLimit(t *testing.T) {
	for _, c := range []struct {
		name, gogc, limit string
		heap, want        int64
	}{
		{"limit", "", "", 100 << 20, 132 << 20},
		{"no limit", "", "", 0, math.MaxInt64},
		{"GOGC", "100", "", 100 << 20, math.MaxInt64},
		{"GOMEMLIMIT", "", "1GiB", 100 << 20, math.MaxInt64},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("GOGC", c.gogc)
			t.Setenv("GOMEMLIMIT", c.limit) // the runtime has read it before
			before := debug.SetMemoryLimit(math.MaxInt64)
			defer debug.SetMemoryLimit(before)
			restore := tuneCollector(c.heap)
			during := debug.SetMemoryLimit(-1)
			restore()
			if during != c.want {
				t.Errorf("the limit is %d, want %d", during, c.want)
			}
			if after := debug.SetMemoryLimit(-1); after != math.MaxInt64 {
				t.Errorf("the limit is %d after restore", after)
			}
		})
	}
}
