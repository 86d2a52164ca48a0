package serve

import (
	"log/slog"
	"os"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/cgroup"
)

const (
	// programBytes are for the program, and for what does not grow with requests.
	programBytes = 80 << 20
	// requestBytes are enough for a heap that holds the most bodies, and the entries that writes
	// make of them.
	requestBytes = 172 << 20
	// logSegments is how many segments of a database's log are in memory.
	logSegments = 5
)

// memory divides what the system allows the process.
type memory struct {
	limit int64 // 0 for none
	other int64 // the most that is not in the heap of Go
}

// memoryOf returns the memory of a server of the accounts. With databases in memory it has no
// limit: they are in the heap, and grow with their entities.
func (c *Config) memoryOf(accounts []account) memory {
	if c.InMemory {
		return memory{}
	}
	system := c.system
	if system == nil {
		system = os.DirFS("/")
	}
	m := memory{limit: cgroup.MemoryLimit(system), other: programBytes + int64(c.CacheBytes)}
	for _, a := range accounts {
		if a.backend == nil {
			m.other += logSegments * int64(c.SegmentBytes)
		}
	}
	return m
}

// heap returns the limit of the heap, 0 for none: three quarters of what other leaves, because the
// heap passes its limit while the collector works. It is at least a quarter of the memory: most of many
// accounts are idle, and a collector without room would run all the time.
func (m memory) heap() int64 { return max((m.limit-m.other)/4*3, m.limit/4) }

// requests returns server.Options.RequestBytes. A write needs its body twice: the engine makes
// entries of the log from it.
func (m memory) requests() int64 {
	if m.limit == 0 {
		return 0
	}
	return min(max(m.heap()/2, 8<<20), 64<<20)
}

// warn logs a limit that is too small for other and requestBytes.
func (m memory) warn(log *slog.Logger) {
	least := Size(m.other + requestBytes)
	if limit := Size(m.limit); limit > 0 && limit < least {
		log.Warn("the limit of memory leaves little for requests: large ones at the same time can get 503; raise it, or lower --cache-size and --segment-size",
			"limit", &limit, "needed", &least)
	}
}
