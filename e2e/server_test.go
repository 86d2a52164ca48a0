package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	readyTimeout = time.Minute
	stopTimeout  = time.Minute
)

var (
	program string    // path of tablerock
	shared  *endpoint // for tests that start no server
)

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

func runTests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "tablerock-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if given := os.Getenv("TABLEROCK_E2E_CONNECTION_STRING"); given != "" {
		shared, err = parseConnectionString(given)
	} else {
		var s *server
		if err = build(dir); err == nil {
			s, err = launch(filepath.Join(dir, "shared"), nil)
		}
		if err == nil {
			defer s.end(syscall.SIGKILL)
			shared = &s.endpoint
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// build builds the program from the repository of this module, unless
// TABLEROCK_E2E_PROGRAM names one.
func build(dir string) error {
	if program = os.Getenv("TABLEROCK_E2E_PROGRAM"); program != "" {
		return nil
	}
	program = filepath.Join(dir, "tablerock")
	cmd := exec.Command("go", "build", "-o", program, "./cmd/tablerock")
	cmd.Dir = ".."
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	return nil
}

// endpoint is the address of an account of a service.
type endpoint struct {
	url              string // of the account, without a final slash
	account, key     string
	connectionString string
}

func parseConnectionString(text string) (*endpoint, error) {
	e := &endpoint{connectionString: text}
	for _, setting := range strings.Split(text, ";") {
		name, value, _ := strings.Cut(setting, "=")
		switch name {
		case "TableEndpoint":
			e.url = strings.TrimSuffix(value, "/")
		case "AccountName":
			e.account = value
		case "AccountKey":
			e.key = value
		}
	}
	if e.url == "" || e.account == "" || e.key == "" {
		return nil, fmt.Errorf("the connection string lacks TableEndpoint, AccountName or AccountKey")
	}
	return e, nil
}

// server is a process that serves one data directory.
type server struct {
	endpoint
	admin string // the URL of the admin listener
	cmd   *exec.Cmd
	log   string
	done  chan struct{} // closed when the process has ended
}

// databases are for servers on PostgreSQL: TABLEROCK_E2E_DATABASES has URLs of empty databases,
// separated by blanks. Each data directory that a test names stands for one of them.
var databases struct {
	mu     sync.Mutex
	unused []string          // nil before the first use
	of     map[string]string // by data directory
}

// onDatabases reports whether servers use databases in place of directories.
func onDatabases() bool { return os.Getenv("TABLEROCK_E2E_DATABASES") != "" }

// keeping returns the flags of a server that keeps its data in a directory, or in the database
// in its place.
func keeping(data string) ([]string, error) {
	if !onDatabases() {
		return []string{"--data", data}, nil
	}
	d := &databases
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.of == nil {
		d.of, d.unused = map[string]string{}, strings.Fields(os.Getenv("TABLEROCK_E2E_DATABASES"))
	}
	if d.of[data] == "" {
		if len(d.unused) == 0 {
			return nil, errors.New("TABLEROCK_E2E_DATABASES has too few databases")
		}
		if out, err := exec.Command(program, "backend", "init", d.unused[0], "--allow-async").CombinedOutput(); err != nil {
			return nil, fmt.Errorf("backend init: %w: %s", err, out)
		}
		d.of[data], d.unused = d.unused[0], d.unused[1:]
	}
	// The directory has the certificate of --self-signed.
	return []string{"--backend", d.of[data], "--allow-async", "--data", data}, nil
}

// launch starts the program on a data directory, with a free loopback port, and waits until
// it is ready.
func launch(data string, env []string, args ...string) (*server, error) {
	if err := os.MkdirAll(filepath.Dir(data), 0o755); err != nil {
		return nil, err
	}
	ready := data + ".ready.json"
	if err := os.Remove(ready); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	s := &server{log: data + ".log", done: make(chan struct{})}
	log, err := os.OpenFile(s.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	keep, err := keeping(data)
	if err != nil {
		return nil, err
	}
	args = slices.Concat([]string{"serve", "--listen", "127.0.0.1:0", "--ready-file", ready}, keep, args)
	s.cmd = exec.Command(program, args...)
	s.cmd.Env = append(os.Environ(), env...)
	s.cmd.Stdout, s.cmd.Stderr = log, log
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	go s.wait()
	if err := s.awaitReady(ready); err != nil {
		s.end(syscall.SIGKILL)
		return nil, fmt.Errorf("%s: %w\n%s", strings.Join(args, " "), err, s.tail())
	}
	return s, nil
}

func (s *server) wait() {
	_ = s.cmd.Wait() // ProcessState has the result
	close(s.done)
}

// awaitReady waits for the ready file of the program.
func (s *server) awaitReady(file string) error {
	look := time.NewTicker(2 * time.Millisecond)
	defer look.Stop()
	timeout := time.After(readyTimeout)
	for {
		text, err := os.ReadFile(file)
		var ready struct {
			URL              string `json:"url"`
			Admin            string `json:"admin"`
			ConnectionString string `json:"connection_string"`
		}
		if err == nil {
			err = json.Unmarshal(text, &ready)
		}
		if err == nil {
			e, err := parseConnectionString(ready.ConnectionString)
			if err != nil {
				return err
			}
			s.endpoint, s.admin = *e, strings.TrimSuffix(ready.Admin, "/")
			if e.url != strings.TrimSuffix(ready.URL, "/") {
				return fmt.Errorf("the ready file names %s and %s", ready.URL, e.url)
			}
			return nil
		}
		select {
		case <-s.done:
			return fmt.Errorf("ended before it was ready: %s", s.cmd.ProcessState)
		case <-timeout:
			return fmt.Errorf("no ready file: %w", err)
		case <-look.C:
		}
	}
}

// end sends the process a signal, waits for its end and returns its exit code, -1 after
// SIGKILL.
func (s *server) end(sig os.Signal) int {
	// The error is that of a process that has already ended.
	_ = s.cmd.Process.Signal(sig)
	select {
	case <-s.done:
	case <-time.After(stopTimeout):
		_ = s.cmd.Process.Kill()
		<-s.done
	}
	return s.cmd.ProcessState.ExitCode()
}

// tail returns the end of the process's output.
func (s *server) tail() string {
	text, err := os.ReadFile(s.log)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-4000):])
}

