// Package plant has file systems and stores with one bug each, and diffs that put one bug
// each into the source of the engine. A crash test or a unit test that does not find them
// proves nothing.
package plant
