//go:build !race

package arena

const poisonFreed = false
