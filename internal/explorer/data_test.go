package explorer_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/explorer"
	"github.com/tablerock-db/tablerock/internal/sharedkey"
	"github.com/tablerock-db/tablerock/store"
)

// injections are texts that some language could execute.
var injections = []string{
	`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `</script><svg onload=alert(1)>`, `{{constructor.constructor('alert(1)')()}}`,
	`' or 1 eq 1 or 'a' eq '`, `javascript:alert(1)`, `=HYPERLINK("http://evil.example")`, "\r\nSet-Cookie: c=evil",
	"\u2028\u2029\ufeff", "\u202egnp.exe", `${7*7}`, "%00%0a",
}

// TestHostileValues writes and reads values of each kind of injection, as keys where they are
// legal, and requires that no page and no header has them.
func TestHostileValues(t *testing.T) {
	s := newSite(t)
	s.fill("Hostile", 0, 0)
	b := s.owner()
	for i, text := range injections {
		partition := strings.NewReplacer("/", "_", `\`, "_", "#", "_", "?", "_", "\r", "_", "\n", "_").Replace(text)
		e := explorer.Entity{PartitionKey: partition, RowKey: fmt.Sprint(i), Properties: []explorer.Property{{Name: "V", Type: "Edm.String", Value: text}}}
		b.want(http.StatusOK, nil, "entity", object{"account": "first", "table": "Hostile", "op": "insert", "entity": e})
		var got explorer.Entity
		q := url.Values{"a": {"first"}, "t": {"Hostile"}, "pk": {partition}, "rk": {fmt.Sprint(i)}}
		b.want(http.StatusOK, &got, "entity?"+q.Encode(), nil)
		if got.PartitionKey != partition || got.Properties[0].Value != text {
			t.Errorf("%q comes back as %+v", text, got)
		}
		filter := url.Values{"a": {"first"}, "t": {"Hostile"}, "filter": {"V eq '" + strings.ReplaceAll(text, "'", "''") + "'"}}
		var page explorer.EntityPage
		b.want(http.StatusOK, &page, "entities?"+filter.Encode(), nil)
		if len(page.Rows) != 1 || page.Rows[0].RowKey != fmt.Sprint(i) {
			t.Errorf("the filter of %q finds %d rows", text, len(page.Rows))
		}
		for _, path := range []string{"/ui/table?", "/ui/none?", "/ui/login?"} {
			response, html := s.send("GET", path+url.Values{"a": {text}, "t": {text}, "next": {text}}.Encode(), "", "Cookie", b.cookie)
			if strings.Contains(html, text) || len(response.Header["Set-Cookie"]) > 0 {
				t.Errorf("%s%q is in the page or its headers", path, text)
			}
		}
		name := text + ".csv"
		var job struct{ Job, URL string }
		b.want(http.StatusOK, &job, "export", object{"account": "first", "table": "Hostile", "name": name})
		b.wait(job.Job)
		response, _ := s.send("GET", job.URL, "", "Cookie", b.cookie)
		if response.StatusCode != http.StatusOK || response.Header.Get("Content-Type") != "application/octet-stream" ||
			!strings.HasPrefix(response.Header.Get("Content-Disposition"), "attachment") || len(response.Header["Set-Cookie"]) > 0 {
			t.Errorf("the file %q: %s %v", name, response.Status, response.Header)
		}
	}
	for _, name := range append(injections, "tables", "a", strings.Repeat("x", 64)) {
		if status := b.call(nil, "tables/create", object{"account": "first", "table": name}); status != http.StatusBadRequest {
			t.Errorf("a table is called %q: status %d", name, status)
		}
		var f explorer.Failure
		e := explorer.Entity{PartitionKey: "p", RowKey: "r", Properties: []explorer.Property{{Name: name + "-", Type: "Edm.String"}}}
		b.want(http.StatusBadRequest, &f, "entity", object{"account": "first", "table": "Hostile", "op": "insert", "entity": e})
		if f.Code == "" || f.Message == "" {
			t.Errorf("a property %q has the failure %+v", name, f)
		}
	}
}

// wait polls a job until it ends, and returns it.
func (b *browser) wait(id string) explorer.Job {
	b.t.Helper()
	deadline := time.After(time.Minute)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		var j explorer.Job
		b.want(http.StatusOK, &j, "job?id="+id, nil)
		if !slices.Contains([]string{"running", "waiting"}, j.State) {
			return j
		}
		select {
		case <-tick.C:
		case <-deadline:
			b.t.Fatalf("the job does not end: %+v", j)
		}
	}
}

// TestTypes writes and reads all eight types, and texts that they do not have.
func TestTypes(t *testing.T) {
	s := newSite(t)
	s.fill("Types", 0, 0)
	b := s.owner()
	e := explorer.Entity{PartitionKey: "", RowKey: "r"}
	for typ, text := range map[string]string{
		"Edm.String": "a\nb", "Edm.Binary": "AAEC/w==", "Edm.Boolean": "true", "Edm.Int32": "-2147483648", "Edm.Int64": "9007199254740993",
		"Edm.Double": "NaN", "Edm.DateTime": "2024-02-03T04:05:06.7891234Z", "Edm.Guid": "0f3e4f0e-5d5b-4d6c-9a55-0a1b2c3d4e5f",
	} {
		e.Properties = append(e.Properties, explorer.Property{Name: strings.TrimPrefix(typ, "Edm."), Type: typ, Value: text})
	}
	var w explorer.Written
	b.want(http.StatusOK, &w, "entity", object{"account": "first", "table": "Types", "op": "insert", "entity": e})
	var got explorer.Entity
	b.want(http.StatusOK, &got, "entity?a=first&t=Types&pk=&rk=r", nil)
	if !slices.Equal(got.Properties, e.Properties) || got.ETag != w.ETag || got.Timestamp != w.Timestamp {
		t.Errorf("%+v comes back as %+v", e, got)
	}
	for typ, text := range map[string]string{
		"Edm.Binary": "x", "Edm.Boolean": "yes", "Edm.Int32": "2147483648", "Edm.Int64": "1.5", "Edm.Double": "one",
		"Edm.DateTime": "1600-01-01T00:00:00Z", "Edm.Guid": "0", "Edm.None": "",
	} {
		e.Properties = []explorer.Property{{Name: "P", Type: typ, Value: text}}
		var f explorer.Failure
		b.want(http.StatusBadRequest, &f, "entity", object{"account": "first", "table": "Types", "op": "replace", "etag": "*", "entity": e})
		if f.Code == "" || typ != "Edm.None" && (f.Property != "P" || !strings.Contains(f.Detail, text)) {
			t.Errorf("%s %q: %+v", typ, text, f)
		}
	}
	for _, bad := range []struct{ key, name, property, detail string }{
		{"a/b", "P", "RowKey", `a key has none of / \ # ?`}, {"r", "1P", "1P", "begins with a letter"}, {"r", "", "", "a property's name is an identifier"},
	} {
		e := explorer.Entity{RowKey: bad.key, Properties: []explorer.Property{{Name: bad.name, Type: "Edm.String"}}}
		var f explorer.Failure
		b.want(http.StatusBadRequest, &f, "entity", object{"account": "first", "table": "Types", "op": "insert", "entity": e})
		if f.Property != bad.property || !strings.Contains(f.Detail, bad.detail) {
			t.Errorf("%+v is refused by %+v", e, f)
		}
	}
	long := strings.Repeat("é", 5000)
	e.Properties = []explorer.Property{{Name: "Long", Type: "Edm.String", Value: long}}
	b.want(http.StatusOK, nil, "entity", object{"account": "first", "table": "Types", "op": "merge", "etag": "*", "entity": e})
	var page explorer.EntityPage
	b.want(http.StatusOK, &page, "entities?a=first&t=Types&select=Long&cell=100", nil)
	p := page.Rows[0].Properties[0]
	if p.Cut != len(long) || !strings.HasPrefix(long, p.Value) || len(p.Value) > 100 || len(p.Value) < 90 {
		t.Errorf("a long cell is %+v", p)
	}
	e.Properties = []explorer.Property{p}
	b.want(http.StatusBadRequest, nil, "entity", object{"account": "first", "table": "Types", "op": "merge", "etag": "*", "entity": e})
}

