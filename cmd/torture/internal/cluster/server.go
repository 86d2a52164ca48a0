//go:build linux

package cluster

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// Account is the account that the servers serve, and Key is its key.
const Account = "torture"

var Key = base64.StdEncoding.EncodeToString([]byte("a key of the servers of this run"))

// Server is a process of the tablerock program in front of the nodes.
type Server struct {
	c       *Cluster
	number  int
	port    int
	process *process
}

func (c *Cluster) newServer(number int) (s *Server, err error) {
	s = &Server{c: c, number: number}
	s.port, err = c.freePort()
	c.servers = append(c.servers, s)
	return s, err
}

// serverEnvironment returns the environment of the servers, with the file of passwords.
func (c *Cluster) serverEnvironment() []string {
	return []string{"PATH=/usr/bin:/bin", "HOME=" + c.dir, "PGPASSFILE=" + filepath.Join(c.dir, "pgpass")}
}

// URL returns the address of the account, without a final slash.
func (s *Server) URL() string { return fmt.Sprintf("http://127.0.0.1:%d/%s", s.port, Account) }

// Start starts the server and waits until it is ready.
func (s *Server) Start(ctx context.Context) (err error) {
	ready := filepath.Join(s.c.dir, fmt.Sprintf("server%d.ready", s.number))
	if err := os.Remove(ready); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	args := []string{
		"serve", "--backend", s.c.url(s.number), "--account", Account + ":" + Key, "--listen", "127.0.0.1:" + strconv.Itoa(s.port),
		"--admin", "off", "--ready-file", ready,
	}
	if s.c.options.Async {
		args = append(args, "--allow-async")
	}
	cmd := exec.Command(s.c.options.Program, args...)
	cmd.Dir, cmd.Env = s.c.dir, s.c.serverEnvironment()
	if s.process, err = s.c.processes.start(cmd, filepath.Join(s.c.dir, fmt.Sprintf("server%d.log", s.number))); err != nil {
		return err
	}
	err = await(ctx, time.Minute, func(context.Context) error {
		_, err := os.Stat(ready)
		return err
	})
	if err != nil {
		return fmt.Errorf("server %d is not ready: %w", s.number, err)
	}
	return nil
}

// Kill kills the server.
func (s *Server) Kill() error {
	err := syscall.Kill(s.process.pid, syscall.SIGKILL)
	<-s.process.ended
	if errors.Is(err, syscall.ESRCH) {
		return nil
	}
	return err
}

// Running reports whether the process runs.
func (s *Server) Running() bool {
	select {
	case <-s.process.ended:
		return false
	default:
		return true
	}
}

// Switchover asks the agents to make another node the leader.
func (c *Cluster) Switchover(ctx context.Context) error {
	leader, standby := c.Role(ctx, "leader"), c.Role(ctx, "sync_standby")
	if leader == nil || standby == nil {
		return errors.New("the cluster has no leader and synchronous standby now")
	}
	text, err := json.Marshal(map[string]string{"leader": leader.Name, "candidate": standby.Name})
	if err != nil {
		return err
	}
	return leader.post(ctx, "switchover", text)
}

func (n *Node) post(ctx context.Context, path string, body []byte) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, fmt.Sprintf("http://127.0.0.1:%d/%s", n.rest, path), bytes.NewReader(body))
	if err != nil {
		return err
	}
	a, err := http.DefaultClient.Do(q)
	if err != nil {
		return err
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	if err == nil && a.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s of %s: %s: %s", path, n.Name, a.Status, bytes.TrimSpace(text))
	}
	return err
}
