package main

import (
	"github.com/pipeguard/pipeguard/internal/proxy/handler"
	"github.com/pipeguard/pipeguard/internal/proxy/safepath"
	"github.com/pipeguard/pipeguard/internal/proxy/winhost"
)

// On Windows the machine itself is meant unless the invented one is asked for.
const (
	defaultHost     = hostWindows
	defaultAuditLog = `C:\ProgramData\Pipeguard\audit.jsonl`
)

// windowsHosts acts on this machine. Only the filesystem group is carried out; a pipe whose operations would do
// nothing is not served.
func windowsHosts(roots *safepath.Roots) (handler.Hosts, error) {
	filesystem, err := winhost.NewFilesystem(roots)
	if err != nil {
		return handler.Hosts{}, err
	}
	return handler.Hosts{Filesystem: filesystem}, nil
}
