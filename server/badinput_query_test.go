package server_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/sharedkey"
	"github.com/tablerock-db/tablerock/store"
)

// Outcomes of queries.
const (
	refusedFilter    = "400 InvalidInput"
	noSuchFilter     = "501 NotImplemented"
	acceptedAnything = "200"
	badTimeout       = "400 InvalidQueryParameterValue"
)

// TestFilters sends unusual and invalid filters.
func TestFilters(t *testing.T) {
	var requests []testRequest
	for filter, want := range map[string]string{
		strings.Repeat("Age eq 39 and ", 15) + "Age eq 39":                    acceptedAnything,
		strings.Repeat("not ", 2_000) + "(Age eq 39)":                         refusedFilter,
		strings.Repeat("(", 2_000) + "Age eq 39" + strings.Repeat(")", 2_000): refusedFilter,
		strings.Repeat("(", 2_000):                                            refusedFilter,
		strings.Repeat("Age eq 39 or ", 1_000) + "Age eq 39":                  acceptedAnything,
		"Name eq '" + strings.Repeat("x", 20<<10) + "'":                       acceptedAnything,
		"Name eq 'x":                          refusedFilter,
		"Name eq ''''":                        acceptedAnything,
		"Name eq '''":                         refusedFilter,
		"'":                                   refusedFilter,
		"1 eq 1":                              noSuchFilter,
		"Age eq Age":                          noSuchFilter,
		"true":                                acceptedAnything,
		"length(Name) eq 1":                   noSuchFilter,
		"Age add 1 eq 40":                     noSuchFilter,
		"-Age eq 1":                           noSuchFilter,
		"Age in (1,2)":                        noSuchFilter,
		"Age eq 9223372036854775808L":         refusedFilter,
		"Age eq 99999999999999999999999999":   refusedFilter,
		"Age eq 1e999999999":                  refusedFilter,
		"Born eq datetime'x'":                 refusedFilter,
		"Id eq guid'x'":                       refusedFilter,
		"Photo eq X'abc'":                     refusedFilter,
		"Photo eq X'zz'":                      refusedFilter,
		"Photo eq binary'0'":                  refusedFilter,
		"Age eq 'text'":                       acceptedAnything,
		"PartitionKey eq 1":                   refusedFilter,
		"Timestamp eq 'now'":                  refusedFilter,
		"RowKey":                              refusedFilter,
		"eq eq eq":                            noSuchFilter,
		"and and and":                         acceptedAnything,
		"Age\teq\n39":                         acceptedAnything,
		"Age\u00a0eq\u00a039":                 acceptedAnything,
		"Age eq 39;":                          refusedFilter,
		"Age eq 39 --":                        noSuchFilter,
		"Name eq '' or '1'='1'":               noSuchFilter,
		"Name eq 'x'; DROP TABLE People":      refusedFilter,
		"*)(uid=*))(|(uid=*":                  refusedFilter,
		"\x00":                                refusedFilter,
		"Name eq '\x00'":                      acceptedAnything,
		"\xff":                                refusedFilter,
		"Age eq null":                         refusedFilter,
		"Age lt null":                         refusedFilter,
		"Age ge 1 and":                        refusedFilter,
		strings.Repeat("x", 20<<10) + " eq 1": acceptedAnything,
		strings.Repeat("a.", 100) + "b eq 1":  noSuchFilter,
		"Age/Years eq 1":                      noSuchFilter,
		"any(x: x eq 1)":                      noSuchFilter,
	} {
		requests = append(requests, testRequest{
			name: fmt.Sprintf("%.40q %d", filter, len(filter)), method: "GET",
			path: "/People()?$filter=" + url.QueryEscape(filter), want: want,
		})
	}
	requests = append(requests,
		testRequest{name: "longer than any header", method: "GET", path: "/People()?$filter=" + strings.Repeat("x", 1<<20), want: "431"},
		testRequest{name: "half an escape", method: "GET", path: "/People()?$filter=%4", want: refusedFilter},
		testRequest{name: "escapes of escapes", method: "GET", path: "/People()?$filter=" + strings.Repeat("%25", 5_000), want: refusedFilter},
		testRequest{name: "of tables", method: "GET", path: "/Tables?$filter=" + url.QueryEscape(strings.Repeat("(", 2_000)), want: refusedFilter},
		testRequest{name: "of tables, another property", method: "GET", path: "/Tables?$filter=" + url.QueryEscape("Age eq 1"), want: noSuchFilter},
	)
	sendAll(t, requests)
}

