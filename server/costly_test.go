package server_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/bench"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/store/storetest"
	"github.com/tablerock-db/tablerock/vfs"
)

// fill joins as many texts as fit into n bytes.
func fill(n int, separator string, text func(i int) string) string {
	var b strings.Builder
	for i := 0; ; i++ {
		t := text(i)
		if b.Len()+len(separator)+len(t) > n {
			return b.String()
		}
		if i > 0 {
			b.WriteString(separator)
		}
		b.WriteString(t)
	}
}

// texts returns the text of each number.
func texts(format string) func(int) string {
	return func(i int) string { return fmt.Sprintf(format, i) }
}

// always returns one text for every number.
func always(text string) func(int) string { return func(int) string { return text } }

// first joins n texts.
func first(n int, separator string, text func(i int) string) string {
	list := make([]string, n)
	for i := range list {
		list[i] = text(i)
	}
	return strings.Join(list, separator)
}

const (
	costlyRows = 9_999    // examined by most of the queries
	urlBytes   = 31 << 10 // of a long URL
	bodyBytes  = 4 << 20  // of a long body
	pua        = "\uF8FF" // a character that byte order would misplace
)

// costlyQueries are queries of one table whose text makes them as expensive as possible.
var costlyQueries = []struct{ name, table, filter, selected string }{
	{"one comparison", "Few", "a eq -1", ""},
	{"select/missing", "Few", "", fill(urlBytes, ",", texts("a%d"))},
	{"select/filter", "Few", "a lt 300", fill(urlBytes, ",", texts("a%d"))},
	{"select/wide", "Wide", "", fill(urlBytes, ",", texts("p%d"))},
	{"select/same", "Few", "", fill(urlBytes, ",", always("a"))},
	{"or/numbers", "Few", fill(urlBytes, " or ", texts("a eq -1%d")), ""},
	{"or/number", "Few", fill(urlBytes, " or ", always("a eq -1")), ""},
	{"or/text", "Few", fill(urlBytes, " or ", always("b lt '"+pua+"'")), ""},
	{"or/long text", "Few", fill(urlBytes, " or ", always("b lt '"+strings.Repeat(pua, 29)+"'")), ""},
	{"or/missing", "Few", fill(urlBytes, " or ", texts("z%d eq 1")), ""},
	{"and", "Few", fill(urlBytes, " and ", always("a ge 0")), ""},
	{"groups", "Few", first(250, " or ", always("("+first(12, " and ", always("a ge 0"))+" and a lt 0)")), ""},
	{"not", "Few", first(200, " or ", always("not (a ge 0)")), ""},
	{"parentheses", "Few", strings.Repeat("(", 99) + "a eq -1" + strings.Repeat(")", 99), ""},
	{"negations", "Few", strings.Repeat("not (", 98) + "a eq -1" + strings.Repeat(")", 98), ""},
	{"properties", "Wide", fill(urlBytes, " or ", func(i int) string { return fmt.Sprintf("p%d eq -1", i%252) }), ""},
	{"shapes", "Shapes", fill(urlBytes, " or ", texts("a%d eq -1")), ""},
	{"partitions", "Parts", fill(urlBytes, " or ", texts("PartitionKey eq '%05d'")), ""},
	{"partitions/missing", "Parts", fill(urlBytes, " or ", texts("PartitionKey eq '%05dx'")), ""},
	{"rows", "Few", fill(urlBytes, " or ", texts("RowKey eq '%05d'")), ""},
	{"partitions and rows", "Few", "(" + fill(urlBytes/2, " or ", texts("RowKey eq '%d'")) + ") and (" +
		fill(urlBytes/2, " or ", texts("PartitionKey eq '%d'")) + ")", ""},
}

// transaction returns a batch with a change set of n operations.
func transaction(n int, headers, body string) string {
	return "--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n" + first(n, "", func(i int) string {
		return fmt.Sprintf("--c\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n"+
			"PUT http://127.0.0.1:10002/%s/Few(PartitionKey='w',RowKey='%d') HTTP/1.1\r\nContent-Type: application/json\r\n%s\r\n%s\r\n",
			wireAccount, i, headers, body)
	}) + "--c--\r\n--b--\r\n"
}