// TestMissingEntity requires that operations without an entity are refused, and do not write one with
// empty keys.
func TestMissingEntity(t *testing.T) {
	s := newSite(t)
	s.fill("Types", 0, 0)
	b := s.owner()
	for _, of := range []object{{}, {"entity": nil}} {
		of["op"] = "insertOrReplace"
		var done struct{ Failed int }
		b.want(http.StatusOK, &done, "batch", object{"account": "first", "table": "Types", "ops": []object{of}})
		if done.Failed != 1 {
			t.Errorf("a batch of %v: %d operations failed", of, done.Failed)
		}
		of["account"], of["table"] = "first", "Types"
		b.want(http.StatusBadRequest, nil, "entity", of)
	}
	var page explorer.EntityPage
	if b.want(http.StatusOK, &page, "entities?a=first&t=Types", nil); len(page.Rows) > 0 {
		t.Errorf("%d entities were written", len(page.Rows))
	}
}

// TestTextThatIsNoUnicode requires that halves of surrogate pairs and bytes that are no UTF-8 are
// refused, as in the protocol. With another character in their place, a write would change the
// entity of another key.
func TestTextThatIsNoUnicode(t *testing.T) {
	s := newSite(t)
	s.fill("Texts", 0, 0)
	b := s.owner()
	write := func(text string) int {
		body := `{"account":"first","table":"Texts","op":"insertOrReplace","entity":{"pk":"` + text + `","rk":"","props":[]}}`
		response, _ := s.send("POST", "/ui/api/entity", body, "Cookie", b.cookie, "X-Csrf-Token", b.csrf, "Origin", s.url, "Content-Type", "application/json")
		return response.StatusCode
	}
	for _, text := range []string{`\ufffd`, `\ud83d\uDE00`, `\"\u0041\ud83d\uDE00`, "\U0001f600"} {
		if status := write(text); status != http.StatusOK {
			t.Errorf("a write with %q: status %d", text, status)
		}
	}
	for _, text := range []string{`\ud800`, `\uDFFF`, `\ude00\ud83d`, `\ud800x`, `\ud800\ud83d\ude00`, `\ud83d\n`, "\xff", "\xed\xa0\x80"} {
		if status := write(text); status != http.StatusBadRequest {
			t.Errorf("a write with %q: status %d, want 400", text, status)
		}
	}
	var page explorer.EntityPage
	b.want(http.StatusOK, &page, "entities?a=first&t=Texts", nil)
	if len(page.Rows) != 3 {
		t.Errorf("the table has %d entities, want 3: %+v", len(page.Rows), page.Rows)
	}
}

