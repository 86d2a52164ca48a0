package report

import "strings"

// reasons says why a peer needs less CPU time at a workload, by the first part of the
// workload's name that has one.
var reasons = map[string]string{
	"load/order=sorted": "A peer takes 100 entities as one batch of bytes. Tablerock checks every property, gives each entity a timestamp and " +
		"sorts the properties into typed columns when it flushes; with one entity in each partition, each is an Apply of its own.",
	"load/order=random": "Tablerock makes one transaction of each partition's entities, so a random load is one transaction for each entity; " +
		"a peer takes 100 as one batch.",
	"load/order=sorted" + merged: "The flush builds typed columns with their bounds, which costs more than a copy of the encoded bytes; " +
		"goleveldb and Badger keep the newest entities in memory, which the other engines write to files.",
	"load/order=random" + merged: "The flush builds typed columns with their bounds, which costs more than a copy of the encoded bytes; " +
		"goleveldb and Badger keep the newest entities in memory, which the other engines write to files.",
	"insert": "The time is that of fdatasync and of the hand-over between writers.",
	"batch": "bbolt writes no log: it syncs the changed pages of its tree, and has nothing left to flush. " +
		"Tablerock's flush to typed columns runs beside the batches and is counted.",
	"overwrite": "goleveldb leaves overwritten entities in its files longer, and the newest ones in memory.",
	"get/key=present/readers": "bbolt finds the entity in a mapped file: no compression, no checksum and no cache in between. " +
		"Its file is about three times as large.",
	"get/key=missing": "A filter answers most gets of missing keys; Tablerock asks one for each sorted run and looks into the memtables.",
	"get/key=present/cache": "bbolt reads the page cache of the system, which no setting limits, and decompresses nothing. Of the engines with a cache " +
		"of their own, Pebble and goleveldb read one block of 8 KiB for a get; Tablerock reads a head of a group of rows and a unit of its values.",
	"get/key=present/from=disk":  warmTree + " Pebble reads one block of 8 KiB for a get; Tablerock reads a whole group of rows where its head is not cached.",
	"scan/range=table/from=disk": warmTree,
	"scan": "bbolt walks uncompressed pages in the order of the keys, and its values are one run of bytes each; Tablerock gathers the properties " +
		"of a row from columns.",
	"step":       "The keys of bbolt and LMDB are in the page that the cursor points to. Tablerock decodes the head of each group of rows.",
	"filter":     "The peers decode one property of each value from bytes in sequence.",
	"ycsb/mix=A": "bbolt commits without a log.",
	"ycsb/mix=B": "bbolt reads a mapped file without decompression.",
	"ycsb/mix=C": "bbolt reads a mapped file without decompression.",
	"ycsb/mix=E": "bbolt seeks in one tree of mapped pages; Tablerock opens a cursor over all runs and memtables for each short scan.",
	"ycsb/mix=F": "bbolt reads a mapped file without decompression.",
	"reopen": "Pebble, Badger and goleveldb read the manifest and a log that is nearly empty. Tablerock also reads the catalog of its tables " +
		"and the index of the file of the first get.",
}

// warmTree is why evicting bbolt's file before the open does not help.
const warmTree = "Without a list of free pages in its file, bbolt reads the whole file in Open, so it finds all pages in the page cache: " +
	"its figures are not of the disk."

// reasonOf returns the reason of the longest name that begins a workload.
func reasonOf(workload string) (string, bool) {
	found := ""
	for name := range reasons {
		if strings.HasPrefix(workload, name) && len(name) > len(found) {
			found = name
		}
	}
	return reasons[found], found != ""
}
