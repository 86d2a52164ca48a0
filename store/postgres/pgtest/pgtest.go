// Package pgtest starts PostgreSQL servers for tests.
//
// The programs of PostgreSQL are in the folder that TABLEROCK_POSTGRES_BIN names, else in
// /usr/lib/postgresql/*/bin, else on PATH. A test is skipped on a machine without them.
// Each process of tests runs initdb once and keeps the data of its servers in one
// temporary folder. When the process ends, in whatever way, its servers end and the folder
// is removed. Under root, which PostgreSQL refuses, the servers run as the user postgres or
// nobody.
//
// TABLEROCK_TEST_POSTGRES names a running server by its URL, for the tests that neither kill
// nor configure a server. Its user creates databases.
package pgtest

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// patience limits the time of one step.
const patience = time.Minute

// Server is a PostgreSQL server. Its methods are safe for concurrent use, except Kill and
// Restart.
type Server struct {
	url      url.URL // of the database postgres
	dir      string  // holds data, the socket and the log; empty for a server that runs already
	shared   bool
	settings []string
	command  *exec.Cmd
	exited   chan struct{} // closed when command has ended
}

var (
	shared struct {
		once   sync.Once
		server *Server
		err    error
	}
	databases atomic.Int64
)

// Shared returns the server that all tests of the process share. It does not sync its
// files, and is not killed or configured. It is the one that TABLEROCK_TEST_POSTGRES names,
// if that is set.
func Shared(tb testing.TB) *Server {
	tb.Helper()
	if text := os.Getenv("TABLEROCK_TEST_POSTGRES"); text != "" {
		u, err := url.Parse(text)
		if err != nil {
			tb.Fatal("TABLEROCK_TEST_POSTGRES is not a URL") // without the URL, which can have a password
		}
		return &Server{url: *u, shared: true}
	}
	bin := programs(tb)
	shared.once.Do(func() { shared.server, shared.err = start(bin, true, []string{"fsync=off"}) })
	if shared.err != nil {
		tb.Fatal(shared.err)
	}
	return shared.server
}

// Start starts a server that runs until tb ends. Each of settings is a line of
// postgresql.conf, such as "max_connections=20".
func Start(tb testing.TB, settings ...string) *Server {
	tb.Helper()
	s, err := start(programs(tb), false, settings)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		s.kill()
		if tb.Failed() {
			text, _ := os.ReadFile(s.logFile())
			tb.Logf("the end of the log of PostgreSQL:\n%s", text[max(0, len(text)-4000):])
		}
		_ = os.RemoveAll(s.dir) // the watcher removes what is left
	})
	return s
}

// programs returns the folder of PostgreSQL's programs, or skips the test.
func programs(tb testing.TB) string {
	tb.Helper()
	if bin := os.Getenv("TABLEROCK_POSTGRES_BIN"); bin != "" {
		return bin
	}
	if found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb"); len(found) > 0 {
		return filepath.Dir(found[len(found)-1])
	}
	path, err := exec.LookPath("initdb")
	if err != nil {
		const text = "no PostgreSQL: install the package postgresql, or set TABLEROCK_POSTGRES_BIN to the folder of initdb and postgres"
		if os.Getenv("TABLEROCK_REQUIRE") != "" {
			tb.Fatal(text) // .ci/run has installed it
		}
		tb.Skip(text)
	}
	return filepath.Dir(path)
}

// start starts a server on a copy of the data of initdb.
func start(bin string, shared bool, settings []string) (*Server, error) {
	h, err := homeOf(bin)
	if err != nil {
		return nil, err
	}
	dir, err := h.newData()
	if err != nil {
		return nil, err
	}
	s := &Server{dir: dir, shared: shared, settings: settings}
	// Another process can take the port before the server does.
	for try := 0; ; try++ {
		port, err := freePort()
		if err != nil {
			return nil, err
		}
		s.url = url.URL{Scheme: "postgres", User: url.User("postgres"), Host: fmt.Sprintf("127.0.0.1:%d", port), Path: "/postgres"}
		if err = s.run(h); err == nil || try == 2 {
			return s, err
		}
	}
}

