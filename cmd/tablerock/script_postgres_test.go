package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/tablerock-db/tablerock/internal/sharedkey"
	"github.com/tablerock-db/tablerock/store/postgres/pgtest"
)

// postgresScript is what a script has of PostgreSQL.
type postgresScript struct {
	tb    testing.TB
	own   *pgtest.Server // nil before pgstart
	flood *flood         // nil before flood
}

type postgresKey struct{}

// postgresCommands are the commands of scripts for PostgreSQL.
var postgresCommands = map[string]func(*testscript.TestScript, bool, []string){
	"postgres":  newDatabase,
	"pgstart":   startPostgres,
	"pgkill":    func(ts *testscript.TestScript, _ bool, _ []string) { p := postgresOf(ts); p.own.Kill(p.tb) },
	"pgrestart": func(ts *testscript.TestScript, _ bool, _ []string) { p := postgresOf(ts); p.own.Restart(p.tb) },
	"pgsync":    synchronize,
	"pgreload":  func(ts *testscript.TestScript, _ bool, _ []string) { p := postgresOf(ts); p.own.Reload(p.tb) },
	"sql":       execute,
	"greeter":   listenAsMail,
	"ready":     waitForReady,
	"metrics":   printMetrics,
	"accounts":  fillAccounts,
	"flood":     startFlood,
	"flooded":   endFlood,
	"large":     writeLarge,
	"pgstandby": makeStandby,
	"peak":      checkPeak,
	"title":     checkTitle,
}

func withPostgres(commands map[string]func(*testscript.TestScript, bool, []string)) map[string]func(*testscript.TestScript, bool, []string) {
	maps.Copy(commands, postgresCommands)
	return commands
}

func postgresOf(ts *testscript.TestScript) *postgresScript {
	return ts.Value(postgresKey{}).(*postgresScript)
}

// setURL sets the variable name to a URL.
func setURL(ts *testscript.TestScript, name, text string) {
	u, err := url.Parse(text)
	ts.Check(err)
	ts.Setenv(name, text)
	ts.Setenv(name+"HOST", u.Host)
	ts.Setenv(name+"NAME", strings.TrimPrefix(u.Path, "/"))
}

// newDatabase sets a variable to the URL of a new database on the server that all tests share,
// or on that of pgstart. VARIABLEHOST and VARIABLENAME are its address and its name.
func newDatabase(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: postgres VARIABLE")
	}
	p := postgresOf(ts)
	s := p.own
	if s == nil {
		s = pgtest.Shared(p.tb)
	}
	setURL(ts, args[0], s.NewDatabase(p.tb))
}

// startPostgres starts a server for this script and sets a variable to the URL of a database.
func startPostgres(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: pgstart VARIABLE [SETTING ...]")
	}
	p := postgresOf(ts)
	p.own = pgtest.Start(p.tb, args[1:]...)
	newDatabase(ts, false, args[:1])
}

// synchronize makes commits of the server of pgstart wait for a standby.
func synchronize(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 1 {
		ts.Fatalf("usage: pgsync [STANDBYS]")
	}
	p := postgresOf(ts)
	p.own.SetSynchronousStandbys(p.tb, strings.Join(args, ""))
}

// execute runs a statement in a database and prints the first column.
func execute(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: sql URL STATEMENT")
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c, err := pgconn.Connect(ctx, args[0])
	ts.Check(err)
	defer c.Close(ctx)
	results, err := c.Exec(ctx, args[1]).ReadAll()
	ts.Check(err)
	for _, r := range results {
		for _, row := range r.Rows {
			_, err := ts.Stdout().Write(append(row[0], '\n'))
			ts.Check(err)
		}
	}
}

// listenAsMail sets a variable to the address of a listener that speaks first, as a server of
// mail does.
func listenAsMail(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: greeter VARIABLE")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	ts.Defer(func() { _ = l.Close() })
	ts.Setenv(args[0], l.Addr().String())
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, "220 mail.example ESMTP ready\r\n") // an error means that the client is gone
			_, _ = io.Copy(io.Discard, c)
			_ = c.Close()
		}
	}()
}

// waitForReady waits until /readyz of the server has a status, and a text that contains
// another one, and prints the text.
func waitForReady(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 || len(args) > 2 {
		ts.Fatalf("usage: ready STATUS [TEXT]")
	}
	want := append(args, "")[1]
	status, text := 0, []byte(nil)
	deadline := time.Now().Add(time.Minute)
	for range time.Tick(20 * time.Millisecond) {
		answer, err := http.Get(ts.Getenv("ADMIN") + "/readyz")
		ts.Check(err)
		text, err = io.ReadAll(answer.Body)
		ts.Check(err)
		ts.Check(answer.Body.Close())
		if status = answer.StatusCode; strconv.Itoa(status) == args[0] && strings.Contains(string(text), want) {
			_, err := ts.Stdout().Write(text)
			ts.Check(err)
			return
		}
		if time.Now().After(deadline) {
			break
		}
	}
	ts.Fatalf("/readyz is %d %s, want %s", status, text, strings.Join(args, " "))
}

