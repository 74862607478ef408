package main

import (
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/pipeguard/pipeguard/internal/logkeys"
	"github.com/pipeguard/pipeguard/internal/proxy/winhost"
	"github.com/pipeguard/pipeguard/internal/proxy/wmi"
)

// On Windows the machine itself is meant unless another is asked for.
const (
	defaultHost     = hostWindows
	defaultConfig   = configFile // so that an install line of csi-proxy.exe works as it is
	defaultAuditLog = `C:\ProgramData\Pipeguard\audit`
)

// windowsHost acts on this machine.
func windowsHost(o hostOptions) (*host, error) {
	pool, err := wmi.Open(wmi.Options{Stuck: stuckAfter, OnStuck: stuck(o.log)})
	if err != nil {
		return nil, err
	}
	h, err := winhost.New(winhost.Options{
		Roots: o.roots, WMI: pool, RequirePrivacy: o.requirePrivacy, Log: o.log, OwnService: o.ownService,
	})
	if err != nil {
		return nil, errors.Join(err, pool.Close())
	}
	return &host{
		Hosts: h.Hosts(), mapper: h,
		check: noneStuck(func() int { return pool.Stats().Stuck }),
		close: pool.Close,
	}, nil
}

// stuckAfter is longer than any operation of a healthy disk takes: a call that is given up may still have its effect.
const stuckAfter = 5 * time.Minute

// stuck reports a call to the system that does not return.
func stuck(log *zap.Logger) func(op string, since time.Duration) {
	return func(op string, since time.Duration) {
		log.Error("a call to the host does not return and was given up; its thread is left behind", event(eventStuck),
			zap.String(logkeys.Name, op), zap.Duration(logkeys.Duration, since))
	}
}
