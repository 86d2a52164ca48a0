package sharedkey

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Field explains a field of a shared access signature.
type Field struct {
	Name    string            `json:"name"`  // the parameter, such as sp
	Label   string            `json:"label"` // such as Permissions
	Meaning string            `json:"meaning"`
	Letters map[string]string `json:"letters,omitempty"` // the meaning of each letter of the value
	Example string            `json:"example"`
	Needed  bool              `json:"needed"`
}

// The fields that both kinds of signatures have.
var (
	startField = Field{
		Name: "st", Label: "Start", Example: "2026-01-31T08:00:00Z", Meaning: "The signature is refused before this time (UTC). Empty: valid at once.",
	}
	expiryField = Field{
		Name: "se", Label: "Expiry", Example: "2026-02-01T08:00:00Z", Needed: true, Meaning: "The signature is refused from this time on (UTC).",
	}
	addressField = Field{
		Name: "sip", Label: "Addresses", Example: "10.0.0.1-10.0.0.9", Meaning: "Only this address, or range of addresses, may use it. Empty: any.",
	}
	protocolField = Field{Name: "spr", Label: "Protocol", Meaning: "https refuses connections that others can read.", Example: "https"}
)

// Fields returns the fields of a signature for a table or for the account, by these words.
func Fields() map[string][]Field { return fieldsOf }

var fieldsOf = map[string][]Field{
	"table": {
		{
			Name: "sp", Label: "Permissions", Meaning: "What the signature allows with entities of the table.", Example: "r", Needed: true,
			Letters: map[string]string{"r": "read and query", "a": "add", "u": "update", "d": "delete"},
		},
		startField,
		expiryField,
		{
			Name: "si", Label: "Stored policy", Example: "readers",
			Meaning: "The access policy of the table that has the fields left empty here. Removing the policy ends the signature; " +
				"without one only a new account key does.",
		},
		{Name: "spk", Label: "First PartitionKey", Meaning: "Entities with a smaller PartitionKey are not covered.", Example: "a"},
		{Name: "srk", Label: "First RowKey", Meaning: "In the first PartitionKey, entities with a smaller RowKey are not covered.", Example: "001"},
		{Name: "epk", Label: "Last PartitionKey", Meaning: "Entities with a greater PartitionKey are not covered.", Example: "m"},
		{Name: "erk", Label: "Last RowKey", Meaning: "In the last PartitionKey, entities with a greater RowKey are not covered.", Example: "999"},
		addressField,
		protocolField,
	},
	"account": {
		{
			Name: "sp", Label: "Permissions", Meaning: "What the signature allows.", Example: "rl", Needed: true,
			Letters: map[string]string{
				"r": "read and query", "w": "write properties and create tables", "d": "delete", "l": "list tables", "a": "add",
				"c": "create tables", "u": "update",
			},
		},
		{
			Name: "srt", Label: "Resource types", Meaning: "On what: the service, tables, or entities.", Example: "co", Needed: true,
			Letters: map[string]string{"s": "properties of the service", "c": "tables", "o": "entities"},
		},
		startField,
		expiryField,
		addressField,
		protocolField,
	},
}

// InOrder returns letters in the order of another text, as signatures need them. Unknown
// letters are at the end.
func InOrder(letters, order string) string {
	list := []byte(letters)
	at := func(c byte) int {
		if i := strings.IndexByte(order, c); i >= 0 {
			return i
		}
		return len(order)
	}
	slices.SortStableFunc(list, func(a, b byte) int { return at(a) - at(b) })
	return string(slices.Compact(list))
}

// Describe explains the fields of a signature, which Credential returned, and warns of what
// makes it dangerous at a time.
func Describe(query string, now time.Time) (summary, warnings []string) {
	v, err := url.ParseQuery(query)
	if err != nil {
		return nil, nil
	}
	kind := "account"
	if v.Has("tn") {
		kind = "table"
	}
	for _, f := range fieldsOf[kind] {
		value := v.Get(f.Name)
		if value == "" {
			continue
		}
		line := fmt.Sprintf("%s (%s=%s): %s", f.Label, f.Name, value, f.Meaning)
		if f.Letters != nil {
			var meanings []string
			for c := range strings.SplitSeq(value, "") {
				meanings = append(meanings, f.Letters[c])
			}
			line = fmt.Sprintf("%s (%s=%s): %s.", f.Label, f.Name, value, strings.Join(slices.DeleteFunc(meanings, func(m string) bool { return m == "" }), ", "))
		}
		summary = append(summary, line)
	}
	if v.Get("spr") != "https" {
		warnings = append(warnings, "It may be sent over http, where others can read and use it.")
	}
	if strings.ContainsAny(v.Get("sp"), "waudc") && v.Get("sip") == "" {
		warnings = append(warnings, "It allows writes from any address.")
	}
	expiry, err := parseTime(v.Get("se"))
	if err == nil && expiry.Sub(now) > 7*24*time.Hour && v.Get("si") == "" {
		warnings = append(warnings, "It is valid for more than a week, and only a new account key ends it earlier. A stored policy could.")
	}
	if err == nil && !now.Before(expiry) {
		warnings = append(warnings, "It has expired already.")
	}
	return summary, warnings
}
