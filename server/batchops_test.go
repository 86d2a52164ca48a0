package server_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/internal/sharedkey"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/store/storetest"
)

// timestamps matches what differs between responses to the same operation.
var timestamps = regexp.MustCompile(`datetime'[^']*'|"Timestamp":"[^"]*"`)

// TestOperationAfterOther sends every operation after every other one, and expects the same
// response as without the other one: the server reuses what it parsed of an operation for
// the next one, and must not reuse what differs.
func TestOperationAfterOther(t *testing.T) {
	const people, body = "/" + testAccount + "/People", `{"PartitionKey":"p","RowKey":"%d"}`
	// %d is replaced by a number that is unique in the batch.
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
	for _, text := range operations {
		alone := sendBatch(t, text)
		if len(alone) != 1 || !strings.HasPrefix(alone[0], "20") {
			t.Fatalf("%q alone: %q", text, alone)
		}
		for _, first := range operations {
			if both := sendBatch(t, first, text); len(both) != 2 || both[1] != alone[0] {
				t.Errorf("%q after %q: %q\nwant %q last", text, first, both, alone)
			}
		}
	}
}

// sendBatch sends operations as one batch to a new server, and returns the response to
// each, or the single response of a failed batch.
func sendBatch(t *testing.T, texts ...string) []string {
	t.Helper()
	c := newClient(t)
	all := make([]string, len(texts))
	for i, text := range texts {
		all[i] = strings.ReplaceAll(text, "%d", strconv.Itoa(len(texts)-i)) // 1 for the last
	}
	res := c.signed(http.MethodPost, "/"+testAccount+"/$batch", changeset(all...), "Content-Type", "multipart/mixed; boundary=o")
	response, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusAccepted {
		t.Fatalf("%q: %s, %v", texts, res.Status, err)
	}
	all = strings.Split(timestamps.ReplaceAllString(string(response), "TIME"), "HTTP/1.1 ")[1:]
	for i, text := range all {
		all[i], _, _ = strings.Cut(text, "\r\n--changeset")
	}
	return all
}

// TestRefusedOperationAfterOther sends an invalid operation after a valid one that differs
// from it in one respect.
func TestRefusedOperationAfterOther(t *testing.T) {
	const people, body = "/" + testAccount + "/People", `{"PartitionKey":"p","RowKey":"%d"}`
	for _, c := range []struct{ name, before, text string }{
		{"method", operation("POST", people, "", body), operation("PUT", people, "", body)},
		{"target", operation("POST", people, "", body), operation("POST", people+"(PartitionKey='p',RowKey='%d')", "", body)},
		{"option", operation("POST", people, "", body), operation("POST", people+"?$skip=1", "", body)},
		{"tunnelled method", operation("POST", people, "", body), operation("POST", people, "X-HTTP-Method: PUT\r\n", body)},
		{
			"condition", operation("PUT", people+"(PartitionKey='p',RowKey='%d')", "", "{}"),
			operation("PUT", people+"(PartitionKey='p',RowKey='%d')", "If-Match: *\r\n", "{}"),
		},
		{"type of body", operation("POST", people, "", body), operation("POST", people, "Content-Type: text/plain\r\n", body)},
	} {
		if alone := sendBatch(t, c.before); len(alone) != 1 || !strings.HasPrefix(alone[0], "20") {
			t.Fatalf("%s: the valid operation alone: %q", c.name, alone)
		}
		both := sendBatch(t, c.before, c.text)
		if len(both) != 1 || both[0] < "4" || !strings.Contains(both[0], `"1:`) {
			t.Errorf("%s: got %q, want a refusal of operation 1", c.name, both)
		}
	}
}

// TestRepeatedMethod sends operations as the legacy Java client does: X-HTTP-Method repeats
// the method.
func TestRepeatedMethod(t *testing.T) {
	const entity = "/" + testAccount + "/People(PartitionKey='p',RowKey='1')"
	for _, method := range []string{"MERGE", "PATCH", "PUT"} {
		for _, table := range []string{"People", "Missing"} {
			text := operation(method, strings.Replace(entity, "People", table, 1), "X-HTTP-Method: "+method+"\r\n", "{}")
			want := map[string]string{"People": "204", "Missing": "404"}[table]
			if got := sendBatch(t, text); len(got) != 1 || !strings.HasPrefix(got[0], want) {
				t.Errorf("%q: got %q, want %s", text, got, want)
			}
		}
		other := operation(method, entity, "X-HTTP-Method: DELETE\r\n", "{}")
		if got := sendBatch(t, other); len(got) != 1 || !strings.Contains(got[0], "XMethodNotUsingPost") {
			t.Errorf("%q: got %q, want XMethodNotUsingPost", other, got)
		}
		if res := newClient(t).signed(method, entity, "{}", "X-HTTP-Method", method); res.StatusCode != http.StatusBadRequest {
			t.Errorf("%s outside of a batch with X-HTTP-Method: got %s, want 400", method, res.Status)
		}
	}
}

