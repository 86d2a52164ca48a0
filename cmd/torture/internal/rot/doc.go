// Package rot damages a small database that contains every structure, one byte, sector or
// file at a time. The engine must detect each damage and name its file, or return the same
// data as before.
package rot
