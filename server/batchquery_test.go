package server_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"slices"
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

// TestBatchQueryPages reads a table page by page with batches: the part of a query says where
// its next page starts, as the response of a query by itself does.
func TestBatchQueryPages(t *testing.T) {
	c := newClient(t)
	for _, key := range []string{"a", "b'", "c%", "ü", "日本"} {
		body := fmt.Sprintf(`{"PartitionKey":"%s","RowKey":"%s"}`, key, key)
		if res := c.signed(http.MethodPost, "/acct/People", body, "Content-Type", "application/json"); res.StatusCode != http.StatusCreated {
			t.Fatal(res.Status)
		}
	}
	var rows []string
	next := ""
	for range 10 { // more than the pages
		target := "/acct/People?$format=application/json;odata=nometadata&$select=RowKey&$top=2" + next
		batch := "--b\r\nContent-Type: application/http\r\n\r\nGET " + target + " HTTP/1.1\r\n\r\n--b--\r\n"
		res := c.signed(http.MethodPost, "/acct/$batch", batch, "Content-Type", "multipart/mixed; boundary=b")
		page, body := partOf(t, res)
		rows = append(rows, body)
		for name := range res.Header {
			if strings.HasPrefix(name, "X-Ms-Continuation-") {
				t.Errorf("the response of the batch has %s", name)
			}
		}
		partition, row := page.Get("x-ms-continuation-NextPartitionKey"), page.Get("x-ms-continuation-NextRowKey")
		if partition == "" {
			break
		}
		next = "&NextPartitionKey=" + url.QueryEscape(partition) + "&NextRowKey=" + url.QueryEscape(row)
	}
	want := []string{`{"value":[{"RowKey":"a"},{"RowKey":"b'"}]}`, `{"value":[{"RowKey":"c%"},{"RowKey":"\u00fc"}]}`, `{"value":[{"RowKey":"\u65e5\u672c"}]}`}
	if !slices.Equal(rows, want) {
		t.Errorf("got %q, want %q", rows, want)
	}
}

// partOf returns the headers and the body of the response in the only part of a batch.
func partOf(t *testing.T, res *http.Response) (http.Header, string) {
	t.Helper()
	_, params, err := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if err != nil {
		t.Fatal(res.Status, err)
	}
	part, err := multipart.NewReader(res.Body, params["boundary"]).NextPart()
	if err != nil {
		t.Fatal(err)
	}
	inner, err := http.ReadResponse(bufio.NewReader(part), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer inner.Body.Close()
	body, err := io.ReadAll(inner.Body)
	if err != nil || inner.StatusCode != http.StatusOK {
		t.Fatal(inner.Status, err)
	}
	return inner.Header, string(body)
}
