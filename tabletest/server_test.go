package tabletest_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/server"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/store/storetest"
	"github.com/tablerock-db/tablerock/tabletest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// send sends a signed request and returns the status and the body of the response.
func send(t testing.TB, srv *tabletest.Server, method, path, body string) (int, string) {
	t.Helper()
	r, err := http.NewRequest(method, srv.Endpoint+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", "application/json;odata=nometadata")
	r.Header.Set("Content-Type", "application/json")
	answer, err := srv.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

func want(t testing.TB, srv *tabletest.Server, status int, method, path, body string) string {
	t.Helper()
	got, text := send(t, srv, method, path, body)
	if got != status {
		t.Fatalf("%s %s: status %d, want %d: %s", method, path, got, status, text)
	}
	return text
}

func TestServer(t *testing.T) {
	srv := tabletest.New(t)
	want(t, srv, http.StatusCreated, http.MethodPost, "/Tables", `{"TableName":"Orders"}`)
	want(t, srv, http.StatusCreated, http.MethodPost, "/Orders", `{"PartitionKey":"p","RowKey":"1","Total":42.5}`)
	if text := want(t, srv, http.StatusOK, http.MethodGet, "/Orders(PartitionKey='p',RowKey='1')", ""); !strings.Contains(text, `"Total":42.5`) {
		t.Errorf("the response has the entity %s", text)
	}
	e, err := srv.Store.Get(t.Context(), "Orders", edm.Key{Partition: "p", Row: "1"})
	if err != nil || !e.Properties.Get("Total").Equal(edm.Double(42.5)) {
		t.Errorf("the store has %v, %v", e, err)
	}
	want := "DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;AccountKey=" + srv.Key + ";TableEndpoint=" + srv.Endpoint + ";"
	if srv.ConnectionString() != want {
		t.Errorf("connection string %q, want %q", srv.ConnectionString(), want)
	}
}

// TestOptions sets every option.
func TestOptions(t *testing.T) {
	const key = "c29tZSBvdGhlciBrZXkgb2YgbXkgb3duLCBsb25nIGVub3VnaCBmb3IgdXMh"
	events := make(chan server.Event, 1)
	longAgo := time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC)
	srv := tabletest.New(t,
		tabletest.WithAccount("mine", key),
		tabletest.WithObserver(func(e server.Event) { events <- e }),
		tabletest.WithClock(func() time.Time { return longAgo }))
	if !strings.HasSuffix(srv.Endpoint, "/mine") || srv.Account != "mine" || srv.Key != key {
		t.Errorf("endpoint %s, account %s, key %s", srv.Endpoint, srv.Account, srv.Key)
	}
	want(t, srv, http.StatusOK, http.MethodGet, "/Tables", "")
	if e := <-events; e.Operation != "QueryTables" || e.Status != http.StatusOK || e.Account != "mine" {
		t.Errorf("observed %+v", e)
	}
}

// failing is a test that records its failure.
type failing struct {
	testing.TB
	said     string
	cleanups []func()
}

func (f *failing) Cleanup(c func()) { f.cleanups = append(f.cleanups, c) }

func (f *failing) Fatalf(format string, args ...any) {
	f.said = fmt.Sprintf(format, args...)
	panic(f)
}

func (f *failing) Errorf(format string, args ...any) { f.said += fmt.Sprintf(format, args...) }

// end ends the test.
func (f *failing) end() {
	for i := len(f.cleanups) - 1; i >= 0; i-- {
		f.cleanups[i]()
	}
}

// TestNewFails checks that New fails the test for invalid options, and leaves no
// goroutine.
func TestNewFails(t *testing.T) {
	for want, option := range map[string]tabletest.Option{
		"mine":                    tabletest.WithAccount("mine", "no base64"),
		"is at 10000-01-01T00:00": tabletest.WithTimestamps(func() time.Time { return time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) }),
	} {
		f := &failing{TB: t}
		func() {
			defer func() {
				if recover() != f {
					t.Error("New returns")
				}
			}()
			tabletest.New(f, option)
		}()
		if !strings.Contains(f.said, want) || strings.Contains(f.said, "no base64") {
			t.Errorf("it says %q", f.said)
		}
		f.end()
	}
}

