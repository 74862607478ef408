//go:build !windows

package main

import "errors"

// Outside Windows there is only the invented machine.
const (
	defaultHost     = hostMemory
	defaultConfig   = ""
	defaultAuditLog = "audit in --socket-dir"
)

func windowsHost(hostOptions) (*host, error) {
	return nil, errors.New("this is not Windows")
}
