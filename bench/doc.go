// Package bench measures stores of entities: it generates entities in several
// shapes, runs workloads on them and reports the cost of an operation.
//
// Its API is not stable.
//
// The workloads use the interface DB, so that Tablerock (package engine) and the
// stores of the nested module bench/peers do the same work, on the same entities,
// in the same order. A workload folds every property that it reads into a
// checksum: no store can win by returning bytes without decoding them, and equal
// checksums show that all stores read the same.
//
// Wall time depends on the load of the machine, so each result also has the CPU
// time of the process, background work included.
//
//	go test -run '^$' -bench . ./bench                all workloads and shapes, small: many minutes
//	go test -run '^$' -bench 'Store/op=get' ./bench -bench.n 1000000
//	go test -run '^$' -bench Query ./bench -bench.n 300000 -benchtime 600000x     queries in the cache, one run and several: a minute
package bench
