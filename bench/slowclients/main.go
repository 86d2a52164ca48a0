// Command slowclients measures the effect of slow and idle clients on good ones. It uses
// a running "tablerock serve", which it finds by its ready file:
//
//	tablerock serve --ready-file ready.json &
//	go run ./bench/slowclients -ready ready.json -slow 2000 -idle 2000
//
// One third of the slow clients sends headers byte by byte, one third the body of an
// insert, and one third requests a page of entities and does not read it. A client that
// the server disconnects connects again. A few good clients insert and read entities,
// first alone and then beside the slow and idle clients. The command prints their
// latencies and the server's resident memory. It fails if a request of a good client
// fails.
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
	flag.IntVar(&c.requests, "requests", 5000, "requests of each good client in each measurement")
	flag.DurationVar(&c.delay, "delay", 3*time.Second, "time between the connection of all clients and the measurement")
	flag.Parse()
	err := c.find(*ready)
	if err == nil {
		err = c.run(ctx, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "slowclients:", err)
		return 1
	}
	return 0
}

// config is the server and the number of clients.
type config struct {
	url  *url.URL // of the account
	key  string
	pid  int
	slow int
	idle int
	good int

	requests int
	delay    time.Duration
}

// find reads the address and the key of the server from its ready file.
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

// run measures the good clients and prints the results.
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
	others := s.startClients(ctx)
	defer others.stop()
	select {
	case <-others.complete:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-time.After(c.delay):
	case <-ctx.Done():
		return ctx.Err()
	}
	beside, err := s.measure(ctx)
	if err != nil {
		return fmt.Errorf("beside %d slow and %d idle clients: %w", c.slow, c.idle, err)
	}
	fmt.Fprintf(out, "%-28s %10s %10s %10s\n", "good clients", "p50", "p99", "max")
	fmt.Fprintf(out, "%-28s %10s %10s %10s\n", "alone", alone.at(0.5), alone.at(0.99), alone.at(1))
	fmt.Fprintf(out, "%-28s %10s %10s %10s\n", fmt.Sprintf("beside %d slow, %d idle", c.slow, c.idle), beside.at(0.5), beside.at(0.99), beside.at(1))
	fmt.Fprintf(out, "p99 ratio %.2f; %d requests per measurement; the slow and idle clients connected %d times and have %d connections\n",
		float64(beside.at(0.99))/float64(alone.at(0.99)), c.good*c.requests, others.connected.Load(), others.open.Load())
	after := resident(c.pid)
	fmt.Fprintf(out, "resident memory of the server: %s before, %s with all clients, %s at most\n", before["VmRSS"], after["VmRSS"], after["VmHWM"])
	return nil
}

// resident returns the memory figures in /proc/PID/status, "unknown" if there is no such
// file.
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
