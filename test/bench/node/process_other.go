//go:build !linux

package main

import "time"

// resident is not measured here: under Wine the working set says nothing about Windows.
func resident(int) string { return "not measured" }

// usedBy is not measured here either.
func usedBy(int) (time.Duration, error) { return 0, nil }
