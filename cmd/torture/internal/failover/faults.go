//go:build linux

package failover

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tablerock-db/tablerock/cmd/torture/internal/cluster"
)

// Fault is something that happens to a cluster in the middle of a trial.
type Fault struct {
	Name string
	// Text says what happens.
	Text string
	// drops: a table is dropped and created all the time.
	drops bool
	// volume: each node needs a volume of its own.
	volume bool
	// hit makes the fault happen and ends it.
	hit func(ctx context.Context, t *trial) error
}

// Faults returns all faults. A trial takes the one that its seed selects.
func Faults() []Fault {
	return []Fault{
		{Name: "node", Text: "the leader's agent and PostgreSQL are killed", hit: killNode},
		{Name: "postgres", Text: "the leader's PostgreSQL is killed, its agent lives", hit: killPostgres},
		{Name: "standby", Text: "the synchronous standby is killed", hit: killStandby},
		{Name: "agent", Text: "the leader's agent is stopped beyond its lease, and woken", hit: stopAgent},
		{Name: "cut", Text: "connections are cut before requests and before responses", hit: cutConnections},
		{Name: "etcd", Text: "etcd is away for longer than a lease", hit: stopEtcd},
		{Name: "full", Text: "the leader's volume is full", volume: true, hit: fillVolume},
		{Name: "clock", Text: "the leader is killed, and its clock was 5 s from the next one's", hit: killWithClock},
		{Name: "drop", Text: "the leader is killed while a table is dropped and created", drops: true, hit: killNode},
		{Name: "freeze", Text: "all of the leader's processes are stopped beyond its lease, and woken", hit: freezeNode},
		{Name: "both", Text: "leader and synchronous standby are killed", hit: killBoth},
		{Name: "partition", Text: "the network loses all packets of the leader", hit: isolateNode},
		{Name: "wipe", Text: "etcd loses its data", hit: wipeEtcd},
		{Name: "step", Text: "the leader's clock is set ahead by 5 s and back", hit: stepClock},
		{Name: "standbys", Text: "both standbys are killed", hit: killStandbys},
		{Name: "connections", Text: "the leader has no free connections", hit: takeConnections},
		{Name: "server", Text: "a tablerock server is killed", drops: true, hit: killServer},
		{Name: "switchover", Text: "the leader is changed on request", hit: switchOver},
		{Name: "unreachable", Text: "the network loses all packets between the servers and the leader", hit: holdServers},
		{Name: "twice", Text: "the leader is killed, and then the next one", hit: killTwice},
	}
}

// control is the fault of the negative control.
var control = Fault{Name: "async", Text: "standbys lag by 2 s when the leader is killed, and commits do not wait for them", hit: killAhead}

const (
	// lease is the ttl of the agents.
	lease = 20 * time.Second
	// recovery is the longest time in which a cluster must accept writes again.
	recovery = 90 * time.Second
)

// leader returns the leader and waits for one.
func (t *trial) leader(ctx context.Context) (*cluster.Node, error) { return t.role(ctx, "leader") }

func (t *trial) role(ctx context.Context, role string) (n *cluster.Node, err error) {
	err = t.await(ctx, recovery, "a "+role, func() bool {
		n = t.c.Role(ctx, role)
		return n != nil
	})
	return n, err
}

// newLeader waits for a leader that is not the old one.
func (t *trial) newLeader(ctx context.Context, old *cluster.Node) (n *cluster.Node, err error) {
	err = t.await(ctx, recovery, "a new leader", func() bool {
		n = t.c.Role(ctx, "leader")
		return n != nil && n != old
	})
	return n, err
}

// acks waits until batches are acknowledged that were sent now.
func (t *trial) acks(ctx context.Context) error {
	// A batch of each writer may have been sent before.
	enough := t.l.acked.Load() + 2*int64(t.l.writers)
	return t.await(ctx, recovery, "acknowledged batches", func() bool { return t.l.acked.Load() >= enough })
}

// killAndStart kills a node, and starts it again once the others acknowledge batches.
func killAndStart(ctx context.Context, t *trial, n *cluster.Node) error {
	if err := n.Kill(); err != nil {
		return err
	}
	if err := t.acks(ctx); err != nil {
		return err
	}
	return n.Start()
}

func killNode(ctx context.Context, t *trial) error {
	n, err := t.leader(ctx)
	if err != nil {
		return err
	}
	return killAndStart(ctx, t, n)
}

func killPostgres(ctx context.Context, t *trial) error {
	n, err := t.leader(ctx)
	if err != nil {
		return err
	}
	if err := n.KillDatabase(); err != nil {
		return err
	}
	return t.acks(ctx)
}

