// Package backup copies databases to a backup directory, and restores them.
//
// A backup directory is a Target: a set of named objects. It holds the backups of the
// accounts of one data directory. A sorted file is stored once, however many backups
// need it, so a backup copies only what has changed since the last one. The manifest of
// a backup is written last: a backup that did not finish does not exist.
//
// docs/format.md documents the objects and their names.
package backup
