//go:build !race && !windows

package integration

// raceFlags build the webhook with the race detector where the tests have it.
var raceFlags []string
