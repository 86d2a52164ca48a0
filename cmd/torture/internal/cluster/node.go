//go:build linux

package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"text/template"
	"time"

	"golang.org/x/sys/unix"
)

// Node is a PostgreSQL with its Patroni agent. It has a folder of its own, which is a
// volume of limited size if this process can mount one.
type Node struct {
	Name     string
	c        *Cluster
	dir      string
	mounted  bool
	postgres int   // port of PostgreSQL
	rest     int   // port of the agent
	peers    *Link // connections of other nodes to PostgreSQL
	store    *Link // connections of the agent to etcd
	servers  []*Link
	agent    *process
}

// agentConfig is the configuration of an agent. docs/failover.md explains it. It uses
// version 2 of etcd's protocol: with version 3, agents before 3.0.3 overwrite the lease of
// another leader when they wake up, and the cluster loses acknowledged writes. use_proxies
// keeps agents from going around their links.
var agentConfig = template.Must(template.New("").Parse(`scope: tablerock
name: {{.Name}}
restapi:
  listen: 127.0.0.1:{{.Rest}}
  connect_address: 127.0.0.1:{{.Rest}}
etcd:
  hosts: 127.0.0.1:{{.Etcd}}
  use_proxies: true
bootstrap:
  dcs:
    ttl: 20
    loop_wait: 5
    retry_timeout: 5
    maximum_lag_on_failover: {{.Lag}}
    synchronous_mode: {{.Synchronous}}
    synchronous_mode_strict: {{.Synchronous}}
    postgresql:
      use_pg_rewind: true
      parameters:
        synchronous_commit: "on"
        max_connections: 200
        wal_keep_size: 64MB
  initdb:
  - encoding: UTF8
  - locale: C
  - auth-host: scram-sha-256
  - auth-local: trust
  - data-checksums
  pg_hba:
  - local all postgres trust
  - host all all 127.0.0.1/32 scram-sha-256
  - host replication replicator 127.0.0.1/32 scram-sha-256
postgresql:
  listen: 127.0.0.1:{{.Postgres}}
  connect_address: 127.0.0.1:{{.Peers}}
  data_dir: {{.Dir}}/data
  bin_dir: {{.Bin}}
  pgpass: {{.Dir}}/pgpass
  use_unix_socket: true
  authentication:
    superuser: {username: postgres, password: {{.Password}}}
    replication: {username: replicator, password: {{.Password}}}
    rewind: {username: rewinder, password: {{.Password}}}
  parameters:
    unix_socket_directories: {{.Dir}}
    shared_buffers: 64MB
    dynamic_shared_memory_type: mmap
    max_wal_size: 192MB
    min_wal_size: 64MB
    jit: "off"
    logging_collector: "off"
    log_line_prefix: "%m [%p] "
`))

// newNode makes the folder, the links and the configuration of a node.
func (c *Cluster) newNode(ctx context.Context, name string) (n *Node, err error) {
	n = &Node{Name: name, c: c, dir: filepath.Join(c.dir, name)}
	if err := os.Mkdir(n.dir, 0o755); err != nil {
		return nil, err
	}
	c.nodes = append(c.nodes, n) // Close unmounts and stops what is there
	if n.mounted, err = mountVolume(ctx, n.dir, nodeBytes); err != nil {
		return nil, err
	}
	if err := c.processes.give(n.dir); err != nil {
		return nil, err
	}
	if n.postgres, err = c.freePort(); err != nil {
		return nil, err
	}
	if n.rest, err = c.freePort(); err != nil {
		return nil, err
	}
	if n.peers, err = c.link("peers to "+name, n.postgres); err != nil {
		return nil, err
	}
	if n.store, err = c.link(name+" to etcd", c.etcd.port); err != nil {
		return nil, err
	}
	for i := range c.options.Servers {
		l, err := c.link(fmt.Sprintf("server %d to %s", i, name), n.postgres)
		if err != nil {
			return nil, err
		}
		n.servers = append(n.servers, l)
	}
	if err := n.SetClock(0); err != nil {
		return nil, err
	}
	if err := n.linkPrograms(); err != nil {
		return nil, err
	}
	return n, n.configure()
}

