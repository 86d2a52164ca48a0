package tabletest_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/server/faults"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/tabletest"
)

// answers returns all that the server answers about its state: tables, entities with ETags,
// access policies and service properties.
func answers(t testing.TB, srv *tabletest.Server) string {
	t.Helper()
	var b strings.Builder
	get := func(path string) {
		r, err := http.NewRequest(http.MethodGet, srv.Endpoint+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Accept", "application/json;odata=fullmetadata")
		answer, err := srv.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		b.WriteString(path + " " + answer.Status + "\n")
		answer.Header = nil
		if err := answer.Write(&b); err != nil {
			t.Fatal(err)
		}
	}
	get("/Tables")
	get("/?restype=service&comp=properties")
	tables, err := srv.Store.Tables(t.Context(), "", 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range tables {
		fmt.Fprintln(&b, table)
		get("/" + table.Name + "()")
		get("/" + table.Name + "?comp=acl")
	}
	return b.String()
}

const corsRule = `<?xml version="1.0"?><StorageServiceProperties><Cors><CorsRule><AllowedOrigins>http://%s.example</AllowedOrigins>` +
	`<AllowedMethods>GET</AllowedMethods><MaxAgeInSeconds>5</MaxAgeInSeconds><ExposedHeaders/><AllowedHeaders/></CorsRule></Cors></StorageServiceProperties>`

const policy = `<?xml version="1.0"?><SignedIdentifiers><SignedIdentifier><Id>%s</Id><AccessPolicy><Permission>r</Permission></AccessPolicy>` +
	`</SignedIdentifier></SignedIdentifiers>`

func TestReset(t *testing.T) {
	srv := tabletest.New(t)
	empty, emptyAnswers := srv.Snapshot(), answers(t, srv)
	want(t, srv, http.StatusCreated, http.MethodPost, "/Tables", `{"TableName":"Orders"}`)
	want(t, srv, http.StatusCreated, http.MethodPost, "/Tables", `{"TableName":"Kept"}`)
	want(t, srv, http.StatusCreated, http.MethodPost, "/Orders", `{"PartitionKey":"p","RowKey":"1","Total":42.5}`)
	want(t, srv, http.StatusNoContent, http.MethodPut, "/Orders?comp=acl", fmt.Sprintf(policy, "first"))
	want(t, srv, http.StatusAccepted, http.MethodPut, "/?restype=service&comp=properties", fmt.Sprintf(corsRule, "first"))
	full, fullAnswers := srv.Snapshot(), answers(t, srv)
	want(t, srv, http.StatusNoContent, http.MethodPut, "/Orders(PartitionKey='p',RowKey='1')", `{"Total":1}`)
	want(t, srv, http.StatusCreated, http.MethodPost, "/Orders", `{"PartitionKey":"p","RowKey":"2"}`)
	want(t, srv, http.StatusNoContent, http.MethodDelete, "/Tables('Kept')", "")
	want(t, srv, http.StatusNoContent, http.MethodPut, "/Orders?comp=acl", fmt.Sprintf(policy, "second"))
	want(t, srv, http.StatusAccepted, http.MethodPut, "/?restype=service&comp=properties", fmt.Sprintf(corsRule, "second"))
	changed, changedAnswers := srv.Snapshot(), answers(t, srv)
	for i, s := range []struct {
		to   *tabletest.Snapshot
		want string
	}{{full, fullAnswers}, {empty, emptyAnswers}, {changed, changedAnswers}, {empty, emptyAnswers}, {full, fullAnswers}} {
		srv.Reset(s.to)
		if got := answers(t, srv); got != s.want {
			t.Errorf("reset %d: the server answers\n%s\nwant\n%s", i, got, s.want)
		}
		// A write after the reset must not change the snapshot.
		want(t, srv, http.StatusCreated, http.MethodPost, "/Tables", fmt.Sprintf(`{"TableName":"After%d"}`, i))
	}
}

// TestResetOrders resets to random snapshots of a changing server, whose data is more than
// its memtables hold.
func TestResetOrders(t *testing.T) {
	const seed = 11
	t.Logf("seed %d; repeat with: go test ./tabletest -run TestResetOrders", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	srv := tabletest.New(t)
	want(t, srv, http.StatusCreated, http.MethodPost, "/Tables", `{"TableName":"Orders"}`)
	type state struct {
		*tabletest.Snapshot
		answers string
	}
	var states []state
	text := strings.Repeat("x", 2000)
	issued := map[edm.ETag]bool{}
	for range 60 {
		switch n := random.IntN(10); {
		case n < 6 || len(states) == 0:
			var ops []store.Op
			for i := range 50 {
				key := edm.Key{Partition: fmt.Sprint(random.IntN(4)), Row: fmt.Sprintf("%d-%d", random.IntN(4), i)}
				ops = append(ops, store.InsertOrReplace(edm.Entity{Key: edm.Key{Partition: "p", Row: key.Partition + key.Row}, Properties: edm.Properties{
					{Name: "Text", Value: edm.String(text[:random.IntN(len(text))])},
				}}))
			}
			results, err := srv.Store.Apply(t.Context(), "Orders", ops...)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range results {
				if issued[r.ETag] {
					t.Errorf("the ETag %s is issued twice", r.ETag)
				}
				issued[r.ETag] = true
			}
		case n < 8:
			states = append(states, state{srv.Snapshot(), answers(t, srv)})
		}
		if len(states) == 0 || random.IntN(3) > 0 {
			continue
		}
		s := states[random.IntN(len(states))]
		srv.Reset(s.Snapshot)
		if answers(t, srv) != s.answers {
			t.Fatal("after Reset, the server answers differently than at the Snapshot")
		}
	}
}

// TestResetDuringRequests resets while clients insert two entities at a time and read them.
func TestResetDuringRequests(t *testing.T) {
	srv := tabletest.New(t)
	want(t, srv, http.StatusCreated, http.MethodPost, "/Tables", `{"TableName":"Orders"}`)
	start := srv.Snapshot()
	ctx, cancel := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	for c := range 3 {
		clients.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				row := fmt.Sprintf("%d-%d", c, i)
				if status, text := send(t, srv, http.MethodPost, "/Orders", `{"PartitionKey":"p","RowKey":"`+row+`"}`); status != http.StatusCreated {
					t.Errorf("insert: %d %s", status, text)
				}
				if status, text := send(t, srv, http.MethodGet, "/Orders()", ""); status != http.StatusOK {
					t.Errorf("query: %d %s", status, text)
				}
			}
		})
	}
	for range 50 {
		srv.Reset(start)
	}
	cancel()
	clients.Wait()
	srv.Reset(start)
	if text := want(t, srv, http.StatusOK, http.MethodGet, "/Orders()", ""); text != `{"value":[]}` {
		t.Errorf("after the last Reset, the server has %s", text)
	}
}