// TestLongConditionName requires that the limit of a filter holds for the name of a condition, which
// can be a filter too.
func TestLongConditionName(t *testing.T) {
	b := newSite(t).owner()
	var answer struct{ Error *explorer.Failure }
	tree := object{"kind": "compare", "name": strings.Repeat("a eq 1 or ", 4000) + "a", "op": "eq", "type": "Edm.Int32", "value": "1"}
	b.want(http.StatusOK, &answer, "filter", object{"tree": tree})
	if answer.Error == nil || !strings.Contains(answer.Error.Message, "limit") {
		t.Errorf("the error is %+v, want that of a filter of more than 32 KiB", answer.Error)
	}
}

// TestLongSelect requires that the names of an export are limited as those in a URL are: a million
// of them would take a processor for an hour.
func TestLongSelect(t *testing.T) {
	s := newSite(t)
	s.fill("Rows", 1, 1)
	var names strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&names, "n%d,", i)
	}
	var f explorer.Failure
	s.owner().want(http.StatusBadRequest, &f, "export", object{"account": "first", "table": "Rows", "name": "a.csv", "select": names.String()})
	if !strings.Contains(f.Message, "limit") {
		t.Errorf("the failure is %+v", f)
	}
}

// TestManyValues requires that a body with more values than any page sends is refused before it is
// decoded: 2,700,000 empty conditions needed a gigabyte.
func TestManyValues(t *testing.T) {
	s := newSite(t)
	b := s.owner()
	many := slices.Repeat([]object{{}}, 300_000)
	for path, body := range map[string]object{
		"filter": {"tree": object{"kind": "and", "items": many}},
		"batch":  {"account": "first", "table": "Rows", "ops": many},
		"entity": {"account": "first", "table": "Rows", "op": "insert", "entity": object{"props": many}},
	} {
		var f explorer.Failure
		if status := b.call(&f, path, body); status != http.StatusBadRequest || !strings.Contains(f.Message, "JSON") {
			t.Errorf("%s: status %d, %+v; want 400 for the JSON", path, status, f)
		}
	}
}

