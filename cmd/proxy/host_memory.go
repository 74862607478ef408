//go:build !windows || fakehost

package main

import (
	"fmt"
	"os"

	"github.com/pipeguard/pipeguard/internal/proxy/fakehost"
	"github.com/pipeguard/pipeguard/internal/proxy/handler"
)

// memoryHost acts on an invented machine.
func memoryHost(o hostOptions) (*host, error) {
	o.log.Warn("memory host: answers come from an invented machine, and nothing is done on this one")
	options := fakehost.Options{Roots: o.roots}
	done := func() error { return nil }
	if o.journal != "" {
		journal, err := os.OpenFile(o.journal, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return nil, fmt.Errorf("journal: %w", err)
		}
		options.Journal, done = journal, journal.Close
	}
	h := fakehost.New(options)
	hosts := handler.Hosts{Disk: h, Filesystem: h, Volume: h, SMB: h, ISCSI: h, System: h}
	return &host{Hosts: hosts, mapper: h, check: func() error { return nil }, close: done}, nil
}
