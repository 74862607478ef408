package peer

// NewServerResolver names the process that serves a pipe which this process has opened, in the same order as callers are
// named. Its errors say "the caller" of the process at the other end, whichever that is.
//
// A pipe belongs to the process that made it. One that hands its end to another process and ends is not noticed if its
// number is given, before the question, to the program that is hoped for.
func NewServerResolver() Resolver { return newServerResolver() }
