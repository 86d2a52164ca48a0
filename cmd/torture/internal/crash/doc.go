// Package crash simulates power failures: at every operation of a workload it builds disks
// that a power failure can leave, opens the database on each, compares it with the oracle,
// and writes to it, with further power failures.
package crash