// run starts the server and waits until it accepts connections.
func (s *Server) run(h *home) error {
	log, err := os.OpenFile(s.logFile(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	args := []string{"-D", filepath.Join(s.dir, "data"), "-p", s.url.Port(), "-k", s.dir}
	for _, set := range append([]string{"listen_addresses=127.0.0.1", "max_connections=200", "jit=off"}, s.settings...) {
		args = append(args, "-c", set)
	}
	c := h.command("postgres", args...)
	c.Stdout, c.Stderr = log, log
	if err := c.Start(); err != nil {
		return err
	}
	exited := make(chan struct{})
	s.command, s.exited = c, exited
	go func() {
		defer close(exited)
		_ = c.Wait() // the log has the reason
	}()
	err = poll("start", func() bool {
		select {
		case <-exited:
			return true
		default:
			return s.ready()
		}
	})
	if err == nil && s.ready() {
		return nil
	}
	s.kill()
	text, _ := os.ReadFile(s.logFile())
	return fmt.Errorf("pgtest: PostgreSQL does not start; the end of its log:\n%s", text[max(0, len(text)-2000):])
}

// ready reports whether the lock file says that the process of s accepts connections.
func (s *Server) ready() bool {
	text, _ := os.ReadFile(filepath.Join(s.dir, "data", "postmaster.pid"))
	lines := strings.Split(string(text), "\n")
	return len(lines) > 7 && lines[0] == strconv.Itoa(s.command.Process.Pid) && strings.TrimSpace(lines[7]) == "ready"
}

func (s *Server) logFile() string { return filepath.Join(s.dir, "log") }

// poll calls done until it returns true.
func poll(what string, done func() bool) error {
	deadline := time.After(patience)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-deadline:
			return fmt.Errorf("pgtest: %s: not done after %v", what, patience)
		}
	}
	return nil
}

// URL returns the URL of the database postgres of s, for its superuser.
func (s *Server) URL() string { return s.url.String() }

// NewDatabase creates an empty database and returns its URL. It is removed when tb ends, or
// with the server.
func (s *Server) NewDatabase(tb testing.TB) string {
	tb.Helper()
	u := s.newDatabase(tb)
	if name := u.Path[1:]; s.dir == "" {
		tb.Cleanup(func() { s.Exec(tb, "DROP DATABASE "+name+" WITH (FORCE)") })
	}
	return u.String()
}

// KeepDatabase is NewDatabase for tests after tb too. On a server that runs already, the
// database remains.
func (s *Server) KeepDatabase(tb testing.TB) string {
	tb.Helper()
	return s.newDatabase(tb).String()
}

func (s *Server) newDatabase(tb testing.TB) *url.URL {
	tb.Helper()
	name := fmt.Sprintf("tr_%d_%d", os.Getpid(), databases.Add(1))
	s.Exec(tb, "CREATE DATABASE "+name)
	u := s.url
	u.Path = "/" + name
	return &u
}

// SocketURL returns the URL of the same database over the socket of its server in the file
// system. The test is skipped if that is not on this machine.
func SocketURL(tb testing.TB, at string) string {
	tb.Helper()
	u, err := url.Parse(at)
	if err != nil {
		tb.Fatal(err)
	}
	dir := Exec(tb, at, "SELECT split_part(current_setting('unix_socket_directories'), ',', 1)")[0]
	if _, err := os.Stat(filepath.Join(dir, ".s.PGSQL."+u.Port())); dir == "" || err != nil {
		tb.Skip("the server has no socket on this machine: ", err)
	}
	q := u.Query()
	q.Set("host", dir)
	q.Set("port", u.Port())
	u.Host, u.RawQuery = "", q.Encode()
	return u.String()
}

// Exec runs statements in the database postgres, and returns the first column of the last
// one's rows.
func (s *Server) Exec(tb testing.TB, statements ...string) []string {
	tb.Helper()
	return Exec(tb, s.URL(), statements...)
}

// Exec is like Server.Exec, in the database of a URL.
func Exec(tb testing.TB, url string, statements ...string) []string {
	tb.Helper()
	rows, err := execute(url, statements...)
	if err != nil {
		tb.Fatal(err)
	}
	return rows
}

