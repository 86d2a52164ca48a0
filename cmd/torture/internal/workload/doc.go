// Package workload does random and repeatable work on a small database, and
// keeps beside it the oracle's account of what the database must hold.
//
// The database is opened with Manual, so that no goroutine but those of a group
// commit runs, and the same seed gives the same operations of the file system.
package workload