// linkPrograms makes a folder with PostgreSQL's programs, in which postgres runs with the
// clock of the node. The agent runs without it, since libfaketime breaks Python's sleep.
func (n *Node) linkPrograms() error {
	if err := os.Mkdir(n.programs(), 0o755); err != nil {
		return err
	}
	entries, err := os.ReadDir(n.c.programs.postgres)
	if err != nil {
		return err
	}
	for _, e := range entries {
		program, link := filepath.Join(n.c.programs.postgres, e.Name()), filepath.Join(n.programs(), e.Name())
		if e.Name() != "postgres" {
			err = os.Symlink(program, link)
		} else {
			err = os.WriteFile(link, fmt.Appendf(nil, `#!/bin/sh
export LD_PRELOAD='%s' FAKETIME_TIMESTAMP_FILE='%s' FAKETIME_CACHE_DURATION=1 FAKETIME_DONT_FAKE_MONOTONIC=1 FAKETIME_DISABLE_SHM=1
exec '%s' "$@"
`, n.c.programs.faketime, n.clock(), program), 0o755)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (n *Node) programs() string { return filepath.Join(n.dir, "bin") }

func (n *Node) configure() (err error) {
	f, err := os.OpenFile(n.config(), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	lag := 1 << 20
	if n.c.options.Async {
		lag = 1 << 30 // or no standby that lacks much is promoted, and nothing is lost
	}
	return agentConfig.Execute(f, map[string]any{
		"Name": n.Name, "Rest": n.rest, "Etcd": n.store.Port(), "Lag": lag, "Synchronous": !n.c.options.Async,
		"Postgres": n.postgres, "Peers": n.peers.Port(), "Dir": n.dir, "Bin": n.programs(), "Password": password,
	})
}

func (n *Node) config() string { return filepath.Join(n.dir, "patroni.yml") }
func (n *Node) clock() string  { return filepath.Join(n.dir, "clock") }

// mark is the setting of the environment that all processes of the node have.
func (n *Node) mark() string { return "TORTURE_NODE=" + n.dir }

// Start starts the agent, which starts PostgreSQL.
func (n *Node) Start() (err error) {
	cmd := exec.Command(python, n.c.programs.patroni, n.config())
	cmd.Dir = n.dir
	cmd.Env = n.c.programs.environment(n.mark())
	n.agent, err = n.c.processes.start(cmd, n.log())
	return err
}

func (n *Node) log() string { return filepath.Join(n.c.dir, n.Name+".log") }

// SetClock sets the clock of the node's PostgreSQL ahead of the machine's by a number of
// seconds, which may be negative. Its processes see it within a second.
func (n *Node) SetClock(seconds int) error {
	temporary := n.clock() + ".new"
	if err := os.WriteFile(temporary, fmt.Appendf(nil, "%+d\n", seconds), 0o644); err != nil {
		return err
	}
	return os.Rename(temporary, n.clock())
}

// all returns the processes of the node.
func (n *Node) all() []int { return marked(n.mark()) }

// database returns the processes of the node's PostgreSQL.
func (n *Node) database() []int {
	var pid int
	f, err := os.Open(filepath.Join(n.dir, "data", "postmaster.pid"))
	if err != nil {
		return nil // it does not run
	}
	defer f.Close()
	if _, err := fmt.Fscan(f, &pid); err != nil {
		return nil
	}
	// The file may be older than a process that has its number now.
	all := n.all()
	var own []int
	for _, p := range descendants(pid) {
		for _, q := range all {
			if p == q {
				own = append(own, p)
			}
		}
	}
	return own
}

// removeMemory removes the segment of shared memory that a killed PostgreSQL leaves. Its
// number is in the seventh line of postmaster.pid.
func (n *Node) removeMemory() error {
	text, err := os.ReadFile(filepath.Join(n.dir, "data", "postmaster.pid"))
	if err != nil {
		return nil // it ended by itself, or never ran
	}
	lines := strings.Split(string(text), "\n")
	if len(lines) < 7 {
		return nil
	}
	var key, id int
	if _, err := fmt.Sscan(lines[6], &key, &id); err != nil {
		return fmt.Errorf("line 7 of postmaster.pid: %w", err)
	}
	if _, err := unix.SysvShmCtl(id, unix.IPC_RMID, nil); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.EIDRM) {
		return fmt.Errorf("removal of shared memory: %w", err)
	}
	return nil
}

// Kill kills the agent and PostgreSQL.
func (n *Node) Kill() error { return killWhile(n.all) }

// KillDatabase kills PostgreSQL. The agent lives.
func (n *Node) KillDatabase() error { return killWhile(n.database) }

// Freeze stops all processes of the node until Thaw.
func (n *Node) Freeze() error { return signalAll(n.all(), syscall.SIGSTOP) }

// FreezeAgent stops the agent until Thaw. PostgreSQL works on.
func (n *Node) FreezeAgent() error { return signalAll([]int{n.agent.pid}, syscall.SIGSTOP) }

// Thaw continues the processes that Freeze or FreezeAgent stopped.
func (n *Node) Thaw() error { return signalAll(n.all(), syscall.SIGCONT) }

// Isolate makes the network lose all that the node sends and all that it is sent. The
// agents ask each other without a link.
func (n *Node) Isolate(on bool) {
	f := Forward
	if on {
		f = Hold
	}
	for _, l := range append([]*Link{n.peers, n.store}, n.servers...) {
		l.Set(f)
	}
}

// HoldReplication makes the network lose what other nodes ask of this one's PostgreSQL.
func (n *Node) HoldReplication(on bool) {
	if on {
		n.peers.Set(Hold)
	} else {
		n.peers.Set(Forward)
	}
}

// OpenIn reports whether a server had a connection to the node's PostgreSQL at any time
// from begin to end.
func (n *Node) OpenIn(server int, begin, end int64) bool { return n.servers[server].OpenIn(begin, end) }

// ServerLinks returns the links from the servers to the node's PostgreSQL.
func (n *Node) ServerLinks() []*Link { return n.servers }

// HasVolume reports whether the node has a volume of its own.
func (n *Node) HasVolume() bool { return n.mounted }

// Fill fills the volume of the node.
func (n *Node) Fill(ctx context.Context) error { return fillVolume(ctx, n.dir) }

// Unfill frees what Fill took.
func (n *Node) Unfill() error {
	err := os.Remove(ballast(n.dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Member is a node as an agent sees it.
type Member struct {
	Name     string `json:"name"`
	Role     string `json:"role"` // leader, sync_standby, replica
	State    string `json:"state"`
	Timeline int    `json:"timeline"`
}

// members asks the agent of the node for the members of the cluster.
func (n *Node) members(ctx context.Context) ([]Member, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/cluster", n.rest), nil)
	if err != nil {
		return nil, err
	}
	a, err := http.DefaultClient.Do(q)
	if err != nil {
		return nil, err
	}
	defer a.Body.Close()
	var state struct{ Members []Member }
	return state.Members, json.NewDecoder(a.Body).Decode(&state)
}

// Follows reports whether the node knows that it is a standby.
func (n *Node) Follows(ctx context.Context) bool {
	members, err := n.members(ctx)
	if err != nil {
		return false
	}
	for _, m := range members {
		if m.Name == n.Name {
			return m.Role != "leader"
		}
	}
	return false
}

// UserDatabase returns the URL of the database in the node, for the user of the servers and
// without a link.
func (n *Node) UserDatabase() string {
	return fmt.Sprintf("postgres://tablerock:%s@127.0.0.1:%d/tablerock?sslmode=disable&connect_timeout=3", password, n.postgres)
}