func execute(url string, statements ...string) (column []string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c, err := pgconn.Connect(ctx, url)
	if err != nil {
		return nil, fmt.Errorf("pgtest: %w", err)
	}
	defer c.Close(ctx)
	for _, statement := range statements {
		results, err := c.Exec(ctx, statement).ReadAll()
		if err != nil {
			return nil, fmt.Errorf("pgtest: %s: %w", statement, err)
		}
		column = nil
		for _, row := range results[len(results)-1].Rows {
			column = append(column, string(bytes.Clone(row[0])))
		}
	}
	return column, nil
}

// SetSynchronousStandbys makes commits wait for the standbys of this name: with a name that
// no standby has for ever, with "" not at all. It returns when all commits that begin later
// do so.
func (s *Server) SetSynchronousStandbys(tb testing.TB, names string) {
	tb.Helper()
	s.own(tb)
	// This checkpoint makes the one below short.
	s.Exec(tb, "CHECKPOINT", "ALTER SYSTEM SET synchronous_standby_names = '"+names+"'", "SELECT pg_reload_conf()")
	err := poll("new configuration", func() bool {
		shown, err := execute(s.URL(), "SHOW synchronous_standby_names")
		return err == nil && len(shown) == 1 && shown[0] == names
	})
	if err != nil {
		tb.Fatal(err)
	}
	// The checkpointer tells the other processes. It reads the configuration before it begins
	// a checkpoint.
	s.Exec(tb, "CHECKPOINT")
}

// Reload makes s read its configuration files, pg_hba.conf included. It returns when connections
// that begin later have that configuration.
func (s *Server) Reload(tb testing.TB) {
	tb.Helper()
	s.own(tb)
	const loaded = "SELECT pg_conf_load_time()"
	before := s.Exec(tb, loaded)[0]
	s.Exec(tb, "SELECT pg_reload_conf()")
	// A new connection has the time of the process that accepts connections, which reads all
	// files before it accepts the next one.
	err := poll("new configuration", func() bool {
		after, err := execute(s.URL(), loaded)
		return err == nil && after[0] != before
	})
	if err != nil {
		tb.Fatal(err)
	}
}

// own ends the test if it shares s with others.
func (s *Server) own(tb testing.TB) {
	tb.Helper()
	if s.shared {
		tb.Fatal("pgtest: use Start for a server that the test kills or configures")
	}
}

// Processes returns the ids of all processes of s, the first of which has started the
// others.
func (s *Server) Processes() []int {
	if s.command == nil {
		return nil
	}
	first := s.command.Process.Pid
	return append([]int{first}, children(first)...)
}

// CPU returns the processor time that all processes of s have used, those that have ended
// included, on Linux.
func (s *Server) CPU() time.Duration {
	ticks := 0
	for i, pid := range s.Processes() {
		fields := statOf(pid)
		if len(fields) < 15 {
			continue
		}
		last := 13 // user and system time
		if i == 0 {
			last = 15 // and those of processes that ended
		}
		for _, f := range fields[11:last] {
			n, _ := strconv.Atoi(f)
			ticks += n
		}
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// Kill ends all processes of s by SIGKILL and returns when they have ended.
func (s *Server) Kill(tb testing.TB) {
	tb.Helper()
	s.own(tb)
	s.kill()
}

func (s *Server) kill() {
	// The first process would start another one, for a client, while they are listed. That one
	// would keep the memory that a new server refuses to share.
	first := s.command.Process.Pid
	_ = exec.Command("sh", "-c", fmt.Sprint("kill -STOP ", first)).Run() // it may have ended
	_ = poll("stop", func() bool {
		fields := statOf(first)
		return len(fields) == 0 || fields[0] == "T" || fields[0] == "Z"
	})
	all := s.Processes()
	for _, pid := range all {
		if p, err := os.FindProcess(pid); err == nil {
			_ = p.Kill() // it may have ended
		}
	}
	<-s.exited
	_ = poll("end of the processes", func() bool {
		for _, pid := range all[1:] {
			if running(pid) {
				return false
			}
		}
		return true
	})
}

// Restart starts s again after Kill, on the same address and data.
func (s *Server) Restart(tb testing.TB) {
	tb.Helper()
	s.own(tb)
	h, err := homeOf(programs(tb))
	if err == nil {
		err = s.run(h)
	}
	if err != nil {
		tb.Fatal(err)
	}
}
