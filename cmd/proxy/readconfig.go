package main

import (
	"errors"
	"fmt"

	"go.uber.org/zap"

	"github.com/pipeguard/pipeguard/internal/config"
	"github.com/pipeguard/pipeguard/internal/core/access"
	"github.com/pipeguard/pipeguard/internal/filetrust"
	"github.com/pipeguard/pipeguard/internal/logkeys"
	"github.com/pipeguard/pipeguard/internal/proxy/acl"
	"github.com/pipeguard/pipeguard/internal/proxy/apiserver"
)

// knownAPIs are the APIs that the rules of a configuration may name.
func knownAPIs(settings config.Proxy) ([]access.API, error) {
	apis, err := apiserver.Load(apiserver.Groups()...)
	if err != nil {
		return nil, err
	}
	return settings.Known(apis), nil
}

// readConfig reads a file and compares its rules with what there is.
func readConfig(file string) (config.Proxy, *acl.Policy, error) {
	settings, err := config.LoadProxy(file)
	if err != nil {
		return settings, nil, err
	}
	policy, err := compare(settings)
	return settings, policy, err
}

// loadConfig reads the file that the flags name, at the start and at each reload. It refuses one that accounts other than administrators
// can change, and one with a deciding file that they can change.
func (f *flags) loadConfig() (config.Proxy, error) {
	if f.config != "" {
		if err := filetrust.Check(f.config); err != nil {
			return config.Proxy{}, fmt.Errorf("configuration: %w", err)
		}
	}
	settings, err := config.LoadProxy(f.config)
	if err != nil {
		return settings, err
	}
	return settings, errors.Join(untrusted(settings)...)
}

// untrusted has an error for each file named by a configuration that accounts other than administrators can change.
func untrusted(settings config.Proxy) []error {
	var errs []error
	for _, file := range settings.DecidingFiles() {
		if err := filetrust.Check(file.Path); err != nil {
			errs = append(errs, fmt.Errorf("configuration: %s: %w", file.Field, err))
		}
	}
	return errs
}

func compare(settings config.Proxy) (*acl.Policy, error) {
	known, err := knownAPIs(settings)
	if err != nil {
		return nil, err
	}
	if _, err := settings.Accounts(known); err != nil {
		return nil, err
	}
	return settings.Policy(known)
}

// sayConfig logs the configuration that was loaded at the start.
func sayConfig(file string, settings config.Proxy, revision string, log *zap.Logger) {
	if settings.IsMissing() {
		log.Error("no configuration: EVERY CALL WILL BE DENIED", event(eventDenyAll), zap.String(logkeys.Config, file))
		return
	}
	log.Info("access list loaded", zap.String(logkeys.Config, file), zap.String(logkeys.Revision, revision))
}
