// Package soak overwrites, deletes and drops on PostgreSQL for some time, and compares the
// sizes of the tables and indexes with what is live in them.
package soak
