package serve

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestExaminedRows checks the number of examined rows of queries: with a filter on a
// property it is that of the table, even if it has several pages.
func TestExaminedRows(t *testing.T) {
	s := start(t, "--in-memory", "--access-log")
	s.want(t, http.StatusCreated, http.MethodPost, s.url+"/Tables", `{"TableName":"Rows"}`)
	const rows = 90
	text := strings.Repeat("x", 30_000)
	for i := range rows {
		at := fmt.Sprintf("%s/Rows(PartitionKey='p',RowKey='%03d')", s.url, i)
		s.want(t, http.StatusNoContent, http.MethodPut, at, fmt.Sprintf(`{"N":%d,"A":%q,"B":%q}`, i, text, text))
	}
	var wants []string
	for _, c := range []struct {
		query    string
		returned int
	}{{"$filter=N%20eq%207", 1}, {"$filter=N%20lt%2010&$select=N", 10}, {"$filter=N%20lt%200", 0}} {
		s.want(t, http.StatusOK, http.MethodGet, s.url+"/Rows()?"+c.query, "")
		wants = append(wants, fmt.Sprintf(" examined=%d returned=%d ", rows, c.returned))
	}
	// A page of 4 MiB has only some of the rows, and the next page starts with the last
	// row that was examined.
	page := s.want(t, http.StatusOK, http.MethodGet, s.url+"/Rows()", "")
	returned := strings.Count(page, `"RowKey"`)
	if returned == rows {
		t.Error("all rows came in one page")
	}
	wants = append(wants, fmt.Sprintf(" examined=%d returned=%d ", returned+1, returned))
	s.stop() // flushes the log
	for _, want := range wants {
		if !strings.Contains(s.stderr.String(), want) {
			t.Errorf("no request is logged with%s", want)
		}
	}
}
