// Package fuzz attacks the engine with bytes that it did not write, over
// exported functions alone. Plain go test replays the committed corpora under
// testdata/fuzz; FUZZ_SECONDS=60 .ci/run fuzz looks for new inputs with every
// target of the module, one after the other.
//
// Targets of this package. Run one with
// go test -run '^$' -fuzz '^FuzzDirectory$' ./fuzz.
//
//	FuzzDirectory   a whole directory, opened, scanned both ways, verified, written to
//	FuzzLog         any bytes as a log segment: replay, the view beside a writer, repair
//	FuzzSSTable     any bytes as a sorted file: open, scan, get, verify
//	FuzzManifest    any bytes as a manifest: read, write, read again
//	FuzzEntity      any entity: limits, the bytes of key and row, the store's round trip
//	FuzzFilter      a filter over a database against the same filter over each entity
//	FuzzImport      CSV and JSONL into a store, exported, imported again
//
// Directory, log, sorted file and manifest take a flag that makes the checksums
// of the mutated bytes right first, in the way that docs/format.md describes:
// without it a fuzzer never gets past the first of them.
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
//	transfer       the readers of CSV and JSONL (internal/transfer), by themselves
package fuzz
