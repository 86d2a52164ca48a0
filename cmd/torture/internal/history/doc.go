// Package history records what clients of a store did and were answered, and checks it:
// nothing acknowledged is missing, no batch is there in part, the operations of each key
// are linearizable, no ETag comes twice for a key, and no Timestamp of a key goes back.
package history