// TestConflict changes an entity that another user has changed and deleted.
func TestConflict(t *testing.T) {
	s := newSite(t)
	s.fill("Tab", 1, 1)
	b := s.owner()
	var first explorer.Entity
	b.want(http.StatusOK, &first, "entity?a=first&t=Tab&pk=p0&rk=0000", nil)
	change := func(op, etag, value string) object {
		e := explorer.Entity{PartitionKey: "p0", RowKey: "0000", Properties: []explorer.Property{{Name: "N", Type: "Edm.Int64", Value: value}}}
		return object{"account": "first", "table": "Tab", "op": op, "etag": etag, "entity": e}
	}
	var w explorer.Written
	b.want(http.StatusOK, &w, "entity", change("merge", first.ETag, "7"))
	for _, op := range []string{"merge", "replace", "delete"} {
		var f explorer.Failure
		b.want(http.StatusPreconditionFailed, &f, "entity", change(op, first.ETag, "8"))
		if f.Code != "UpdateConditionNotSatisfied" || f.Theirs == nil || f.Theirs.ETag != w.ETag || f.Theirs.Properties[0].Value != "7" {
			t.Errorf("%s: the failure is %+v", op, f)
		}
	}
	// The stored entities of 1,000 operations could be a gigabyte.
	var batch struct{ Results []explorer.Failure }
	ops := []object{{"op": "merge", "etag": first.ETag, "entity": explorer.Entity{PartitionKey: "p0", RowKey: "0000"}}}
	b.want(http.StatusOK, &batch, "batch", object{"account": "first", "table": "Tab", "ops": ops})
	if f := batch.Results[0]; f.Code != "UpdateConditionNotSatisfied" || f.Theirs != nil {
		t.Errorf("in a batch: the failure is %+v", f)
	}
	b.want(http.StatusBadRequest, nil, "entity", change("merge", "", "8"))
	b.want(http.StatusConflict, nil, "entity", change("insert", "", "8"))
	b.want(http.StatusOK, nil, "entity", change("delete", w.ETag, ""))
	b.want(http.StatusNotFound, nil, "entity", change("merge", w.ETag, "8"))
}

// TestBatch executes many operations of several partitions, of which one fails.
func TestBatch(t *testing.T) {
	s := newSite(t)
	s.fill("Tab", 3, 100)
	b := s.owner()
	var ops []object
	for i := range 600 {
		e := explorer.Entity{PartitionKey: fmt.Sprint("p", i%3), RowKey: fmt.Sprintf("%04d", i/3)}
		op := object{"op": "delete", "etag": "*", "entity": e}
		if i >= 300 {
			op["op"] = "insert"
		}
		ops = append(ops, op)
	}
	ops[302]["entity"] = explorer.Entity{PartitionKey: "p2", RowKey: "\x01"}
	ops[301]["op"], ops[301]["etag"] = "merge", "*"
	var result struct {
		Results []explorer.Failure // a Written has no code
		Failed  int
	}
	b.want(http.StatusOK, &result, "batch", object{"account": "first", "table": "Tab", "ops": ops})
	// The merge of a missing entity and the key that is not legal each fail a transaction of 100.
	if result.Results[301].Code != "ResourceNotFound" || result.Results[304].Code != "NotExecuted" || result.Results[300].Code != "" {
		t.Errorf("the results are %+v", result.Results[300:306])
	}
	left := 0
	for e, err := range store.Entities(s.db.Query(t.Context(), "Tab", store.Query{})) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Key.Partition == "p1" {
			t.Fatalf("%v is there", e.Key)
		}
		left++
	}
	if left != 100 || result.Failed != 200 {
		t.Errorf("%d entities, %d operations failed", left, result.Failed)
	}
}