// makeStandby starts the server of pgstart again as a standby.
func makeStandby(ts *testscript.TestScript, _ bool, _ []string) {
	p := postgresOf(ts)
	p.own.Exec(p.tb, "DO $x$ BEGIN EXECUTE format('COPY (SELECT 1 WHERE false) TO %L', current_setting('data_directory') || '/standby.signal'); END $x$")
	p.own.Kill(p.tb)
	p.own.Restart(p.tb)
}

// flood are concurrent inserts of one entity each.
type flood struct {
	url      string
	statuses []int
	all      sync.WaitGroup
}

// insert inserts entity i and returns the status of the answer.
func (f *flood) insert(ts *testscript.TestScript, i int) int {
	return f.send(ts, http.MethodPost, f.url, fmt.Sprintf(`{"PartitionKey":"p%d","RowKey":"r"}`, i))
}

func (f *flood) send(ts *testscript.TestScript, method, url, body string) int {
	q, err := http.NewRequest(method, url, strings.NewReader(body))
	ts.Check(err)
	q.Header.Set("Content-Type", "application/json")
	c, err := sharedkey.NewCredential(strings.Split(q.URL.Path, "/")[1], developmentKey)
	ts.Check(err)
	ts.Check(c.SignRequest(q, time.Now()))
	answer, err := http.DefaultClient.Do(q)
	if err != nil {
		return 0
	}
	_, _ = io.Copy(io.Discard, answer.Body) // the status is enough
	_ = answer.Body.Close()
	return answer.StatusCode
}

// startFlood starts to insert entities, all at once.
func startFlood(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: flood NUMBER URL")
	}
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	f := &flood{url: args[1], statuses: make([]int, n)}
	for i := range n {
		f.all.Go(func() { f.statuses[i] = f.insert(ts, i) })
	}
	postgresOf(ts).flood = f
}

// endFlood waits for the inserts of flood. What was acknowledged must be there, and what was
// refused as busy must not. Both must have happened.
func endFlood(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: flooded")
	}
	f := postgresOf(ts).flood
	f.all.Wait()
	counts := map[int]int{}
	for i, status := range f.statuses {
		counts[status]++
		got := f.send(ts, http.MethodGet, fmt.Sprintf("%s(PartitionKey='p%d',RowKey='r')", f.url, i), "")
		if status == http.StatusCreated && got != http.StatusOK || status == http.StatusServiceUnavailable && got != http.StatusNotFound {
			ts.Fatalf("insert %d was answered with %d, and then a read with %d", i, status, got)
		}
	}
	ts.Logf("answers by status: %v", counts)
	if counts[http.StatusCreated] == 0 || counts[http.StatusServiceUnavailable] == 0 {
		ts.Fatalf("the inserts were answered with %v, want some of 201 and some of 503", counts)
	}
}

// writeLarge writes a file of entities of almost 1 MiB.
func writeLarge(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: large FILE NUMBER")
	}
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	f, err := os.Create(ts.MkAbs(args[0]))
	ts.Check(err)
	text := strings.Repeat("0123456789abcdef", 2040) // a property has at most 32,768 characters
	for i := range n {
		fmt.Fprintf(f, `{"PartitionKey":"p","RowKey":"%04d","N":%d`, i, i)
		for property := range 15 {
			fmt.Fprintf(f, `,"S%d":"%s"`, property, text)
		}
		fmt.Fprintln(f, "}")
	}
	ts.Check(f.Close())
}

// printMetrics prints the metrics of the server.
func printMetrics(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: metrics")
	}
	answer, err := http.Get(ts.Getenv("ADMIN") + "/metrics")
	ts.Check(err)
	defer answer.Body.Close()
	_, err = io.Copy(ts.Stdout(), answer.Body)
	ts.Check(err)
}

// fillAccounts writes an accounts file with accounts in DB, in OWN and in the directory.
func fillAccounts(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: accounts FILE")
	}
	key, db, own := ts.Getenv("KEY"), ts.Getenv("DB"), ts.Getenv("OWN")
	text := fmt.Sprintf("local:%s\nfirst:%s@%s\nsecond:%s@%s\nthird:%s@%s\n", key, key, db, key, db, key, own)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text), 0o600))
}

// serverProcess returns a file of /proc of the server.
func serverProcess(ts *testscript.TestScript, file string) string {
	r := *ts.Value(runningKey{}).(**running)
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(r.cmd.Process.Pid), file))
	ts.Check(err)
	return string(text)
}

// checkPeak checks the most memory that the server had.
func checkPeak(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: peak MIB")
	}
	limit, err := strconv.Atoi(args[0])
	ts.Check(err)
	found := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindStringSubmatch(serverProcess(ts, "status"))
	kib, err := strconv.Atoi(found[1])
	ts.Check(err)
	ts.Logf("the server had at most %d MiB", kib>>10)
	if kib>>10 > limit {
		ts.Fatalf("the server had %d MiB, more than %d", kib>>10, limit)
	}
}

// checkTitle checks that the command line of the server, as others see it, has no text.
func checkTitle(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: title TEXT")
	}
	if line := serverProcess(ts, "cmdline"); strings.Contains(line, args[0]) {
		ts.Fatalf("the title of the process is %q", line)
	}
}
