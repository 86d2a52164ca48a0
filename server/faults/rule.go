package faults

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/server"
)

// Answer is what a rule does to a request.
type Answer string

// The answers.
const (
	// ServerBusy responds 503 with Retry-After. The request is not executed.
	ServerBusy Answer = "ServerBusy"
	// OperationTimedOut responds 500. The request is not executed.
	OperationTimedOut Answer = "OperationTimedOut"
	// TableBeingDeleted is for DeleteTable, which succeeds. For the time Rule.For after
	// it, requests that name the table, and CreateTable, get 409. A batch does not: its
	// operations get TableNotFound.
	TableBeingDeleted Answer = "TableBeingDeleted"
	// CutBefore closes the connection. The request is not executed.
	CutBefore Answer = "CutBefore"
	// CutAfter executes the request and closes the connection without a response.
	CutAfter Answer = "CutAfter"
	// Delay only waits for Rule.Delay. Later rules can apply, too.
	Delay Answer = "Delay"
)

var answers = []Answer{ServerBusy, OperationTimedOut, TableBeingDeleted, CutBefore, CutAfter, Delay}

// AnyOperation as the Operation of a Rule is every operation.
const AnyOperation = "*"

// Rule applies an answer to some of the requests of an operation. Of several rules that
// apply to a request, the first one answers.
type Rule struct {
	// Operation is one of server.Operations, or AnyOperation.
	Operation string
	// Table limits the rule to requests that name this table in their path. Operations that never
	// do, as CreateTable, QueryTables and Batch, need the default, "", which is all requests.
	Table string
	// Answer is required.
	Answer Answer
	// Probability is greater than 0 and at most 1.
	Probability float64
	// Times limits how often the rule answers, to all its operations together. The default,
	// 0, is no limit.
	Times int
	// Delay is the time, at most 30 s, that the answer takes. With a greater MaxDelay,
	// the time is between the two. The default is none; the answer Delay requires it.
	Delay, MaxDelay time.Duration
	// RetryAfter is the Retry-After of ServerBusy in whole seconds. The default is 1 s.
	RetryAfter time.Duration
	// For is required by TableBeingDeleted, and is for no other answer.
	For time.Duration
}

const (
	maxRules    = 1000
	maxBytes    = 1 << 20
	maxDelay    = 30 * time.Second // a response has a minute
	maxDuration = time.Hour
)

// document is the JSON of a Rule.
type document struct {
	Operation   string   `json:"operation"`
	Table       string   `json:"table"`
	Answer      Answer   `json:"answer"`
	Probability float64  `json:"probability"`
	Times       int      `json:"times"`
	Delay       duration `json:"delay"`
	MaxDelay    duration `json:"maxDelay"`
	RetryAfter  duration `json:"retryAfter"`
	For         duration `json:"for"`
}

const fields = "operation, table, answer, probability, times, delay, maxDelay, retryAfter and for"

// duration is a time.Duration whose JSON is a string such as "1.5s".
type duration time.Duration

// UnmarshalJSON implements json.Unmarshaler.
func (d *duration) UnmarshalJSON(text []byte) error {
	var s string
	if err := json.Unmarshal(text, &s); err != nil {
		return fmt.Errorf(`the time %s is not a text such as "250ms" or "2s"`, text)
	}
	parsed, err := time.ParseDuration(s)
	if err != nil {
		return fmt.Errorf(`the time %q is not of the form "250ms" or "2s"`, s)
	}
	*d = duration(parsed)
	return nil
}

// Parse parses a list of rules in JSON. It refuses fields and operations that do not exist.
// Times are texts such as "250ms".
func Parse(text []byte) ([]Rule, error) {
	if len(text) > maxBytes {
		return nil, fmt.Errorf("faults: %d bytes of rules, at most %d are allowed", len(text), maxBytes)
	}
	var list []json.RawMessage
	if err := strictly(text, &list); err != nil {
		return nil, fmt.Errorf("faults: the rules are not a list in JSON, such as "+
			`[{"operation": "*", "answer": "ServerBusy", "probability": 0.1}]: %w`, err)
	}
	rules := make([]Rule, len(list))
	for i, one := range list {
		var d document
		if err := strictly(one, &d); err != nil {
			return nil, fmt.Errorf("faults: rule %d: %w; its fields are %s", i+1, err, fields)
		}
		rules[i] = Rule{
			Operation: d.Operation, Table: d.Table, Answer: d.Answer, Probability: d.Probability, Times: d.Times,
			Delay: time.Duration(d.Delay), MaxDelay: time.Duration(d.MaxDelay), RetryAfter: time.Duration(d.RetryAfter), For: time.Duration(d.For),
		}
	}
	return rules, check(rules)
}

