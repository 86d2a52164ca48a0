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

// TestReturned counts the entities in responses: writes that return none have none, and so
// have failures after the first entities.
func TestReturned(t *testing.T) {
	const people, one = "/acct/People", "/acct/People(PartitionKey='p',RowKey='1')"
	const envelope = "multipart/mixed; boundary=o"
	c := newClient(t)
	batch := changeset(
		operation("POST", people, "", `{"PartitionKey":"p","RowKey":"3"}`),
		operation("POST", people, "Prefer: return-no-content\r\n", `{"PartitionKey":"p","RowKey":"4"}`),
		operation("DELETE", "/acct/People(PartitionKey='p',RowKey='2')", "If-Match: *\r\n", ""),
	)
	failed := "--o\r\n" + operation("GET", people, "", "") + "\r\n--o--\r\n"
	for i, r := range []struct {
		method, path, body, header, value string
		status, want                      int
	}{
		{"POST", people, `{"PartitionKey":"p","RowKey":"1"}`, "", "", 201, 1},
		{"POST", people, `{"PartitionKey":"p","RowKey":"2"}`, "Prefer", "return-no-content", 204, 0},
		{"POST", people, `{"PartitionKey":"p","RowKey":"1"}`, "", "", 409, 0},
		{"PUT", one, `{}`, "", "", 204, 0},
		{"POST", "/acct/$batch", batch, "Content-Type", envelope, 202, 1},
		{"GET", one, "", "", "", 200, 1},
		{"GET", people, "", "", "", 200, 3},
		{"POST", "/acct/$batch", failed, "Content-Type", envelope, 202, 3},
		{"DELETE", one, "", "If-Match", "*", 204, 0},
		{"GET", people, "", "", "", 404, 0},
		{"POST", "/acct/$batch", failed, "Content-Type", envelope, 202, 0},
	} {
		if r.want == 0 && r.status == 404 { // and for the last batch
			c.store.Store = droppingStore{c.store.Store}
		}
		var headers []string
		if r.header != "" {
			headers = []string{r.header, r.value}
		}
		res := c.signed(r.method, r.path, r.body, headers...)
		if got := c.events[i].Returned; res.StatusCode != r.status || got != r.want {
			t.Errorf("%s %s %q: status %d, %d entities in the event; want %d, %d", r.method, r.path, r.body, res.StatusCode, got, r.status, r.want)
		}
	}
}