// TestResetFaults checks that rules begin to count again.
func TestResetFaults(t *testing.T) {
	srv := tabletest.New(t, tabletest.WithFaults(1, faults.Rule{Operation: "QueryTables", Answer: faults.ServerBusy, Probability: 1, Times: 1}))
	start := srv.Snapshot()
	for range 2 {
		want(t, srv, http.StatusServiceUnavailable, http.MethodGet, "/Tables", "")
		want(t, srv, http.StatusOK, http.MethodGet, "/Tables", "")
		srv.Reset(start)
	}
}

func TestResetOtherServer(t *testing.T) {
	other := tabletest.New(t).Snapshot()
	f := &failing{TB: t}
	srv := tabletest.New(f)
	func() {
		defer func() {
			if recover() != f {
				t.Error("Reset returns")
			}
		}()
		srv.Reset(other)
	}()
	f.end()
	if !strings.Contains(f.said, "a snapshot of another server") {
		t.Errorf("it says %q", f.said)
	}
}

// TestTimestamps writes with a clock that stands still, goes back and advances.
func TestTimestamps(t *testing.T) {
	var mu sync.Mutex
	now := time.Date(2024, 2, 29, 12, 0, 0, 0, time.UTC)
	set := func(t time.Time) {
		mu.Lock()
		defer mu.Unlock()
		now = t
	}
	begin := now
	srv := tabletest.New(t, tabletest.WithTimestamps(func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return now
	}))
	want(t, srv, http.StatusCreated, http.MethodPost, "/Tables", `{"TableName":"Orders"}`)
	timestamp := func(row string) string {
		t.Helper()
		text := want(t, srv, http.StatusCreated, http.MethodPost, "/Orders", `{"PartitionKey":"p","RowKey":"`+row+`"}`)
		_, text, _ = strings.Cut(text, `"Timestamp":"`)
		text, _, _ = strings.Cut(text, `"`)
		return text
	}
	check := func(row, want string) {
		t.Helper()
		if got := timestamp(row); got != want {
			t.Errorf("row %s: Timestamp %s, want %s", row, got, want)
		}
	}
	before := srv.Snapshot()
	set(begin.Add(time.Second))
	check("1", "2024-02-29T12:00:01Z")
	check("2", "2024-02-29T12:00:01.0000001Z")
	set(begin.Add(-time.Hour))
	check("3", "2024-02-29T12:00:01.0000002Z")
	srv.Reset(before)
	check("1", "2024-02-29T12:00:01.0000003Z")
	set(begin.Add(time.Hour))
	check("4", "2024-02-29T13:00:00Z")
}

// opened records how many entries of the log the databases of a server replayed.
type opened struct {
	slog.Handler
	mu      sync.Mutex
	entries []uint64
}

func (*opened) Enabled(context.Context, slog.Level) bool { return true }