func killStandby(ctx context.Context, t *trial) error {
	n, err := t.role(ctx, "sync_standby")
	if err != nil {
		return err
	}
	return killAndStart(ctx, t, n)
}

func killBoth(ctx context.Context, t *trial) error {
	leader, err := t.leader(ctx)
	if err != nil {
		return err
	}
	standby, err := t.role(ctx, "sync_standby")
	if err != nil {
		return err
	}
	nodes := []*cluster.Node{leader, standby}
	if t.rng.IntN(2) == 0 {
		nodes[0], nodes[1] = standby, leader
	}
	return t.killAndStart(ctx, nodes)
}

func killStandbys(ctx context.Context, t *trial) error {
	leader, err := t.leader(ctx)
	if err != nil {
		return err
	}
	var standbys []*cluster.Node
	for _, n := range t.c.Nodes() {
		if n != leader {
			standbys = append(standbys, n)
		}
	}
	return t.killAndStart(ctx, standbys)
}

// killAndStart kills nodes and starts them after 5 to 10 s.
func (t *trial) killAndStart(ctx context.Context, nodes []*cluster.Node) error {
	for _, n := range nodes {
		if err := n.Kill(); err != nil {
			return err
		}
	}
	if err := t.sleep(ctx, 5*time.Second+t.upTo(5*time.Second)); err != nil {
		return err
	}
	for _, n := range nodes {
		if err := n.Start(); err != nil {
			return err
		}
	}
	return t.acks(ctx)
}

func killTwice(ctx context.Context, t *trial) error {
	if err := killNode(ctx, t); err != nil {
		return err
	}
	n, err := t.leader(ctx)
	if err != nil {
		return err
	}
	// The new leader may not have recorded its synchronous standby yet. Then the others
	// must wait until it is back.
	return t.killAndStart(ctx, []*cluster.Node{n})
}

// stopAgent leaves PostgreSQL running as a leader that the others have deposed.
func stopAgent(ctx context.Context, t *trial) error {
	n, err := t.leader(ctx)
	if err != nil {
		return err
	}
	if err := t.depose(n, n.FreezeAgent); err != nil {
		return err
	}
	return t.replaced(ctx, n)
}

func freezeNode(ctx context.Context, t *trial) error {
	n, err := t.leader(ctx)
	if err != nil {
		return err
	}
	if err := t.depose(n, n.Freeze); err != nil {
		return err
	}
	return t.replaced(ctx, n)
}

// replaced waits until the others have a leader and some seconds more, wakes the node and
// waits until it knows that it is deposed.
func (t *trial) replaced(ctx context.Context, n *cluster.Node) error {
	_, err := t.newLeader(ctx, n)
	if err == nil {
		err = t.acks(ctx)
	}
	if err == nil {
		err = t.sleep(ctx, 5*time.Second+t.upTo(5*time.Second))
	}
	if wake := n.Thaw(); wake != nil {
		return wake
	}
	if err != nil {
		return err
	}
	if err := t.await(ctx, recovery, "the deposed leader to follow", func() bool { return n.Follows(ctx) }); err != nil {
		return err
	}
	t.deposedUntil.Store(cluster.Now())
	return nil
}

func cutConnections(ctx context.Context, t *trial) error {
	t.setServerLinks(cluster.CutSome)
	err := t.sleep(ctx, 10*time.Second+t.upTo(5*time.Second))
	t.setServerLinks(cluster.Forward)
	return err
}

func (t *trial) setServerLinks(f cluster.Fault) {
	for _, n := range t.c.Nodes() {
		for _, l := range n.ServerLinks() {
			l.Set(f)
		}
	}
}

func stopEtcd(ctx context.Context, t *trial) error {
	if err := t.c.StopStore(); err != nil {
		return err
	}
	if err := t.sleep(ctx, lease+t.upTo(10*time.Second)); err != nil {
		return err
	}
	if err := t.c.StartStore(false); err != nil {
		return err
	}
	return t.acks(ctx)
}

func wipeEtcd(ctx context.Context, t *trial) error {
	if err := t.c.StopStore(); err != nil {
		return err
	}
	if err := t.sleep(ctx, t.upTo(5*time.Second)); err != nil {
		return err
	}
	if err := t.c.StartStore(true); err != nil {
		return err
	}
	return t.acks(ctx)
}

