package server_test

import (
	"slices"
	"testing"

	"github.com/tablerock-db/tablerock/server"
)

// TestOperationNames compares the operation of a request in its event with that of Identify,
// whether the request succeeds or not.
func TestOperationNames(t *testing.T) {
	const one, good, bad = "/acct/People(PartitionKey='p',RowKey='r')", `{"N":1}`, `{`
	for _, r := range []struct{ operation, method, path, body, header, value string }{
		{"InsertEntity", "POST", "/acct/People", `{"PartitionKey":"p","RowKey":"r"}`, "", ""},
		{"InsertEntity", "POST", "/acct/People", bad, "If-Match", "*"},
		{"InsertOrReplaceEntity", "PUT", one, good, "", ""},
		{"InsertOrReplaceEntity", "PUT", one, bad, "", ""},
		{"InsertOrReplaceEntity", "POST", one, bad, "X-Http-Method", "PUT"},
		{"InsertOrReplaceEntity", "PUT", one, good, "Accept", "text/plain"},
		{"InsertOrMergeEntity", "MERGE", one, good, "", ""},
		{"InsertOrMergeEntity", "PATCH", one, bad, "", ""},
		{"ReplaceEntity", "PUT", one, good, "If-Match", "*"},
		{"ReplaceEntity", "PUT", one, bad, "If-Match", "*"},
		{"ReplaceEntity", "PUT", one, good, "If-Match", ""},
		{"MergeEntity", "PATCH", one, good, "If-Match", "*"},
		{"MergeEntity", "MERGE", one, good, "If-Match", `W/"another"`},
		{"DeleteEntity", "DELETE", one, "", "", ""},
		{"DeleteEntity", "DELETE", one, "", "If-Match", "*"},
		{"GetEntity", "GET", one, "", "If-Match", "*"},
		{"Batch", "POST", "/acct/$batch", oneRead("/People()"), "Content-Type", "multipart/mixed; boundary=b"},
		{"Batch", "POST", "/acct/$batch", bad, "", ""},
		{"CreateTable", "POST", "/acct/Tables", bad, "", ""},
	} {
		c := newClient(t)
		request := c.request(r.method, r.path, r.body)
		if r.header != "" {
			request.Header.Set(r.header, r.value)
		}
		if err := c.credential.SignRequest(request, testTime); err != nil {
			t.Fatal(err)
		}
		identified := c.handler.(*server.Server).Identify(request).Operation
		c.do(request)
		got := c.events[0].Operation
		if got != r.operation || identified != r.operation {
			t.Errorf("%s %s %q, %s %q: Event has %q, Identify %q, want %q", r.method, r.path, r.body, r.header, r.value, got, identified, r.operation)
		}
		if names := server.Operations(); !slices.Contains(names, got) {
			t.Errorf("Operations returns %q, without %q", names, got)
		}
	}
}