// TestBatchRefused executes nothing of a transaction with an operation that is refused, and
// all of another one.
func TestBatchRefused(t *testing.T) {
	s := newSite(t)
	s.fill("Tab", 1, 1)
	b := s.owner()
	var ops []object
	for _, key := range []edm.Key{{Partition: "x", Row: "1"}, {Partition: "x", Row: "2"}, {Partition: "x", Row: "3"}, {Partition: "y", Row: "1"}} {
		e := explorer.Entity{PartitionKey: key.Partition, RowKey: key.Row}
		if key.Row == "2" {
			e.Properties = []explorer.Property{{Name: "N", Type: "Edm.Int32", Value: "no number"}}
		}
		ops = append(ops, object{"op": "insert", "entity": e})
	}
	var result struct {
		Results []explorer.Failure
		Failed  int
	}
	b.want(http.StatusOK, &result, "batch", object{"account": "first", "table": "Tab", "ops": ops})
	r := result.Results
	if r[0].Code != "NotExecuted" || r[1].Code == "" || r[1].Code == "NotExecuted" || r[2].Code != "NotExecuted" || r[3].Code != "" || result.Failed != 3 {
		t.Errorf("the results are %+v", result)
	}
	b.want(http.StatusNotFound, nil, "entity?a=first&t=Tab&pk=x&rk=1", nil)
	b.want(http.StatusOK, nil, "entity?a=first&t=Tab&pk=y&rk=1", nil)
}

// TestPages reads a table page by page, jumps to a key and counts.
func TestPages(t *testing.T) {
	s := newSite(t)
	s.fill("Tab", 5, 100)
	b := s.owner()
	var keys []string
	for next, pages := "", 0; ; pages++ {
		var page explorer.EntityPage
		b.want(http.StatusOK, &page, "entities?a=first&t=Tab&top=70&next="+next, nil)
		for _, e := range page.Rows {
			keys = append(keys, e.PartitionKey+e.RowKey)
		}
		if next = page.Next; next == "" {
			if pages != 7 {
				t.Errorf("%d pages", pages+1)
			}
			break
		}
	}
	if len(keys) != 500 || !slices.IsSorted(keys) {
		t.Errorf("%d keys", len(keys))
	}
	var page explorer.EntityPage
	b.want(http.StatusOK, &page, "entities?a=first&t=Tab&top=100&pk=p2&rk=0050x", nil)
	if page.Rows[0].PartitionKey != "p2" || page.Rows[0].RowKey != "0051" || len(page.Rows) != 100 || page.Columns[0].Types[0] != "Edm.Int64" {
		t.Errorf("after a jump the page begins with %+v", page.Rows[0])
	}
	var count struct {
		Count int
		Next  string
	}
	b.want(http.StatusOK, &count, "count?a=first&t=Tab&filter="+url.QueryEscape("N ge 450L"), nil)
	if count.Count != 50 || count.Next != "" {
		t.Errorf("the count is %+v", count)
	}
	for _, bad := range []string{"next=x", "top=0", "top=1001", "top=x", "filter=N+gt", "cell=-1", "filter=N+gt+1;N+lt+2"} {
		b.want(http.StatusBadRequest, nil, "entities?a=first&t=Tab&"+bad, nil)
	}
	var d explorer.Explanation
	b.want(http.StatusOK, &d, "explain?a=first&t=Tab&filter="+url.QueryEscape("N ge 450L"), nil)
	if d.Scan != "table" || d.Warning == "" || d.Cure == "" || d.Found != 50 || d.Examined != 500 || !d.Completed || d.Groups == nil {
		t.Errorf("the explanation is %+v", d)
	}
	d = explorer.Explanation{}
	b.want(http.StatusOK, &d, "explain?a=first&t=Tab&filter="+url.QueryEscape("PartitionKey ge 'p1' and RowKey ge '0090'"), nil)
	if d.Scan != "partitions" || d.Cure != `Add a condition "PartitionKey eq", joined by "and".` {
		t.Errorf("the explanation is %+v", d)
	}
	d = explorer.Explanation{}
	b.want(http.StatusOK, &d, "explain?a=first&t=Tab&filter="+url.QueryEscape("PartitionKey eq 'p1' and RowKey ge '0090'"), nil)
	if d.Scan != "rows" || d.Warning != "" || d.Found != 10 || d.Ranges[0] != `from PartitionKey "p1" RowKey "0090" to PartitionKey "p1"` {
		t.Errorf("the explanation is %+v", d)
	}
}

