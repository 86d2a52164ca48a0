//go:build !race

package arena

const raceDetector = false
