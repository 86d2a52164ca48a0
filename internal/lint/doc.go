// Package lint holds the rules of the house as tests: which package may import
// which, what an embedder compiles, how large files, packages and functions may
// grow, what has to be documented and what must not be called.
package lint
