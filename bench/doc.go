// Package bench measures stores of entities: a generated set of entities in
// several shapes, workloads over it, and the means by which the cost of an
// operation is told.
//
// The workloads run over the interface DB, so that Tablerock (package engine)
// and the peers of the nested module bench/peers do the same work, on the same
// entities, in the same order. Whatever a workload reads is folded property by
// property into a checksum: no store can win by handing over bytes that nobody
// has looked at, and equal checksums show that all have read the same.
//
// Wall time depends on who else uses the machine, so every result has the CPU
// time of the process, background work included, beside it.
//
//	go test -bench . ./bench                 all workloads and shapes, small
//	go test -bench Get ./bench -bench.n 1000000
package bench