// names returns a list of n names.
func names(n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("n%d", i)
	}
	return strings.Join(list, ",")
}

// TestOptions sends invalid query options.
func TestOptions(t *testing.T) {
	var requests []testRequest
	for query, want := range map[string]string{
		"$top=-1": refusedFilter, "$top=1001": refusedFilter, "$top=9223372036854775808": refusedFilter, "$top=1e3": refusedFilter,
		"$top=%2B1": refusedFilter, "$top=0x1": refusedFilter,
		"$top=1&$top=2": refusedFilter, "$top=%201": refusedFilter, "$top=": "200", "$top=0": "200", "$top=1000": "200",
		"$select=" + strings.Repeat("a,", 10_000): "200", "$select=Nothing": "200", "$select=*": "200", "$select=Age,Age": "200", "$select=,,": "200",
		"$select=Age&$select=Age": refusedFilter,
		"$select=" + names(1024):  "200", "$select=" + names(1025): refusedFilter,
		"$select=%00": "200", "$select=%FF": "200", "$select=" + url.QueryEscape(`"},{"x":"`): "200",
		"$skip=1": noSuchFilter, "$orderby=Age": noSuchFilter, "$expand=x": noSuchFilter, "$count=true": noSuchFilter,
		"$inlinecount=allpages": noSuchFilter, "$x": noSuchFilter, "$": noSuchFilter,
		"$filter=&$filter=": refusedFilter, "$format=json&$format=json": refusedFilter, "$format=csv": "415 MediaTypeNotSupported",
		"$format=%00":                 "415 MediaTypeNotSupported",
		strings.Repeat("a=1&", 5_000): "200", "a;b": refusedFilter, "a=%zz": refusedFilter, "=": "200", "&&&&": "200", "timeout=99999999999999": "200",
		"timeout=": "200", "timeout=0": "200", "timeout=030": "200", "timeout=" + strings.Repeat("9", 10_000): "200",
		"timeout=x": badTimeout, "timeout=-1": badTimeout, "timeout=%2B1": badTimeout, "timeout=1.5": badTimeout, "timeout=1s": badTimeout, "timeout=%20": badTimeout,

		"comp=list": "200", "restype=service": "200",
	} {
		requests = append(requests, testRequest{name: fmt.Sprintf("%.40q %d", query, len(query)), method: "GET", path: "/People()?" + query, want: want})
	}
	requests = append(requests, testRequest{
		name: "comp twice", want: "403 AuthenticationFailed",
		raw: "GET /devstoreaccount1/People?comp=acl&comp=acl HTTP/1.1\r\n" + strings.Replace(signedHeaders, "{signature}", strings.Repeat("A", 43)+"=", 1) + "\r\n",
	})
	sendAll(t, requests)
}

// forged returns a continuation token for a text.
func forged(text string) string {
	b := strings.NewReplacer("=", "-", "+", ".", "/", "_").Replace(base64.StdEncoding.EncodeToString([]byte(text)))
	return url.QueryEscape(fmt.Sprintf("1!%d!%s", len(b), b))
}

