// Package lint contains the rules of this project that no linter knows, as tests:
// the layers of packages, the modules that an embedder compiles, limits of size,
// and checks of the pages against the code.
package lint
