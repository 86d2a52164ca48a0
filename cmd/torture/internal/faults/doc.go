// Package faults fails the operations of the file system one after another:
// for N = 1, 2, 3, ... it runs a workload whose N-th operation fails, in every
// way that it can, once or from then on, holds the running database against the
// oracle, and then every disk that a crash leaves.
package faults
