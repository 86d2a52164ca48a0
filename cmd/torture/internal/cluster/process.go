//go:build linux

package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// processes starts processes and ends them and all of their descendants. This process
// becomes the parent of the descendants that lose their own, as PostgreSQL's main process
// does, so that none escapes.
type processes struct {
	mu      sync.Mutex // held while a process starts or one is reaped
	own     map[int]bool
	account *syscall.Credential // of all processes, nil: that of this process
	done    chan struct{}
	ended   sync.WaitGroup
}

// newProcesses makes this process the reaper of its descendants. As root, they run as
// another user, since PostgreSQL refuses to run as root.
func newProcesses() (*processes, error) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("prctl(PR_SET_CHILD_SUBREAPER): %w", err)
	}
	p := &processes{own: map[int]bool{}, done: make(chan struct{})}
	if os.Geteuid() == 0 {
		var err error
		if p.account, err = unprivileged(); err != nil {
			return nil, err
		}
	}
	p.ended.Go(p.reap)
	return p, nil
}

// unprivileged returns the user of the processes when the caller is root.
func unprivileged() (*syscall.Credential, error) {
	u, err := user.Lookup("postgres")
	if err != nil {
		u, err = user.Lookup("nobody")
	}
	if err != nil {
		return nil, err
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, err
}

// give makes path the property of the user of the processes.
func (p *processes) give(path string) error {
	if p.account == nil {
		return nil
	}
	return os.Chown(path, int(p.account.Uid), int(p.account.Gid))
}

// process is a process that this one started.
type process struct {
	pid   int
	ended chan struct{} // closed when the process has ended
}

// start starts a process with its output in the file log, in a process group of its own,
// so that Ctrl-C does not reach it.
func (p *processes) start(cmd *exec.Cmd, log string) (*process, error) {
	f, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	cmd.Stdout, cmd.Stderr = f, f
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: p.account}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s := &process{pid: cmd.Process.Pid, ended: make(chan struct{})}
	p.own[s.pid] = true
	go func() {
		_ = cmd.Wait() // the caller looks at what the process did
		p.mu.Lock()
		delete(p.own, s.pid)
		p.mu.Unlock()
		close(s.ended)
	}()
	return s, nil
}

// reap waits for adopted processes that have ended: PostgreSQL's agent takes a main process
// that nobody waited for as a running one.
func (p *processes) reap() {
	died := make(chan os.Signal, 1)
	signal.Notify(died, syscall.SIGCHLD)
	defer signal.Stop(died)
	look := time.NewTicker(time.Second)
	defer look.Stop()
	for {
		select {
		case <-died:
		case <-look.C:
		case <-p.done:
			return
		}
		p.mu.Lock()
		for _, s := range list() {
			if s.parent == os.Getpid() && s.state == 'Z' && !p.own[s.pid] {
				_, _ = syscall.Wait4(s.pid, nil, syscall.WNOHANG, nil)
			}
		}
		p.mu.Unlock()
	}
}

// entry is a process of this machine.
type entry struct {
	pid, parent int
	state       byte
}

// list returns the processes of this machine.
func list() (all []entry) {
	files, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is valid
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			continue // it has ended
		}
		// PID (NAME) STATE PARENT ...; a name may contain parentheses.
		end := bytes.LastIndexByte(text, ')')
		var s entry
		if _, err := fmt.Sscanf(string(text[end+1:]), " %c %d", &s.state, &s.parent); err != nil {
			continue
		}
		if s.pid, err = strconv.Atoi(filepath.Base(filepath.Dir(f))); err == nil {
			all = append(all, s)
		}
	}
	return all
}

// descendants returns the processes in roots and all below them that have not ended.
func descendants(roots ...int) (pids []int) {
	below := map[int][]entry{}
	for _, s := range list() {
		below[s.parent] = append(below[s.parent], s)
		if slices.Contains(roots, s.pid) && s.state != 'Z' {
			pids = append(pids, s.pid)
		}
	}
	for next := roots; len(next) > 0; {
		pid := next[0]
		next = next[1:]
		for _, s := range below[pid] {
			if s.state != 'Z' && !slices.Contains(pids, s.pid) {
				pids = append(pids, s.pid)
			}
			next = append(next, s.pid)
		}
	}
	return pids
}

// marked returns the descendants of this process whose environment has the setting, and
// all processes below these. PostgreSQL overwrites the environment of its children.
func marked(setting string) []int {
	var roots []int
	for _, pid := range descendants(os.Getpid()) {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if err == nil && slices.ContainsFunc(bytes.Split(text, []byte{0}), func(s []byte) bool { return string(s) == setting }) {
			roots = append(roots, pid)
		}
	}
	if len(roots) == 0 {
		return nil
	}
	return descendants(roots...)
}

// signalAll sends a signal to processes. A process that has ended is no error.
func signalAll(pids []int, sig syscall.Signal) error {
	var errs error
	for _, pid := range pids {
		if err := syscall.Kill(pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
			errs = errors.Join(errs, fmt.Errorf("kill -%d %d: %w", sig, pid, err))
		}
	}
	return errs
}

// killWhile kills the processes that pids returns until it returns none. It stops all of them
// first, as a lost machine does: a process of PostgreSQL that sees the end of the main one
// gives up its wait for the standby, and reads that still run see its commit.
func killWhile(pids func() []int) error {
	deadline := time.Now().Add(10 * time.Second)
	for {
		left := pids()
		if len(left) == 0 {
			return nil
		}
		if err := errors.Join(signalAll(left, syscall.SIGSTOP), signalAll(left, syscall.SIGKILL)); err != nil {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("processes %v did not end", left)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// end kills all descendants of this process.
func (p *processes) end() error {
	err := killWhile(func() []int {
		return slices.DeleteFunc(descendants(os.Getpid()), func(pid int) bool { return pid == os.Getpid() })
	})
	close(p.done)
	p.ended.Wait()
	return err
}
