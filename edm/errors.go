package edm

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

var (
	// ErrInvalid matches every Error.
	ErrInvalid = errors.New("invalid")
	// ErrTooLarge matches an Error about a length, a size or a count above its
	// limit.
	ErrTooLarge = errors.New("too large")
)

// Rule is a rule of the data model.
type Rule uint8

// The rules. A code unit is a UTF-16 code unit.
const (
	RuleTableName          Rule = iota + 1 // letters and digits, a letter first, not "tables"
	RuleTableNameLength                    // 3 to 63 characters
	RuleKey                                // no / \ # ? and no control characters in a key
	RuleKeyLength                          // at most 1,024 code units in each part of a key
	RulePropertyName                       // a C# identifier that is not reserved
	RulePropertyNameLength                 // at most 255 code units
	RulePropertyCount                      // at most 252 custom properties
	RulePropertyDuplicate                  // property names are unique in an entity
	RuleValueSize                          // at most 64 KiB in a String or Binary
	RuleEntitySize                         // at most 1 MiB by EntitySize
	RuleRange                              // a value in the range of its type; a DateTime from 1601 to 9999
	RuleUTF8                               // keys, names and strings are valid UTF-8
	RuleBatchCount                         // 1 to 100 operations in a batch
	RuleBatchBytes                         // at most 100 MiB in a batch, 1 MiB for each operation
	RuleBatchPartition                     // one partition in a batch
	RuleBatchDuplicate                     // keys are unique in a batch
	RuleMetaSize                           // at most 64 KiB of metadata of a table or the account
)

var rules = [...]struct {
	name     string
	demand   string // with %d for the limit
	tooLarge bool   // for rules about a length, a size or a count
	least    int64  // the lower limit; an Error with this Limit is not ErrTooLarge
}{
	RuleTableName:       {name: "table name", demand: `a table's name is ASCII letters and digits, begins with a letter and is not "tables"`},
	RuleTableNameLength: {"table name length", "a table's name has 3 to 63 characters", true, minTableNameLen},
	RuleKey:             {name: "key", demand: `a key has none of / \ # ? and no control characters`},
	RuleKeyLength:       {"key length", "a key has at most %d UTF-16 code units", true, 0},
	RulePropertyName: {
		name:   "property name",
		demand: "a property's name is an identifier of letters, digits and _, begins with a letter or _, and is not PartitionKey, RowKey or Timestamp",
	},
	RulePropertyNameLength: {"property name length", "a property's name has at most %d UTF-16 code units", true, 0},
	RulePropertyCount:      {"property count", "an entity has at most %d properties beside PartitionKey, RowKey and Timestamp", true, 0},
	RulePropertyDuplicate:  {name: "property duplicate", demand: "an entity has each property once"},
	RuleValueSize:          {"value size", "a String has at most 32768 UTF-16 code units, a Binary at most 65536 bytes", true, 0},
	RuleEntitySize:         {"entity size", "an entity has at most %d bytes, where each character of a text counts two or four", true, 0},
	RuleRange: {
		name:   "range",
		demand: "a value is in the range of its type, a DateTime from 1601-01-01T00:00:00Z to 9999-12-31T23:59:59.9999999Z",
	},
	RuleUTF8:           {name: "UTF-8", demand: "keys, names and strings are valid UTF-8"},
	RuleBatchCount:     {"batch count", "a batch has 1 to 100 operations", true, 1},
	RuleBatchBytes:     {"batch bytes", "a batch has at most %d bytes", true, 0},
	RuleBatchPartition: {name: "batch partition", demand: "all operations of a batch have one PartitionKey"},
	RuleBatchDuplicate: {name: "batch duplicate", demand: "a batch has each key once"},
	RuleMetaSize:       {"metadata size", "metadata has at most %d bytes", true, 0},
}

// valid reports whether r is one of the rules.
func (r Rule) valid() bool { return r >= RuleTableName && int(r) < len(rules) }

// String returns the rule's name, such as "key length".
func (r Rule) String() string {
	if !r.valid() {
		return "rule " + strconv.Itoa(int(r))
	}
	return rules[r].name
}

// Error reports an input that breaks a rule.
type Error struct {
	Rule  Rule
	Name  string // the name of the offender: a property, "PartitionKey", a table; "" if it has none
	Limit int64  // the limit that was exceeded, 0 if the rule has none
	Got   string // what was given, shortened, for people
}

// Error names the offender, what was given and what the rule demands.
func (e *Error) Error() string {
	demand := "this breaks a rule"
	if e.Rule.valid() {
		demand = rules[e.Rule].demand
	}
	if strings.Contains(demand, "%d") {
		demand = fmt.Sprintf(demand, e.Limit)
	}
	text := e.Got + "; " + demand
	if e.Name == "" {
		return text
	}
	return subject(e.Rule, e.Name) + ": " + text
}

// subject returns name with its kind.
func subject(r Rule, name string) string {
	switch {
	case name == PartitionKeyName || name == RowKeyName:
		return name
	case r == RuleTableName || r == RuleTableNameLength:
		return "table " + quote(name)
	case r == RuleMetaSize:
		return shorten(name)
	}
	return "property " + quote(name)
}

// Is reports whether target is ErrInvalid, or ErrTooLarge for a length, a size or a
// count above its limit.
func (e *Error) Is(target error) bool {
	if target == ErrTooLarge {
		return e.Rule.valid() && rules[e.Rule].tooLarge && (e.Limit == 0 || e.Limit != rules[e.Rule].least)
	}
	return target == ErrInvalid
}

// maxShown limits the bytes of an input in a message.
const maxShown = 64

// shorten truncates s to about maxShown bytes, between characters.
func shorten(s string) string {
	if len(s) <= maxShown {
		return s
	}
	n := maxShown
	for n > maxShown-utf8.UTFMax && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "..."
}

// quote returns s shortened and quoted.
func quote(s string) string { return strconv.Quote(shorten(s)) }
