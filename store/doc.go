// Package store is the contract of a storage backend: the [Store] interface, its
// operations, queries and errors, and the rules of a batch.
//
// A program uses a Store through the backend that it opens, such as engine.DB.
// Writes are operations, made by [Insert], [Merge], [Replace], [Delete] and others,
// and passed to Store.Apply. Reads are Store.Get for one entity and Store.Query
// for many; [Entities] turns the cursor of a query into a loop:
//
//	for e, err := range store.Entities(db.Query(ctx, "Orders", store.Query{Limit: 100})) {
//
// [Upsert], [Get] and [All] do the same with Go structs.
//
// # Errors
//
// errors.Is finds the sentinel of this package that applies, and errors.As finds
// [*OpError] (the operation that failed), *edm.Error (the rule that the input
// breaks) and [*CorruptError] (the damaged bytes).
//
// # Durability
//
// When Apply or a table operation returns nil, its effect is on stable storage,
// unless the backend was opened without this guarantee. A store never returns
// data that is not durable, nor an error that depends on such data. If it is not known
// whether a write became durable, the error is [ErrOutcomeUnknown]; if the store could
// not be reached and nothing was written, it is [ErrUnavailable].
//
// # Consistency
//
// The rows of a Query are each of a time after its call, and the Timestamps of a key
// rise. A backend can promise more: engine.DB reads all rows of a Query at the time of
// its call, and its Timestamps rise from one Apply to the next for all keys together.
// The fields of storetest.Backend are these promises.
//
// # Implementing a backend
//
// A backend calls [CheckBatch], [CheckQuery] and [CheckMeta] for the rules that
// need no stored state, and [MergeProperties] for the result of a merge. Package
// storetest tests a backend against the contract.
package store
