package server_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// comparison compares a response with a recorded one.
type comparison struct {
	*player
	index    int
	recorded *recorded
	got      reply
}

// differs reports a difference in meaning.
func (c *comparison) differs(what, want, got string) {
	c.t.Helper()
	c.t.Errorf("request %d, %s %s: %s\nrecorded %s\ngot      %s", c.index, c.recorded.Request.Method, c.recorded.Request.Path, what, want, got)
}

// unexplained reports a difference without meaning, unless it is explained.
func (c *comparison) unexplained(what string) {
	c.t.Helper()
	if !c.explained.has(what) {
		c.t.Errorf("request %d, %s %s: not in testdata/header-differences.txt: %s", c.index, c.recorded.Request.Method, c.recorded.Request.Path, what)
	}
}

func (c *comparison) compare() {
	c.t.Helper()
	want := &c.recorded.Response
	if c.got.status != want.Status {
		c.differs("status", strconv.Itoa(want.Status)+" "+want.Body, strconv.Itoa(c.got.status)+" "+c.got.body)
		return
	}
	c.headers("", want.Headers, c.got.headers)
	if strings.HasPrefix(c.recorded.Request.Path, "/$batch") && want.Status == http.StatusAccepted {
		c.operations(splitOperations(c.normal(want.Body)), splitOperations(c.normal(c.got.body)))
		return
	}
	c.bodies(c.normal(want.Body), c.normal(c.got.body))
}

var (
	guid     = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	syncTime = regexp.MustCompile(`<LastSyncTime>[^<]*`)
	account  = regexp.MustCompile(`"odata.type":"[a-z0-9_]+\.`)
	errorIDs = regexp.MustCompile(`\\nRequestId:.*?\\nTime:[-0-9T:.Z]*|\nRequestId:.*?\nTime:[-0-9T:.Z]*`)
)

// normal returns a text without what differs from run to run.
func (c *comparison) normal(text string) string {
	text = strings.ReplaceAll(text, c.srv.endpoint, "{base}")
	text = strings.TrimPrefix(text, "\ufeff")
	text = errorIDs.ReplaceAllString(text, "")
	text = recordedTimes.ReplaceAllString(text, "${1}TIME")
	text = syncTime.ReplaceAllString(text, "<LastSyncTime>TIME")
	return account.ReplaceAllString(text, `"odata.type":"ACCOUNT.`)
}

// ignoredHeaders differ in every response, or are not recorded.
var ignoredHeaders = []string{"date", "x-ms-request-id", "x-ms-client-request-id"}

// headers compares headers; where is "" for those of the response itself.
func (c *comparison) headers(where string, want, got map[string]string) {
	c.t.Helper()
	value := func(s string) string { return guid.ReplaceAllString(c.normal(s), "GUID") }
	for name, text := range want {
		other, ok := got[name]
		switch {
		case slices.Contains(ignoredHeaders, name):
		case !ok:
			c.unexplained(where + "without " + name + ": " + value(text))
		case strings.HasPrefix(name, "x-ms-continuation-"):
		case value(text) != value(other):
			c.unexplained(where + name + ": " + value(other) + " for " + value(text))
		}
	}
	for name, text := range got {
		if _, ok := want[name]; !ok && !slices.Contains(ignoredHeaders, name) {
			if strings.HasPrefix(name, "x-ms-continuation-") {
				c.differs("a continuation", "none", text)
			}
			if name == "content-length" {
				text = "N"
			}
			c.unexplained(where + "with " + name + ": " + value(text))
		}
	}
}

// bodies compares two bodies that normal returned.
func (c *comparison) bodies(want, got string) {
	c.t.Helper()
	path := c.recorded.Request.Path
	switch {
	case strings.Contains(path, "comp=properties") && c.recorded.Request.Method == http.MethodGet:
		for _, name := range []string{"Logging", "HourMetrics", "MinuteMetrics", "Cors"} {
			// Other sections were set before the session.
			if strings.Contains(c.put, "<"+name) && section(want, name) != section(got, name) {
				c.differs(name, section(want, name), section(got, name))
			}
		}
		return
	case strings.HasPrefix(path, "/Tables") && c.recorded.Request.Method == http.MethodGet && c.recorded.Response.Status == http.StatusOK:
		want, got = c.ownTables(want), c.ownTables(got)
	}
	if want == got {
		return
	}
	var a, b any
	if json.Unmarshal([]byte(want), &a) != nil || json.Unmarshal([]byte(got), &b) != nil || !reflect.DeepEqual(a, b) {
		c.differs("body", want, got)
		return
	}
	c.unexplained("members in another order")
}

