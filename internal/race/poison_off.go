//go:build !poison

package race

// Poison reports whether the tag poison is set, with which freed memory is overwritten.
const Poison = false
