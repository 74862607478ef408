//go:build !unix

package policy

import "time"

// processTime is the time by the clock, where the program that evaluates knows better.
func processTime() time.Duration { return time.Since(clock) }
