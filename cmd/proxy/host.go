package main

import (
	"go.uber.org/zap"

	"github.com/pipeguard/pipeguard/internal/proxy/fakehost"
	"github.com/pipeguard/pipeguard/internal/proxy/handler"
	"github.com/pipeguard/pipeguard/internal/proxy/safepath"
)

// Values of --host.
const (
	hostWindows = "windows"
	hostMemory  = "memory"
)

// newHosts returns what requests act on.
func newHosts(name string, roots *safepath.Roots, log *zap.Logger) (handler.Hosts, error) {
	if name == hostWindows {
		return windowsHosts(roots)
	}
	log.Warn("memory host: answers come from an invented machine, and nothing is done on this one")
	host := fakehost.New(fakehost.Options{Roots: roots})
	return handler.Hosts{Filesystem: host, Volume: host, System: host}, nil
}
