// Package faults fails the operations of the file system one at a time: for N = 1, 2, 3, ...
// it runs a workload whose N-th operation fails, in every possible way, once or from then
// on, and compares the running database, and the disks after crashes, with the oracle.
package faults
