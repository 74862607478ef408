//go:build !linux

package policy

import "time"

// threadTime is the time by the clock, where the program that evaluates knows better.
func threadTime() (used func() time.Duration, release func()) {
	return func() time.Duration { return time.Since(clock) }, func() {}
}
