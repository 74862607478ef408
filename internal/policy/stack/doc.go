// Package stack measures the stack of a goroutine, which Go bounds by ending the process.
package stack
