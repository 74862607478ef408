//go:build !linux

package main

// resident is not measured here: under Wine the working set says nothing about Windows.
func resident(int) string { return "not measured" }
