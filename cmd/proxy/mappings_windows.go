package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/pipeguard/pipeguard/internal/proxy/handler"
	"github.com/pipeguard/pipeguard/internal/proxy/winhost"
	"github.com/pipeguard/pipeguard/internal/proxy/wmi"
	"github.com/pipeguard/pipeguard/internal/winsvc"
)

// hostMappings lists the mappings of this host as a service with that command line sees them.
func hostMappings(ctx context.Context, command string) (list []handler.Mapping, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("list SMB mappings: %w", err)
		}
	}()
	args := winsvc.SplitCommandLine(command)
	f, err := parseFlags(args[min(1, len(args)):], io.Discard)
	if err != nil {
		return nil, fmt.Errorf("command line of the service: %w", err)
	}
	roots, err := f.roots()
	if err != nil {
		return nil, err
	}
	const within = 20 * time.Second
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	pool, err := wmi.Open(wmi.Options{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, pool.Close()) }()
	h, err := winhost.New(winhost.Options{Roots: roots, WMI: pool})
	if err != nil {
		return nil, err
	}
	return h.Mappings(ctx)
}
