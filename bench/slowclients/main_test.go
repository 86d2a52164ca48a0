package main

import (
	"bytes"
	"net/url"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/tablerock-db/tablerock/tabletest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestSlowClients checks that the server answers good clients beside a few hundred slow
// and idle ones. It does not check latencies.
func TestSlowClients(t *testing.T) {
	srv := tabletest.New(t)
	at, err := url.Parse(srv.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	c := config{url: at, key: srv.Key, pid: os.Getpid(), slow: 150, idle: 150, good: 2, requests: 100}
	var out bytes.Buffer
	if err := c.run(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); !strings.Contains(got, "beside 150 slow, 150 idle") || !strings.Contains(got, "p99 ratio ") {
		t.Errorf("output:\n%s", got)
	}
	t.Log("\n" + out.String())
}
