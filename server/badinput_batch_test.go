package server_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/internal/sharedkey"
)

// operation returns the text of one operation in a batch.
func operation(method, target, headers, body string) string {
	return "Content-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n" +
		method + " " + target + " HTTP/1.1\r\nAccept: application/json\r\n" + headers + "\r\n" + body
}

// put replaces or inserts an entity.
func put(partition, row string) string {
	return operation("PUT", "/devstoreaccount1/People(PartitionKey='"+partition+"',RowKey='"+row+"')", "Content-Type: application/json\r\n", "{}")
}

// changeset returns an envelope with these operations.
func changeset(operations ...string) string {
	var b strings.Builder
	b.WriteString("--o\r\nContent-Type: multipart/mixed; boundary=i\r\n\r\n")
	for _, text := range operations {
		b.WriteString("--i\r\n" + text + "\r\n")
	}
	return b.String() + "--i--\r\n--o--\r\n"
}

// batch returns a request with an envelope.
func batch(name, body, want string) testRequest {
	return testRequest{name: name, method: "POST", path: "/$batch", headers: "Content-Type: multipart/mixed; boundary=o\r\n", body: body, want: want}
}

// TestBatches sends invalid batches, which must not write anything.
func TestBatches(t *testing.T) {
	const whole = "400 InvalidInput"
	inner := func(code string) string { return "202 " + code }
	read := operation("GET", "/devstoreaccount1/People(PartitionKey='a',RowKey='1')", "", "")
	var many []string
	for i := range 101 {
		many = append(many, put("a", fmt.Sprintf("x%d", i)))
	}
	var thousands []string
	for i := range 20_000 {
		thousands = append(thousands, put("a", fmt.Sprint(i)))
	}
	big := func(n int) string {
		text := `{"PartitionKey":"a","RowKey":"%d"`
		for i := range 15 {
			text += fmt.Sprintf(`,"p%d":"%s"`, i, strings.Repeat("x", 32768))
		}
		var all []string
		for i := range n {
			all = append(all, operation("POST", "/devstoreaccount1/People", "Content-Type: application/json\r\n", fmt.Sprintf(text, i+10)+"}"))
		}
		return changeset(all...)
	}
	nested := "Content-Type: multipart/mixed; boundary=n\r\n\r\n--n\r\n" + put("a", "2") + "\r\n--n--\r\n"
	sendAll(t, []testRequest{
		batch("no operation", changeset(), "202"),
		batch("a part without content", changeset(""), "202 InvalidInput"),
		batch("two parts without content", changeset("", ""), whole),
		batch("101", changeset(many...), inner("InvalidInput")),
		batch("20,000", changeset(thousands...), inner("InvalidInput")),
		batch("too many bytes", big(10), "413 RequestBodyTooLarge"),
		batch("one entity twice", changeset(put("a", "2"), put("a", "3"), put("a", "2")), inner("InvalidDuplicateRow")),
		batch("two partitions", changeset(put("a", "2"), put("b", "2")), inner("CommandsInBatchActOnDifferentPartitions")),
		batch("two tables", changeset(put("a", "2"), strings.Replace(put("a", "3"), "People", "Others", 1)), inner("CommandsInBatchActOnDifferentPartitions")),
		batch("a read among writes", changeset(put("a", "2"), read), whole),
		batch("two reads", "--o\r\n"+read+"\r\n--o\r\n"+read+"\r\n--o--\r\n", whole),
		batch("a read and a changeset", "--o\r\n"+read+"\r\n"+changeset(put("a", "2")), whole),
		batch("two changesets", strings.TrimSuffix(changeset(put("a", "2")), "--o--\r\n")+changeset(put("a", "3")), whole),
		batch("a read in a changeset", changeset(read), whole),
		batch("a query in a changeset", changeset(operation("GET", "/devstoreaccount1/People()", "", "")), whole),
		batch("a write outside of a changeset", "--o\r\n"+put("a", "2")+"\r\n--o--\r\n", whole),
		batch("a batch in a batch", changeset(operation("POST", "/devstoreaccount1/$batch", "Content-Type: multipart/mixed; boundary=o\r\n",
			changeset(put("a", "2")))), whole),
		batch("a changeset in a changeset", changeset(nested), whole),
		batch("a table created", changeset(operation("POST", "/devstoreaccount1/Tables", "Content-Type: application/json\r\n", `{"TableName":"Others"}`)),
			inner("InvalidInput")),
		batch("a table deleted", changeset(operation("DELETE", "/devstoreaccount1/Tables('People')", "", "")), inner("InvalidInput")),
		batch("policies set", changeset(operation("PUT", "/devstoreaccount1/People?comp=acl", "", "")), inner("InvalidInput")),
		batch("policies read", "--o\r\n"+operation("GET", "/devstoreaccount1/People?comp=acl", "", "")+"\r\n--o--\r\n", inner("InvalidInput")),
		batch("the last one fails", changeset(append(many[:99:99], operation("POST", "/devstoreaccount1/People", "", entityBody+"x"))...), inner("InvalidInput")),
		batch("the last one already exists", changeset(append(many[:99:99], operation("POST", "/devstoreaccount1/People", "",
			`{"PartitionKey":"a","RowKey":"1"}`))...), inner("EntityAlreadyExists")),
	})
}

