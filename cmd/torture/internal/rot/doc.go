// Package rot damages a small database that holds every structure, one byte,
// sector or file at a time: each damage must be found and name its file, or
// change nothing that can be read.
package rot
