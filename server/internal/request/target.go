package request

import (
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/tablerock-db/tablerock/edm"
)

// Resource is the kind of resource that a path names.
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
	Misplaced                       // /T/Tables, /T/Tables('X'), /T/$batch: resources of the account, below a table
)

// Target is a resource with its table and key.
type Target struct {
	Kind  Resource
	Table string
	Key   edm.Key
}

var (
	// ErrNoResource reports that a path does not name a resource.
	ErrNoResource = errors.New("no such resource")
	// ErrSyntax reports that a path is not UTF-8, or has no key in its parentheses.
	ErrSyntax = errors.New("invalid path")
)

// ParseTarget parses the rest of a decoded path after the account. raw is the path as the
// client escaped it: an escaped slash belongs to the name of a table. comp is the query
// parameter of that name. The error is ErrNoResource or ErrSyntax.
func ParseTarget(rest, raw, comp string) (Target, error) {
	if !utf8.ValidString(rest) {
		return Target{}, ErrSyntax
	}
	slashInName := strings.Contains(rest, "/") && hasSlashInName(raw)
	if !slashInName {
		rest = strings.TrimSuffix(rest, "/")
	}
	name, predicate, called := strings.Cut(rest, "(")
	switch {
	case rest == "":
		return Target{Kind: ServiceRoot}, nil
	case rest == "$batch":
		return Target{Kind: Batch}, nil
	case rest == "$metadata":
		return Target{Kind: Schema}, nil
	case strings.Contains(name, "/") && !slashInName:
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

// hasSlashInName reports whether an escaped slash is before the key of an escaped path.
func hasSlashInName(raw string) bool {
	raw = strings.ToLower(raw)
	slash := strings.Index(raw, "%2f")
	return slash >= 0 && !strings.Contains(raw[:slash], "(") && !strings.Contains(raw[:slash], "%28")
}

// parseMisplaced parses the path of a client that uses the URL of a table in place of the
// account's.
func parseMisplaced(rest string) (Target, error) {
	table, below, _ := strings.Cut(rest, "/")
	if table == "" || table == "Tables" || table[0] == '$' || below != "$batch" && below != "Tables" && !strings.HasPrefix(below, "Tables(") {
		return Target{}, ErrNoResource
	}
	return Target{Kind: Misplaced, Table: table}, nil
}

// parseTablesTarget parses what follows "Tables(".
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

// parseKey parses PartitionKey='..',RowKey='..') in either order.
func parseKey(s string) (key edm.Key, ok bool) {
	var seen [2]bool
	for i := range 2 {
		s = strings.TrimLeft(s, " ")
		var part int // 0 PartitionKey, 1 RowKey
		switch {
		case strings.HasPrefix(s, "PartitionKey="):
			s = s[len("PartitionKey="):]
		case strings.HasPrefix(s, "RowKey="):
			part, s = 1, s[len("RowKey="):]
		default:
			return key, false
		}
		text, rest, quoted := cutQuoted(s)
		if !quoted || seen[part] || len(rest) == 0 || rest[0] != ",)"[i] {
			return key, false
		}
		seen[part], s = true, rest[1:]
		if part == 0 {
			key.Partition = text
		} else {
			key.Row = text
		}
	}
	return key, s == ""
}

// cutQuoted cuts a string in single quotes off s. A quote in the string is doubled.
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
