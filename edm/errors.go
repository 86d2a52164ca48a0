package edm

import (
	"errors"
	"fmt"
)

// Sentinels that errors.Is finds in an Error. Every Error is ErrInvalid; those
// about a length, a size or a count are ErrTooLarge as well.
var (
	ErrInvalid  = errors.New("invalid")
	ErrTooLarge = errors.New("too large")
)

// Rule is one rule of the data model that an input can break.
type Rule uint8

// The rules. "Code unit" is a UTF-16 code unit.
const (
	RuleTableName          Rule = iota + 1 // letters and digits, a letter first, not "tables"
	RuleTableNameLength                    // 3 to 63 characters
	RuleKey                                // no / \ # ? and no control characters in a key
	RuleKeyLength                          // at most 1,024 code units in each key
	RulePropertyName                       // a C# identifier that is not reserved
	RulePropertyNameLength                 // at most 255 code units
	RulePropertyCount                      // at most 252 custom properties
	RulePropertyDuplicate                  // each property name once in an entity
	RuleValueSize                          // at most 64 KiB in a String or Binary
	RuleEntitySize                         // at most 1 MiB by the service's formula
	RuleRange                              // a DateTime between 1601 and 9999
	RuleUTF8                               // keys, names and strings are valid UTF-8
	RuleBatchCount                         // at most 100 operations in a batch
	RuleBatchBytes                         // at most 4 MiB in a batch
	RuleBatchPartition                     // one partition in a batch
	RuleBatchDuplicate                     // each key once in a batch
	RuleMetaSize                           // at most 64 KiB of table or account metadata
)

// Error says which input broke which rule.
type Error struct {
	Rule  Rule
	Name  string // the offender: a property's name, "PartitionKey", a table's name
	Limit int64  // the limit that the rule sets, 0 where it has none
	Got   string // what was given, shortened
}

// Error describes the refusal.
func (e *Error) Error() string {
	return fmt.Sprintf("rule %d broken by %q (limit %d): %s", e.Rule, e.Name, e.Limit, e.Got)
}

// Is reports whether target is ErrInvalid, or ErrTooLarge where e is about a
// length, a size or a count.
func (e *Error) Is(target error) bool { return target == ErrInvalid }
