//go:build !race && !windows

package integration

// raceEnabled has the webhook built with the race detector as well.
const raceEnabled = false