// TestTokens sends continuation tokens that the server did not create.
func TestTokens(t *testing.T) {
	var requests []testRequest
	for _, name := range []string{"NextPartitionKey", "NextRowKey", "NextTableName"} {
		path := "/People()?"
		if name == "NextTableName" {
			path = "/Tables?"
		}
		for token, want := range map[string]string{
			"x": refusedFilter, "1!": refusedFilter, "1!8!": refusedFilter, "1!4!YQ": refusedFilter, "2!4!YQ--": refusedFilter, "1!04!YQ--": refusedFilter,
			"1!-4!YQ--": refusedFilter,
			"1!4!Y===":  refusedFilter, "1!4!YR--": refusedFilter, "1!4!!!!!": refusedFilter, "1!99999999999999999999!YQ--": refusedFilter, "1!4!_w--": refusedFilter,
			"\x00": refusedFilter, strings.Repeat("1!", 5_000): refusedFilter, "1!20000!" + strings.Repeat("A", 20_000): refusedFilter, "!!": refusedFilter,
			"1!0!": "200",
		} {
			if name == "NextTableName" && token == "x" {
				continue // a valid table name
			}
			if name == "NextRowKey" && want == "200" {
				continue
			}
			query := name + "=" + url.QueryEscape(token)
			if name == "NextRowKey" {
				query = "NextPartitionKey=" + forged("a") + "&" + query
			}
			requests = append(requests, testRequest{name: fmt.Sprintf("%s %.30q", name, token), method: "GET", path: path + query, want: want})
		}
	}
	requests = append(requests,
		testRequest{name: "a row alone", method: "GET", path: "/People()?NextRowKey=" + forged("1"), want: refusedFilter},
		testRequest{name: "two", method: "GET", path: "/People()?NextPartitionKey=" + forged("a") + "&NextPartitionKey=" + forged("a"), want: refusedFilter},
		testRequest{name: "a key after all others", method: "GET", path: "/People()?NextPartitionKey=" + forged("zzz"), want: "200"},
		testRequest{name: "characters that no key has", method: "GET", path: "/People()?NextPartitionKey=" + forged("a/b\x00"), want: "200"},
		testRequest{name: "a very long key", method: "GET", path: "/People()?NextPartitionKey=" + forged(strings.Repeat("a", 5_000)), want: "200"},
		testRequest{name: "a missing table", method: "GET", path: "/Nobody()?NextPartitionKey=" + forged("a"), want: "404 TableNotFound"},
		testRequest{name: "a token longer than any header", method: "GET", path: "/People()?NextPartitionKey=" + strings.Repeat("x", 1<<20), want: "431"},
	)
	sendAll(t, requests)
}

// rangeSeed is the seed of the ranges and tokens of TestRanges.
const rangeSeed = 7

// TestRanges sends signatures for ranges of keys with queries that continue at forged
// tokens. A query must return its results within the range, and no other read or write may
// reach a key outside of it.
func TestRanges(t *testing.T) {
	w := newWire(t, nil, nil)
	if err := w.store.CreateTable(t.Context(), "People"); err != nil {
		t.Fatal(err)
	}
	keys := []string{"", "a", "b", "c"}
	var all []edm.Key
	for _, p := range keys {
		for _, r := range keys {
			k := edm.Key{Partition: p, Row: r}
			all = append(all, k)
			if _, err := w.store.Apply(t.Context(), "People", store.Insert(edm.Entity{Key: k})); err != nil {
				t.Fatal(err)
			}
		}
	}
	rng := rand.New(rand.NewPCG(rangeSeed, 0))
	pick := func() string { return []string{"a", "b", "c", "bb"}[rng.IntN(4)] }
	for i := range 60 {
		s := sharedkey.TableSAS{Table: "People", Permissions: "raud", Expiry: "2021-06-18"}
		for _, at := range []struct{ partition, row *string }{{&s.StartPartition, &s.StartRow}, {&s.EndPartition, &s.EndRow}} {
			if rng.IntN(4) > 0 {
				*at.partition = pick()
				if rng.IntN(2) > 0 {
					*at.row = pick()
				}
			}
		}
		sas, err := w.credential.TableSAS(s)
		if err != nil {
			t.Fatal(err)
		}
		inRange := func(k edm.Key) bool {
			afterStart := s.StartPartition == "" || k.Compare(edm.Key{Partition: s.StartPartition, Row: s.StartRow}) >= 0
			beforeEnd := s.EndPartition == "" || k.Partition < s.EndPartition || k.Partition == s.EndPartition && (s.EndRow == "" || k.Row <= s.EndRow)
			return afterStart && beforeEnd
		}
		from := edm.Key{Partition: pick(), Row: pick()}
		query := "NextPartitionKey=" + forged(from.Partition) + "&NextRowKey=" + forged(from.Row)
		if rng.IntN(2) > 0 {
			query, from = "$filter="+url.QueryEscape("PartitionKey ge '' or not (RowKey eq 'x')"), edm.Key{}
		}
		var want []edm.Key
		for _, k := range all {
			if inRange(k) && k.Compare(from) >= 0 {
				want = append(want, k)
			}
		}
		if got := w.keysOf(sas, query); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("seed %d, round %d, %+v, %s\ngot  %v\nwant %v", rangeSeed, i, s, query, got, want)
		}
		w.touchEach(sas, all, inRange)
	}
}

