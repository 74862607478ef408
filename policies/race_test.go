//go:build race

package policies_test

const withRaceDetector = true
