package server_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/store"
)

// droppingStore has tables that are deleted while they are queried.
type droppingStore struct{ store.Store }

func (d droppingStore) Query(ctx context.Context, table string, q store.Query) store.Cursor {
	return droppingCursor{d.Store.Query(ctx, table, q)}
}

type droppingCursor struct{ store.Cursor }

func (droppingCursor) Err() error { return store.ErrTableNotFound }

// TestFailedBatchQuery sends a batch with a query that fails after its first entities. The
// response must not have any of them.
func TestFailedBatchQuery(t *testing.T) {
	c := newClient(t)
	const mark = "text of entities"
	for i := range 10 {
		body := fmt.Sprintf(`{"PartitionKey":"p","RowKey":"%d","Text":"%s"}`, i, strings.Repeat(mark, 2000))
		if res := c.signed(http.MethodPost, "/acct/People", body, "Content-Type", "application/json"); res.StatusCode != http.StatusCreated {
			t.Fatal(res.Status)
		}
	}
	c.store.Store = droppingStore{c.store.Store}
	res := c.signed(
		http.MethodPost, "/acct/$batch", "--b\r\nContent-Type: application/http\r\n\r\nGET /acct/People HTTP/1.1\r\n\r\n--b--\r\n",
		"Content-Type", "multipart/mixed; boundary=b",
	)
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	got := string(body)
	if res.StatusCode != http.StatusAccepted || !strings.HasPrefix(got, "--batchresponse_") ||
		!strings.Contains(got, "0:The table specified does not exist.") || strings.Contains(got, mark) {
		t.Errorf("got %s, %d bytes: %.300s", res.Status, len(got), got)
	}
}

// TestSecondaryBatch sends batches to the secondary endpoint: it reads, and does not write.
func TestSecondaryBatch(t *testing.T) {
	c := newClient(t)
	if res := c.signed(http.MethodPost, "/acct/People", `{"PartitionKey":"p","RowKey":"1"}`); res.StatusCode != http.StatusCreated {
		t.Fatal(res.Status)
	}
	const mixed = "multipart/mixed; boundary=o"
	query := "--o\r\nContent-Type: application/http\r\n\r\n" +
		"GET http://127.0.0.1:10002/acct-secondary/People(PartitionKey='p',RowKey='1') HTTP/1.1\r\n\r\n--o--\r\n"
	res := c.signed(http.MethodPost, "/acct-secondary/$batch", query, "Content-Type", mixed)
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusAccepted || !strings.Contains(string(body), "HTTP/1.1 200 OK") {
		t.Errorf("a query: got %s, %v: %s", res.Status, err, body)
	}
	insert := changeset(operation("POST", "/acct-secondary/People", "", `{"PartitionKey":"p","RowKey":"2"}`))
	if res := c.signed(http.MethodPost, "/acct-secondary/$batch", insert, "Content-Type", mixed); res.StatusCode != http.StatusForbidden {
		t.Errorf("an insert: got %s, want 403", res.Status)
	}
}
