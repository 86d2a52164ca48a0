package report

import (
	"slices"
	"strings"
)

// reason says why a peer needs less CPU time at the workloads whose names begin with
// workload. Without names of peers, it holds for every peer that no other entry names.
type reason struct {
	workload string
	peers    []string
	text     string
}

const (
	// warmTree is why evicting bbolt's file before the open does not help.
	warmTree = "Without a list of free pages in its file, bbolt reads the whole file in Open, so it finds all pages in the page cache: " +
		"its figures are not of the disk."
	mappedTree = "bbolt finds the entity in a mapped file: no compression, no checksum and no cache in between. Its file is about three times as large."
	mappedScan = "bbolt walks uncompressed pages of a mapped file in the order of the keys, and its values are one run of bytes each; Tablerock " +
		"gathers the properties of a row from columns."
	deferred = "goleveldb and Badger keep the newest entities in memory, which the other engines write to files. Tablerock's flush builds typed " +
		"columns with their bounds, which costs more than a copy of the encoded bytes."
	typedColumns = "Tablerock's flush builds typed columns with their bounds, which costs more than a copy of the encoded bytes."
	decode       = "The peer decodes one property of each value from bytes in sequence; Tablerock decodes the head of each group of rows."
)

var (
	mapped   = []string{"bbolt"}
	inMemory = []string{"goleveldb", "badger"}
)

var reasons = []reason{
	{"load/order=sorted", nil, "A peer takes 100 entities as one batch of bytes. Tablerock checks every property, gives each entity a timestamp and " +
		"sorts the properties into typed columns when it flushes; with one entity in each partition, each is an Apply of its own."},
	{"load/by=bulk", nil, "The peer's bulk load copies encoded bytes into blocks of its files; Tablerock builds typed columns with their bounds."},
	{"load/order=random", nil, "Tablerock makes one transaction of each partition's entities, so a random load is one transaction for each entity; " +
		"a peer takes 100 as one batch."},
	{"load/order=sorted" + merged, nil, typedColumns},
	{"load/order=random" + merged, nil, typedColumns},
	{"load/order=sorted" + merged, inMemory, deferred},
	{"load/order=random" + merged, inMemory, deferred},
	{"load", mapped, "bbolt writes no log and fills pages of its tree in the order of the keys."},
	{"insert", nil, "Each write waits for fdatasync; the rest is the hand-over between writers and the calls of the file system."},
	{"batch", nil, "The peer writes its encoded batch to the log and inserts 100 short keys; Tablerock also checks every property, and its flush to " +
		"typed columns runs beside the batches and is counted."},
	{"batch", mapped, "bbolt writes no log: it syncs the changed pages of its tree, and has nothing left to flush."},
	{"overwrite", nil, "The peer leaves overwritten entities in its files longer."},
	{"overwrite", inMemory, "The peer leaves overwritten entities in its files longer, and the newest ones in memory."},
	{"queue", nil, "Tablerock passes the entities that were deleted since the last flush or compaction of them."},
	{"queue", mapped, "The peer deletes in place; Tablerock passes the entities that were deleted since the last flush or compaction of them."},
	{"get", nil, "The peer's values are one run of bytes each; Tablerock gathers the properties of a row from columns."},
	{"get", mapped, mappedTree},
	{"get/key=missing", nil, "A filter answers most gets of missing keys; Tablerock asks one for each sorted run and looks into the memtables."},
	{"get/key=present/cache", nil, "The peer reads and decompresses one block of 8 KiB for a get; Tablerock reads a head of a group of rows and a unit " +
		"of its values."},
	{"get/key=present/cache", mapped, "bbolt reads the page cache of the system, which no setting limits, and decompresses nothing."},
	{"get/key=present/from=disk", nil, "The peer reads one block of 8 KiB for a get; Tablerock reads a head of a group of rows and a unit of its values."},
	{"get/key=present/from=disk", []string{"badger"}, "Badger maps its files, and the system reads around each page that it touches, 8 MiB on this " +
		"disk: a few gets bring the whole file into memory. Tablerock reads what a get needs."},
	{"get/key=present/from=disk", mapped, warmTree},
	{"scan", nil, "The peer's values are one run of bytes each; Tablerock gathers the properties of a row from columns."},
	{"scan", mapped, mappedScan},
	{"scan/range=table/from=disk", mapped, warmTree},
	{"step", nil, "The keys of the peer are decoded in sequence with their values left alone. Tablerock decodes the head of each group of rows."},
	{"filter", nil, decode},
	{"ycsb", nil, "Most operations are gets or short scans of rows in the cache: the peer's values are one run of bytes each, and Tablerock gathers the " +
		"properties of a row from columns."},
	{"ycsb", mapped, "bbolt reads a mapped file without decompression and commits without a log."},
	{"ycsb/mix=E", nil, "Tablerock opens a cursor over all runs and memtables for each short scan, and loads the columns of each group of rows that " +
		"the scan touches."},
	{"ycsb/mix=E", mapped, "bbolt seeks in one tree of mapped pages; Tablerock opens a cursor over all runs and memtables for each short scan."},
	{"reopen", nil, "The peer reads its manifest and a log that is nearly empty. Tablerock also reads the catalog of its tables and the index of the " +
		"file of the first get."},
	{"reopen/from=log", nil, "The peer inserts the encoded bytes of each record into its memtable; Tablerock also checks each record against the " +
		"tables and sequence numbers of its manifest."},
}

// reasonOf returns why a peer wins at a workload: of the entries for the workload, one
// that names the peer goes before one for all, then the longest name wins.
func reasonOf(workload, peer string) (string, bool) {
	var found reason
	for _, r := range reasons {
		if !strings.HasPrefix(workload, r.workload) || r.peers != nil && !slices.Contains(r.peers, peer) {
			continue
		}
		if found.text == "" || closer(r, found) {
			found = r
		}
	}
	return found.text, found.text != ""
}

// closer reports whether a is of one peer where b is of all, or has the longer name.
func closer(a, b reason) bool {
	if (a.peers != nil) != (b.peers != nil) {
		return a.peers != nil
	}
	return len(a.workload) > len(b.workload)
}
