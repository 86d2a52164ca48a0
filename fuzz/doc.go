// Package fuzz has fuzz targets that use exported functions only. go test replays the
// committed corpora in testdata/fuzz. .ci/run fuzz searches for new inputs with every target
// of the module, one after the other; FUZZ_SECONDS=60 gives each a minute.
//
// Targets of this package. Run one with
// go test -run '^$' -fuzz '^FuzzDirectory$' -fuzzminimizetime 20x ./fuzz. Without the limit, each
// new input is made smaller for up to a minute, in which no other one is tried.
//
//	FuzzDirectory     any files as a database: read-only and for writing, scanned, verified, written, compacted, reopened
//	FuzzLog           any bytes as a log segment: replay, replay beside a writer, repair
//	FuzzEntity        any entity: checks of names, keys and limits; reads from memory and from sstables
//	FuzzFilter        a filter over several row groups, in pages, against the same filter on each entity
//	FuzzSharedKey     any request: a signature verifies, and with one byte changed it does not
//	FuzzSAS           any shared access signature: it grants what it says, and nothing after a change
//	FuzzBatch         any body as a batch, written and parsed again
//	FuzzOperations    any operations of a batch, each against itself alone
//	FuzzHandler       any request to a server: no failure, well-formed responses, no change by a read or a refusal
//	FuzzToken         a query with any continuation token: a tail of the table, and nothing outside the range of a SAS
//	FuzzKeyPredicate  any path of an entity, and any key by its link: one entity is written, and its link finds it
//	FuzzStore         any sequence of operations, flushes, compactions, snapshots and reopens against the map of storetest
//
// The first two have a flag that repairs the ids and checksums of the mutated bytes, as
// docs/format.md describes them. Without it, a fuzzer never passes the first checksum.
//
// Targets that compare with an oracle of their package are in that package:
//
//	edm            FuzzCheckKey, FuzzCheckPropertyName, FuzzCheckTableName: names and limits against slow oracles
//	edm            FuzzParseTicks: against a pattern and package time
//	edm            FuzzUnmarshal: what a struct reads, it writes and reads again
//	codec          FuzzKey, FuzzKeyText: key bytes, both ways, and their order
//	codec          FuzzShape, FuzzEntry: shapes, entries and values encode back to the same bytes
//	wal            FuzzReplay: against the slow reference reader
//	sstable        FuzzOpen, FuzzRoundTrip: with repaired checksums; what is written is read
//	manifest       FuzzManifest (internal/manifest): one encoding for each content
//	filter         FuzzParse, FuzzEval: the text of a filter, and the naive evaluator
//	odata          FuzzEntity, FuzzValue (internal/odata): the service's JSON against encoding/json
//	transfer       FuzzCSV, FuzzJSONL (internal/transfer): any file imported, exported and imported again
package fuzz
