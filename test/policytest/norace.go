//go:build !race

package policytest

const withRaceDetector = false
