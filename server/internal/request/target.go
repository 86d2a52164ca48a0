package request

import (
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/tablerock-db/tablerock/edm"
)

// Resource is what a path names.
type Resource uint8

// The resources.
const (
	ServiceRoot Resource = iota + 1 // /
	Schema                          // /$metadata
	Batch                           // /$batch
	Tables                          // /Tables, /Tables()
	Table                           // /Tables('T')
	Entities                        // /T, /T()
	Entity                          // /T(PartitionKey='a',RowKey='b')
	TableACL                        // /T?comp=acl
	Misplaced                       // /T/Tables, /T/Tables('X'), /T/$batch: asked of a table, not of the account
)

// Target is the resource that a path names, with its table and key.
type Target struct {
	Kind  Resource
	Table string
	Key   edm.Key
}

var (
	// ErrNothing says that a path names nothing that the service has.
	ErrNothing = errors.New("no resource")
	// ErrSyntax says that what stands in parentheses is no key, or the path no text.
	ErrSyntax = errors.New("not a path with a key")
)

// ParseTarget reads what follows the account in a decoded path; comp is the query
// parameter of that name. It fails with ErrNothing or ErrSyntax.
func ParseTarget(rest, comp string) (Target, error) {
	if !utf8.ValidString(rest) {
		return Target{}, ErrSyntax
	}
	rest = strings.TrimSuffix(rest, "/")
	name, predicate, called := strings.Cut(rest, "(")
	switch {
	case rest == "":
		return Target{Kind: ServiceRoot}, nil
	case rest == "$batch":
		return Target{Kind: Batch}, nil
	case rest == "$metadata":
		return Target{Kind: Schema}, nil
	case strings.Contains(name, "/"):
		return parseMisplaced(rest)
	case comp == "acl" && !called:
		return Target{Kind: TableACL, Table: name}, nil
	case name == "Tables":
		return parseTablesTarget(predicate, called)
	case !called || predicate == ")":
		return Target{Kind: Entities, Table: name}, nil
	}
	key, ok := parseKey(predicate)
	if !ok {
		return Target{}, ErrSyntax
	}
	return Target{Entity, name, key}, nil
}

// parseMisplaced reads what a client asks for that takes the address of a table for
// that of the account.
func parseMisplaced(rest string) (Target, error) {
	table, below, _ := strings.Cut(rest, "/")
	if table == "" || table == "Tables" || table[0] == '$' || below != "$batch" && below != "Tables" && !strings.HasPrefix(below, "Tables(") {
		return Target{}, ErrNothing
	}
	return Target{Kind: Misplaced, Table: table}, nil
}

// parseTablesTarget reads what follows "Tables(".
func parseTablesTarget(predicate string, called bool) (Target, error) {
	if !called || predicate == ")" {
		return Target{Kind: Tables}, nil
	}
	name, rest, ok := cutQuoted(predicate)
	if !ok || rest != ")" {
		return Target{}, ErrSyntax
	}
	return Target{Kind: Table, Table: name}, nil
}

// parseKey reads PartitionKey='..',RowKey='..') in either order.
func parseKey(s string) (key edm.Key, ok bool) {
	var seen [2]bool
	for i := range 2 {
		s = strings.TrimLeft(s, " ")
		var which int
		switch {
		case strings.HasPrefix(s, "PartitionKey="):
			s = s[len("PartitionKey="):]
		case strings.HasPrefix(s, "RowKey="):
			which, s = 1, s[len("RowKey="):]
		default:
			return key, false
		}
		text, rest, quoted := cutQuoted(s)
		if !quoted || seen[which] || len(rest) == 0 || rest[0] != ",)"[i] {
			return key, false
		}
		seen[which], s = true, rest[1:]
		if which == 0 {
			key.Partition = text
		} else {
			key.Row = text
		}
	}
	return key, s == ""
}

// cutQuoted reads a string in single quotes, in which a quote stands twice.
func cutQuoted(s string) (text, rest string, ok bool) {
	if s == "" || s[0] != '\'' {
		return "", s, false
	}
	s = s[1:]
	doubled := false
	for at := 0; ; {
		i := strings.IndexByte(s[at:], '\'')
		if i < 0 {
			return "", s, false
		}
		at += i
		if at+1 < len(s) && s[at+1] == '\'' {
			doubled = true
			at += 2
			continue
		}
		if text = s[:at]; doubled {
			text = strings.ReplaceAll(text, "''", "'")
		}
		return text, s[at+1:], true
	}
}
