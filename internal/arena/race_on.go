//go:build race

package arena

const raceDetector = true
