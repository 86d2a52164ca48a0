// Package transfer imports and exports entities as CSV with typed columns, as JSONL, one
// entity per line, or as a JSON array. An export that is imported again restores equal
// entities, including types, empty strings and unusual keys.
//
// Files may have any size and may be compressed. A record has at most MaxRecordBytes.
// Memory is bounded by a few records, the transactions in flight and the window of the
// compression.
package transfer
