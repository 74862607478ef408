//go:build windows && !fakehost

package main

import "errors"

// memoryHost is not in the program that nodes run: it would report volumes as mounted and do nothing.
func memoryHost(hostOptions) (*host, error) {
	return nil, errors.New("this program acts on no invented machine: for trials, build it with -tags fakehost")
}