// TestFilters converts texts and trees.
func TestFilters(t *testing.T) {
	s := newSite(t)
	b := s.owner()
	type answer struct {
		Text  string
		Tree  *explorer.Condition
		Error *explorer.Failure
	}
	for _, text := range []string{
		"A eq 'it''s' and (B gt 5L or not (C le 1.5))", "D eq X'00ff'", "E ge datetime'2024-01-01T00:00:00Z'",
		"F eq true or G ne guid'0f3e4f0e-5d5b-4d6c-9a55-0a1b2c3d4e5f'", "E gt datetime'0001-01-01T00:00:00Z'", "H lt INF or H eq NaN",
	} {
		var one, two answer
		b.want(http.StatusOK, &one, "filter", object{"text": text})
		if one.Error != nil || one.Tree == nil {
			t.Fatalf("%s: %+v", text, one.Error)
		}
		b.want(http.StatusOK, &two, "filter", object{"tree": one.Tree})
		if two.Text != text {
			t.Errorf("%s comes back as %s, %+v", text, two.Text, two.Error)
		}
	}
	for text, position := range map[string]int{"A eq": 4, "é eq 'x": 7, "A eq 5 or (B": 12, "PartitionKey eq 5": 0} {
		var got answer
		b.want(http.StatusOK, &got, "filter", object{"text": text})
		if got.Error == nil || got.Error.Position == nil || *got.Error.Position != position {
			t.Errorf("%s: the error is %+v, want the position %d", text, got.Error, position)
		}
	}
	// The limit is that of the protocol.
	long := strings.Repeat("a or ", 7000) + "a"
	var refused answer
	b.want(http.StatusOK, &refused, "filter", object{"text": long})
	if refused.Error == nil || refused.Tree != nil || !strings.Contains(refused.Error.Message, "35001 bytes") {
		t.Errorf("a filter of %d bytes: %+v", len(long), refused.Error)
	}
	b.want(http.StatusOK, &refused, "filter", object{"text": long[:30_001]})
	if refused.Error != nil || refused.Tree == nil {
		t.Errorf("a filter of 30,001 bytes: %+v", refused.Error)
	}
	leaf := func(name, op, typ, value string) explorer.Condition {
		return explorer.Condition{Kind: "compare", Name: name, Op: op, Type: typ, Value: value}
	}
	for _, bad := range []explorer.Condition{
		leaf("A eq 1 or B", "eq", "Edm.Int32", "1"), leaf("", "eq", "Edm.Int32", "1"), leaf("A", "eq 1 or A eq", "Edm.Int32", "1"),
		leaf("A", "eq", "Edm.Int32", "x"),
		leaf("PartitionKey", "eq", "Edm.Int32", "1"),
		{Kind: "not"},
		{Kind: "x"},
		leaf("true", "eq", "Edm.Int32", "1"),
	} {
		var got answer
		tree := explorer.Condition{Kind: "and", Items: []explorer.Condition{leaf("A", "eq", "Edm.Int32", "1"), {Kind: "or", Items: []explorer.Condition{bad}}}}
		b.want(http.StatusOK, &got, "filter", object{"tree": tree})
		if got.Error == nil || !slices.Equal(got.Error.Path, []int{1, 0}) {
			t.Errorf("%+v gives %q and the error %+v", bad, got.Text, got.Error)
		}
	}
}

