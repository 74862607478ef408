package main

import (
	"errors"
	"fmt"

	"go.uber.org/zap"

	"github.com/pipeguard/pipeguard/internal/config"
	"github.com/pipeguard/pipeguard/internal/core/safepath"
	"github.com/pipeguard/pipeguard/internal/proxy/handler"
)

// Values of --host, and of backend in the configuration.
const (
	hostWindows  = config.BackendWindows
	hostMemory   = config.BackendMemory
	hostUpstream = config.BackendUpstream
)

// backend is the host that requests act on: the command line's, else the configuration's, else this system's default.
func (f *flags) backend(c config.Proxy) string {
	switch {
	case f.host != "":
		return f.host
	case c.Backend != "":
		return c.Backend
	}
	return defaultHost
}

// hostOptions configure a host.
type hostOptions struct {
	roots          *safepath.Roots
	requirePrivacy bool
	ownService     string // which is never stopped by a request
	journal        string // of the invented machine; empty for none
	log            *zap.Logger
}

func (f *flags) hostOptions(roots *safepath.Roots, log *zap.Logger) hostOptions {
	return hostOptions{roots: roots, requirePrivacy: f.requirePrivacy, ownService: f.serviceName, journal: f.journal, log: log}
}

// host is what requests act on.
type host struct {
	handler.Hosts
	mapper handler.Mapper
	check  func() error // a health check
	close  func() error
}

func newHost(name string, o hostOptions) (*host, error) {
	if name == hostWindows {
		if o.journal != "" {
			return nil, errors.New("--memory-journal needs --host memory")
		}
		return windowsHost(o)
	}
	return memoryHost(o)
}

// noneStuck is a health check: no call to WMI hangs.
func noneStuck(count func() int) func() error {
	return func() error {
		if n := count(); n > 0 {
			return fmt.Errorf("host: %d calls to WMI do not return", n)
		}
		return nil
	}
}
