package main

import (
	"fmt"

	"go.uber.org/zap"

	"github.com/pipeguard/pipeguard/internal/config"
	"github.com/pipeguard/pipeguard/internal/logkeys"
	"github.com/pipeguard/pipeguard/internal/proxy/acl"
	"github.com/pipeguard/pipeguard/internal/proxy/apiserver"
	"github.com/pipeguard/pipeguard/internal/winsvc"
)

// knownAPIs are the pipes that the rules of a configuration may name.
func knownAPIs(settings config.Proxy) ([]acl.API, error) {
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

// loadConfig reads the file that the flags name. One that nobody has named is read only if it is an administrator's.
func (f *flags) loadConfig() (config.Proxy, error) {
	if f.checkOwners {
		if err := winsvc.CheckOwners(f.config); err != nil {
			return config.Proxy{}, fmt.Errorf("configuration: %w", err)
		}
	}
	return config.LoadProxy(f.config)
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

// sayConfig logs what the start has found.
func sayConfig(file string, settings config.Proxy, revision string, log *zap.Logger) {
	if settings.IsMissing() {
		log.Error("no configuration: EVERY CALL WILL BE DENIED", event(eventDenyAll), zap.String(logkeys.Config, file))
		return
	}
	log.Info("access list loaded", zap.String(logkeys.Config, file), zap.String(logkeys.Revision, revision))
}