// section returns an element of a document.
func section(doc, name string) string {
	found := regexp.MustCompile(`(?s)<` + name + `(?: ?/>|>.*?</` + name + `>)`).FindString(doc)
	return strings.ReplaceAll(found, " />", "/>")
}

// ownTables removes tables from a list that the session did not create: the recorded
// account had others.
func (c *comparison) ownTables(body string) string {
	var list struct {
		Metadata string              `json:"odata.metadata"`
		Value    []map[string]string `json:"value"`
	}
	if json.Unmarshal([]byte(body), &list) != nil || list.Value == nil {
		return body
	}
	// Other tables change the limits of a page, so pages are not compared.
	whole := !strings.Contains(c.recorded.Request.Path, "$top") && !strings.Contains(c.recorded.Request.Path, "NextTableName")
	list.Value = slices.DeleteFunc(list.Value, func(t map[string]string) bool {
		return !whole || !slices.Contains(c.created, t["TableName"])
	})
	text, err := json.Marshal(list)
	if err != nil {
		c.t.Fatal(err)
	}
	return string(text)
}

// opResponse is the response to one operation of a batch.
type opResponse struct {
	status  string
	headers map[string]string
	body    string
}

// splitOperations splits the response to a batch at the status lines. It does not share code
// with package batch.
func splitOperations(envelope string) []opResponse {
	var all []opResponse
	for _, text := range strings.Split(envelope, "\r\nHTTP/1.1 ")[1:] {
		head, body, _ := strings.Cut(text, "\r\n\r\n")
		if end := strings.LastIndex(body, "\r\n--"); strings.HasPrefix(body, "--") {
			body = ""
		} else if end >= 0 {
			body, _, _ = strings.Cut(body, "\r\n--")
		}
		status, fields, _ := strings.Cut(head, "\r\n")
		p := opResponse{status, map[string]string{}, strings.TrimSpace(body)}
		for line := range strings.SplitSeq(fields, "\r\n") {
			name, value, _ := strings.Cut(line, ": ")
			p.headers[strings.ToLower(name)] = value
		}
		all = append(all, p)
	}
	return all
}

func (c *comparison) operations(want, got []opResponse) {
	c.t.Helper()
	if len(want) != len(got) || len(want) == 0 {
		c.differs("operations", fmt.Sprint(want), fmt.Sprint(got))
		return
	}
	for i := range want {
		if want[i].status != got[i].status {
			c.differs("operation "+strconv.Itoa(i), fmt.Sprint(want[i]), fmt.Sprint(got[i]))
			continue
		}
		c.headers("operation ", want[i].headers, got[i].headers)
		c.bodies(want[i].body, got[i].body)
	}
}

// explanations are the differences in testdata/header-differences.txt.
type explanations struct {
	seen map[string]bool
}

// readExplained reads testdata/header-differences.txt: each indented line is a difference,
// and the text above it is the reason.
func readExplained(t *testing.T) *explanations {
	t.Helper()
	text, err := os.ReadFile("testdata/header-differences.txt")
	if err != nil {
		t.Fatal(err)
	}
	e := &explanations{map[string]bool{}}
	for line := range strings.SplitSeq(string(text), "\n") {
		if what, ok := strings.CutPrefix(line, "    "); ok {
			e.seen[what] = false
		}
	}
	return e
}

func (e *explanations) has(what string) bool {
	_, ok := e.seen[what]
	if ok {
		e.seen[what] = true
	}
	return ok
}

// unseen returns the explained differences that did not occur.
func (e *explanations) unseen() []string {
	var list []string
	for _, what := range slices.Sorted(maps.Keys(e.seen)) {
		if !e.seen[what] {
			list = append(list, what)
		}
	}
	return list
}