// TestEnvelopes sends invalid envelopes.
func TestEnvelopes(t *testing.T) {
	const refused = "400 InvalidInput"
	good := changeset(put("a", "2"))
	var requests []testRequest
	for _, c := range []struct{ name, kind, body, want string }{
		{"no boundary", "multipart/mixed", good, refused},
		{"an empty one", "multipart/mixed; boundary=", good, refused},
		{"another one", "multipart/mixed; boundary=x", good, refused},
		{"one that is too long", "multipart/mixed; boundary=" + strings.Repeat("o", 71), strings.ReplaceAll(good, "--o", "--"+strings.Repeat("o", 71)), refused},
		{"a control character in it", "multipart/mixed; boundary=\"o\x01\"", good, "400"},
		{"both the same", "multipart/mixed; boundary=i", strings.ReplaceAll(good, "--o", "--i"), refused},
		{"JSON", "application/json", "{}", refused},
		{"another multipart", "multipart/form-data; boundary=o", good, refused},
		{"no end", "multipart/mixed; boundary=o", strings.TrimSuffix(good, "--o--\r\n"), refused},
		{"no end within", "multipart/mixed; boundary=o", strings.Replace(good, "--i--\r\n", "", 1), refused},
		{"nothing", "multipart/mixed; boundary=o", "--o--\r\n", refused},
		{"only a beginning", "multipart/mixed; boundary=o", "--o", refused},
		{"a lot before", "multipart/mixed; boundary=o", strings.Repeat("x", 3<<20), refused},
		{"an operation without the end of its header", "multipart/mixed; boundary=o", "--o\r\nContent-Type: multipart/mixed; boundary=i", refused},
		{"an operation of text/plain", "multipart/mixed; boundary=o", "--o\r\nContent-Type: text/plain\r\n\r\nPUT / HTTP/1.1\r\n\r\n--o--\r\n", refused},
		{"an operation of 500,000 headers", "multipart/mixed; boundary=o", "--o\r\n" + strings.Repeat("a: b\r\n", 500_000) + "\r\n--o--\r\n", refused},
		{"600,000 empty operations", "multipart/mixed; boundary=o", strings.Repeat("--o\r\n", 600_000) + "--o--\r\n", refused},
	} {
		if c.body == "" {
			continue
		}
		requests = append(requests, testRequest{
			name: c.name, method: "POST", path: "/$batch", headers: "Content-Type: " + c.kind + "\r\n", body: c.body,
			want: c.want,
		})
	}
	sendAll(t, requests)
}

// TestOperations sends operations for other accounts, or with invalid lengths and paths.
func TestOperations(t *testing.T) {
	const target = "/devstoreaccount1/People(PartitionKey='a',RowKey='2')"
	json := "Content-Type: application/json\r\n"
	inner := func(name, text, want string) testRequest { return batch(name, changeset(text), want) }
	sendAll(t, []testRequest{
		inner("another account", operation("PUT", "/other/People(PartitionKey='a',RowKey='2')", json, "{}"), "202 InvalidUri"),
		inner("another account by the whole address", operation("PUT", "http://127.0.0.1:10002/other/People(PartitionKey='a',RowKey='2')", json, "{}"),
			"202 InvalidInput"),
		inner("another account by host", operation("PUT", "http://other.table.localhost/People(PartitionKey='a',RowKey='2')", json, "{}"), "202 InvalidInput"),
		inner("the parent", operation("PUT", "/devstoreaccount1/../other/People(PartitionKey='a',RowKey='2')", json, "{}"), "202 InvalidUri"),
		inner("another scheme", operation("PUT", "file:///etc/passwd", json, "{}"), "202 InvalidUri"),
		inner("no address", operation("PUT", "", json, "{}"), "400 InvalidInput"),
		inner("HTTP/0.9", "Content-Type: application/http\r\n\r\nPUT "+target+"\r\n\r\n{}", "400 InvalidInput"),
		inner("a length too long", operation("PUT", target, json+"Content-Length: 5000\r\n", "{}"), "400 InvalidInput"),
		inner("a negative length", operation("PUT", target, json+"Content-Length: -1\r\n", "{}"), "400 InvalidInput"),
		inner("two lengths", operation("PUT", target, json+"Content-Length: 2\r\nContent-Length: 3\r\n", "{}"), "400 InvalidInput"),
		inner("a length too short", operation("PUT", target, json+"Content-Length: 1\r\n", "{}"), "400 InvalidInput"),
		inner("another coding", strings.Replace(operation("PUT", target, json, "{}"), "binary", "base64", 1), "400 InvalidInput"),
		inner("a reference", operation("PUT", "$1", json, "{}"), "202 InvalidInput"),
		inner("bytes in the address", operation("PUT", "/devstoreaccount1/People(PartitionKey='\x01',RowKey='2')", json, "{}"), "400 InvalidInput"),
		inner("half an escape in the address", operation("PUT", "/devstoreaccount1/People(PartitionKey='%4',RowKey='2')", json, "{}"), "202 InvalidInput"),
		inner("two X-HTTP-Methods", operation("POST", target, json+"X-HTTP-Method: PUT\r\nX-HTTP-Method: PUT\r\n", "{}"), "202 XMethodIncorrectCount"),
	})
}

