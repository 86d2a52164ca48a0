// Package bench measures stores of entities: it generates entities in several
// shapes, runs workloads on them and reports the cost of an operation.
//
// Its API is not stable.
//
// The workloads use the interface DB, so that Tablerock (package engine) and the
// stores of the nested module bench/peers do the same work, on the same entities,
// in the same order. A workload folds every property that it reads into a checksum
// and compares it with that of the generated entities; after a workload that writes,
// Run compares the whole table. So no store can win by returning bytes without
// decoding them, or by losing writes.
//
// Wall time depends on the load of the machine, so each result also has the CPU
// time of the process, background work included.
//
//	go test -run '^$' -bench . ./bench                              all workloads and shapes: 40 minutes
//	go test -run '^$' -bench 'Store/op=get' -benchtime 200000x ./bench -bench.n 1000000
//	                                                                gets of 1,000,000 entities: 5 minutes
//	go test -run '^$' -bench 'Store/op=load' -benchtime 100000x ./bench
//	                                                                loads: 20 seconds
//	go test -run '^$' -bench Load -benchtime 300000x ./engine
//	                                                                Load beside Apply: 30 seconds
//	go test -run '^$' -bench Query -benchtime 600000x ./bench -bench.n 300000
//	                                                                queries in the cache, one run and several: a minute
//
// Compare two versions with benchstat, from runs that alternate: a busy machine
// changes its speed within minutes. Fixed numbers of operations keep the work equal.
//
//	go test -c -o old.test ./bench               # in the old version
//	go test -c -o new.test ./bench               # in the new version
//	for i in 1 2 3 4 5 6; do
//		for v in old new; do
//			./$v.test -test.run '^$' -test.bench 'Store/op=get' -test.benchtime 200000x >>$v.txt
//		done
//	done                                         # 6 minutes
//	go run golang.org/x/perf/cmd/benchstat@latest -filter '.unit:cpu-ns/op' old.txt new.txt
package bench
