package e2e

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

// cleanupContext returns a context that is independent of the test's context.
func cleanupContext() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), time.Minute)
}

// TestRestart stops a server with SIGTERM and checks its data after a restart.
func TestRestart(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	policy := []*aztables.SignedIdentifier{{ID: pointer("id"), AccessPolicy: &aztables.AccessPolicy{
		Start: pointer(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)), Expiry: pointer(time.Date(2126, 1, 2, 3, 4, 5, 0, time.UTC)), Permission: pointer("r"),
	}}}
	cors := aztables.ServiceProperties{Cors: []*aztables.CorsRule{corsRule("*", "GET")}}
	var before map[string]any
	for round := range 3 {
		s := start(t, data, nil)
		service := s.service(t)
		client := service.NewClient("Table")
		if round == 0 {
			must(service.CreateTable(t.Context(), "Table", nil))(t)
			must(client.SubmitTransaction(t.Context(), adds(100, property{"V", "Edm.Int64", `"7"`}), nil))(t)
			must(client.SetAccessPolicy(t.Context(), &aztables.SetAccessPolicyOptions{TableACL: policy}))(t)
			must(service.SetProperties(t.Context(), cors, nil))(t)
			before = get(t, client, "p", "r042")
		}
		if n := len(rows(t, client, "")); n != 100+round {
			t.Errorf("round %d: %d rows, want %d", round, n, 100+round)
		}
		after := get(t, client, "p", "r042")
		delete(before, "odata.metadata") // the port differs
		delete(after, "odata.metadata")
		if !reflect.DeepEqual(after, before) {
			t.Errorf("round %d: got %v, want %v", round, after, before)
		}
		if got := must(client.GetAccessPolicy(t.Context(), nil))(t).SignedIdentifiers; !reflect.DeepEqual(got, policy) {
			t.Errorf("round %d: got policies %s, want %s", round, describe(got), describe(policy))
		}
		if got := must(service.GetProperties(t.Context(), nil))(t).Cors; !reflect.DeepEqual(got, cors.Cors) {
			t.Errorf("round %d: got %s, want %s", round, quoteAny(t, got), quoteAny(t, cors.Cors))
		}
		must(client.AddEntity(t.Context(), entity("p", fmt.Sprintf("s%d", round)), nil))(t)
		if code := s.end(syscall.SIGTERM); code != 0 {
			t.Errorf("round %d: exit code %d after SIGTERM, want 0\n%s", round, code, s.tail())
		}
	}
}

// journal records the writes of a client and their acknowledgements.
type journal struct {
	mu     sync.Mutex
	acked  map[string]float64   // by row
	whole  [][]string           // acknowledged transactions
	unsure map[string][]float64 // values without a response, which may be stored
	open   [][]string           // transactions without a response
}

// TestKill kills a server several times while clients write. All acknowledged writes must be
// stored, and each transaction completely or not at all.
func TestKill(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	j := &journal{acked: map[string]float64{}, unsure: map[string][]float64{}}
	const rounds, writers, enough = 4, 8, 300
	for round := range rounds {
		s := start(t, data, nil)
		service := s.service(t)
		if round == 0 {
			must(service.CreateTable(t.Context(), "Table", nil))(t)
		}
		client := service.NewClient("Table")
		j.check(t, client)
		answers := make(chan struct{}, 1024)
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		for w := range writers {
			running.Go(func() { j.write(ctx, client, round, w, answers) })
		}
		for range enough {
			select {
			case <-answers:
			case <-time.After(time.Minute):
				t.Fatalf("round %d: no responses", round)
			}
		}
		s.end(os.Kill)
		stop()
		running.Wait()
	}
	s := start(t, data, nil)
	j.check(t, s.service(t).NewClient("Table"))
	t.Logf("%d entities and %d transactions were found after %d kills", len(j.acked), len(j.whole), rounds)
}

// write upserts a few rows again and again, with some transactions, until the server is
// gone.
func (j *journal) write(ctx context.Context, client *aztables.Client, round, writer int, answers chan<- struct{}) {
	for i := 0; ; i++ {
		var err error
		if i%8 == 7 {
			err = j.transact(ctx, client, fmt.Sprintf("t%d-%d-%d", round, writer, i))
		} else {
			err = j.upsert(ctx, client, fmt.Sprintf("w%d-%d", writer, i%50), float64(round*1_000_000+i))
		}
		if err != nil {
			return
		}
		select {
		case answers <- struct{}{}:
		case <-ctx.Done():
			return
		}
	}
}

func (j *journal) upsert(ctx context.Context, client *aztables.Client, row string, v float64) error {
	j.mu.Lock()
	j.unsure[row] = append(j.unsure[row], v)
	j.mu.Unlock()
	_, err := client.UpsertEntity(ctx, entity("p", row, property{"V", "", fmt.Sprint(int(v))}),
		&aztables.UpsertEntityOptions{UpdateMode: aztables.UpdateModeReplace})
	if err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.acked[row] = v
	delete(j.unsure, row)
	return nil
}

func (j *journal) transact(ctx context.Context, client *aztables.Client, prefix string) error {
	var all []aztables.TransactionAction
	var names []string
	payload := property{"B", "Edm.Binary", quote(base64.StdEncoding.EncodeToString(make([]byte, 2000)))}
	for i := range 20 {
		names = append(names, fmt.Sprintf("%s-%02d", prefix, i))
		all = append(all, action(opAdd, entity("t", names[i], payload)))
	}
	_, err := client.SubmitTransaction(ctx, all, nil)
	j.mu.Lock()
	defer j.mu.Unlock()
	if err != nil {
		j.open = append(j.open, names)
		return err
	}
	j.whole = append(j.whole, names)
	return nil
}

// check looks for the acknowledged writes. A write without a response counts as acknowledged
// once it has been read.
func (j *journal) check(t *testing.T, client *aztables.Client) {
	t.Helper()
	got := map[string]map[string]any{}
	for _, m := range queryAll(t, client, "") {
		got[m["RowKey"].(string)] = m
	}
	for row, want := range j.acked {
		v, there := got[row]["V"].(float64)
		if there && v == want {
			continue
		}
		sure := true
		for _, late := range j.unsure[row] {
			sure = sure && late != v
		}
		if sure {
			t.Errorf("%s: V is %v (exists: %t), want %v", row, v, there, want)
		}
	}
	for row := range j.unsure {
		if v, there := got[row]["V"].(float64); there {
			j.acked[row] = v
		}
	}
	clear(j.unsure)
	for _, names := range j.whole {
		if n := count(got, names); n != len(names) {
			t.Errorf("%d of %d entities of the transaction %s", n, len(names), names[0])
		}
	}
	for _, names := range j.open {
		switch n := count(got, names); n {
		case 0:
		case len(names):
			j.whole = append(j.whole, names)
		default:
			t.Errorf("%d of %d entities of the transaction without a response %s", n, len(names), names[0])
		}
	}
	j.open = nil
}

func count(got map[string]map[string]any, names []string) int {
	n := 0
	for _, name := range names {
		if _, ok := got[name]; ok {
			n++
		}
	}
	return n
}
