//go:build race

package cache

// poison overwrites released blocks, so that a use after Release is visible.
const poison = true
