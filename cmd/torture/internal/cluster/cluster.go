//go:build linux

package cluster

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// password is that of all users of PostgreSQL. Nothing but processes of this machine can
// reach the nodes, and only for the time of a run.
const password = "torture"

// Options are the options of a cluster.
type Options struct {
	Programs *Programs
	Program  string // the tablerock program
	Dir      string // an empty folder
	Nodes    int
	Servers  int
	Async    bool // commits do not wait for a standby
	Seed     uint64
	// Phase is called with what happens now. It may be nil.
	Phase func(string)
}

// Cluster is a running cluster. Close ends it.
type Cluster struct {
	options   Options
	programs  *Programs
	dir       string
	processes *processes
	links     []*Link
	etcd      *etcd
	nodes     []*Node
	servers   []*Server
	cancels   atomic.Int64
	nextPort  int
}

// Start starts a cluster: etcd, nodes, the database and its schema, and servers. It
// returns when all nodes replicate and all servers are ready.
func Start(ctx context.Context, o Options) (*Cluster, error) {
	// Ports of the range from which the system takes those of outgoing connections could
	// be taken while a process is down.
	c := &Cluster{options: o, programs: o.Programs, dir: o.Dir, nextPort: 20000 + rand.IntN(10000)}
	var err error
	if c.processes, err = newProcesses(); err != nil {
		return nil, err
	}
	if err := c.start(ctx); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func (c *Cluster) start(ctx context.Context) (err error) {
	if err := c.processes.give(c.dir); err != nil {
		return err
	}
	c.phase("starting etcd and the nodes")
	if c.etcd, err = c.newEtcd(); err != nil {
		return err
	}
	if err := c.etcd.start(); err != nil {
		return err
	}
	for i := range c.options.Nodes {
		n, err := c.newNode(ctx, "n"+strconv.Itoa(i+1))
		if err != nil {
			return err
		}
		if err := n.Start(); err != nil {
			return err
		}
	}
	if err := c.AwaitHealthy(ctx, 2*time.Minute); err != nil || c.options.Servers == 0 {
		return err
	}
	c.phase("starting the servers")
	if err := c.initDatabase(ctx); err != nil {
		return err
	}
	for i := range c.options.Servers {
		s, err := c.newServer(i)
		if err != nil {
			return err
		}
		if err := s.Start(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) phase(text string) {
	if c.options.Phase != nil {
		c.options.Phase(text)
	}
}

// Nodes returns the nodes.
func (c *Cluster) Nodes() []*Node { return c.nodes }

// Servers returns the servers.
func (c *Cluster) Servers() []*Server { return c.servers }

// Cancels returns the number of CancelRequests that the servers have sent to PostgreSQL.
func (c *Cluster) Cancels() int64 { return c.cancels.Load() }

// link starts a link that Close stops.
func (c *Cluster) link(name string, port int) (*Link, error) {
	l, err := startLink(name, port, c.options.Seed, &c.cancels)
	if err == nil {
		c.links = append(c.links, l)
	}
	return l, err
}

// freePort returns a port of this machine that no process listens on.
func (c *Cluster) freePort() (int, error) {
	for range 1000 {
		c.nextPort++
		l, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(c.nextPort))
		if err == nil {
			return c.nextPort, l.Close()
		}
	}
	return 0, errors.New("no free port")
}

// Members returns the members of the cluster as the first agent that responds sees them.
func (c *Cluster) Members(ctx context.Context) (members []Member, err error) {
	var errs error
	for _, n := range c.nodes {
		if members, err = n.members(ctx); err == nil && len(members) > 0 {
			return members, nil
		}
		errs = errors.Join(errs, err)
	}
	return nil, fmt.Errorf("no agent responds: %w", errs)
}

// Role returns the node with a role: leader, sync_standby or replica. It returns nil if
// there is none now.
func (c *Cluster) Role(ctx context.Context, role string) *Node {
	members, err := c.Members(ctx)
	if err != nil {
		return nil
	}
	for _, m := range members {
		for _, n := range c.nodes {
			if m.Role == role && m.Name == n.Name {
				return n
			}
		}
	}
	return nil
}

// healthy returns nil if the cluster has a leader and all other nodes follow it, one of
// them synchronously.
func (c *Cluster) healthy(ctx context.Context) error {
	members, err := c.Members(ctx)
	if err != nil {
		return err
	}
	roles := map[string]int{}
	timeline := 0
	for _, m := range members {
		if m.State == "running" || m.State == "streaming" {
			roles[m.Role]++
		}
		timeline = max(timeline, m.Timeline)
	}
	for _, m := range members {
		if m.Timeline != timeline {
			roles["behind"]++
		}
	}
	standbys := roles["sync_standby"] + roles["replica"]
	if roles["leader"] != 1 || standbys != len(c.nodes)-1 || roles["behind"] > 0 || !c.options.Async && roles["sync_standby"] == 0 {
		return fmt.Errorf("members are %v", members)
	}
	return nil
}

// AwaitHealthy waits until the cluster is healthy.
func (c *Cluster) AwaitHealthy(ctx context.Context, limit time.Duration) error {
	return await(ctx, limit, func(ctx context.Context) error { return c.healthy(ctx) })
}

// await calls ready until it returns nil.
func await(ctx context.Context, limit time.Duration, ready func(context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	look := time.NewTicker(100 * time.Millisecond)
	defer look.Stop()
	var last error // the limit itself says less
	for {
		err := ready(limited)
		if err == nil {
			return nil
		}
		if limited.Err() == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-limited.Done():
			return fmt.Errorf("after %v: %w", limit, last)
		case <-look.C:
		}
	}
}

// initDatabase makes the user and the database of the servers, and the schema.
func (c *Cluster) initDatabase(ctx context.Context) error {
	leader := c.Role(ctx, "leader")
	if leader == nil {
		return errors.New("the cluster has no leader")
	}
	for _, statement := range []string{"CREATE ROLE tablerock LOGIN PASSWORD '" + password + "'", "CREATE DATABASE tablerock OWNER tablerock"} {
		psql := exec.CommandContext(ctx, filepath.Join(c.programs.postgres, "psql"), "-X", "-h", leader.dir, "-p", strconv.Itoa(leader.postgres),
			"-U", "postgres", "-d", "postgres", "-c", statement)
		psql.Env = c.programs.environment()
		if out, err := psql.CombinedOutput(); err != nil {
			return fmt.Errorf("psql: %w: %s", err, out)
		}
	}
	passwords := filepath.Join(c.dir, "pgpass")
	if err := os.WriteFile(passwords, []byte("*:*:*:tablerock:"+password+"\n"), 0o600); err != nil {
		return err
	}
	if err := c.processes.give(passwords); err != nil {
		return err
	}
	args := []string{"backend", "init", c.url(0)}
	if c.options.Async {
		args = append(args, "--allow-async")
	}
	// A standby refuses the user and the database until it has replayed both.
	return await(ctx, time.Minute, func(ctx context.Context) error {
		create := exec.CommandContext(ctx, c.options.Program, args...)
		create.Env = c.serverEnvironment()
		if out, err := create.CombinedOutput(); err != nil {
			return fmt.Errorf("tablerock backend init: %w: %s", err, out)
		}
		return nil
	})
}

// url returns the URL by which a server reaches the nodes. Its password is in a file.
func (c *Cluster) url(server int) string {
	var hosts []string
	for _, n := range c.nodes {
		hosts = append(hosts, "127.0.0.1:"+strconv.Itoa(n.servers[server].Port()))
	}
	return "postgres://tablerock@" + strings.Join(hosts, ",") + "/tablerock?target_session_attrs=read-write&sslmode=disable"
}

// Close ends all processes, unmounts the volumes and stops the links. The folder remains.
func (c *Cluster) Close() error {
	c.phase("ending the processes")
	err := c.processes.end()
	for _, l := range c.links {
		err = errors.Join(err, l.stop())
	}
	for _, n := range c.nodes {
		err = errors.Join(err, n.removeMemory())
		if n.mounted {
			err = errors.Join(err, unmountVolume(n.dir))
		}
	}
	return err
}

// Logs returns the log files of the processes.
func (c *Cluster) Logs() ([]string, error) {
	return filepath.Glob(filepath.Join(c.dir, "*.log"))
}

// etcd is the store of the agents' leases.
type etcd struct {
	c       *Cluster
	dir     string
	port    int
	peer    int
	process *process
}

func (c *Cluster) newEtcd() (e *etcd, err error) {
	e = &etcd{c: c, dir: filepath.Join(c.dir, "etcd")}
	if err := os.Mkdir(e.dir, 0o700); err != nil {
		return nil, err
	}
	if err := c.processes.give(e.dir); err != nil {
		return nil, err
	}
	if e.port, err = c.freePort(); err != nil {
		return nil, err
	}
	e.peer, err = c.freePort()
	return e, err
}

func (e *etcd) start() (err error) {
	client, peer := fmt.Sprintf("http://127.0.0.1:%d", e.port), fmt.Sprintf("http://127.0.0.1:%d", e.peer)
	cmd := exec.Command(e.c.programs.etcd, "--enable-v2=true", "--name", "e", "--data-dir", filepath.Join(e.dir, "data"),
		"--listen-client-urls", client, "--advertise-client-urls", client, "--listen-peer-urls", peer,
		"--initial-advertise-peer-urls", peer, "--initial-cluster", "e="+peer)
	cmd.Env = e.c.programs.environment()
	e.process, err = e.c.processes.start(cmd, filepath.Join(e.c.dir, "etcd.log"))
	return err
}

// StopStore kills etcd.
func (c *Cluster) StopStore() error {
	return killWhile(func() []int { return descendants(c.etcd.process.pid) })
}

// StartStore starts etcd again, without its data if wipe is set.
func (c *Cluster) StartStore(wipe bool) error {
	if wipe {
		if err := os.RemoveAll(filepath.Join(c.etcd.dir, "data")); err != nil {
			return err
		}
	}
	return c.etcd.start()
}