// TestInnerCredentials sends operations with credentials of their own, which must be
// ignored. The batch itself has a signature that only permits reads.
func TestInnerCredentials(t *testing.T) {
	w := newPeopleServer(t)
	sas := func(permissions string) string {
		query, err := w.credential.TableSAS(sharedkey.TableSAS{Table: "People", Permissions: permissions, Expiry: "2021-06-18"})
		if err != nil {
			t.Fatal(err)
		}
		return query
	}
	before := fingerprint(t, w.store)
	target := "/devstoreaccount1/People(PartitionKey='a',RowKey='2')"
	owner := w.sign("PUT " + target + " HTTP/1.1\r\n" + signedHeaders)
	_, owner, _ = strings.Cut(owner, "\r\n")
	for name, text := range map[string]string{
		"a signature of the owner":        operation("PUT", target, owner, "{}"),
		"a signature that permits writes": operation("PUT", target+"?"+sas("raud"), "", "{}"),
	} {
		body := changeset(text)
		request := fmt.Sprintf("POST /devstoreaccount1/$batch?%s HTTP/1.1\r\nHost: a\r\nContent-Type: multipart/mixed; boundary=o\r\nContent-Length: "+
			"%d\r\n\r\n%s", sas("r"), len(body), body)
		if got := outcome(w.exchange(request)); got != "202 AuthorizationPermissionMismatch" {
			t.Errorf("%s: %s", name, got)
		}
	}
	if fingerprint(t, w.store) != before {
		t.Error("a credential within a batch was used")
	}
}

// TestUnusualEnvelopes sends unusual envelopes that are valid.
func TestUnusualEnvelopes(t *testing.T) {
	long := strings.Repeat("x", 70)
	for name, c := range map[string]struct{ kind, body string }{
		"LF only":            {"multipart/mixed; boundary=o", strings.ReplaceAll(changeset(put("a", "2")), "\r\n", "\n")},
		"text around":        {"multipart/mixed; boundary=o", "before\r\n" + changeset(put("a", "2")) + "after"},
		"a quoted boundary":  {`multipart/mixed; charset="utf-8"; boundary="o"`, changeset(put("a", "2"))},
		"the longest":        {"multipart/mixed; boundary=" + long, strings.ReplaceAll(changeset(put("a", "2")), "--o", "--"+long)},
		"special characters": {`multipart/mixed; boundary="(o)+[.*]?/'"`, strings.ReplaceAll(changeset(put("a", "2")), "--o", "--(o)+[.*]?/'")},
		"the boundary within": {"multipart/mixed; boundary=o", changeset(operation("PUT", "/devstoreaccount1/People(PartitionKey='a',RowKey='2')",
			"Content-Type: application/json\r\n", `{"p":"--i--o"}`))},
		"no account": {"multipart/mixed; boundary=o", changeset(operation("PUT", "/People(PartitionKey='a',RowKey='2')",
			"Content-Type: application/json\r\n", `{}`))},
	} {
		w := newPeopleServer(t)
		request := testRequest{method: "POST", path: "/$batch", headers: "Content-Type: " + c.kind + "\r\n", body: c.body}
		raw, res := w.exchange(request.bytes(w))
		if res == nil || res.StatusCode != http.StatusAccepted || !strings.Contains(string(raw), "HTTP/1.1 204 No Content") {
			t.Errorf("%s: %s", name, raw)
		}
	}
}
