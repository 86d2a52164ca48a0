// Package transfer moves entities between a store and text: CSV with typed
// columns, and JSONL, one entity a line. What is exported and imported again is
// equal, types, empty strings and odd keys included.
//
// Files may be of any size; a record has at most MaxRecordBytes, and memory
// stays within a few of them and the transactions in flight.
package transfer