func fillVolume(ctx context.Context, t *trial) error {
	n, err := t.leader(ctx)
	if err != nil {
		return err
	}
	if err := n.Fill(ctx); err != nil {
		return err
	}
	// PostgreSQL may run for a while with the space that its files have left.
	if err := t.sleep(ctx, 15*time.Second+t.upTo(10*time.Second)); err != nil {
		return err
	}
	if err := n.Unfill(); err != nil {
		return err
	}
	return t.acks(ctx)
}

// killWithClock kills a leader whose clock is 5 s before or behind that of the others.
func killWithClock(ctx context.Context, t *trial) error {
	n, err := t.leader(ctx)
	if err != nil {
		return err
	}
	ahead := 5
	if t.rng.IntN(4) == 0 {
		ahead = -5
	}
	if err := n.SetClock(ahead); err != nil {
		return err
	}
	if err := t.sleep(ctx, 3*time.Second+t.upTo(3*time.Second)); err != nil {
		return err
	}
	if err := n.Kill(); err != nil {
		return err
	}
	if err := t.acks(ctx); err != nil {
		return err
	}
	if err := n.SetClock(0); err != nil {
		return err
	}
	return n.Start()
}

func stepClock(ctx context.Context, t *trial) error {
	n, err := t.leader(ctx)
	if err != nil {
		return err
	}
	for _, seconds := range []int{5, 0, -5, 0} {
		if err := n.SetClock(seconds); err != nil {
			return err
		}
		if err := t.sleep(ctx, 3*time.Second+t.upTo(2*time.Second)); err != nil {
			return err
		}
	}
	return t.acks(ctx)
}

// isolateNode takes the leader off the network. Its agent cannot renew the lease, and
// demotes PostgreSQL before the others elect a leader.
func isolateNode(ctx context.Context, t *trial) error {
	n, err := t.leader(ctx)
	if err != nil {
		return err
	}
	n.Isolate(true)
	_, err = t.newLeader(ctx, n)
	if err == nil {
		err = t.acks(ctx)
	}
	n.Isolate(false)
	return err
}

func holdServers(ctx context.Context, t *trial) error {
	n, err := t.leader(ctx)
	if err != nil {
		return err
	}
	for _, l := range n.ServerLinks() {
		l.Set(cluster.Hold)
	}
	err = t.sleep(ctx, 5*time.Second+t.upTo(15*time.Second))
	for _, l := range n.ServerLinks() {
		l.Set(cluster.Forward)
	}
	if err != nil {
		return err
	}
	return t.acks(ctx)
}

// takeConnections opens connections until the leader refuses them, cuts those of the
// servers, and takes what they had, too.
func takeConnections(ctx context.Context, t *trial) error {
	n, err := t.leader(ctx)
	if err != nil {
		return err
	}
	var taken []*pgconn.PgConn
	defer func() {
		for _, c := range taken {
			_ = c.Close(context.Background()) // the server has closed it, or does now
		}
	}()
	end := time.Now().Add(8*time.Second + t.upTo(4*time.Second))
	for round := 0; time.Now().Before(end); round++ {
		if round == 0 {
			for _, l := range n.ServerLinks() {
				l.Cut()
			}
		}
		c, err := pgconn.Connect(ctx, n.UserDatabase())
		if err == nil {
			taken = append(taken, c)
			continue
		}
		if err := t.sleep(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
	if len(taken) == 0 {
		return fmt.Errorf("no connection to node %s could be taken", n.Name)
	}
	return nil
}

func killServer(ctx context.Context, t *trial) error {
	s := t.c.Servers()[t.rng.IntN(len(t.c.Servers()))]
	if err := s.Kill(); err != nil {
		return err
	}
	if err := t.sleep(ctx, t.upTo(5*time.Second)); err != nil {
		return err
	}
	if err := t.acks(ctx); err != nil {
		return err
	}
	return s.Start(ctx)
}

func switchOver(ctx context.Context, t *trial) error {
	n, err := t.leader(ctx)
	if err != nil {
		return err
	}
	if err := t.c.Switchover(ctx); err != nil {
		return err
	}
	if _, err := t.newLeader(ctx, n); err != nil {
		return err
	}
	return t.acks(ctx)
}

// killAhead kills a leader that has acknowledged what no standby has.
func killAhead(ctx context.Context, t *trial) error {
	n, err := t.leader(ctx)
	if err != nil {
		return err
	}
	n.HoldReplication(true)
	if err := t.sleep(ctx, 2*time.Second); err != nil {
		return err
	}
	if err := n.Kill(); err != nil {
		return err
	}
	n.HoldReplication(false)
	if err := t.acks(ctx); err != nil {
		return err
	}
	return n.Start()
}
