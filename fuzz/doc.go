// Package fuzz attacks the engine with bytes that it did not write, over
// exported functions alone. Plain go test replays the committed corpora under
// testdata/fuzz; FUZZ_SECONDS=60 .ci/run fuzz looks for new inputs with every
// target of the module, one after the other.
//
// Targets of this package. Run one with
// go test -run '^$' -fuzz '^FuzzDirectory$' ./fuzz.
//
//	FuzzDirectory   any files as a database: opened for reading and for writing, scanned both ways, verified, written to, merged, opened again
//	FuzzLog         any bytes as a log segment: replay, the view beside a writer, repair
//	FuzzEntity      any entity: the checks of names, keys and limits, and the bytes of memory and sorted file, by the way there and back
//	FuzzFilter      a filter over a database of several groups, in pages, against the same filter over each entity
//	FuzzSharedKey   any request: a signature verifies, and with one byte changed it does not
//	FuzzSAS         any shared access signature: what it says is granted, and no more, and nothing once it says another thing
//	FuzzBatch       any body as a batch of the protocol, and what is taken of it written down and read again
//	FuzzParts       any operations of a batch one behind the other, each as it is alone
//	FuzzHandler     any request to a server: no failure, well-formed answers, nothing changed by a refusal or a read, no entity beyond a limit
//	FuzzToken       a query that goes on from any place: an end of the table's entities, and none outside of a signature's range
//	FuzzKeyPredicate  any path of an entity, and any key by its link: one entity is written, and its own link finds it
//	FuzzStore       any sequence of operations, flushes, merges, snapshots and reopens against the plain map of package storetest
//
// The first two take a flag that makes the ids and checksums of the mutated
// bytes right first, in the way that docs/format.md describes: without it a
// fuzzer never gets past the first of them.
//
// Targets that compare with an oracle of their package stay beside the code:
//
//	edm            FuzzCheckKey, FuzzCheckPropertyName, FuzzCheckTableName: names and limits against slow oracles
//	edm            FuzzParseTicks: against a pattern and package time
//	codec          FuzzKey, FuzzKeyText: key bytes, both ways, and their order
//	codec          FuzzShape, FuzzEntry: shapes, entries and values encode back to the same bytes
//	wal            FuzzReplay: against the slow reference reader
//	sstable        FuzzOpen, FuzzRoundTrip: with sums mended; what is written is read
//	manifest       FuzzManifest (internal/manifest): one encoding for each content
//	filter         FuzzParse, FuzzEval: the text of a filter, and the naive evaluator
//	odata          FuzzEntity, FuzzValue (internal/odata): the service's JSON against encoding/json
//	transfer       FuzzCSV, FuzzJSONL (internal/transfer): any file imported, exported and imported again
package fuzz
