package cri

import (
	"context"
	"fmt"
	"net"
	"runtime"
	"slices"
	"strings"

	"github.com/pipeguard/pipeguard/internal/core/caller"
	"github.com/pipeguard/pipeguard/internal/proxy/peer"
	"github.com/pipeguard/pipeguard/internal/proxy/pipe"
)

// Endpoint is where a runtime listens.
type Endpoint struct {
	// Address is a pipe, as \\.\pipe\NAME or npipe:////./pipe/NAME, or a socket, as unix:///PATH.
	Address string
	// Users are the accounts that a runtime may run as: the process that answers at the address identifies callers. Nil is the
	// system's own (S-1-5-18, and uid:0 elsewhere).
	Users []string
	// Servers identifies the process that answers; nil asks the kernel.
	Servers peer.Resolver
}

// Dialer returns a function that opens connections to the endpoint. The runtime's process is held for as long as one is open.
func Dialer(e Endpoint) (func(context.Context) (net.Conn, error), error) {
	open, err := opener(e.Address)
	if err != nil {
		return nil, err
	}
	if e.Users == nil {
		e.Users = []string{"S-1-5-18", "uid:0"}
	}
	if e.Servers == nil {
		e.Servers = peer.NewServerResolver()
	}
	return func(ctx context.Context) (net.Conn, error) {
		conn, err := open(ctx)
		if err != nil {
			return nil, fmt.Errorf("open %s: %w", e.Address, err)
		}
		held, err := peer.CheckServer(e.Servers, conn, e.check)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", e.Address, err)
		}
		return held, nil
	}, nil
}

// CheckAddress says what is wrong with the address of a runtime, wherever there may be one.
func CheckAddress(address string) error {
	_, _, err := parse(address)
	return err
}

// parse returns the path of a Unix socket, or the name of a pipe.
func parse(address string) (socket, name string, err error) {
	if path, ok := strings.CutPrefix(address, "unix://"); ok && strings.HasPrefix(path, "/") {
		return path, "", nil
	}
	name, ok := strings.CutPrefix(address, "npipe:////./pipe/")
	if !ok {
		name, ok = strings.CutPrefix(address, `\\.\pipe\`)
	}
	if !ok {
		return "", "", fmt.Errorf(`runtime endpoint %q: want \\.\pipe\NAME, npipe:////./pipe/NAME or unix:///PATH`, address)
	}
	if err := pipe.CheckName(name); err != nil {
		return "", "", fmt.Errorf("runtime endpoint %q: %w", address, err)
	}
	return "", name, nil
}

func opener(address string) (func(context.Context) (net.Conn, error), error) {
	socket, name, err := parse(address)
	if err != nil {
		return nil, err
	}
	if socket != "" {
		return func(ctx context.Context) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		}, nil
	}
	if runtime.GOOS != "windows" {
		return nil, fmt.Errorf("runtime endpoint %q: there are no pipes here", address)
	}
	return func(ctx context.Context) (net.Conn, error) { return pipe.Dial(ctx, name, pipe.Options{}) }, nil
}

// check refuses a server of another account.
func (e Endpoint) check(who caller.Caller) error {
	if !slices.Contains(e.Users, who.User.SID) {
		return fmt.Errorf("process %d of %s (%s) serves it, which is none of %q", who.Process.PID, who.User.SID, who.Process.Exe, e.Users)
	}
	return nil
}
