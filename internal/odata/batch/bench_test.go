package batch_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/internal/odata/batch"
)

// hundred is a batch of 100 inserts of about 1 KB each.
func hundred() []byte {
	var operations []string
	for i := range 100 {
		operations = append(operations,
			fmt.Sprintf("POST http://127.0.0.1:10002/devstoreaccount1/Book HTTP/1.1\nAccept: application/json;odata=minimalmetadata\n"+
				"Content-Type: application/json\nPrefer: return-no-content\nDataServiceVersion: 3.0\n\n{\"PartitionKey\":\"p\",\"RowKey\":\"%d\",\"a\":\"%s\"}\n",
				i, strings.Repeat("x", 900)))
	}
	return []byte(crlf(changeset(operations...)))
}

func BenchmarkParse(b *testing.B) {
	body := hundred()
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := batch.Parse(mixed, body); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkWriter(b *testing.B) {
	var buf []byte
	header := []batch.Field{
		{Name: "X-Content-Type-Options", Value: "nosniff"},
		{Name: "DataServiceVersion", Value: "3.0;"},
		{Name: "ETag", Value: "W/\"datetime'2024-02-03T04%3A05%3A06.789Z'\""},
	}
	b.ReportAllocs()
	for b.Loop() {
		w := batch.NewWriter(buf[:0], "a455c695-df98-5678-aaaa-81d3367e5a34", "a455c695-df98-5678-aaaa-81d3367e5a34")
		for range 100 {
			w.BeginOperation(http.StatusNoContent, header...)
		}
		buf = w.End()
	}
}

// TestParseAllocations checks that the allocations do not grow with the number of
// operations: strings, header fields and operations share memory.
func TestParseAllocations(t *testing.T) {
	body := hundred()
	n := testing.AllocsPerRun(20, func() {
		if _, err := batch.Parse(mixed, body); err != nil {
			t.Fatal(err)
		}
	})
	if n > 20 {
		t.Errorf("a batch of 100 operations allocates %v times, want at most 20", n)
	}
}