// TestDoubledSlash sends a batch to the path of the Ruby client.
func TestDoubledSlash(t *testing.T) {
	c := newClient(t)
	body := changeset(operation("POST", "/"+testAccount+"/People", "", `{"PartitionKey":"p","RowKey":"1"}`))
	res := c.signed(http.MethodPost, "/"+testAccount+"//$batch", body, "Content-Type", "multipart/mixed; boundary=o")
	if res.StatusCode != http.StatusAccepted {
		t.Errorf("got %s, want 202", res.Status)
	}
}

// TestBatchWithinRange sends random batches with signatures for some actions on a range of
// keys. The first operation outside of both must be refused, and the batch must not write
// anything, however similar the operations are.
func TestBatchWithinRange(t *testing.T) {
	const seed = 31
	r := rand.New(rand.NewPCG(seed, seed))
	const people = "/" + testAccount + "/People"
	kinds := []struct{ permissions, method, key, headers, body string }{
		{"a", "POST", "", "Prefer: return-no-content\r\n", `{"PartitionKey":"p","RowKey":"%d","a":1}`},
		{"a", "POST", "", "Prefer: return-no-content\r\n", `{"RowKey":"%d","PartitionKey":"p"}`},
		{"au", "PUT", "(PartitionKey='p',RowKey='%d')", "", `{"PartitionKey":"p","RowKey":"0"}`},
		{"au", "POST", "(PartitionKey='p',RowKey='%d')", "X-HTTP-Method: MERGE\r\n", `{}`},
		{"u", "PUT", "(PartitionKey='p',RowKey='%d')", "If-Match: *\r\n", `{}`},
		{"d", "DELETE", "(PartitionKey='p',RowKey='%d')", "If-Match: *\r\n", ``},
	}
	c := newClient(t)
	for round := range 1000 {
		c.store.Store = storetest.NewMap(nil)
		if err := c.store.CreateTable(t.Context(), "People"); err != nil {
			t.Fatal(err)
		}
		first, last := r.IntN(5), 5+r.IntN(5)
		s := sharedkey.TableSAS{
			Table: "People", Permissions: []string{"a", "au", "raud"}[r.IntN(3)], Expiry: "2021-06-18",
			StartPartition: "p", StartRow: strconv.Itoa(first), EndPartition: "p", EndRow: strconv.Itoa(last),
		}
		sas, err := c.credential.TableSAS(s)
		if err != nil {
			t.Fatal(err)
		}
		texts, want, wrong, absent := []string(nil), "202", -1, false
		kind := r.IntN(len(kinds))
		for i, row := range r.Perm(10)[:1+r.IntN(10)] {
			if r.IntN(4) == 0 {
				kind = r.IntN(len(kinds))
			}
			k := kinds[kind]
			texts = append(texts, operation(k.method, people+strings.ReplaceAll(k.key, "%d", strconv.Itoa(row)), k.headers,
				strings.ReplaceAll(k.body, "%d", strconv.Itoa(row))))
			switch permitted := !strings.ContainsFunc(k.permissions, func(p rune) bool { return !strings.ContainsRune(s.Permissions, p) }); {
			case wrong >= 0:
			case !permitted:
				want, wrong = "202 AuthorizationPermissionMismatch", i
			case row < first || row > last:
				want, wrong = "202 AuthorizationFailure", i
			}
			absent = absent || strings.Contains(k.headers, "If-Match")
		}
		if absent && wrong < 0 {
			want = "202 ResourceNotFound"
		}
		res := c.send(http.MethodPost, "/"+testAccount+"/$batch?"+sas, changeset(texts...), "Content-Type", "multipart/mixed; boundary=o")
		response, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		stored := 0
		for _, err := range store.Entities(c.store.Query(t.Context(), "People", store.Query{})) {
			if stored++; err != nil {
				t.Fatal(err)
			}
		}
		named := wrong < 0 || strings.Contains(string(response), fmt.Sprintf(`"value":"%d:`, wrong))
		if got := outcome(response, res); got != want || !named || want == "202" && stored != len(texts) || want != "202" && stored != 0 {
			t.Fatalf("seed %d, round %d, %q on rows %d to %d: %s and %d entities, want %s of operation %d\n%s\n%s\nrerun: go test ./server -run "+
				"'^TestBatchWithinRange$'",
				seed, round, s.Permissions, first, last, got, stored, want, wrong, response, strings.Join(texts, "\n"))
		}
	}
}

