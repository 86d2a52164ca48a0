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

// dropping is a store whose tables are gone by the time that they were read.
type dropping struct{ store.Store }

func (d dropping) Query(ctx context.Context, table string, q store.Query) store.Cursor {
	return droppingCursor{d.Store.Query(ctx, table, q)}
}

type droppingCursor struct{ store.Cursor }

func (droppingCursor) Err() error { return store.ErrTableNotFound }

// TestLookUpFailsWhole asks a batch for a page of which pieces are there when it
// fails: nothing of them is in the answer.
func TestLookUpFailsWhole(t *testing.T) {
	c := newClient(t)
	const mark = "piece of a page"
	for i := range 10 {
		body := fmt.Sprintf(`{"PartitionKey":"p","RowKey":"%d","Text":"%s"}`, i, strings.Repeat(mark, 2000))
		if res := c.signed(http.MethodPost, "/acct/People", body, "Content-Type", "application/json"); res.StatusCode != http.StatusCreated {
			t.Fatal(res.Status)
		}
	}
	c.store.Store = dropping{c.store.Store}
	res := c.signed(
		http.MethodPost, "/acct/$batch", "--b\r\nContent-Type: application/http\r\n\r\nGET /acct/People HTTP/1.1\r\n\r\n--b--\r\n",
		"Content-Type", "multipart/mixed; boundary=b",
	)
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	got := string(body)
	if res.StatusCode != http.StatusAccepted || !strings.HasPrefix(got, "--batchresponse_") || !strings.Contains(got, "0:The table specified does not exist.") || strings.Contains(got, mark) {
		t.Errorf("got %s, %d bytes: %.300s", res.Status, len(got), got)
	}
}
