// Package sstable reads and writes sorted files of rows.
//
// A file holds entries in internal-key order, cut into groups of some 32 KiB.
// A group keeps its keys, sequences, timestamps and the values of fixed width in
// its head, column by column, so that a search or a filter touches only what it
// needs. Strings and binaries stand row by row in heap units of about 4 KiB,
// which are decoded when such a value is asked for. See format.go for the bytes.
//
// Every byte is covered by a sum that is bound to its place, and is checked
// before it is used. Damage is reported as a *corrupt.Error by the call that
// meets it.
//
// The API serves Tablerock's engine. It is not stable.
package sstable
