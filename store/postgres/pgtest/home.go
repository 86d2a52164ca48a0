package pgtest

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// home is the folder of all servers of the process.
type home struct {
	dir  string
	bin  string
	user *user.User // nil: the user of the process

	// watched is the input of the watcher. It is closed when the process ends.
	watched io.WriteCloser
}

var theHome struct {
	once sync.Once
	home *home
	err  error
}

// homeOf returns the home of the process, which it makes at the first call.
func homeOf(bin string) (*home, error) {
	theHome.once.Do(func() { theHome.home, theHome.err = newHome(bin) })
	return theHome.home, theHome.err
}

func newHome(bin string) (*home, error) {
	h := &home{bin: bin}
	if os.Geteuid() == 0 {
		var err error
		if h.user, err = user.Lookup("postgres"); err != nil {
			if h.user, err = user.Lookup("nobody"); err != nil {
				return nil, fmt.Errorf("pgtest: a user for PostgreSQL, which refuses root: %w", err)
			}
		}
	}
	dir, err := os.MkdirTemp("", "pgtest")
	if err != nil {
		return nil, err
	}
	h.dir = dir
	if err := h.give(dir); err != nil {
		return nil, err
	}
	if err := h.watch(); err != nil {
		return nil, err
	}
	return h, h.output("initdb", "-D", filepath.Join(dir, "template"), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
}

// give makes the user of the servers the owner of a folder.
func (h *home) give(dir string) error {
	if h.user == nil {
		return nil
	}
	uid, err := strconv.Atoi(h.user.Uid)
	if err != nil {
		return err
	}
	return os.Chown(dir, uid, -1)
}

// watcher ends the servers and removes the folder when its input ends, which happens
// however the process that writes the input ends.
const watcher = `trap '' INT HUP TERM
cat >/dev/null
for data in "$1"/*/data; do "$0" stop -s -D "$data" -m immediate 2>/dev/null; done
rm -rf "$1"`

// watch starts the watcher.
func (h *home) watch() error {
	c := h.run("sh", "-c", watcher, filepath.Join(h.bin, "pg_ctl"), h.dir)
	var err error
	if h.watched, err = c.StdinPipe(); err != nil {
		return err
	}
	return c.Start()
}

// newData returns a new folder with a copy of the data of initdb in data.
func (h *home) newData() (string, error) {
	dir, err := os.MkdirTemp(h.dir, "server")
	if err != nil {
		return "", err
	}
	if err := h.give(dir); err != nil {
		return "", err
	}
	out, err := h.run("cp", "-Rp", filepath.Join(h.dir, "template"), filepath.Join(dir, "data")).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("pgtest: copy the data of a server: %w: %s", err, out)
	}
	return dir, nil
}

// command returns the command that runs a program of PostgreSQL.
func (h *home) command(program string, args ...string) *exec.Cmd {
	return h.run(filepath.Join(h.bin, program), args...)
}

// run returns the command that runs a program as the user of the servers.
func (h *home) run(program string, args ...string) *exec.Cmd {
	if h.user != nil {
		args = append([]string{"--reuid=" + h.user.Uid, "--regid=" + h.user.Gid, "--clear-groups", "--", program}, args...)
		program = "setpriv"
	}
	c := exec.Command(program, args...)
	c.Dir = h.dir
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "PG") { // they would configure the programs
			c.Env = append(c.Env, v)
		}
	}
	return c
}

// output runs a program of PostgreSQL and returns an error with what it printed.
func (h *home) output(program string, args ...string) error {
	if out, err := h.command(program, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("pgtest: %s: %w: %s", program, err, out)
	}
	return nil
}

// freePort returns a port of the loopback address that is free. It is none of those that systems
// give to clients, because one of them could take it while a server restarts.
func freePort() (int, error) {
	const from, to = 10_000, 32_000
	for range 100 {
		port := from + int((int64(os.Getpid())*97+ports.Add(1))%(to-from))
		if l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", port)); err == nil {
			return port, l.Close()
		}
	}
	return 0, fmt.Errorf("pgtest: no free port of 100 between %d and %d", from, to)
}

var ports atomic.Int64 // that were tried

// children returns the processes that parent has started. It knows them on Linux only; on
// other systems those of PostgreSQL end by themselves after their parent.
func children(parent int) []int {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	var pids []int
	for _, path := range stats {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil {
			continue
		}
		if fields := statOf(pid); len(fields) > 1 && fields[1] == strconv.Itoa(parent) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// running reports whether a process has not ended.
func running(pid int) bool {
	fields := statOf(pid)
	return len(fields) > 0 && fields[0] != "Z"
}

// statOf returns the fields of /proc/PID/stat after the name of the program: the state,
// the parent and others.
func statOf(pid int) []string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := strings.Cut(string(text), ") ")
	return strings.Fields(rest)
}