// TestSignatureLimits requires that a session of a signature may do what the signature
// allows, and nothing more.
func TestSignatureLimits(t *testing.T) {
	s := newSite(t)
	s.fill("Tab", 3, 10)
	s.fill("Other", 1, 1)
	expiry := s.time().Add(time.Hour).UTC().Format(time.RFC3339)
	bounded, err := s.cred.TableSAS(sharedkey.TableSAS{Table: "Tab", Permissions: "ra", Expiry: expiry, StartPartition: "p1", EndPartition: "p1"})
	if err != nil {
		t.Fatal(err)
	}
	b := s.login(map[string]string{"account": "first", "sas": bounded})
	var accounts struct{ Accounts []explorer.AccountInfo }
	b.want(http.StatusOK, &accounts, "accounts", nil)
	if len(accounts.Accounts) != 1 || accounts.Accounts[0].Where != "" {
		t.Errorf("it sees the accounts %+v", accounts)
	}
	var tables struct{ Tables []explorer.TableInfo }
	b.want(http.StatusOK, &tables, "tables?a=first", nil)
	if len(tables.Tables) != 1 || tables.Tables[0].Name != "Tab" || tables.Tables[0].Entities != 0 {
		t.Errorf("it sees the tables %+v", tables)
	}
	var page explorer.EntityPage
	b.want(http.StatusOK, &page, "entities?a=first&t=Tab&filter="+url.QueryEscape("N ge 0L or N lt 0L"), nil)
	if len(page.Rows) != 10 || page.Rows[0].PartitionKey != "p1" {
		t.Errorf("it sees %d entities", len(page.Rows))
	}
	var job struct{ Job, URL string }
	b.want(http.StatusOK, &job, "export", object{"account": "first", "table": "Tab", "name": "x.jsonl"})
	if j := b.wait(job.Job); j.Rows != 10 {
		t.Errorf("it exports %+v", j)
	}
	inside, outside := explorer.Entity{PartitionKey: "p1", RowKey: "new"}, explorer.Entity{PartitionKey: "p2", RowKey: "new"}
	b.want(http.StatusOK, nil, "entity", object{"account": "first", "table": "Tab", "op": "insert", "entity": inside})
	write := func(table, op string, e explorer.Entity) object {
		return object{"account": "first", "table": table, "op": op, "etag": "*", "entity": e}
	}
	for name, c := range map[string]struct {
		path string
		body any
	}{
		"insert outside":   {"entity", write("Tab", "insert", outside)},
		"insert elsewhere": {"entity", write("Other", "insert", inside)},
		"replace":          {"entity", write("Tab", "replace", inside)},
		"upsert":           {"entity", write("Tab", "insertOrReplace", inside)},
		"delete":           {"entity", write("Tab", "delete", inside)},
		"read outside":     {"entity?a=first&t=Tab&pk=p2&rk=0001", nil},
		"read elsewhere":   {"entities?a=first&t=Other", nil},
		"create":           {"tables/create", object{"account": "first", "table": "New"}},
		"drop":             {"tables/delete", object{"account": "first", "table": "Tab", "typed": "Tab"}},
		"clear":            {"tables/clear", object{"account": "first", "table": "Tab", "typed": "Tab"}},
		"access":           {"acl?a=first&t=Tab", nil},
		"sign":             {"sas", object{"account": "first", "kind": "table", "table": "Tab", "fields": object{"sp": "r", "se": expiry}}},
		"see the server":   {"live", nil},
		"replace by file":  {"import", object{"account": "first", "table": "Tab", "name": "x.jsonl", "size": 1}},
	} {
		if status := b.call(nil, c.path, c.body); status != http.StatusForbidden {
			t.Errorf("%s: status %d", name, status)
		}
	}
	text := `{"PartitionKey":"p1","RowKey":"a"}` + "\n" + `{"PartitionKey":"p2","RowKey":"a"}` + "\n"
	if j := b.upload("Tab", "x.jsonl", text, 7, object{"mode": "insert"}); j.State != "failed" {
		t.Errorf("a file with a key outside: %+v", j)
	}
	if _, err := s.db.Get(t.Context(), "Tab", edm.Key{Partition: "p2", Row: "a"}); err == nil {
		t.Error("the file wrote outside of the keys of the signature")
	}
}
