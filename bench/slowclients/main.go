// Command crowd measures what slow and idle clients do to a good one. It works
// on a running "tablerock serve", which it finds by its ready file:
//
//	tablerock serve --ready-file ready.json &
//	go run ./bench/slowclients -ready ready.json -slow 2000 -idle 2000
//
// A third of the slow clients sends headers byte by byte, a third the body of an
// insert, and a third asks for a page of entities and does not read it. Whoever
// is thrown out comes again. A few good clients insert and read entities, first
// alone and then among the crowd; it prints their latencies and the server's
// resident memory, and fails if a good client is refused.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"time"
)

func main() { os.Exit(mainCode()) }

func mainCode() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var c config
	ready := flag.String("ready", "ready.json", "ready `file` of the server")
	flag.IntVar(&c.slow, "slow", 2000, "slow clients")
	flag.IntVar(&c.idle, "idle", 2000, "idle clients")
	flag.IntVar(&c.good, "good", 4, "good clients")
	flag.IntVar(&c.requests, "requests", 5000, "requests of each good client, each time")
	flag.DurationVar(&c.settle, "settle", 3*time.Second, "how long the crowd is there before it is measured")
	flag.Parse()
	err := c.find(*ready)
	if err == nil {
		err = c.run(ctx, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "crowd:", err)
		return 1
	}
	return 0
}

// config says who comes to which server.
type config struct {
	url  *url.URL // of the account
	key  string
	pid  int
	slow int
	idle int
	good int

	requests int
	settle   time.Duration
}

// find reads where the server is.
func (c *config) find(ready string) error {
	text, err := os.ReadFile(ready)
	if err != nil {
		return err
	}
	var at struct {
		URL        string
		PID        int
		Connection string `json:"connection_string"`
	}
	if err := json.Unmarshal(text, &at); err != nil {
		return fmt.Errorf("%s: %w", ready, err)
	}
	_, rest, ok := strings.Cut(at.Connection, "AccountKey=")
	if !ok {
		return fmt.Errorf("%s has no connection string", ready)
	}
	c.key, _, _ = strings.Cut(rest, ";")
	c.pid = at.PID
	c.url, err = url.Parse(at.URL)
	return err
}

// run measures, and prints what it found.
func (c *config) run(ctx context.Context, out io.Writer) error {
	s, err := newSender(c)
	if err != nil {
		return err
	}
	if err := s.prepare(ctx); err != nil {
		return fmt.Errorf("prepare the table: %w", err)
	}
	alone, err := s.measure(ctx)
	if err != nil {
		return fmt.Errorf("alone: %w", err)
	}
	before := resident(c.pid)
	crowd := s.gather(ctx)
	defer crowd.leave()
	select {
	case <-crowd.complete:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-time.After(c.settle):
	case <-ctx.Done():
		return ctx.Err()
	}
	among, err := s.measure(ctx)
	if err != nil {
		return fmt.Errorf("among %d slow and %d idle clients: %w", c.slow, c.idle, err)
	}
	fmt.Fprintf(out, "%-28s %10s %10s %10s\n", "good clients", "p50", "p99", "most")
	fmt.Fprintf(out, "%-28s %10s %10s %10s\n", "alone", alone.at(0.5), alone.at(0.99), alone.at(1))
	fmt.Fprintf(out, "%-28s %10s %10s %10s\n", fmt.Sprintf("among %d slow, %d idle", c.slow, c.idle), among.at(0.5), among.at(0.99), among.at(1))
	fmt.Fprintf(out, "p99 ratio %.2f; %d requests each time; the crowd connected %d times and holds %d connections\n",
		float64(among.at(0.99))/float64(alone.at(0.99)), c.good*c.requests, crowd.connected.Load(), crowd.present.Load())
	fmt.Fprintf(out, "server's resident memory: %s before the crowd, %s with it, %s at most\n", before["VmRSS"], resident(c.pid)["VmRSS"], resident(c.pid)["VmHWM"])
	return nil
}

// resident returns the lines about memory in what Linux tells of a process,
// nothing elsewhere.
func resident(pid int) map[string]string {
	lines := map[string]string{"VmRSS": "unknown", "VmHWM": "unknown"}
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if errors.Is(err, os.ErrNotExist) {
		return lines
	}
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.HasPrefix(name, "Vm") {
			lines[name] = strings.TrimSpace(value)
		}
	}
	return lines
}