// strictly decodes one JSON value without unknown fields.
func strictly(text []byte, to any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(to); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return errors.New("the text ends too early")
		}
		return errors.New(strings.TrimPrefix(err.Error(), "json: "))
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is text after the end")
	}
	return nil
}

// check returns an error that names the first rule that is not valid.
func check(rules []Rule) error {
	if len(rules) == 0 || len(rules) > maxRules {
		return fmt.Errorf("faults: %d rules, give 1 to %d", len(rules), maxRules)
	}
	for i := range rules {
		if err := rules[i].check(); err != nil {
			return fmt.Errorf("faults: rule %d: %w", i+1, err)
		}
	}
	return nil
}

// withoutTable are the operations whose requests have no table in their paths.
var withoutTable = []string{"Batch", "CreateTable", "QueryTables", "GetServiceProperties", "GetServiceStats", "SetServiceProperties"}

func (r *Rule) check() error {
	operations := server.Operations()
	switch {
	case r.Operation != AnyOperation && !slices.Contains(operations, r.Operation):
		return fmt.Errorf("operation %q does not exist; give * or one of %s", r.Operation, strings.Join(operations, ", "))
	case r.Table != "" && edm.CheckTableName(r.Table) != nil:
		return fmt.Errorf("%q is not the name of a table", r.Table)
	case r.Table != "" && slices.Contains(withoutTable, r.Operation):
		return fmt.Errorf("no request of the operation %s has a table in its path, so the rule would never apply: leave out table", r.Operation)
	case !slices.Contains(answers, r.Answer):
		return fmt.Errorf("answer %q does not exist; give one of %s", r.Answer, join(answers))
	case !(r.Probability > 0 && r.Probability <= 1):
		return fmt.Errorf("probability %v must be greater than 0 and at most 1", r.Probability)
	case r.Times < 0:
		return fmt.Errorf("times %d must not be negative; leave it out for no limit", r.Times)
	}
	return r.checkTimes()
}

func (r *Rule) checkTimes() error {
	switch {
	case r.Delay < 0 || r.Delay > maxDelay || r.MaxDelay < 0 || r.MaxDelay > maxDelay:
		return fmt.Errorf("delay %v and maxDelay %v must be at most %v", r.Delay, r.MaxDelay, maxDelay)
	case r.MaxDelay != 0 && r.MaxDelay < r.Delay:
		return fmt.Errorf("maxDelay %v is less than delay %v", r.MaxDelay, r.Delay)
	case r.Answer == Delay && r.Delay == 0 && r.MaxDelay == 0:
		return errors.New(`the answer Delay needs a delay, such as "delay": "250ms"`)
	case r.RetryAfter != 0 && r.Answer != ServerBusy:
		return errors.New("retryAfter is for the answer ServerBusy")
	case r.RetryAfter < 0 || r.RetryAfter > maxDuration || r.RetryAfter%time.Second != 0:
		return fmt.Errorf("retryAfter %v must be whole seconds, at most %v", r.RetryAfter, maxDuration)
	case r.Answer == TableBeingDeleted && (r.Operation != "DeleteTable" || r.For <= 0 || r.For > maxDuration):
		return fmt.Errorf(`the answer TableBeingDeleted needs "operation": "DeleteTable" and a time of at most %v, such as "for": "40s"`, maxDuration)
	case r.Answer != TableBeingDeleted && r.For != 0:
		return errors.New("for is for the answer TableBeingDeleted")
	}
	return nil
}

func join(list []Answer) string {
	var b strings.Builder
	for i, a := range list {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(string(a))
	}
	return b.String()
}
