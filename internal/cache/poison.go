//go:build race

package cache

// poison makes a use after Release visible: released blocks are overwritten.
const poison = true
