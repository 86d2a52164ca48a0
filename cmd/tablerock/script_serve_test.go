package main

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/tablerock-db/tablerock/internal/sharedkey"
)

// running is the server of a script. Its output is appended to the files server.out and
// server.err, after that of earlier servers.
type running struct {
	cmd    *exec.Cmd
	opened []*os.File
	end    chan error
}

type runningKey struct{}

const developmentKey = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="

// startServer is the script command serve. It starts the server on a free port, by the
// command in COMMAND or else "tablerock serve", waits for its banner, and sets URL, ADMIN,
// PORT and CONNECTION.
func startServer(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("usage: serve [FLAG ...]")
	}
	r, ready := &running{end: make(chan error, 1)}, ts.MkAbs("ready.json")
	command := strings.Fields(ts.Getenv("COMMAND"))
	if len(command) == 0 {
		command = []string{"tablerock", "serve"}
	}
	path := ""
	for _, dir := range filepath.SplitList(ts.Getenv("PATH")) {
		if path = filepath.Join(dir, command[0]); isFile(path) {
			break
		}
	}
	r.cmd = exec.Command(path, slices.Concat(command[1:], []string{"--listen", "127.0.0.1:0", "--ready-file", ready}, args)...)
	r.cmd.Dir = ts.MkAbs(".")
	r.cmd.Env = append(os.Environ(), "TABLEROCK_QUIET=", "AZURITE_ACCOUNTS="+ts.Getenv("AZURITE_ACCOUNTS"))
	for _, name := range []string{
		"TABLEROCK_ACCOUNT", "TABLEROCK_ACCESS_LOG", "TABLEROCK_IN_MEMORY", "TABLEROCK_BACKEND", "TABLEROCK_ALLOW_ASYNC", "PGPASSFILE", "PGSERVICEFILE",
	} {
		r.cmd.Env = append(r.cmd.Env, name+"="+ts.Getenv(name))
	}
	r.cmd.Stderr = r.file(ts, "server.err")
	out, err := r.cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(r.cmd.Start())
	ts.Defer(func() { _ = r.cmd.Process.Kill() })
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			ts.Fatalf("the server is not ready: %v\n%s", r.cmd.Wait(), ts.ReadFile("server.err"))
		}
		_, err = io.WriteString(r.file(ts, "server.out"), line)
		ts.Check(err)
		if strings.HasPrefix(line, "connection") {
			break
		}
	}
	go func() {
		_, err := io.Copy(io.Discard, lines)
		r.end <- err
	}()
	var at struct {
		URL, Admin string
		PID        int
		Connection string `json:"connection_string"`
	}
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("ready.json")), &at))
	if at.PID != r.cmd.Process.Pid {
		ts.Fatalf("the ready file says pid %d, and the server is %d", at.PID, r.cmd.Process.Pid)
	}
	ts.Setenv("URL", at.URL)
	ts.Setenv("ADMIN", at.Admin)
	ts.Setenv("CONNECTION", at.Connection)
	_, port, _ := strings.Cut(strings.SplitN(at.URL, "/", 4)[2], ":")
	ts.Setenv("PORT", port)
	*ts.Value(runningKey{}).(**running) = r
}

func isFile(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular()
}

// file opens a file of the script for appending.
func (r *running) file(ts *testscript.TestScript, name string) *os.File {
	f, err := os.OpenFile(ts.MkAbs(name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	ts.Check(err)
	r.opened = append(r.opened, f)
	return f
}

// endServer is the script command end. It ends the server with a signal and checks its
// exit code.
func endServer(ts *testscript.TestScript, neg bool, args []string) {
	signals := map[string]syscall.Signal{"TERM": syscall.SIGTERM, "INT": syscall.SIGINT, "KILL": syscall.SIGKILL}
	if neg || len(args) != 1 || signals[args[0]] == 0 {
		ts.Fatalf("usage: end TERM|INT|KILL")
	}
	r := *ts.Value(runningKey{}).(**running)
	ts.Check(r.cmd.Process.Signal(signals[args[0]]))
	ts.Check(<-r.end)
	err := r.cmd.Wait()
	if killed := args[0] == "KILL"; killed == (err == nil) {
		ts.Fatalf("after SIG%s the server ends with %v\n%s", args[0], err, ts.ReadFile("server.err"))
	}
	for _, f := range r.opened {
		ts.Check(f.Close())
	}
	if text := ts.ReadFile("server.err"); strings.Contains(text, developmentKey[:20]) || strings.Contains(text, "hunter2") {
		ts.Fatalf("the server logs a key or a password:\n%s", text)
	}
}

// request is the script command request. It sends a request, signed with the development
// key if the path has no signature, checks the status, and prints the body.
func request(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 || len(args) > 4 {
		ts.Fatalf("usage: request STATUS METHOD URL [BODY]")
	}
	body := ""
	if len(args) == 4 {
		body = args[3]
	}
	q, err := http.NewRequest(args[1], args[2], strings.NewReader(body))
	ts.Check(err)
	q.Header.Set("Accept", "application/json;odata=nometadata")
	q.Header.Set("Content-Type", "application/json")
	q.Header.Set("X-Ms-Client-Request-Id", "script")
	if !strings.Contains(q.URL.RawQuery, "sig=") {
		account := strings.Split(q.URL.Path, "/")[1]
		c, err := sharedkey.NewCredential(account, ts.Getenv("KEY"))
		ts.Check(err)
		ts.Check(c.SignRequest(q, time.Now()))
	}
	response, err := http.DefaultClient.Do(q)
	ts.Check(err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	ts.Check(err)
	_, err = ts.Stdout().Write(text)
	ts.Check(err)
	if want, err := strconv.Atoi(args[0]); err != nil || response.StatusCode != want {
		ts.Fatalf("%s %s: status %d, want %s\n%s", args[1], args[2], response.StatusCode, args[0], text)
	}
}

// now sets a variable to the present time.
func now(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: now VARIABLE")
	}
	ts.Setenv(args[0], time.Now().UTC().Format(time.RFC3339Nano))
}

// waitForBackups waits until a backup directory has as many backups of the default account.
func waitForBackups(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: backups DIRECTORY NUMBER")
	}
	dir := ts.MkAbs(filepath.Join(args[0], "devstoreaccount1", "backups"))
	deadline := time.Now().Add(time.Minute)
	for range time.Tick(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			break
		}
		if entries, err := os.ReadDir(dir); err == nil && strconv.Itoa(len(entries)) == args[1] {
			return
		}
	}
	ts.Fatalf("%s has no %s backups", dir, args[1])
}
