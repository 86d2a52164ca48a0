//go:build !race

package cache

// poison is off, since it costs a write of every released block.
const poison = false
