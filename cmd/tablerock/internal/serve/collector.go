package serve

import (
	"os"
	"runtime"
	"runtime/debug"
)

const (
	// gcPercent is the target of the garbage collector unless GOGC sets it: garbage in
	// percent of live memory. It bounds the memory of many connections; the default is 100.
	gcPercent = 75
	// gcReserveBytes are allocated and never touched, so they are address space and no
	// memory. The collector counts them as live and lets gcPercent of them more garbage
	// gather, 24 MiB. The live heap of a server is often less than that, because the block
	// cache and the log are outside it. Without the reserve, a batch needs 9 % more CPU
	// time and a get 8 % (bench/endpoint).
	gcReserveBytes = 32 << 20
)

// tuneCollector sets the garbage collector up for a server until restore is called. GOGC
// and GOMEMLIMIT of the environment take precedence. heap is the limit of the heap, 0 for none.
func tuneCollector(heap int64) (restore func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	percent, limit := debug.SetGCPercent(gcPercent), debug.SetMemoryLimit(-1)
	var reserve []byte
	if os.Getenv("GOMEMLIMIT") == "" { // which would count the reserve
		reserve = make([]byte, gcReserveBytes)
		if heap > 0 {
			debug.SetMemoryLimit(heap + gcReserveBytes)
		}
	}
	return func() {
		runtime.KeepAlive(reserve)
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
	}
}
