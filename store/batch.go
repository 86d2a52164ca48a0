package store

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/tablerock-db/tablerock/edm"
)

// checkBatchCount returns an *edm.Error unless a batch may have n operations.
func checkBatchCount(n int) error {
	switch {
	case n < 1:
		return &edm.Error{Rule: edm.RuleBatchCount, Limit: 1, Got: "no operation"}
	case n > edm.MaxBatchOps:
		return &edm.Error{Rule: edm.RuleBatchCount, Limit: edm.MaxBatchOps, Got: fmt.Sprintf("%d operations", n)}
	}
	return nil
}

// checkBatchBytes returns an *edm.Error if the operations of a batch may not
// have n bytes together, as given.
func checkBatchBytes(n int64) error {
	if n > edm.MaxBatchBytes {
		return &edm.Error{Rule: edm.RuleBatchBytes, Limit: edm.MaxBatchBytes, Got: fmt.Sprintf("a batch of %d bytes", n)}
	}
	return nil
}

// checkBatchPartition returns an *edm.Error if an operation on k cannot be in
// one batch with an operation on first.
func checkBatchPartition(first, k edm.Key) error {
	if first.Partition != k.Partition {
		got := quote(k.Partition) + " in a batch on " + quote(first.Partition)
		return &edm.Error{Rule: edm.RuleBatchPartition, Name: edm.PartitionKeyName, Got: got}
	}
	return nil
}

// batchDuplicate returns the *edm.Error for a second operation on k in a batch.
func batchDuplicate(k edm.Key) error {
	return &edm.Error{Rule: edm.RuleBatchDuplicate, Name: edm.RowKeyName, Got: "a second operation on " + quote(k.Row)}
}

// quote quotes s for a message, cut to about 64 bytes.
func quote(s string) string {
	const most = 64
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "..."
	}
	return strconv.Quote(s)
}

// maxMetaBytes limits the metadata of a table and of the account.
const maxMetaBytes = 64 << 10

// CheckMeta returns an *edm.Error if the metadata of a table, which it names, or
// of the account ("") may not have n bytes.
func CheckMeta(table string, n int) error {
	if n <= maxMetaBytes {
		return nil
	}
	name := "account metadata"
	if table != "" {
		name = "metadata of table " + table
	}
	return &edm.Error{Rule: edm.RuleMetaSize, Name: name, Limit: maxMetaBytes, Got: fmt.Sprintf("%d bytes", n)}
}