// keysOf queries entities in pages of three, and returns their keys.
func (w *wire) keysOf(sas, query string) (keys []edm.Key) {
	w.t.Helper()
	for {
		raw, res := w.exchange("GET /devstoreaccount1/People()?$top=3&" + query + "&" + sas + " HTTP/1.1\r\nHost: a\r\nAccept: application/json\r\n\r\n")
		if res == nil || res.StatusCode != http.StatusOK {
			w.t.Fatalf("%s: %s", query, raw)
		}
		var page struct {
			Value []struct{ PartitionKey, RowKey string }
		}
		if err := json.NewDecoder(res.Body).Decode(&page); err != nil {
			w.t.Fatal(err)
		}
		for _, e := range page.Value {
			keys = append(keys, edm.Key{Partition: e.PartitionKey, Row: e.RowKey})
		}
		next := res.Header.Get("X-Ms-Continuation-Nextpartitionkey")
		if next == "" {
			return keys
		}
		kept, _, _ := strings.Cut(query, "NextPartitionKey")
		query = strings.TrimSuffix(kept, "&") + "&NextPartitionKey=" + url.QueryEscape(next) + "&NextRowKey=" +
			url.QueryEscape(res.Header.Get("X-Ms-Continuation-Nextrowkey"))
	}
}

// touchEach reads and writes each key, by itself and in a batch, and checks that keys
// outside of the range are refused.
func (w *wire) touchEach(sas string, keys []edm.Key, inRange func(edm.Key) bool) {
	w.t.Helper()
	for _, k := range keys {
		path := fmt.Sprintf("/devstoreaccount1/People(PartitionKey='%s',RowKey='%s')", k.Partition, k.Row)
		body := changeset(put(k.Partition, k.Row))
		for what, request := range map[string]string{
			"read":    "GET " + path + "?" + sas + " HTTP/1.1\r\nHost: a\r\nAccept: application/json\r\n\r\n",
			"replace": "PUT " + path + "?" + sas + " HTTP/1.1\r\nHost: a\r\nAccept: application/json\r\nContent-Length: 2\r\n\r\n{}",
			"batch": fmt.Sprintf("POST /devstoreaccount1/$batch?%s HTTP/1.1\r\nHost: a\r\nContent-Type: multipart/mixed; boundary=o\r\nContent-Length: "+
				"%d\r\n\r\n%s", sas, len(body), body),
		} {
			raw, _ := w.exchange(request)
			if refused := strings.Contains(string(raw), `"code":"AuthorizationFailure"`); refused == inRange(k) {
				w.t.Fatalf("%s of %q in the range: %v\n%s", what, k, inRange(k), raw)
			}
		}
	}
}
