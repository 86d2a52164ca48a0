// Package kill kills real processes at random times while they write to a real disk, and
// compares their databases with the acknowledgements that they recorded.
package kill
