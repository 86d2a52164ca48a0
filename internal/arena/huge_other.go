//go:build (darwin || dragonfly || freebsd || netbsd || openbsd) && !race

package arena

func adviseHuge([]byte) {}

func adviseSmall([]byte) {}

func populateSlab([]byte) {}

func populate([]byte) {}
