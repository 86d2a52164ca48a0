// Package remote is a [store.Store] over the Azure Table protocol: a client of Tablerock's
// server, of Azurite and of the service, by the Azure SDK.
//
// The SDK addresses and signs requests, and repeats those that a busy server refused. It
// does not see keys and entities: it would decode them into maps, which turns the Double 3.0
// into 3, sorts properties and refuses empty keys. A policy of its pipeline writes the
// address and body of a request, and takes the body of the response.
//
// The protocol does not promise all of the contract of package store:
//
//   - A Query is no snapshot. Each page of up to 1,000 entities is read when the cursor
//     comes to it.
//   - Query.Reverse and Query.Budget, the metadata of tables and of the account, and
//     TableInfo.Created do not exist. Methods that need them return errors.ErrUnsupported;
//     Created is 0.
//   - The body of a batch has at most 4 MiB.
//   - With Query.Select, properties come in the order of Select.
//   - The bits of a NaN are lost.
//
// A write that the server may or may not have executed, because the connection failed, the
// server timed out or a proxy answered 408 or 5xx, returns store.ErrOutcomeUnknown and is not
// repeated. A read is repeated after each of these.
package remote
