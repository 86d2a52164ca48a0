// Package postgres is a backend of package store on PostgreSQL, for more availability and
// volume than one machine has: any number of servers share a database.
//
// A write is acknowledged when PostgreSQL has made it durable, with a synchronous standby on
// both machines. [Connect] refuses a server without one unless Options.AllowAsync is set.
// One [Database] serves all accounts that are in it; its connections are a pool.
//
// # Errors
//
// An error is store.ErrUnavailable if nothing happened and the call can be repeated:
// the server cannot be reached, was demoted, or is busy. It is store.ErrOutcomeUnknown if the
// connection failed after a commit was sent. Calls are repeated inside only where nothing
// can have happened.
//
// # Reads
//
// A read needs a commit that the same server acknowledged within the last five seconds. This
// bounds how old a read from a deposed primary can be.
//
// # Snapshots
//
// Each row of a cursor is of a moment not before the call of Query. The rows of a walk are
// not of one moment.
package postgres
