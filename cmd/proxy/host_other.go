//go:build !windows

package main

import (
	"errors"

	"github.com/pipeguard/pipeguard/internal/proxy/handler"
	"github.com/pipeguard/pipeguard/internal/proxy/safepath"
)

// Outside Windows there is only the invented machine.
const (
	defaultHost     = hostMemory
	defaultAuditLog = "audit.jsonl in --socket-dir"
)

func windowsHosts(*safepath.Roots) (handler.Hosts, error) {
	return handler.Hosts{}, errors.New("this is not Windows")
}
