// Package sstable reads and writes sstables, sorted files of rows.
//
// A file holds entries in internal-key order, in groups of some 32 KiB. The head of
// a group has its keys, sequence numbers, timestamps and fixed-width values, column
// by column, so that a search or a filter reads only the columns that it needs.
// Strings and binaries are stored row by row in heap units of about 4 KiB, or 12 KiB with
// CompressionSmall, which are decoded when such a value is asked for. The file format.go
// describes the bytes.
//
// A sum covers every byte, is bound to the offset of the byte, and is verified
// before the byte is used. The call that finds damage returns a *corrupt.Error.
//
// The API serves Tablerock's engine. It is not stable.
package sstable
