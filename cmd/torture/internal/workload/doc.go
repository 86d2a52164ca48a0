// Package workload does random, repeatable work on a small database and keeps an oracle with
// the expected contents.
//
// It opens the database with Manual, so that only the goroutines of a group commit run and
// the same seed gives the same operations of the file system.
package workload
