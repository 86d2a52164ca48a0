// Package transfer imports and exports entities as CSV with typed columns, as JSONL, one
// entity per line, as a JSON array or as Parquet. An export that is imported again restores
// equal entities, including types, empty strings and unusual keys. It also reads the tables
// of Azurite.
//
// Files may have any size, and all but Parquet may be compressed. A record has at most
// 16 MiB. Memory is bounded by a few records, the transactions in flight and the
// window of the compression, or the pages of Parquet.
package transfer