// fields returns n headers.
func fields(n, size int) string {
	return first(n, "", texts("x-%d: "+strings.Repeat("a", size)+"\r\n"))
}

type costlyRequest struct{ name, method, path, header, body string }

// costlyRequests are other requests that are as expensive as possible.
var costlyRequests = []costlyRequest{
	{"batch/letters", "POST", "/$batch", "", strings.Repeat("a", bodyBytes)},
	{"batch/lines", "POST", "/$batch", "", strings.Repeat("\n", bodyBytes)},
	{"batch/parts", "POST", "/$batch", "", strings.Repeat("--b\r\n\r\n", bodyBytes/7-1)},
	{"batch/operations", "POST", "/$batch", "", transaction(20_000, "", "{}")},
	{"batch/headers", "POST", "/$batch", "", transaction(100, fields(20, 1800), "{}")},
	{"batch/long header", "POST", "/$batch", "", transaction(100, fields(1, 39_000), "{}")},
	{"batch/media types", "POST", "/$batch", "", transaction(100, "Accept: */*"+strings.Repeat(",a/b", 9_750)+"\r\n", "{}")},
	{"batch/media type", "POST", "/$batch", "", transaction(100, "Accept: */*,application/json"+fill(38_000, "", texts(";a%d=b"))+"\r\n", "{}")},
	{"batch/parameters", "POST", "/$batch", "", strings.ReplaceAll(transaction(100, "", "{}"), " HTTP/1.1", "?"+fill(38_000, "&", texts("a%d"))+" HTTP/1.1")},
	{"batch/properties", "POST", "/$batch", "", transaction(100, "", "{"+first(252, ",", texts(`"p%[1]d":%[1]d`))+"}")},
	{"batch/text", "POST", "/$batch", "", transaction(100, "", `{"a":"`+strings.Repeat("x", 32<<10)+`"}`)},
	{"batch/escapes", "POST", "/$batch", "", transaction(100, "", `{"a":"`+strings.Repeat(`\u00e9`, 5000)+`"}`)},
	{"batch/query", "POST", "/$batch", "", "--b\r\nContent-Type: application/http\r\n\r\nGET http://127.0.0.1:10002/" + wireAccount + "/Few()?$filter=" +
		url.QueryEscape(fill(40<<10, " or ", always("a eq -1"))) + " HTTP/1.1\r\nAccept: application/json\r\n\r\n\r\n--b--\r\n"},
	{"insert/names", "POST", "/Few", "", "{" + fill(1<<20, ",", texts(`"%d":1`)) + "}"},
	{"insert/annotations", "POST", "/Few", "", "{" + fill(1<<20, ",", texts(`"%d@odata.type":"Edm.Int64"`)) + "}"},
	{"insert/similar names", "POST", "/Few", "", "{" + first(252, ",", texts(`"`+strings.Repeat("a", 250)+`%d":1`)) + "}"},
	{"insert/arrays", "POST", "/Few", "", `{"a":` + strings.Repeat("[", 1<<20)},
	{"insert/blanks", "POST", "/Few", "", strings.Repeat(" ", bodyBytes)},
	{"insert/digits", "POST", "/Few", "", `{"a":` + strings.Repeat("1", 1<<20) + "}"},
	{"insert/fraction", "POST", "/Few", "", `{"a":0.` + strings.Repeat("1", 1<<20) + "}"},
	{"headers", "GET", "/Few(PartitionKey='p',RowKey='00000')", strings.ReplaceAll(fields(3000, 1), "x-", "x-ms-"), ""},
	{"parameters", "GET", "/Few()?$filter=a%20eq%20-1" + strings.Repeat("&a", 9_900), "", ""},
	{"accept", "GET", "/Few()?$filter=a%20eq%20-1", "Accept: */*," + strings.Repeat("a/b;q=0.5,", 3000) + "\r\n", ""},
	{"tables", "GET", "/Tables?$filter=" + url.QueryEscape(fill(urlBytes, " or ", always("TableName lt 'a'"))), "", ""},
}

