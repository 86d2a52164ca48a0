// Package transfer imports and exports entities as CSV with typed columns or as JSONL,
// one entity per line. An export that is imported again restores equal entities,
// including types, empty strings and unusual keys.
//
// Files may have any size. A record has at most MaxRecordBytes. Memory is bounded by a
// few records and the transactions in flight.
package transfer
