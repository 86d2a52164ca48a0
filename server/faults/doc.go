// Package faults makes a server fail as the service does under load or in an outage, so
// that programs can test their retries:
//
//	rules, err := faults.Parse([]byte(`[{"operation": "*", "answer": "ServerBusy", "probability": 0.1}]`))
//	...
//	h, err := faults.New(srv, srv, rules, faults.Options{Seed: 7})
//
// # What a seed determines
//
// Each rule counts, for each operation, the requests that it matches: those with its
// operation, and on its table if it names one. Whether the rule applies to the n-th of
// them, and for how long it delays it, depends on the seed, the position of the rule in the
// list, the operation and n, and on nothing else. So a client that sends its requests of an
// operation one after the other gets the same failures in each run with the same rules and
// seed, whatever requests of other operations run at the same time. Only a rule for any
// operation with Times depends on them: it counts its answers to all. Among requests of one
// operation that run at the same time, the number and the order of failures are the same,
// but which request gets one depends on the order of their arrival. How many requests
// TableBeingDeleted refuses depends on the time.
//
// A request in $batch is the operation Batch, and its failure is that of the whole request:
// its transaction is not a matter of the rules for InsertEntity and others.
//
// Failures come before the check of the credentials. Health checks and requests that are not
// valid do not fail and are not counted.
package faults