// TestRefusedCondition sends batches whose second operation has an If-Match that is not valid.
// Whatever is wrong with the keys and values of all operations, and a missing table, take
// precedence.
func TestRefusedCondition(t *testing.T) {
	write := func(key, condition, body string) string {
		return operation("PUT", "/"+testAccount+"/People("+key+")", condition, body)
	}
	const first, second, third = "PartitionKey='p',RowKey='1'", "PartitionKey='p',RowKey='2'", "PartitionKey='p',RowKey='3'"
	refused := write(second, "If-Match: x\r\n", "{}")
	missing := func(text string) string { return strings.Replace(text, "People", "Missing", 1) }
	for _, c := range []struct {
		name, want string
		batch      []string
	}{
		{"alone", `InvalidInput","message":{"lang":"en-US","value":"1:The etag value`, []string{write(first, "", "{}"), refused}},
		{"two of them", `"value":"0:The etag value`, []string{write(first, "If-Match: y\r\n", "{}"), refused}},
		{"no table", `TableNotFound","message":{"lang":"en-US","value":"0:`, []string{missing(write(first, "", "{}")), missing(refused)}},
		{"another partition", `"value":"1:All commands`, []string{write("PartitionKey='q',RowKey='1'", "", "{}"), refused}},
		{"the same entity", `"value":"1:The batch request contains multiple changes`, []string{write(second, "", "{}"), refused}},
		{
			"a key", `"value":"0:The 'RowKey' parameter of value 'a/b'`,
			[]string{operation("POST", "/"+testAccount+"/People", "", `{"PartitionKey":"p","RowKey":"a/b"}`), refused},
		},
		{"a later name", `"value":"2:The property name is invalid`, []string{write(first, "", "{}"), refused, write(third, "", `{"1":1}`)}},
		{"a later body", `"value":"2:An error occurred`, []string{write(first, "", "{}"), refused, write(third, "", `{`)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := sendBatch(t, c.batch...); len(got) != 1 || !strings.Contains(got[0], c.want) {
				t.Errorf("got %q, want %s", got, c.want)
			}
		})
	}
}

// TestFullMetadataInBatch inserts entities in a batch, which spells the table in two ways, and asks for all metadata. Their types
// and links name the account and the table, as those of an insert alone do.
func TestFullMetadataInBatch(t *testing.T) {
	const accept = "Accept: application/json;odata=fullmetadata\r\nContent-Type: application/json\r\n"
	insert := func(row string) string { return `{"PartitionKey":"a","RowKey":"` + row + `"}` }
	w := newPeopleServer(t)
	var operations []string
	for _, table := range []string{"People", "people"} {
		text := operation("POST", "/"+wireAccount+"/"+table, accept, insert(table))
		operations = append(operations, strings.Replace(text, "Accept: application/json\r\n", "", 1))
	}
	envelope := batch("", changeset(operations...), "")
	inBatch, _ := w.exchange(envelope.bytes(w))
	one := testRequest{method: "POST", path: "/People", headers: accept, body: insert("alone")}
	alone, _ := w.exchange(one.bytes(w))
	wants := func(table string) []string {
		return []string{
			"/" + wireAccount + "/$metadata#" + table + `/@Element"`,
			`"odata.type":"` + wireAccount + "." + table + `"`,
			`"odata.editLink":"` + table + `(PartitionKey='a',RowKey='`,
		}
	}
	for _, c := range []struct {
		how   string
		got   []byte
		wants []string
	}{
		{"in a batch", inBatch, append(wants("People"), wants("people")...)},
		{"alone", alone, wants("People")},
	} {
		for _, want := range c.wants {
			if !strings.Contains(string(c.got), want) {
				t.Errorf("%s: %s\nwant %s", c.how, c.got, want)
			}
		}
	}
}
