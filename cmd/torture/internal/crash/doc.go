// Package crash looks at the disks that a loss of power can leave: at every
// operation of a workload it builds some, opens the database on each, holds it
// against the oracle, goes on writing, and lets the power fail again meanwhile.
package crash