// needProgram skips a test that needs its own server if another service is tested.
func needProgram(t *testing.T) {
	t.Helper()
	if program == "" {
		t.Skip("this test needs its own server, and another service is tested")
	}
}

// needDirectory skips a test of data directories if servers use databases.
func needDirectory(t *testing.T) {
	t.Helper()
	needProgram(t)
	if onDatabases() {
		t.Skip("this test needs a data directory, and servers use databases")
	}
}

// start launches a server and stops it at the end of the test.
func start(t *testing.T, data string, env []string, args ...string) *server {
	t.Helper()
	needProgram(t)
	s, err := launch(data, env, args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.end(syscall.SIGKILL)
		if t.Failed() {
			t.Logf("the server's last words:\n%s", s.tail())
		}
	})
	return s
}

// freeAddress returns an address of loopback on which nothing listens. On Linux, a socket that does
// not listen keeps others from getting the port while no server has it, until the test ends.
func freeAddress(t *testing.T) string {
	t.Helper()
	fd := must(syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0))(t)
	syscall.CloseOnExec(fd)
	if runtime.GOOS == "linux" {
		t.Cleanup(func() { _ = syscall.Close(fd) })
	} else {
		defer syscall.Close(fd)
	}
	if err := syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	at := must(syscall.Getsockname(fd))(t)
	return fmt.Sprintf("127.0.0.1:%d", at.(*syscall.SockaddrInet4).Port)
}
