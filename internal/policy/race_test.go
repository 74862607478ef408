//go:build race

package policy

const withRaceDetector = true
