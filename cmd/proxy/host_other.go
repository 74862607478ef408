//go:build !windows

package main

import (
	"errors"
	"time"
)

// Outside Windows there is only the invented machine.
const (
	defaultHost     = hostMemory
	defaultConfig   = ""
	defaultAuditLog = "audit in --socket-dir"
)

// threadTime is nil: package policy has its own.
var threadTime func() (used func() time.Duration, release func())

func windowsHost(hostOptions) (*host, error) {
	return nil, errors.New("this is not Windows")
}
