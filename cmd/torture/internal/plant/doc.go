// Package plant has file systems and stores with one bug each. A crash test that does not
// find them proves nothing.
package plant