// TestTimestampsEnd lets the clock of a test pass the last Timestamp. The next write of each kind fails the test.
func TestTimestampsEnd(t *testing.T) {
	f := &failing{TB: t}
	now := time.Date(9999, 12, 31, 23, 0, 0, 0, time.UTC)
	s := tabletest.New(f, tabletest.WithTimestamps(func() time.Time { return now })).Store
	if err := s.CreateTable(t.Context(), "Orders"); err != nil || f.said != "" {
		t.Fatalf("CreateTable before the end: %v, and the test says %q", err, f.said)
	}
	now = now.Add(time.Hour)
	for name, write := range map[string]func() error{
		"CreateTable":    func() error { return s.CreateTable(t.Context(), "Others") },
		"Apply":          func() error { _, err := s.Apply(t.Context(), "Orders", store.Insert(edm.Entity{})); return err },
		"SetTableMeta":   func() error { return s.SetTableMeta(t.Context(), "Orders", []byte("meta")) },
		"SetAccountMeta": func() error { return s.SetAccountMeta(t.Context(), []byte("meta")) },
		"DeleteTable":    func() error { return s.DeleteTable(t.Context(), "Orders") },
	} {
		f.said = ""
		if err := write(); !errors.Is(err, store.ErrReadOnly) || !strings.Contains(f.said, "WithTimestamps is at 10000-01-01T00:00:00Z") {
			t.Errorf("%s: %v, and the test says %q", name, err, f.said)
		}
	}
	f.end()
}

// TestStore checks the Store of a server against the contract.
func TestStore(t *testing.T) {
	storetest.Run(t, storetest.Backend{Snapshot: true, RisingTimestamps: true, Open: func(tb testing.TB) store.Store { return tabletest.New(tb).Store }})
}

// TestManyAtOnce runs a thousand tests, each with a server of its own.
func TestManyAtOnce(t *testing.T) {
	n := 1000
	if testing.Short() {
		n = 100
	}
	for i := range n {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			srv := tabletest.New(t)
			want(t, srv, http.StatusCreated, http.MethodPost, "/Tables", `{"TableName":"Orders"}`)
			want(t, srv, http.StatusCreated, http.MethodPost, "/Orders", fmt.Sprintf(`{"PartitionKey":"p","RowKey":"%d"}`, i))
			text := want(t, srv, http.StatusOK, http.MethodGet, "/Orders()?$select=RowKey", "")
			if want := fmt.Sprintf(`{"value":[{"RowKey":"%d"}]}`, i); text != want {
				t.Errorf("the server of test %d has %s, want %s", i, text, want)
			}
		})
	}
}

// TestCloses checks that the store is closed at the end of the test, even if clients
// left connections open.
func TestCloses(t *testing.T) {
	var srv *tabletest.Server
	t.Run("inner", func(t *testing.T) {
		srv = tabletest.New(t)
		answer, err := http.Get(srv.Endpoint + "/Tables") // without a signature, by another client
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		if answer.StatusCode != http.StatusForbidden {
			t.Errorf("status %d", answer.StatusCode)
		}
	})
	if _, err := srv.Store.Tables(t.Context(), "", 0); !errors.Is(err, store.ErrClosed) {
		t.Errorf("after the test, the store returns %v, want ErrClosed", err)
	}
	http.DefaultClient.CloseIdleConnections()
}

// BenchmarkStart measures the time from New to the first response.
func BenchmarkStart(b *testing.B) {
	for b.Loop() {
		f := &failing{TB: b}
		srv := tabletest.New(f)
		want(b, srv, http.StatusOK, http.MethodGet, "/Tables", "")
		f.end()
	}
}
