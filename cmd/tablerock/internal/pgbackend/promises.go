package pgbackend

import "strings"

// Promise is one of the promises D1 to D14 of docs/reliability.md.
type Promise struct {
	Name  string // D1
	Sync  bool   // it holds if commits wait for a standby
	Async bool   // it holds if they do not
	Note  string // why not, or what holds instead
}

// Promises are all promises in their order.
var Promises = []Promise{
	{"D1", true, false, "an acknowledged write survives the loss of the PostgreSQL server; asynchronous: a failover loses the newest writes"},
	{"D2", true, true, "a batch is stored whole or not at all"},
	{"D3", true, false, "what a failover leaves is a prefix of the commits, with every acknowledged one; asynchronous: without the newest"},
	{"D4", true, true, "a write of unknown outcome is there whole, or not at all"},
	{"D5", true, false, "no read shows what a failover takes back, unless one process of PostgreSQL is killed; asynchronous: it can"},
	{"D6", false, false, "operations on one partition are linearizable, but for reads of a deposed primary (5 s); rows of a query are of several times"},
	{"D7", true, false, "no ETag comes twice for a key; asynchronous: after a failover that loses writes it can"},
	{"D8", false, false, "PostgreSQL decides what follows a failed write or sync: it stops and recovers"},
	{"D9", false, false, "PostgreSQL checks its pages if its cluster has data checksums; values that cannot be decoded are errors, never data"},
	{"D10", false, false, "PostgreSQL recovers its own log"},
	{"D11", false, false, "a full disk of PostgreSQL can refuse deletes, too"},
	{"D12", false, false, "many servers write to one database"},
	{"D13", true, true, "tables of a newer version are refused, untouched"},
	{"D14", true, true, "no request crashes the process"},
}

// Names returns which promises hold and which do not, as lists of names. async is whether
// the server may be asynchronous.
func Names(async bool) (hold, not string) {
	var yes, no []string
	for _, p := range Promises {
		if p.Sync && (!async || p.Async) {
			yes = append(yes, p.Name)
		} else {
			no = append(no, p.Name)
		}
	}
	return strings.Join(yes, " "), strings.Join(no, " ")
}
