package edm

import "fmt"

// CheckBatchCount returns an *Error unless a batch may have n operations.
func CheckBatchCount(n int) error {
	switch {
	case n < 1:
		return &Error{RuleBatchCount, "", 1, "no operation"}
	case n > MaxBatchOps:
		return &Error{RuleBatchCount, "", MaxBatchOps, fmt.Sprintf("%d operations", n)}
	}
	return nil
}

// CheckBatchBytes returns an *Error if the operations of a batch may not have n
// bytes together, as they are given.
func CheckBatchBytes(n int64) error {
	if n > MaxBatchBytes {
		return &Error{RuleBatchBytes, "", MaxBatchBytes, fmt.Sprintf("a batch of %d bytes", n)}
	}
	return nil
}

// CheckBatchPartition returns an *Error if an operation on k cannot be in one
// batch with an operation on first.
func CheckBatchPartition(first, k Key) error {
	if first.Partition != k.Partition {
		return &Error{RuleBatchPartition, PartitionKeyName, 0, quote(k.Partition) + " in a batch on " + quote(first.Partition)}
	}
	return nil
}

// BatchDuplicate returns the *Error for a second operation on k in a batch.
func BatchDuplicate(k Key) error {
	return &Error{RuleBatchDuplicate, RowKeyName, 0, "a second operation on " + quote(k.Row)}
}

// CheckMeta returns an *Error if metadata of a table, which it names, or of the
// account ("") may not have n bytes.
func CheckMeta(table string, n int) error {
	if n <= MaxMetaBytes {
		return nil
	}
	name := "account metadata"
	if table != "" {
		name = "metadata of table " + table
	}
	return &Error{RuleMetaSize, name, MaxMetaBytes, fmt.Sprintf("%d bytes", n)}
}