// fillCostlyTables makes the tables of the requests.
func fillCostlyTables(b *testing.B, db *engine.DB) {
	add := func(table string, entity func(i int) (key edm.Key, props edm.Properties)) {
		if err := db.CreateTable(b.Context(), table); err != nil {
			b.Fatal(err)
		}
		for i := range costlyRows {
			key, props := entity(i)
			if _, err := db.Apply(b.Context(), table, store.InsertOrReplace(edm.Entity{Key: key, Properties: props})); err != nil {
				b.Fatal(err)
			}
		}
	}
	inPartition := func(i int) edm.Key { return edm.Key{Partition: "p", Row: fmt.Sprintf("%05d", i)} }
	number := func(name string, i int) edm.Property { return edm.Property{Name: name, Value: edm.Int32(int32(i))} }
	add("Few", func(i int) (edm.Key, edm.Properties) {
		return inPartition(i), edm.Properties{number("a", i), {Name: "b", Value: edm.String(strings.Repeat(pua, 30))}, number("c", i)}
	})
	add("Wide", func(i int) (key edm.Key, props edm.Properties) {
		for p := range 252 {
			props = append(props, number(fmt.Sprintf("p%d", p), i))
		}
		return inPartition(i), props
	})
	add("Parts", func(i int) (edm.Key, edm.Properties) {
		return edm.Key{Partition: fmt.Sprintf("%05d", i)}, edm.Properties{number("a", i)}
	})
	add("Shapes", func(i int) (edm.Key, edm.Properties) {
		return inPartition(i), edm.Properties{number(fmt.Sprintf("a%d", i), i)}
	})
	for i := range 5000 {
		if err := db.CreateTable(b.Context(), fmt.Sprintf("Table%04d", i)); err != nil {
			b.Fatal(err)
		}
	}
	if err := db.Compact(b.Context()); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkCostlyRequests measures the CPU time of requests that examine fewer than 10,000
// entities. None may take more than 100 ms.
func BenchmarkCostlyRequests(b *testing.B) {
	db, err := engine.Open("db", engine.Options{FS: vfs.NewMem(), NoSync: true})
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	fillCostlyTables(b, db)
	handler, credential := newBenchServer(b, db)
	run := func(name, method, path, header, text string) {
		body := strings.NewReader(text)
		r := httptest.NewRequestWithContext(b.Context(), method, "/"+wireAccount+path, http.NoBody)
		r.ContentLength = int64(len(text))
		r.Header.Set("X-Ms-Version", "2019-02-02")
		r.Header.Set("Accept", "application/json;odata=nometadata")
		r.Header.Set("Content-Type", "application/json")
		if path == "/$batch" {
			r.Header.Set("Content-Type", "multipart/mixed; boundary=b")
		}
		for line := range strings.SplitSeq(header, "\r\n") {
			if name, value, ok := strings.Cut(line, ": "); ok {
				r.Header.Set(name, value)
			}
		}
		if err := credential.SignRequest(r, testTime); err != nil {
			b.Fatal(err)
		}
		b.Run(name, func(b *testing.B) {
			w := discard{header: http.Header{}}
			start := bench.CPUTime()
			for b.Loop() {
				body.Reset(text)
				r.Body = io.NopCloser(body)
				w = discard{header: http.Header{}}
				handler.ServeHTTP(&w, r)
			}
			b.ReportMetric(float64((bench.CPUTime()-start).Microseconds())/1e3/float64(b.N), "cpu-ms/op")
			b.ReportMetric(float64(w.status), "status")
		})
	}
	for _, c := range costlyQueries {
		run(c.name, http.MethodGet, "/"+c.table+"()?$filter="+url.QueryEscape(c.filter)+"&$select="+url.QueryEscape(c.selected), "", "")
	}
	for _, c := range costlyRequests {
		run(c.name, c.method, c.path, c.header, c.body)
	}
}

// TestManyItemsInHeaders sends batches whose operations have as many media types or parameters
// as fit. The server stores or parses few of these, which are about a million.
func TestManyItemsInHeaders(t *testing.T) {
	c := newClient(t)
	c.handler = quiet(t, c.store)
	if err := c.store.CreateTable(t.Context(), "Few"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"batch/media types", "batch/parameters"} {
		r := costlyRequests[slices.IndexFunc(costlyRequests, func(r costlyRequest) bool { return r.name == name })]
		path, body, status := "/"+testAccount+r.path, strings.ReplaceAll(r.body, wireAccount, testAccount), ""
		allocs := testing.AllocsPerRun(1, func() {
			res := c.signed(r.method, path, body, "Content-Type", "multipart/mixed; boundary=b")
			text, _ := io.ReadAll(res.Body)
			status = outcome(text, res)
		})
		if allocs > 50_000 || status != "202" {
			t.Errorf("%s: %v allocations, outcome %s; want fewer than 50,000 and 202", r.name, allocs, status)
		}
	}
}

// budgetStore records the Budget of the last query.
type budgetStore struct {
	store.Store
	budget int
}

func (s *budgetStore) Query(ctx context.Context, table string, q store.Query) store.Cursor {
	s.budget = q.Budget
	return s.Store.Query(ctx, table, q)
}

// TestPageIsShorterForCostlyFilter limits the comparisons of a page: the more a filter has,
// the fewer entities and tables are examined, in pages that continue.
func TestPageIsShorterForCostlyFilter(t *testing.T) {
	c := newClient(t)
	budgets := &budgetStore{Store: storetest.NewMap(nil)}
	c.store.Store = budgets
	for i := range 1500 {
		if err := c.store.CreateTable(t.Context(), fmt.Sprintf("T%04d", i)); err != nil {
			t.Fatal(err)
		}
	}
	long := "a lt '" + strings.Repeat("x", 3200) + "'"
	for _, f := range []struct {
		filter string
		want   int
	}{
		{"", 4_000_000},
		{"a eq 1", 4_000_000},
		{first(200, " or ", texts("a eq %d")), 4_000_000},
		{first(201, " or ", texts("a eq %d")), 2_000_000 / 201},
		{first(2000, " or ", texts("a eq %d")), 1000},
		{first(8, " or ", always(long)), 2_000_000 / 808},
		{"PartitionKey eq 'p' and RowKey eq 'r'", 4_000_000},
	} {
		budgets.budget = 0
		res := c.signed(http.MethodGet, "/"+testAccount+"/T0000()?$filter="+url.QueryEscape(f.filter), "", "Accept", "application/json")
		if res.StatusCode != http.StatusOK || budgets.budget != f.want {
			t.Errorf("%.60s...: status %d, budget of %d entities, want %d", f.filter, res.StatusCode, budgets.budget, f.want)
		}
	}
	path := "/" + testAccount + "/Tables?$filter=" + url.QueryEscape(first(2000, " or ", always("TableName eq 'T1400'")))
	res := c.signed(http.MethodGet, path, "", "Accept", "application/json;odata=nometadata")
	body, _ := io.ReadAll(res.Body)
	next := res.Header.Get("X-Ms-Continuation-Nexttablename")
	if string(body) != `{"value":[]}` || next == "" {
		t.Fatalf("first page of tables: %s, continues at %q", body, next)
	}
	res = c.signed(http.MethodGet, path+"&NextTableName="+url.QueryEscape(next), "", "Accept", "application/json;odata=nometadata")
	body, _ = io.ReadAll(res.Body)
	if next := res.Header.Get("X-Ms-Continuation-Nexttablename"); string(body) != `{"value":[{"TableName":"T1400"}]}` || next != "" {
		t.Errorf("second page of tables: %s, continues at %q", body, next)
	}
}