func (o *opened) Handle(_ context.Context, r slog.Record) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if r.Message == "database opened" {
		r.Attrs(func(a slog.Attr) bool {
			if a.Key == "entries" {
				o.entries = append(o.entries, a.Value.Uint64())
			}
			return true
		})
	}
	return nil
}

// fill writes n entities.
func fill(t testing.TB, srv *tabletest.Server, n int) {
	t.Helper()
	if err := srv.Store.CreateTable(t.Context(), "Orders"); err != nil {
		t.Fatal(err)
	}
	for i := 0; i < n; i += 100 {
		var ops []store.Op
		for j := i; j < min(n, i+100); j++ {
			ops = append(ops, store.Insert(edm.Entity{Key: edm.Key{Partition: fmt.Sprint(i), Row: fmt.Sprint(j)}, Properties: edm.Properties{
				{Name: "Customer", Value: edm.String(fmt.Sprintf("customer %d", j))},
				{Name: "Total", Value: edm.Double(float64(j) / 3)},
				{Name: "Paid", Value: edm.Boolean(j%2 == 0)},
			}}))
		}
		if _, err := srv.Store.Apply(t.Context(), "Orders", ops...); err != nil {
			t.Fatal(err)
		}
	}
}

// TestSnapshotCost counts the entries that Snapshot and Reset read: of sorted files none,
// of the log a number that does not depend on how many are stored.
func TestSnapshotCost(t *testing.T) {
	sizes := []int{10, 1_000, 100_000, 300_000}
	if testing.Short() {
		sizes = sizes[:2]
	}
	for _, n := range sizes {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			srv := tabletest.New(t)
			fill(t, srv, n)
			log := new(opened)
			srv.SetLogger(slog.New(log))
			before, err := srv.Stats()
			if err != nil {
				t.Fatal(err)
			}
			const times = 20
			for range times {
				srv.Reset(srv.Snapshot())
			}
			after, err := srv.Stats()
			if err != nil {
				t.Fatal(err)
			}
			log.mu.Lock()
			defer log.mu.Unlock()
			if len(log.entries) < times { // more, for the flushed copies
				t.Fatalf("%d databases were opened, want at least %d", len(log.entries), times)
			}
			for i, entries := range log.entries {
				if most := uint64(5000); entries > min(most, uint64(n)+2) {
					t.Errorf("open %d read %d entries of the log, want at most %d", i, entries, most)
				}
			}
			blocks := (after.CacheMisses + after.CacheHits - before.CacheMisses - before.CacheHits) / times
			t.Logf("entries of the log %v, %d blocks of %d sorted files per reset", log.entries, blocks, after.SSTables)
			if blocks > 40 {
				t.Errorf("%d blocks were read per reset", blocks)
			}
			last := edm.Key{Partition: fmt.Sprint((n - 1) / 100 * 100), Row: fmt.Sprint(n - 1)}
			if e, err := srv.Store.Get(t.Context(), "Orders", last); err != nil || len(e.Properties) != 3 {
				t.Errorf("the last entity is %v, %v", e, err)
			}
		})
	}
}

func BenchmarkSnapshot(b *testing.B) {
	forSizes(b, func(b *testing.B, srv *tabletest.Server) {
		for b.Loop() {
			srv.Snapshot()
		}
	})
}

func BenchmarkReset(b *testing.B) {
	forSizes(b, func(b *testing.B, srv *tabletest.Server) {
		to := srv.Snapshot()
		for b.Loop() {
			srv.Reset(to)
		}
	})
}

func forSizes(b *testing.B, run func(*testing.B, *tabletest.Server)) {
	for _, n := range []int{10, 1_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprintf("entities=%d", n), func(b *testing.B) {
			srv := tabletest.New(b)
			fill(b, srv, n)
			run(b, srv)
		})
	}
}

// TestClockOfTheTest has clocks that advance with each call, and that only the goroutine of the
// test may call: the race detector finds calls by another one.
func TestClockOfTheTest(t *testing.T) {
	timestamps := func() (all []edm.Ticks) {
		f := &failing{TB: t}
		defer f.end()
		calls := 0
		srv := tabletest.New(f, tabletest.WithTimestamps(func() time.Time {
			calls++
			return time.Date(2024, 2, 29, 12, 0, calls, 0, time.UTC)
		}))
		ctx := context.Background()
		if err := srv.Store.CreateTable(ctx, "Orders"); err != nil {
			t.Fatal(err)
		}
		for i := range 10 {
			srv.Reset(srv.Snapshot())
			r, err := srv.Store.Apply(ctx, "Orders", store.Insert(edm.Entity{Key: edm.Key{Partition: "eu", Row: fmt.Sprint(i)}}))
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, r[0].Timestamp)
		}
		return all
	}
	if first, second := timestamps(), timestamps(); !slices.Equal(first, second) {
		t.Errorf("Timestamps %v, then %v", first, second)
	}
}
