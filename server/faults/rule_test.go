package faults_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/tablerock-db/tablerock/server/faults"
)

func TestParse(t *testing.T) {
	got, err := faults.Parse([]byte(`[
		{"operation": "*", "answer": "ServerBusy", "probability": 0.25, "times": 3, "retryAfter": "2s"},
		{"operation": "GetEntity", "table": "Orders", "answer": "Delay", "probability": 1, "delay": "10ms", "maxDelay": "1.5s"},
		{"operation": "DeleteTable", "answer": "TableBeingDeleted", "probability": 1, "for": "40s"}]`))
	want := []faults.Rule{
		{Operation: "*", Answer: faults.ServerBusy, Probability: 0.25, Times: 3, RetryAfter: 2 * time.Second},
		{Operation: "GetEntity", Table: "Orders", Answer: faults.Delay, Probability: 1, Delay: 10 * time.Millisecond, MaxDelay: 1500 * time.Millisecond},
		{Operation: "DeleteTable", Answer: faults.TableBeingDeleted, Probability: 1, For: 40 * time.Second},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v\nwant %+v", got, err, want)
	}
}

// TestParseRefusals checks that each refusal names the rule and the cure.
func TestParseRefusals(t *testing.T) {
	const good = `"operation": "*", "answer": "ServerBusy", "probability": 1`
	for _, c := range []struct{ text, want string }{
		{``, "not a list in JSON, such as [{"},
		{`{}`, "not a list in JSON, such as [{"},
		{`[{` + good + `}`, "the text ends too early"},
		{`[{` + good + `}] []`, "text after the end"},
		{`[]`, "0 rules, give 1 to 1000"},
		{`[{` + good + `}, {"opration": "*"}]`, `rule 2: unknown field "opration"; its fields are operation, table, answer`},
		{`[{"operation": "Insert", "answer": "ServerBusy", "probability": 1}]`, `operation "Insert" does not exist; give * or one of Batch, CreateTable, `},
		{`[{"answer": "ServerBusy", "probability": 1}]`, `operation "" does not exist`},
		{`[{"operation": "*", "answer": "Busy", "probability": 1}]`, `answer "Busy" does not exist; give one of ServerBusy, `},
		{`[{"operation": "*", "answer": "ServerBusy"}]`, "probability 0 must be greater than 0 and at most 1"},
		{`[{"operation": "*", "answer": "ServerBusy", "probability": 5}]`, "probability 5 must be"},
		{`[{"operation": "*", "answer": "ServerBusy", "probability": "all"}]`, "rule 1: cannot unmarshal string"},
		{`[{` + good + `, "table": "a-b"}]`, `"a-b" is not the name of a table`},
		{`[{"operation": "Batch", "answer": "CutAfter", "probability": 1, "table": "Orders"}]`, "the operation Batch has a table in its path"},
		{`[{"operation": "CreateTable", "answer": "CutAfter", "probability": 1, "table": "Orders"}]`, "so the rule would never apply"},
		{`[{` + good + `, "times": -1}]`, "times -1 must not be negative"},
		{`[{` + good + `, "delay": 5}]`, `the time 5 is not a text such as "250ms"`},
		{`[{` + good + `, "delay": "soon"}]`, `the time "soon" is not of the form "250ms"`},
		{`[{` + good + `, "delay": "31s"}]`, "must be at most 30s"},
		{`[{` + good + `, "delay": "-1s"}]`, "must be at most 30s"},
		{`[{` + good + `, "delay": "2s", "maxDelay": "1s"}]`, "maxDelay 1s is less than delay 2s"},
		{`[{"operation": "*", "answer": "Delay", "probability": 1}]`, "the answer Delay needs a delay"},
		{`[{"operation": "*", "answer": "CutAfter", "probability": 1, "retryAfter": "1s"}]`, "retryAfter is for the answer ServerBusy"},
		{`[{` + good + `, "retryAfter": "1.5s"}]`, "must be whole seconds"},
		{`[{` + good + `, "for": "1s"}]`, "for is for the answer TableBeingDeleted"},
		{`[{"operation": "*", "answer": "TableBeingDeleted", "probability": 1, "for": "1s"}]`, `needs "operation": "DeleteTable"`},
		{`[{"operation": "DeleteTable", "answer": "TableBeingDeleted", "probability": 1}]`, `such as "for": "40s"`},
	} {
		if _, err := faults.Parse([]byte(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.text, err, c.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`[{"operation": "*", "answer": "Delay", "probability": 0.5, "delay": "1s"}]`))
	f.Add([]byte(`[{"operation": 5}]`))
	f.Fuzz(func(t *testing.T, text []byte) {
		rules, err := faults.Parse(text)
		if err != nil {
			return
		}
		for _, r := range rules {
			if r.Probability <= 0 || r.Delay < 0 || r.MaxDelay < 0 || r.For < 0 {
				t.Errorf("accepted %+v", r)
			}
		}
	})
}
