package server_test

import (
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// timestamps are what differs between answers to one operation.
var timestamps = regexp.MustCompile(`datetime'[^']*'|"Timestamp":"[^"]*"`)

// TestPartsAnswerAsAlone sends every operation behind every other, and expects the
// answer that it has alone: of what parts have in common, nothing may be taken from
// the wrong one.
func TestPartsAnswerAsAlone(t *testing.T) {
	const people, body = "/" + testAccount + "/People", `{"PartitionKey":"p","RowKey":"%d"}`
	// A number in the place of %d tells apart the entities of one batch.
	operations := []string{
		operation("POST", people, "Prefer: return-no-content\r\n", body),
		operation("POST", people, "", body),
		operation("POST", people, "prefer: return-content\r\n", body),
		operation("POST", people, "Prefer: return-no-content\r\nContent-ID: %d\r\n", body),
		operation("POST", people+"?$format=application/json;odata=nometadata", "", body),
		operation("POST", people+"?$format=application/json;odata=nometadata", "Prefer: return-content\r\n", body),
		operation("POST", "http://127.0.0.1:10002"+people, "Prefer: return-no-content\r\n", body),
		operation("POST", people+"()", "Content-Type: application/json\r\n", body),
		operation("POST", strings.ToLower(people), "Prefer: return-content\r\n", body),
		operation("PUT", people+"(PartitionKey='p',RowKey='%d')", "", "{}"),
		operation("PATCH", people+"(PartitionKey='p',RowKey='%d')", "", "{}"),
		operation("POST", people+"(PartitionKey='p',RowKey='%d')", "X-HTTP-Method: MERGE\r\n", "{}"),
		operation("POST", people+"(PartitionKey='p',RowKey='%d')", "X-HTTP-Method: PUT\r\nContent-ID: %d\r\n", "{}"),
	}
	send := func(texts ...string) []string {
		c := newClient(t)
		all := make([]string, len(texts))
		for i, text := range texts {
			all[i] = strings.ReplaceAll(text, "%d", strconv.Itoa(len(texts)-i)) // 1 for the last
		}
		res := c.signed(http.MethodPost, "/"+testAccount+"/$batch", changeset(all...), "Content-Type", "multipart/mixed; boundary=o")
		answer, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode != http.StatusAccepted {
			t.Fatalf("%q: %s, %v", texts, res.Status, err)
		}
		parts := strings.Split(timestamps.ReplaceAllString(string(answer), "TIME"), "HTTP/1.1 ")[1:]
		for i, p := range parts {
			parts[i], _, _ = strings.Cut(p, "\r\n--changeset")
		}
		return parts
	}
	for _, text := range operations {
		alone := send(text)
		if len(alone) != 1 || !strings.HasPrefix(alone[0], "20") {
			t.Fatalf("%q alone: %q", text, alone)
		}
		for _, before := range operations {
			if both := send(before, text); len(both) != 2 || both[1] != alone[0] {
				t.Errorf("%q behind %q: %q\nwant %q last", text, before, both, alone)
			}
		}
	}
}
