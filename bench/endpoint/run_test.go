package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tablerock-db/tablerock/tabletest"
)

// TestRun runs every workload, with few calls, on a server in this process.
func TestRun(t *testing.T) {
	srv := tabletest.New(t)
	args := []string{
		"-connection-string", srv.ConnectionString(), "-pid", strconv.Itoa(os.Getpid()),
		"-n", "2500", "-inserts", "100", "-gets", "200", "-scans", "2", "-filters", "3", "-conns", "4", "-reps", "2", "-json",
	}
	var out bytes.Buffer
	if err := run(t.Context(), args, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	var rep report
	if err := json.Unmarshal(out.Bytes(), &rep); err != nil {
		t.Fatalf("%s: %v", out.Bytes(), err)
	}
	type work struct {
		name            string
		calls, entities int
	}
	var got []work
	for _, res := range rep.Results {
		got = append(got, work{res.Workload, res.Calls, res.Entities})
		if res.P50 <= 0 || res.P99 < res.P50 || res.Max < res.P99 || res.PerSecond <= 0 {
			t.Errorf("the quantiles of %s do not ascend: %+v", res.Workload, res)
		}
	}
	want := []work{{"batch", 25, 2500}, {"insert", 100, 100}, {"get", 200, 200}, {"scan", 2, 5000}, {"filter", 3, 9}}
	if len(got) != len(want) {
		t.Fatalf("got %v, want %v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("got %v, want %v", got[i], want[i])
		}
	}
	if err := ask(mustTarget(t, srv.ConnectionString()), "Tables('"+tableLoaded+"')"); err == nil {
		t.Error("the table still exists")
	}
}

func mustTarget(t *testing.T, connectionString string) *target {
	t.Helper()
	target, err := parseTarget(connectionString)
	if err != nil {
		t.Fatal(err)
	}
	return target
}

// TestParseSettingsRefuses checks that a value that a flag cannot have is an error, not another
// measurement.
func TestParseSettingsRefuses(t *testing.T) {
	for _, flag := range []string{"-inserts=-1", "-gets=-1", "-scans=-1", "-filters=-1", "-signal=INT", "-signal=kill", "-workloads=gets"} {
		if s, err := parseSettings([]string{flag}, io.Discard); err == nil {
			t.Errorf("%s: settings %+v, want an error", flag, s)
		}
	}
	for _, flag := range []string{"-inserts=0", "-signal=KILL", "-workloads=get, scan", "-workloads=batch"} {
		if _, err := parseSettings([]string{flag}, io.Discard); err != nil {
			t.Errorf("%s: %v", flag, err)
		}
	}
}

// TestRunFails checks that an unexpected response ends the run with an error that has its
// body.
func TestRunFails(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodDelete || strings.HasSuffix(r.URL.Path, "/Tables") {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		http.Error(w, "disk full", http.StatusInsufficientStorage)
	}))
	defer srv.Close()
	key := base64.StdEncoding.EncodeToString([]byte("key"))
	err := run(t.Context(), []string{"-connection-string", "AccountName=a;AccountKey=" + key + ";TableEndpoint=" + srv.URL + "/a"}, io.Discard, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "batch: status 507 instead of 202: disk full") {
		t.Errorf("got %v", err)
	}
}

func TestMedian(t *testing.T) {
	got := median([]result{{PerCPUSecond: 3}, {PerCPUSecond: 1}, {PerCPUSecond: 2}})
	if got.PerCPUSecond != 2 || got.Least != 1 || got.Greatest != 3 {
		t.Errorf("got %+v", got)
	}
	if got := median([]result{{PerSecond: 9}, {PerSecond: 7}, {PerSecond: 8}}); got.PerSecond != 8 {
		t.Errorf("without a cost: got %+v", got)
	}
}

func TestPrint(t *testing.T) {
	rep := &report{
		Results: []result{{Workload: "get", Unit: "entities", PerSecond: 10}, {Workload: "scan", Unit: "entities", CPU: 1e9, Resident: 3 << 20}},
		Restart: &restartResult{FirstResponse: 44e6, CPU: 10e6, Resident: 1 << 20, Signal: "TERM"},
	}
	for _, c := range []struct {
		settings settings
		want     string
	}{
		{settings{}, "3.0 MiB"},
		{settings{markdown: true}, "| scan | entities |"},
		{settings{json: true}, `"first_response_ns": 44000000`},
	} {
		var out bytes.Buffer
		if err := rep.print(&out, c.settings); err != nil || !strings.Contains(out.String(), c.want) {
			t.Errorf("%+v: got %v, %s", c.settings, err, out.String())
		}
	}
}

// TestServers spreads the connections over two servers of one account. Each server waits for
// the other, so that one connection cannot make all calls while the other one begins.
func TestServers(t *testing.T) {
	srv := tabletest.New(t)
	to, err := url.Parse(srv.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: to.Host})
	proxy.Transport = &http.Transport{}
	defer proxy.Transport.(*http.Transport).CloseIdleConnections()
	const share = 50 // of the second server, before the first one answers
	begun, shared := make(chan struct{}), make(chan struct{})
	front := func(insert func(n int64)) (host string, inserts *atomic.Int64) {
		inserts = new(atomic.Int64)
		web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost && path.Base(r.URL.Path) == tableInserted {
				insert(inserts.Add(1))
			}
			r.Host = to.Host
			proxy.ServeHTTP(w, r)
		}))
		t.Cleanup(web.Close)
		return strings.TrimPrefix(web.URL, "http://"), inserts
	}
	first, ofFirst := front(func(n int64) {
		if n == 1 {
			close(begun)
			<-shared
		}
	})
	second, ofSecond := front(func(n int64) {
		if <-begun; n == share {
			close(shared)
		}
	})
	args := []string{
		"-connection-string", strings.Replace(srv.ConnectionString(), to.Host, first, 1), "-servers", second,
		"-n", "1000", "-inserts", "500", "-workloads", "insert", "-conns", "2",
	}
	if err := run(t.Context(), args, io.Discard, io.Discard); err != nil {
		t.Fatal(err)
	}
	if a, b := ofFirst.Load(), ofSecond.Load(); a < 1 || b < share || a+b != 500 {
		t.Errorf("the servers got %d and %d of 500 inserts", a, b)
	}
}
