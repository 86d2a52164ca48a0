package tabletest

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tablerock-db/tablerock/server"
	"github.com/tablerock-db/tablerock/server/faults"
)

// maxLogged limits the lines of a log. The last ones are kept.
const maxLogged = 1000

// requestLog has the requests of a test. It has no keys of entities, no content and no
// credentials.
type requestLog struct {
	mu sync.Mutex
	// +checklocks:mu
	lines []func() string // the last maxLogged of n, as a ring
	// +checklocks:mu
	n int
}

func (l *requestLog) add(line func() string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.n < maxLogged {
		l.lines = append(l.lines, line)
	} else {
		l.lines[l.n%maxLogged] = line
	}
	l.n++
}

// request adds a request and its response.
func (l *requestLog) request(e server.Event) {
	l.add(func() string {
		line := fmt.Sprintf("%-6s %-15s %-10s %d %v", e.Method, e.Operation, e.Table, e.Status, e.Duration.Round(time.Microsecond))
		if e.Code != "" {
			line += " " + e.Code
		}
		if e.Examined > 0 || e.Returned > 0 {
			line += fmt.Sprintf(", %d examined, %d returned", e.Examined, e.Returned)
		}
		if e.Err != nil {
			line += fmt.Sprintf(": %q", e.Err.Error())
		}
		return line
	})
}

// fault adds a fault of WithFaults.
func (l *requestLog) fault(f faults.Fault) {
	l.add(func() string { return fmt.Sprintf("fault  %-15s %s %v", f.Operation, f.Table, f) })
}

// event adds what the test did.
func (l *requestLog) event(text string) { l.add(func() string { return text }) }

// print prints the log if the test failed.
func (l *requestLog) print(t testing.TB) {
	t.Helper()
	if !t.Failed() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.n == 0 {
		t.Log("tabletest: the server got no request")
		return
	}
	var b strings.Builder
	fmt.Fprintf(&b, "tabletest: the last %d of %d lines of the server's log:", len(l.lines), l.n)
	for i := range l.lines {
		b.WriteString("\n  " + l.lines[(l.n+i)%len(l.lines)]())
	}
	t.Log(b.String())
}
