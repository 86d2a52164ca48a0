package tabletest_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/server/faults"
	"github.com/tablerock-db/tablerock/tabletest"
)

// verdict is a test that passed or failed, and what it printed.
type verdict struct {
	failing
	failed bool
	log    []string
}

func (v *verdict) Failed() bool { return v.failed }

func (v *verdict) Log(args ...any) { v.log = append(v.log, args[0].(string)) }

// TestLog compares what a test that failed prints with what one that passed does.
func TestLog(t *testing.T) {
	const secret = "hidden"
	for _, failed := range []bool{false, true} {
		v := &verdict{failing: failing{TB: t}, failed: failed}
		srv := tabletest.New(v, tabletest.WithFaults(1, faults.Rule{Operation: "Batch", Answer: faults.CutBefore, Probability: 1}))
		want(t, srv, http.StatusCreated, http.MethodPost, "/Tables", `{"TableName":"Orders"}`)
		want(t, srv, http.StatusCreated, http.MethodPost, "/Orders", `{"PartitionKey":"`+secret+`","RowKey":"1","Name":"`+secret+`"}`)
		want(t, srv, http.StatusConflict, http.MethodPost, "/Orders", `{"PartitionKey":"`+secret+`","RowKey":"1"}`)
		want(t, srv, http.StatusNotFound, http.MethodGet, "/Orders(PartitionKey='"+secret+"',RowKey='2')", "")
		want(t, srv, http.StatusForbidden, http.MethodGet, "/Orders()?sig="+secret, "")
		if answer, err := srv.Client().Post(srv.Endpoint+"/$batch", "multipart/mixed", strings.NewReader(secret)); err == nil {
			answer.Body.Close()
			t.Error("the connection is not cut")
		}
		srv.Reset(srv.Snapshot())
		v.end()
		if !failed {
			if len(v.log) > 0 {
				t.Errorf("a test that passed prints %q", v.log)
			}
			continue
		}
		if len(v.log) != 1 {
			t.Fatalf("a test that failed prints %q", v.log)
		}
		for _, line := range []string{
			"POST   CreateTable     Orders     201 ", "POST   InsertEntity    Orders     409 ", " EntityAlreadyExists", "GET    GetEntity       Orders     ",
			"fault  Batch            CutBefore", "reset to a snapshot", "the last 7 of 7 lines",
		} {
			if !strings.Contains(v.log[0], line) {
				t.Errorf("%s\nhas no %q", v.log[0], line)
			}
		}
		if strings.Contains(v.log[0], secret) || strings.Contains(v.log[0], srv.Key) {
			t.Errorf("the log has keys or credentials: %s", v.log[0])
		}
	}
}

// TestLogLimit checks that the last requests are kept.
func TestLogLimit(t *testing.T) {
	v := &verdict{failing: failing{TB: t}, failed: true}
	srv := tabletest.New(v)
	want(t, srv, http.StatusCreated, http.MethodPost, "/Tables", `{"TableName":"First"}`)
	for range 1000 {
		want(t, srv, http.StatusNotFound, http.MethodGet, "/None(PartitionKey='p',RowKey='1')", "")
	}
	want(t, srv, http.StatusCreated, http.MethodPost, "/Tables", `{"TableName":"Last"}`)
	v.end()
	first, last := strings.Contains(v.log[0], "First"), strings.HasSuffix(strings.TrimRight(v.log[0], "\n"), "1 returned")
	if first || !last || !strings.Contains(v.log[0], "the last 1000 of 1002 lines") {
		t.Errorf("the log has the first request: %v, ends with the last one: %v, begins with %s", first, last, v.log[0][:100])
	}
}
